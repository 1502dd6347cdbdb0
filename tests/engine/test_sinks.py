"""What the cases cannot show of sinks: where events go that nobody took."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.batch import InputBatch, Outputs, StreamRows
from sparkstream_nb.engine.columns import Strings
from sparkstream_nb.engine.faults import ErrorObject, Undelivered
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.snapshot import pack, unpack
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
    strings = Strings()
    back = unpack(pack([Undelivered("a"), ErrorObject("b")], strings), strings)
    assert [(type(e), str(e)) for e in back] == [(Undelivered, "a"), (ErrorObject, "b")]
