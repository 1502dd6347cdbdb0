"""ParsedMessage many messages at once gives what reading them one by one gives; what was written is read again; no message
raises."""

# ruff: noqa: E501  (a mapping reads best on one line)

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.mapping import Decoded, decoder, encoder
from sparkstream_nb.mapping.attribute_values import arrays
from sparkstream_nb.mapping.batch_readers import FEWEST
from sparkstream_nb.mapping.csv_batch import csv_batch_reader
from sparkstream_nb.mapping.json_batch import json_batch_reader
from sparkstream_nb.plan.connectors.mapping import JsonSource, SourceMapping
from sparkstream_nb.types import Schema, Type

from .maps import events, sink, source

ALL = "s string, d double, l long, i int, f float, b bool"
PATHS = "@map(type='json', @attributes(s='$.e.s', d='e.d', l='l', i='$.i', f='e.x.f', b='b'))"
SOURCES = [
    "@map(type='json')",
    "@map(type='json', fail.on.missing.attribute='false')",
    PATHS,
    PATHS.replace("type='json'", "type='json', fail.on.missing.attribute='false'"),
    "@map(type='csv')",
    "@map(type='csv', delimiter=';', @attributes('1', '0', '2', '4', '3', '5'))",
    "@map(type='csv', fail.on.unknown.attribute='false')",
    "@map(type='text')",
    "@map(type='text', event.grouping.enabled='true')",
    "@map(type='keyvalue')",
    "@map(type='xml')",
    "@map(type='xml', fail.on.missing.attribute='false', enclosing.element='//e', @attributes('s', 'd', '@l', 'i', 'f', 'b'))",
]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "null", "1", 'a"b', "a,b", " "]
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
EVENTS = st.tuples(
    TEXTS, DOUBLES, st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1), FLOATS, st.booleans()
)
ODD = st.deferred(lambda: st.sampled_from(ODD_TOKENS))


def same(a: Decoded, b: Decoded) -> bool:
    """Whether two answers are equal, bit by bit."""
    return (
        all(x == y if isinstance(x, list) else x.type == y.type and _bits(x) == _bits(y)
            for x, y in zip(a.columns, b.columns, strict=True))
        and a.message.tolist() == b.message.tolist()
        and a.rejected == b.rejected
    )  # fmt: skip


def _bits(column: Any) -> list[str]:
    return [repr(v) for v in column.to_pylist()]


def agree_alone(mapping: SourceMapping, schema: Schema, messages: list[bytes]) -> int:
    """What the batch reader takes of these messages is what the reader of single ones makes of them; how many events."""
    lines = (json_batch_reader if isinstance(mapping.format, JsonSource) else csv_batch_reader)(mapping, schema)
    assert lines is not None
    found = lines(messages)
    if found is None or not len(found.messages):
        return 0
    chosen, number = np.unique(found.messages, return_inverse=True)
    alone = decoder(mapping, schema).decode([messages[i] for i in chosen.tolist()], fast=False)
    assert same(Decoded(found.columns, number, ()), alone)
    return len(found.messages)


def agree(mapping: SourceMapping, schema: Schema, messages: list[bytes], plain: bytes) -> None:
    """The messages among plain ones, by the fast reader and without it; and what this alone makes of each."""
    for some in [[m] for m in messages] + [messages]:
        agree_alone(mapping, schema, some)
    batch = [*messages[: len(messages) // 2], *[plain] * 70, *messages[len(messages) // 2 :]]
    d = decoder(mapping, schema)
    assert same(d.decode(batch), d.decode(batch, fast=False))


@st.composite
def json_messages(draw: st.DrawFn) -> bytes:
    """Messages that are nearly JSON of the attributes."""
    values = [json.dumps(v, ensure_ascii=draw(st.booleans())) for v in draw(EVENTS)]
    for at in draw(st.lists(st.integers(0, 5), max_size=2)):
        values[at] = draw(ODD)
    names = list("sdlifb")
    for at in draw(st.lists(st.integers(0, 5), max_size=1)):
        names[at] = draw(st.sampled_from(["s", "d", "x", "event", "Event", "e"]))
    pairs = [f'"{n}":{v}' for n, v in zip(names, values, strict=True)]
    comma = draw(st.sampled_from([",", ", ", ",\n", ",\r", ",,", ""]))
    shape = draw(st.sampled_from(["flat", "event", "nested", "array", "twice"]))
    if shape == "nested":
        e = comma.join([pairs[0], pairs[1], '"x":{' + pairs[4] + "}"])
        text = "{" + comma.join(['"e":{' + e + "}", pairs[2], pairs[3], pairs[5], '"more":[{"a":{}}]']) + "}"
    else:
        text = "{" + comma.join(pairs) + "}"
        text = {"event": '{"event":' + text + "}", "array": f"[{text},{text}]", "twice": text + text}.get(shape, text)
    cut = draw(st.integers(-3, 40))
    text = text[cut:] if 0 < cut < 3 else text[:cut] if cut < 0 else text
    return draw(st.sampled_from(["", "\ufeff", " ", "\n"])).encode() + text.encode("utf-8", "replace")


@pytest.mark.parametrize("text", SOURCES[:4])
@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_json_at_once_is_json_one_by_one(text: str, data: st.DataObject) -> None:
    mapping, schema = source(text, ALL)
    values = {"s": "p", "d": 1.5, "l": 1, "i": 2, "f": 2.5, "b": True}
    nested = {"e": {"s": "p", "d": 1, "x": {"f": 2}}, "l": 1, "i": 2, "b": True}
    plain = data.draw(st.sampled_from([values, {"event": values}, nested] if "attributes" not in text else [nested]))
    agree(mapping, schema, data.draw(st.lists(json_messages(), min_size=1, max_size=6)), json.dumps(plain).encode())


ODD_TOKENS = [
    "1", "1.0", "-0", "-0.0", "1e2", "1E400", "01", "+1", "1.", ".5", "NaN", "Infinity", "null", '"x"', '"1"', '""', "true",
    "{}", "[]", "[1]", '{"a":1}', '"\\ud800"', '"\\u0000"', '"\t"', "99999999999999999999", "0.12345678901234567890123",
    "2147483648", "", "3.0", "1e-400", "16777217.5", "0.1e1", '"a/b"',
]  # fmt: skip
FLAT = '{"s":"p","d":1.5,"l":1,"i":2,"f":2.5,"b":true}'
NESTED = '{"e":{"s":"p","d":1.5,"x":{"f":2.5}},"l":1,"i":2,"b":true}'


@pytest.mark.parametrize("text", SOURCES[:4])
def test_each_odd_token_alone(text: str) -> None:
    """In the place of each value, and left out, in messages that are plain otherwise."""
    mapping, schema = source(text, ALL)
    plain = NESTED if "attributes" in text else FLAT
    taken = 0
    for value in ('"p"', "1.5", ":1", ":2,", "2.5", "true"):
        for token in ODD_TOKENS:
            odd = value.replace(value.strip(":,"), token)
            message = plain.replace(value, odd).encode()
            for m in (message, b'{"event":' + message + b"}"):
                taken += agree_alone(mapping, schema, [m])
                agree_alone(mapping, schema, [plain.encode(), m, plain.encode()])
    for name in "sdlifb":
        for other in ("z", "s", "event", "Event", "S"):
            agree_alone(mapping, schema, [plain.replace(f'"{name}"', f'"{other}"').encode()])
    assert taken > 20


FRAGMENTS = [
    FLAT, NESTED, FLAT + FLAT, FLAT + "\n" + FLAT, "{", "}", "", " ", "null", "[]", f"[{FLAT}]", FLAT[:-1], FLAT[1:], FLAT[:10],
    FLAT[10:], FLAT[:-1] + ',"z":{' , FLAT[:-1] + ',"z":{}', FLAT[:-1] + ',"s":"}', '{"s":"p"', ',"d":1.5}', FLAT + ",", "\ufeff" + FLAT,
    FLAT.replace(",", ",\n"), FLAT.replace(",", ",\r"), " " + FLAT, FLAT + " ", '{"a":' * 150 + "1" + "}" * 150, "{}", "{}{}", "{{}}",
    '{"z":' + "[" * 250 + "]" * 250 + "," + FLAT[1:], '{"z":' + "[" * 250 + "]" * 250 + "," + NESTED[1:],
]  # fmt: skip


@pytest.mark.parametrize("text", SOURCES[:4])
def test_fragments_side_by_side(text: str) -> None:
    """Messages are told apart, whatever stands beside them."""
    mapping, schema = source(text, ALL)
    plain = NESTED if "attributes" in text else FLAT
    for cut in range(1, len(plain)):  # two halves and two wholes: as many objects as messages
        agree_alone(mapping, schema, [plain[:cut].encode(), plain[cut:].encode(), (plain + plain).encode()])
    for a in FRAGMENTS:
        for b in FRAGMENTS:
            agree_alone(mapping, schema, [a.encode(), b.encode()])


CSV_VALUES = (
    ODD
    | TEXTS
    | DOUBLES.map(str)
    | FLOATS.map(repr)
    | st.integers().map(str)
    | st.sampled_from(["TRUE", "1f", "1_0", "٣"])
)


@pytest.mark.parametrize("text", SOURCES[4:7])
@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_csv_at_once_is_csv_one_by_one(text: str, data: st.DataObject) -> None:
    mapping, schema = source(text, ALL)
    delimiter = ";" if ";" in text else ","
    plain = delimiter.join(
        ["1.5", "p", "1", "2", "2", "true"] if ";" in text else ["p", "1.5", "1", "2", "2.5", "true"]
    )
    lines = st.lists(CSV_VALUES, min_size=4, max_size=7).map(delimiter.join)
    good = EVENTS.map(lambda e: delimiter.join([e[0], repr(e[1]), str(e[2]), str(e[3]), repr(e[4]), str(e[5])]))
    line = lines | good
    ends = st.sampled_from(["\n", "\r\n", "\n\n", "\r"])
    several = st.tuples(line, ends, line, ends, good).map("".join) | st.tuples(good, ends).map("".join)
    messages = data.draw(st.lists(line | several, min_size=1, max_size=6))
    agree(mapping, schema, [m.encode() for m in messages], plain.encode())


LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8).map(lambda t: t.strip() or "x")


@pytest.mark.parametrize(
    ("text", "back", "strings"),
    [
        ("@map(type='json')", None, TEXTS),
        ("@map(type='json', enclosing.element='$.a.b')",
         "@map(type='json', enclosing.element='$.a.b', @attributes('event.s', 'event.d', 'event.l', 'event.i', 'event.f', 'event.b'))", TEXTS),
        ("@map(type='csv')", None, TEXTS),
        ("@map(type='csv', delimiter='|', event.grouping.enabled='true')", None, TEXTS),
        ("@map(type='text')", None, LINES),
        ("@map(type='text', event.grouping.enabled='true')", None, LINES),
        ("@map(type='keyvalue')", None, TEXTS),
        ("@map(type='xml')", None, st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=8)),
    ],
)  # fmt: skip
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_what_is_written_is_read(
    text: str, back: str | None, strings: st.SearchStrategy[str], data: st.DataObject
) -> None:
    rows = [[data.draw(strings), *e[1:]] for e in data.draw(st.lists(EVENTS, min_size=1, max_size=5))]
    written, schema = sink(text, ALL)
    columns = arrays(schema, rows)
    messages = encoder(written, schema).encode(columns, np.zeros(len(rows), np.int64))
    assert sum(m.count for m in messages) == len(rows)
    read, _ = source(back or text, ALL)
    found = decoder(read, schema).decode([m.body for m in messages])
    assert found.rejected == ()
    assert [_bits(c) for c in found.columns] == [_bits(c) for c in columns]


BYTES = (
    st.binary(max_size=60)
    | st.text(st.sampled_from('{}[]",:<>&=/!?sdlifb 01.\n\r\\#e'), max_size=60).map(str.encode)
    | json_messages()
)


@pytest.mark.parametrize("text", SOURCES)
@given(messages=st.lists(BYTES, max_size=5))
@settings(max_examples=examples(80), deadline=None)
def test_no_message_raises(text: str, messages: list[bytes]) -> None:
    mapping, schema = source(text, ALL)
    found = decoder(mapping, schema).decode(messages)
    assert [a.type is Type.OBJECT or len(c) for a, c in zip(schema, found.columns, strict=True)] == [len(found)] * 6
    assert found.message.tolist() == sorted(found.message.tolist())
    for rejected in found.rejected:
        assert 0 <= rejected.message < len(messages)
        assert rejected.reason
        assert "\n" not in rejected.reason
    events(found)


SINKS = [
    "@map(type='json')",
    "@map(type='json', enable.null.attribute.value='true')",
    "@map(type='json', @payload('{{s}}|{{d}}|{{f}}|{{b}}{{l}}'))",
    "@map(type='csv')",
    "@map(type='csv', delimiter=';', @payload(b='0', s='2', f='1'))",
    "@map(type='csv', delimiter='.')",
    "@map(type='text')",
    "@map(type='text', @payload('fixed'))",
    "@map(type='keyvalue')",
    "@map(type='xml')",
]


@pytest.mark.parametrize("text", SINKS)
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_whole_columns_are_written_as_single_events(text: str, data: st.DataObject) -> None:
    mapping, schema = sink(text, ALL)
    rows = [list(e) for e in data.draw(st.lists(EVENTS, min_size=2, max_size=6))]
    rows[0][0] = data.draw(st.sampled_from(["", "#", " x", "x ", "a\nb", "\u2028", "\x00", "\\", "a;b", "é", None]))
    for at in data.draw(st.lists(st.integers(0, 5), max_size=2)):
        rows[1][at] = None
    write = encoder(mapping, schema)
    single = [write.encode(arrays(schema, [row]), np.zeros(1, np.int64))[0].body for row in rows]
    times, n = -(-FEWEST // len(rows)), -(-FEWEST // len(rows)) * len(rows)
    whole = write.encode(arrays(schema, rows * times), np.zeros(n, np.int64), np.arange(n))
    assert [m.body for m in whole] == single * times
