"""JSON messages: facts of siddhi-map-json 5.2, mostly of its own test suite."""

# ruff: noqa: E501  (a message reads best on one line)

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sparkstream_nb.errors import Misuse
from sparkstream_nb.mapping import DroppedMessage, decoder, encoder
from sparkstream_nb.mapping.attribute_values import arrays

from .maps import STOCK, bodies, decode, encode, events, sink, source

F = np.float32
JSON = "@map(type='json')"
LOOSE = "@map(type='json', fail.on.missing.attribute='false')"
EVENT = "@map(type='json', @attributes(symbol='event.symbol', price='event.price', volume='event.volume'))"
STOCKS = "@map(type='json', enclosing.element='portfolio', @attributes(symbol='stock.company.symbol', price='stock.price', volume='stock.volume'))"
STOCKS_LOOSE = STOCKS.replace("enclosing", "fail.on.missing.attribute='false', enclosing")


def f(value: float) -> float:
    return float(F(value))


@pytest.mark.parametrize(
    ("mapping", "message", "expected"),
    [
        (JSON, '{"event":{"symbol":"WSO2","price":55.6,"volume":100}}', [["WSO2", f(55.6), 100]]),
        (JSON, '{"symbol":"WSO2","price":55.6,"volume":100}', [["WSO2", f(55.6), 100]]),
        (JSON, ' {\n "EVENT" : {"symbol":"WSO2@#$%^*","price":55,"volume":100}}\n', [["WSO2@#$%^*", 55.0, 100]]),
        (JSON, '{"event":{"symbol":"WSO2","price":null,"volume":100}}', [["WSO2", None, 100]]),
        (JSON, '{"event":{"symbol":123,"price":1,"volume":100}}', [["123", 1.0, 100]]),
        (JSON, '{"event":{"symbol":1.50,"price":1,"volume":100}}', [["1.50", 1.0, 100]]),
        (JSON, '{"event":{"symbol":true,"price":1,"volume":100}}', [["true", 1.0, 100]]),
        (JSON, '{"event":{"symbol":{"a":[1, 2.50, null]},"price":1,"volume":100}}', [['{"a":[1,2.5,null]}', 1.0, 100]]),
        (JSON, '{"event":{"symbol":null,"volume":100}}', "it lacks price"),
        (LOOSE, '{"event":{"price":56,"volume":100}}', [[None, 56.0, 100]]),
        (LOOSE, "{}", [[None, None, None]]),
        (JSON, "{}", "it lacks symbol, price, volume"),
        (JSON, '{"event":5}', "it lacks"),
        (JSON, '{"event":{"symbol":"WSO2","price":55.6,"volume":""}}', 'volume: the JSON value "" is not a long'),
        (JSON, '{"event":{"symbol":"WSO2","price":55.6,"volume":100.20}}', "volume: the JSON value 100.2 is not a long"),
        (JSON, '{"event":{"symbol":"WSO2","price":"55.6","volume":100}}', 'price: the JSON value "55.6" is not a float'),
        (JSON, '{"event":{"symbol":"WSO2","price":USD55.6,"volume":100}}', "not JSON"),
        (JSON, '{"event":{"TESTevent":{"symbol":"WSO2"}}}', "no attribute 'TESTevent'"),
        (JSON, '{"testEvent":{"symbol":"WSO2","price":55.6,"volume":100}}', "no attribute 'testEvent'"),
        (JSON, '{"event":{"symbol":"WSO2","price":10.12,"discount":"3%","volume":100}}', "no attribute 'discount'"),
        (JSON, '{"event":{"symbol":"WSO2","price":1.5,"volume":9223372036854775808}}', "is not a long"),
        (JSON, '{"symbol":"a","price":1.5,"volume":1,"volume":2}', "a name occurs in it twice"),
        (LOOSE, '{"symbol":"a","price":1.5,"volume":1,"volume":2}', [["a", 1.5, 2]]),
        (JSON, '{"symbol":"a","price":NaN,"volume":1}', "'NaN' is not JSON"),
        (JSON, '{"symbol":"a","price":1e400,"volume":1}', [["a", math.inf, 1]]),
        (JSON, "{'symbol':'a','price':1,'volume':1}", "not JSON"),
        (JSON, '{"symbol":"a","price":1,"volume":1} {}', "not JSON"),
        (JSON, "", "not JSON"),
        (JSON, "null", "not an object"),
        (JSON, '"text"', "not an object"),
        (JSON, '\ufeff{"symbol":"é😀\\u0041\\ud83d\\ude00","price":1,"volume":1}', [["é😀A😀", 1.0, 1]]),
        (JSON, '{"symbol":"\\ud800","price":1,"volume":1}', [["?", 1.0, 1]]),
        (JSON, b'{"symbol":"\xff","price":1,"volume":1}', "not UTF-8 text: 0xff at byte 12 after '{\"symbol\":\"'"),
        # Arrays: Gson's reader, values by their texts, further names ignored.
        (JSON, '[{"event":{"symbol":"A","price":55.6,"volume":100}},{"symbol":"B","price":"56","volume":"99"}]', [["A", f(55.6), 100], ["B", 56.0, 99]]),
        (JSON, '[{"symbol":"A","price":1,"more":2}]', [["A", 1.0, None]]),
        (JSON, "[]", []),
        (JSON, "[{'symbol':'A','price':1,volume:2}]", [["A", 1.0, 2]]),
        (JSON, '[{"symbol":"A","price":null,"volume":1}]', "price: 'null' in an array"),
        (JSON, '[{"symbol":"A","price":1,"volume":1.0},{"symbol":"B","price":1,"volume":1}]', "volume: '1.0' is not a long"),
        (JSON, "[5]", "not an object: '5'"),
        # Paths.
        (EVENT, '{"event":{"symbol":"A","price":55.6,"volume":100},"more":[1]}', [["A", f(55.6), 100]]),
        (EVENT, '{"event":{"symbol":"A","price":"55.6","volume":"100"}}', [["A", f(55.6), 100]]),
        (EVENT, '{"event":{"symbol":1e3,"price":null,"volume":100}}', [["1000.0", None, 100]]),
        (EVENT, '{"event":{"symbol":{"k":"<"},"price":1,"volume":100}}', [['{"k":"\\u003c"}', 1.0, 100]]),
        (EVENT, '{"event":{"symbol":["a/b",1],"price":1,"volume":100}}', [['["a\\/b",1]', 1.0, 100]]),
        (EVENT, '{"event":{"symbol":"A","price":1,"volume":1e2}}', "volume: '100.0' is not a long"),
        (EVENT, '{"event":{"symbol":"A","price":1}}', "it has no 'event.volume' for volume"),
        (EVENT, "{event:{symbol:A,price:1,volume:2}}", [["A", 1.0, 2]]),
        (EVENT, "[1, null]", "an item of the array is null"),
        (EVENT, "null", "it is null"),
        (STOCKS, '{"portfolio":{"stock":{"volume":100,"company":{"symbol":"wso2"},"price":55.6}}}', [["wso2", f(55.6), 100]]),
        (STOCKS, '{"portfolio":[{"stock":{"volume":1,"company":{"symbol":"a"},"price":56.6}},{"stock":{"volume":null,"company":{"symbol":"b"},"price":57.6}}]}', [["a", f(56.6), 1], ["b", f(57.6), None]]),
        (STOCKS, '{"other":1}', "it has no 'portfolio'"),
        (STOCKS, '{"portfolio":null}', "it has no 'portfolio'"),
        (STOCKS_LOOSE, '{"portfolio":[{"stock":{"volume":1}}]}', [[None, None, 1]]),
        ("@map(type='json', @attributes('$.a', '$.b[1]', \"$['c d']\"))", '{"a":"x","b":[1,2],"c d":3}', [["x", 2.0, 3]]),
        ("@map(type='json', @attributes('$..n', '$.p', '$.v.length()'))", '{"n":1,"q":{"n":2},"p":1,"v":[1,2,3]}', [["[1,2]", 1.0, 3]]),
    ],
)  # fmt: skip
def test_messages(mapping: str, message: str | bytes, expected: list[list[object]] | str) -> None:
    """Events, or why there are none; alike in a batch that is read at once."""
    found = decode(mapping, STOCK, message)
    plain = '{"event":{"symbol":"P","price":1.5,"volume":1}}'
    raw = message.encode() if isinstance(message, str) else message
    batch = decode(mapping, STOCK, *[plain] * 70, raw, *[plain] * 70)
    at = batch.message == 70
    assert events(found) == [e for e, hit in zip(events(batch), at, strict=True) if hit]
    assert [(r.reason, r.text) for r in found.rejected] == [
        (r.reason, r.text) for r in batch.rejected if r.message == 70
    ]
    if isinstance(expected, str):
        assert events(found) == []
        assert len(found.rejected) == 1
        assert expected in found.rejected[0].reason
        assert "\n" not in found.rejected[0].reason
    else:
        assert events(found) == expected
        assert found.rejected == ()


def test_an_item_that_lacks_an_attribute_fails_alone() -> None:
    texts = ['{"symbol":"A","price":1,"volume":1}', '{"symbol":"B","price":1}', '{"event":{"symbol":"C"}}']
    found = decode(JSON, STOCK, "[" + ",".join(texts) + "]")
    assert events(found) == [["A", 1.0, 1]]
    assert [r.reason for r in found.rejected] == ["it lacks volume", "it lacks price, volume"]
    assert json.loads(found.rejected[0].text) == {"symbol": "B", "price": 1}
    some = decode(
        STOCKS, STOCK, '{"portfolio":[{"stock":{}}, {"stock":{"company":{"symbol":"a"},"price":1,"volume":2}}]}'
    )
    assert events(some) == [["a", 1.0, 2]]
    assert len(some.rejected) == 1


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("double", "55.5", 55.5), ("double", "1e2", 100.0), ("double", "55", "55 is a whole number, and a double is written with a point: 55.0"),
        ("double", '"55.5"', "is not a double"), ("float", "3", 3.0), ("int", "2147483647", 2147483647),
        ("int", "2147483648", "is not an int"), ("int", "1.0", "is not an int"), ("bool", "true", True),
        ("bool", '"true"', "is not a bool"), ("bool", "1", "is not a bool"), ("object", "5", 5), ("object", "2.5", 2.5),
        ("object", "3000000000", "is not an int"), ("object", '"x"', "x"), ("object", "false", False),
        ("object", '{"a":[1,{"b":2.5}],"n":3000000000}', {"a": [1, {"b": 2.5}], "n": 3000000000}),
        ("object", '{"a":99999999999999999999}', "more than a long holds"), ("string", '"\\u0000"', "\0"),
    ],
)  # fmt: skip
def test_types_by_default(type_: str, value: str, expected: object) -> None:
    found = decode(JSON, f"v {type_}", f'{{"v":{value}}}')
    if isinstance(expected, str) and found.rejected:
        assert expected in found.rejected[0].reason
    else:
        assert events(found) == [[expected]]


def test_objects_at_paths_are_texts() -> None:
    found = decode("@map(type='json', @attributes(o='$.o'))", "o object", '{"o":{"a":1}}')
    assert events(found) == [['{"a":1}']]


def test_deep_and_long_messages_are_rejected() -> None:
    for depth in (202, 100_000):
        for text in ("[" * depth + "]" * depth, '{"v":' * depth + "1" + "}" * depth, '{"v":' * depth):
            for mapping in (JSON, "@map(type='json', @attributes('$.v'))"):
                found = decode(mapping, "v object", text)
                assert len(found.rejected) == 1
                assert len(found.rejected[0].text) <= 2000
    assert events(decode(JSON, "v object", '{"v":' + "[" * 150 + "]" * 150 + "}")) != []
    assert decode(JSON, "v long", '{"v":' + "9" * 10_000 + "}").rejected


def test_headers() -> None:
    mapping = "@map(type='json', @attributes(symbol='trp:name', price='price', volume='trp:n'))"
    headers = [{"name": "a", "n": "7"}, {"name": "b"}, {"name": "c", "n": "x"}]
    found = decode(mapping, STOCK, *['{"price":1.5}'] * 3, headers=headers)
    assert events(found) == [["a", 1.5, 7]]
    assert [(r.message, r.reason) for r in found.rejected] == [
        (1, "it has no transport property 'n' for volume"),
        (2, "volume: 'x' is not a long"),
    ]
    assert [r.properties for r in found.rejected] == [{"name": "b"}, {"name": "c", "n": "x"}]
    loose = mapping.replace("type='json'", "type='json', fail.on.missing.attribute='false'")
    assert events(decode(loose, STOCK, '{"price":1.5}')) == [[None, 1.5, None]]
    many = decode(mapping, STOCK, *['{"price":1.5}'] * 100, headers=[{"name": str(i), "n": str(i)} for i in range(100)])
    assert events(many) == [[str(i), 1.5, i] for i in range(100)]
    with pytest.raises(ValueError, match="1 headers for 2 messages"):
        decode(mapping, STOCK, "{}", "{}", headers=[{}])


def test_a_path_that_cannot_be_compiled() -> None:
    mapping, schema = source("@map(type='json', @attributes('$.a[?(@.b ==)]', 'b', 'c'))")
    with pytest.raises(Misuse, match="A mapping cannot be used"):
        decoder(mapping, schema)


WSO2, IBM = ["WSO2", f(55.6), 100], ["IBM", f(32.6), 160]
AROUND = "@map(type='json', enclosing.element='$.portfolio.company'"


@pytest.mark.parametrize(
    ("mapping", "rows", "expected"),
    [
        (JSON, [WSO2], ['{"event":{"symbol":"WSO2","price":55.6,"volume":100}}']),
        (JSON, [["WSO2#$%", 50.0, 100]], ['{"event":{"symbol":"WSO2#$%","price":50.0,"volume":100}}']),
        (JSON, [WSO2, IBM], ['[{"event":{"symbol":"WSO2","price":55.6,"volume":100}},{"event":{"symbol":"IBM","price":32.6,"volume":160}}]']),
        ("@map(type='json', event.grouping.enabled='false')", [WSO2, IBM],
         ['{"event":{"symbol":"WSO2","price":55.6,"volume":100}}', '{"event":{"symbol":"IBM","price":32.6,"volume":160}}']),
        (JSON, [["WSO2", None, 100]], ['{"event":{"symbol":"WSO2","price":"undefined","volume":100}}']),
        ("@map(type='json', enable.null.attribute.value='true')", [[None, 1.5, None]], ['{"event":{"symbol":null,"price":1.5,"volume":null}}']),
        (AROUND + ")", [WSO2], ['{"portfolio":{"company":{"event":{"symbol":"WSO2","price":55.6,"volume":100}}}}']),
        (JSON, [['a"b\\c\n\u2028</', 1.0, 1]], ['{"event":{"symbol":"a\\"b\\\\c\\n\\u2028</","price":1.0,"volume":1}}']),
        (AROUND + ', @payload("""{"Symbol":"{{symbol}}","Price":{{price}}}"""))', [WSO2], ['{"portfolio":{"company":{"Symbol":"WSO2","Price":55.6}}}']),
        ('@map(type="json", @payload("""{"s":"{{symbol}}","v":{{volume}}}"""))', [WSO2, [None, 1.0, None]],
         ['[{"s":"WSO2","v":100},\n{"s":"undefined","v":undefined}]']),
        ("@map(type='json', @payload('{{{symbol}}}'))", [WSO2], ["{WSO2}"]),
        ("@map(type='json', @payload('`price`'))", [WSO2], ["price"]),
        ("@map(type='json', validate.json='true', @payload(\"{'S':{'s':{{symbol}}},'p':{{price}}\"))", [WSO2], []),
        ("@map(type='json', validate.json='true', @payload(\"{'s':{{symbol}},'p':{{price}}}\"))", [WSO2], ["{'s':WSO2,'p':55.6}"]),
    ],
)  # fmt: skip
def test_bodies(mapping: str, rows: list[list[object]], expected: list[str]) -> None:
    assert bodies(mapping, STOCK, rows) == expected


def test_objects_in_bodies() -> None:
    """Maps alone are written, as Siddhi does."""
    rows = [[{"a": [1, None], "b": None}], [{}], [[1]], [None]]
    assert bodies("@map(type='json', event.grouping.enabled='false')", "o object", rows) == [
        '{"event":{"o":{"a":[1,null]}}}', '{"event":{}}', '{"event":{}}', '{"event":{"o":"undefined"}}'
    ]  # fmt: skip


def test_groups_of_a_chunk() -> None:
    """Siddhi makes one message of the events of a chunk that go to one destination."""
    mapping, schema = sink(JSON)
    rows = [["a", 1.0, 1], ["b", 1.0, 2], ["a", 1.0, 3], ["a", 1.0, 4]]
    options = {"topic": "t-{{symbol}}", "headers": "fixed"}
    found = encoder(mapping, schema, options).encode(
        arrays(schema, rows), np.zeros(4, np.int64), np.array([1, 1, 1, 2])
    )
    assert [(m.first, m.count, m.properties["topic"]) for m in found] == [(0, 2, "t-a"), (1, 1, "t-b"), (3, 1, "t-a")]
    assert [len(json.loads(m.body)) for m in found] == [2, 1, 1]
    assert found[0].properties["headers"] == "fixed"
    with pytest.raises(Misuse, match=r"no attribute 'symbl'\. Did you mean 'symbol'"):
        encoder(mapping, schema, {"topic": "{{symbl}}"})


def test_what_is_dropped_is_told() -> None:
    mapping, schema = sink("@map(type='json', validate.json='true', @payload('{'))")
    dropped: list[DroppedMessage] = []
    found = encoder(mapping, schema).encode(arrays(schema, [WSO2]), np.zeros(1, np.int64), None, dropped)
    assert found == []
    assert [(d.message.body, d.reason) for d in dropped] == [(b"{", "it is not JSON")]
    assert encode(JSON, STOCK, []) == []


def test_what_a_reader_fails_for_is_the_error_of_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    mapping, schema = source(JSON)
    decodes = decoder(mapping, schema)
    read = decodes._reader.read

    def fails(text: str) -> object:
        if "bad" in text:
            raise RuntimeError("no such\nthing")
        return read(text)

    monkeypatch.setattr(decodes._reader, "read", fails)
    texts = [f'{{"symbol":"{symbol}","price":1.5,"volume":1}}'.encode() for symbol in ("a", "bad", "c")]
    found = decodes.decode([*texts, b"{}"], fast=False)
    assert found.columns[0].to_pylist() == ["a", "c"]  # type: ignore[union-attr]
    assert found.message.tolist() == [0, 2]
    assert [(r.message, r.reason) for r in found.rejected] == [
        (1, "it cannot be read: RuntimeError: no such thing"), (3, "it lacks symbol, price, volume")
    ]  # fmt: skip
