"""Messages that are no texts: Siddhi's binary ones (siddhi-map-binary), and Avro's records (siddhi-map-avro)."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.errors import Misuse, NotInThisBuild, SiddhiBindError
from sparkstream_nb.mapping import DroppedMessage, decoder, encoder
from sparkstream_nb.mapping.attribute_values import arrays

from .maps import decode, events, sink, source

ALL = "s string, i int, l long, f float, d double, b bool"
BINARY = "@map(type='binary')"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)
ROW = st.tuples(
    TEXTS | st.none(), st.integers(-(2**31), 2**31 - 1), LONGS, FLOATS, st.floats(allow_nan=False), st.booleans()
).map(list)


@given(st.lists(ROW, min_size=1, max_size=10), st.booleans())
def test_what_is_written_in_binary_is_read(rows: list[list[Any]], chunks: bool) -> None:
    mapping, schema = sink(BINARY, ALL)
    groups = np.arange(len(rows)) if chunks else None
    found = encoder(mapping, schema).encode(arrays(schema, rows), np.arange(len(rows)), groups)
    assert len(found) == (len(rows) if chunks else 1)
    read, _ = source(BINARY, ALL)
    back = decoder(read, schema).decode([m.body for m in found])
    assert events(back) == [[r[0] or None, *r[1:]] for r in rows]


def test_the_bytes_of_a_binary_message() -> None:
    mapping, schema = sink(BINARY, ALL)
    rows = [["ü", 1, 2, 0.5, 0.25, True], [None, -1, -2, 0.5, 0.25, False]]
    (found,) = encoder(mapping, schema).encode(arrays(schema, rows), np.array([7, 8]))
    assert found.body == (
        struct.pack(">i", 2)
        + struct.pack(">qi", 7, 2) + "ü".encode() + struct.pack(">iqfdb", 1, 2, 0.5, 0.25, 1)
        + struct.pack(">qi", 8, 0) + struct.pack(">iqfdb", -1, -2, 0.5, 0.25, 0)
    )  # fmt: skip


@given(st.binary(max_size=80))
def test_no_bytes_raise(message: bytes) -> None:
    for mapping in (BINARY, "@map(type='avro')", AVRO):
        found = decode(mapping, ALL, message)
        assert len(found) or found.rejected or message == struct.pack(">i", 0)


def test_many_binary_messages_are_read_as_each_alone() -> None:
    bodies = [struct.pack(">iqi", 1, 0, 1) + b"a" + struct.pack(">iqfdb", i, 0, 0, 0, 1) for i in range(200)]
    bodies[7] = b"no"
    found = decode(BINARY, ALL, *bodies)
    assert [e[1] for e in events(found)] == [i for i in range(200) if i != 7]
    assert [(r.message, r.text) for r in found.rejected] == [(7, "base64:bm8=")]


# --------------------------------------------------------------------------------------------------------------- avro

RECORD: dict[str, Any] = {
    "type": "record",
    "name": "Trade",
    "fields": [
        {"name": "s", "type": ["null", "string"]},
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "b", "type": "boolean"},
    ],
}


def quoted(schema: dict[str, Any]) -> str:
    """A schema as a text of SiddhiQL."""
    return f'"""{json.dumps(schema)}"""'


AVRO = f"@map(type='avro', schema.def={quoted(RECORD)})"
NESTED: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "who", "type": {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]}},
        {"name": "items", "type": {"type": "array", "items": "int"}},
    ],
}


def written(schema: dict[str, Any], record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def test_records_become_events() -> None:
    record = {"s": "ü", "i": 1, "l": None, "f": 0.5, "d": 55.0, "b": True}
    found = decode(AVRO, ALL, written(RECORD, record), written(RECORD, record)[:-1], written(RECORD, record) + b"x")
    assert events(found) == [["ü", 1, None, 0.5, 55.0, True]]
    assert [r.message for r in found.rejected] == [1, 2]
    assert all(r.reason.startswith("it is no Avro message of this schema: ") for r in found.rejected)
    assert all(r.text.startswith("base64:") for r in found.rejected)


def test_a_record_of_the_streams_attributes_without_a_schema() -> None:
    fields = [{"name": "k", "type": "string"}, {"name": "v", "type": "int"}]
    schema = {"type": "record", "name": "Any", "fields": fields}
    assert events(decode("@map(type='avro')", "k string, v int", written(schema, {"k": "a", "v": 1}))) == [["a", 1]]
    mapping, of = sink("@map(type='avro')", "k string, v int")
    (found,) = encoder(mapping, of).encode(arrays(of, [["a", 1]]), np.zeros(1, np.int64))
    assert found.body == written(schema, {"k": "a", "v": 1})


def test_paths_in_records() -> None:
    mapping = f"@map(type='avro', schema.def={quoted(NESTED)}, @attributes(k='$.who.name', v='$.items[1]'))"
    body = written(NESTED, {"who": {"name": "anna"}, "items": [1, 2]})
    assert events(decode(mapping, "k string, v int", body)) == [["anna", 2]]


def test_events_become_records() -> None:
    mapping, schema = sink(AVRO, ALL)
    rows = [["ü", 1, 2**62, 0.5, 0.25, True], [None, 1, None, 0.5, 0.25, True], ["x", None, 1, 0.5, 0.25, True]]
    dropped: list[DroppedMessage] = []
    found = encoder(mapping, schema).encode(arrays(schema, rows), np.zeros(3, np.int64), None, dropped)
    parsed = fastavro.parse_schema(RECORD)
    read = [fastavro.schemaless_reader(io.BytesIO(m.body), parsed, None) for m in found]
    assert [[r[n] for n in "silfdb"] for r in read] == rows[:2]
    assert [d.message.events for d in dropped] == [[2]]
    assert dropped[0].reason.startswith("it is no record of the schema: ")


def test_a_payload_is_the_json_of_a_record() -> None:
    text = '''@payload("""{"who":{"name":"{{k}}"},"items":[{{v}}]}""")'''
    mapping, schema = sink(f"@map(type='avro', schema.def={quoted(NESTED)}, {text})", "k string, v int")
    dropped: list[DroppedMessage] = []
    rows = [["anna", 3], ['"', 4]]
    found = encoder(mapping, schema).encode(arrays(schema, rows), np.zeros(2, np.int64), None, dropped)
    assert [m.body for m in found] == [written(NESTED, {"who": {"name": "anna"}, "items": [3]})]
    assert [d.reason for d in dropped] == ["its payload is not JSON"]


@pytest.mark.parametrize(
    ("text", "attributes", "message"),
    [
        ("@map(type='avro', schema.def='{')", ALL, "schema.def is not JSON"),
        ('''@map(type='avro', schema.def="""{"type":"what"}""")''', ALL, "of an avro mapping is no Avro schema"),
        ("@map(type='avro', schema.registry='http://h')", ALL, "schema.registry and schema.id of an avro mapping go"),
        ("@map(type='avro', schema.registry='http://h', schema.id='x')", ALL, "schema.id is a number, found 'x'"),
        ("@map(type='avro', use.avro.deserializer='true')", ALL, "belongs to WSO2's siddhi-map-avro"),
        ("@map(type='avro')", "o object", "an avro mapping has no values for 'o', which is an object"),
        ("@map(type='binary', @attributes(s='a'))", "s string", "has the stream's attributes in their order"),
    ],
)
def test_what_is_wrong(text: str, attributes: str, message: str) -> None:
    with pytest.raises((SiddhiBindError, NotInThisBuild, Misuse)) as raised:
        decode(text, attributes)
    assert message in str(raised.value)
