"""Texts that are not UTF-8, which Arrow and parquet take for texts: errors of their rows, and the app goes on."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka import TopicPartition

from sparkstream_nb.app import App, deploy
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.ingest.ingest import python_values
from sparkstream_nb.ingest.row_typing import type_rows
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.plan.connectors.mappings import source_mapping
from sparkstream_nb.recovery.quarantine import errors_of
from sparkstream_nb.sources.kafka_process import Process
from sparkstream_nb.sources.kafka_records import Messages
from sparkstream_nb.types import Attribute, Schema, Type
from tests.processes import free_port

Run = Callable[..., App]
APP = """define stream S (k string, v int);
@info(name='all') from S[v > 0] select k, v insert into O;
@info(name='last') from S#window.length(3) select k, sum(v) as s group by k insert into P;
"""
SPOILT = b"b\xff\xfe"


def texts(*values: bytes | None) -> pa.Array:
    """Bytes that are said to be texts."""
    return pa.array(values, pa.binary()).view(pa.string())


KINDS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "string": lambda a: a,
    "large": lambda a: a.cast(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
    "dictionary": lambda a: a.dictionary_encode(),
    "view": lambda a: a.cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()),
    "bytes": lambda a: a.cast(pa.binary()),
    "large bytes": lambda a: a.cast(pa.binary()).cast(pa.large_binary()),
}


@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("way", [*KINDS, "parquet"])
def test_a_text_that_is_none_is_an_error_of_its_row(run: Run, tmp_path: Path, way: str) -> None:
    table = pa.table(
        {"k": KINDS.get(way, KINDS["string"])(texts(b"a", SPOILT, b"c")), "v": pa.array([1, 2, 3], pa.int32())}
    )
    if way == "parquet":
        pq.write_table(table, tmp_path / "x.parquet")
    app = run(APP)
    report = app.feed("S", tmp_path / "x.parquet" if way == "parquet" else table)
    assert (report.rows, report.rejected) == (3, 1)
    app.send("S", ["d", 4])
    app.flush()
    assert app.output("O").frame["k"].tolist() == ["a", "c", "d"]
    errors = app.errors.frame
    assert errors["values"].tolist() == [["b\\xff\\xfe", 2]]
    assert errors["reason"].tolist() == ["k: the text is not valid UTF-8"]
    assert app.state == "running"


def test_setting_aside_survives_it() -> None:
    rows = StreamRows(np.arange(2), np.array([10, 20]), [texts(SPOILT, b"a"), pa.array([1, 2], pa.int32())])
    found = errors_of(InputBatch(np.array([10, 20]), {"S": rows}), "why")
    assert [(e.ts, e.values) for e in found] == [(10, ["b\\xff\\xfe", 1]), (20, ["a", 2])]


def test_what_is_not_text_among_other_values() -> None:
    schema = Schema((Attribute("n", Type.INT), Attribute("o", Type.OBJECT)))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 2]), texts(b"x", SPOILT))
    typed = type_rows(pa.table({"n": texts(b"1", b"2", SPOILT), "o": lists}), schema)
    assert len(typed) == 1
    spoilt = "the text is not valid UTF-8"
    assert typed.rejected == [(None, ["2", None], f"o: {spoilt}"), (None, ["b\\xff\\xfe", []], f"n: {spoilt}")]
    assert python_values(lists) == [["x"], spoilt, []]
    assert python_values(texts(b"x", None, SPOILT).dictionary_encode()) == ["x", None, "b\\xff\\xfe"]


FORMATS = {
    "json": b'{"event":{"k":"\xff","v":1}}',
    "csv": b"\xff,1",
    "text": b'k:"\xff",\nv:1',
    "xml": b"<events><event><k>\xff</k><v>1</v></event></events>",
    "keyvalue": b"k=\xff&v=1",
}


def test_http_requests_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    """With 400, counted, and kept with their bytes, from which they can be sent again."""
    port = free_port()
    sources = "".join(
        f"@source(type='http', receiver.url='http://localhost:{port}/{kind}', @map(type='{kind}'))" for kind in FORMATS
    )
    text = f"{sources} define stream S (k string, v int); from S select k, v insert into O;"
    app = deploy(text, master="inline", home=tmp_path, allow=[f"http=http://localhost:{port}/"])
    try:
        for number, (kind, body) in enumerate(FORMATS.items(), 1):
            token = Path(app.home, "sources", f"S-http-{number}.token").read_text().strip()
            request = urllib.request.Request(
                f"http://localhost:{port}/{kind}", body, {"Authorization": f"Bearer {token}"}
            )
            with pytest.raises(urllib.error.HTTPError) as refusal:
                urllib.request.urlopen(request, timeout=60)
            assert refusal.value.code == 400
            assert "not UTF-8 text: 0xff at byte" in refusal.value.read().decode()
            assert app.stats().sources[number - 1].rejected == 1
        app.flush()
        errors = app.errors.frame
        kept = [v["message"] for v in errors["values"]]
        assert kept == [f"base64:{base64.b64encode(body).decode()}" for body in FORMATS.values()]
        assert app.replay(errors.index.tolist()).sent == 0
        edited = errors.copy()
        edited["values"] = [
            {**v, "message": base64.b64decode(v["message"].removeprefix("base64:")).decode("latin-1")}
            for v in errors["values"]
        ]
        assert app.replay(edited).sent == len(FORMATS)
        app.flush()
        assert app.output("O").frame["k"].tolist() == ["ÿ"] * len(FORMATS)
    finally:
        app.stop()
        app.close()


def test_kafka_properties_that_are_not_utf8_reject_their_message() -> None:
    """A key and a header; others, that no attribute is taken from, may be anything."""
    stream = parse(
        "@source(type='kafka', @map(type='csv', @attributes(v='0', k='trp:key', who='trp:who'))) "
        "define stream S (v int, k string, who string);"
    ).definitions[0]
    schema = Schema((Attribute("v", Type.INT), Attribute("k", Type.STRING), Attribute("who", Type.STRING)))
    mapping = source_mapping(stream.annotations[0].nested[0], schema)
    process = Process.__new__(Process)
    process._properties, process._decoder = frozenset({"key", "who"}), decoder(mapping, schema)
    own = [
        (b"a", [("who", b"me"), ("other", b"\xff")]),
        (b"k\xff", [("who", b"me")]),
        (b"c", [("who", b"\xfe")]),
        (b"d", [("who", b"you")]),
        (b"\xff", [("who", b"no value")]),
    ]
    messages = Messages(np.arange(5), np.arange(5), [b"1", b"2", b"3", b"4", None], own)
    result = process._decode_messages([(TopicPartition("t", 0), messages)])
    assert [c.to_pylist() for c in result.columns] == [[1, 4], ["a", "d"], ["me", "you"]]
    assert result.message.tolist() == [0, 3]
    assert [(r.message, r.reason, r.text, dict(r.properties)) for r in result.rejected] == [
        (1, "its transport property 'key' is not UTF-8 text: 0xff at byte 2 after 'k'", "2", {"who": "me"}),
        (2, "its transport property 'who' is not UTF-8 text: 0xfe at byte 1", "3", {"key": "c"}),
        (4, "it has no value (a tombstone)", "", {}),
    ]
