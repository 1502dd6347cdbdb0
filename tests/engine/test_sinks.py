"""What the cases cannot show of sinks: where events go that nobody took."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.columnar.column_data import StringPool
from sparkstream_nb.engine.columnar.error_routing import ErrorObject, Undelivered
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, Outputs, StreamRows
from sparkstream_nb.engine.state.snapshot import pack, unpack
from sparkstream_nb.plan import compile_app

S = "define stream S (k string);\n"


def _run(app: str, texts: list[str]) -> Outputs:
    """One event a step with each text on stream S."""
    n = len(texts)
    rows = StreamRows(np.arange(n), np.arange(n) + 1000, [pa.array(texts)])
    return NodeEngine(compile_app(app)).step(InputBatch(np.arange(n) + 1000, {"S": rows}))


def _errors(out: Outputs) -> list[tuple[str, list[Any], str]]:
    return [(e.stream, e.values, e.message) for e in out.errors]


def test_on_error_store_keeps_what_no_source_hears() -> None:
    sink = "@sink(type='inMemory', topic='{{k}}', on.error='store') define stream O (k string);"
    source = "@source(type='inMemory', topic='a') define stream X (k string);"
    out = _run(f"{S}{sink}{source} from S select k insert into O;", ["a", "b"])
    assert _errors(out) == [("O", ["b"], "no source listens to topic 'b'")]


def test_on_error_stream_goes_where_on_error_of_the_stream_says() -> None:
    sink = "@sink(type='inMemory', topic='t', on.error='stream') define stream O (k string);"
    select = "from S select k insert into O;"
    assert _errors(_run(S + sink + select, ["a"])) == [("O", ["a"], "no source listens to topic 't'")]
    logged = _run(f"{S}@OnError(action='LOG') {sink}{select}", ["a"])
    assert not logged.errors
    assert [line for line in logged.logs if "no source listens to topic 't'" in line]


def test_a_mapped_transport_property_makes_each_event_an_error() -> None:
    sink = "@sink(type='inMemory', topic='t') define stream O (k string);"
    map_ = "@map(type='passThrough', @attributes('trp:k'))"
    source = f"@source(type='inMemory', topic='t', {map_}) define stream X (k string);"
    out = _run(f"{S}{sink}{source} from S select k insert into O; from X select k insert into P;", ["a"])
    assert _errors(out) == [("X", ["a"], "the inMemory source has no transport property 'trp:k'")]
    assert "P" not in out.streams or len(out.streams["P"]) == 0


def test_a_snapshot_keeps_the_kind_of_an_error() -> None:
    strings = StringPool()
    back = unpack(pack([Undelivered("a"), ErrorObject("b")], strings), strings)
    assert [(type(e), str(e)) for e in back] == [(Undelivered, "a"), (ErrorObject, "b")]


PUBLISHED = """
@sink(type='http', publisher.url='http://localhost/in', @map(type='json')) define stream S (v int);
@sink(type='file', file.uri='out.csv', @map(type='csv')) define stream Big (v int);
from S[v > 2] select v insert into Big;
from Big#window.length(2) select sum(v) as v insert into Sums;
"""


@pytest.mark.parametrize("by_chunk", [False, True])
@pytest.mark.parametrize("publishes", [False, True])
def test_outputs_of_published_streams_have_what_comes_in(by_chunk: bool, publishes: bool) -> None:
    """In the order in which the stream's readers see it."""
    node = NodeEngine(compile_app(PUBLISHED), by_chunk=by_chunk, outputs=OutputOptions(publishes=publishes))
    clock, steps = np.array([10, 20, 30, 40]), np.array([0, 2, 3])
    columns = [pa.array([1, 5, 7], pa.int32())]
    batch = InputBatch(
        clock,
        {
            "S": StreamRows(steps, clock[steps], columns),
            "Big": StreamRows(np.array([1]), clock[1:2], [pa.array([9], pa.int32())]),
        },
    )
    found = {s: [(t, v[0]) for t, v in e.rows()] for s, e in node.step(batch).streams.items()}
    assert [v for _, v in found.pop("Sums")] == [9, 14, 12]
    big = [(30, 5), (40, 7)]
    both = {"S": [(10, 1), (30, 5), (40, 7)], "Big": [(20, 9), *big]}
    assert found == (both if publishes else {"Big": big})


@pytest.mark.parametrize("by_chunk", [False, True])
def test_chunks_of_an_output_are_numbered_in_order(by_chunk: bool) -> None:
    """Two events at once, three, and then one by one, put out by two queries."""
    app = compile_app(S + "from S select k insert into O; from S[k == 'a'] select 'of a' as k insert into O;")
    node = NodeEngine(app, by_chunk=by_chunk, outputs=OutputOptions(chunks=True))
    steps = np.array([0, 0, 1, 1, 1, 2, 3])
    rows = StreamRows(steps, steps + 1000, [pa.array(list("abbaaba"))])
    out = node.step(InputBatch(np.arange(4) + 1000, {"S": rows})).streams["O"]
    assert out.chunks is not None
    values = out.columns[0].to_pylist()
    chunks = [[v for v, n in zip(values, out.chunks.number, strict=True) if n == x] for x in set(out.chunks.number)]
    assert sorted(chunks) == [["a"], ["a", "b"], ["b"], ["b", "a", "a"], ["of a"], ["of a"], ["of a", "of a"]]
    assert (np.diff(out.chunks.number) >= 0).all()
