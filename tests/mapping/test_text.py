"""Text messages and key-value messages: facts of siddhi-map-text 2.1 and siddhi-map-keyvalue 2.1."""

from __future__ import annotations

import numpy as np
import pytest

from sparkstream_nb.errors import Misuse
from sparkstream_nb.mapping import decoder

from .maps import STOCK, bodies, decode, events, source

TEXT = "@map(type='text')"
LOOSE = "@map(type='text', fail.on.missing.attribute='false')"
GROUPED = "@map(type='text', event.grouping.enabled='true', delimiter='####')"
PATTERNS = (
    r"""@map(type='text', regex.A='(\w+)\s([-0-9]+)', regex.B="volume\s([-0-9]+)", """
    "@attributes(symbol='A[1]', price='A[2]', volume='B'))"
)
PAIRS = "@map(type='keyvalue')"


def f(value: float) -> float:
    return float(np.float32(value))


@pytest.mark.parametrize(
    ("mapping", "message", "expected"),
    [
        (TEXT, 'symbol:"WSO2",\nprice:55.6,\nvolume:100', [["WSO2", f(55.6), 100]]),
        (TEXT, "symbol:'WSO2',\nprice:55.6f,\nvolume:1,000", [["WSO2", f(55.6), 1000]]),
        (TEXT, ' symbol : "a:b,c" ,\n price : 55.6 ,\nvolume:100,\n', [["a:b,c", f(55.6), 100]]),
        (TEXT, 'symbol:"A",\nprice:1,\nvolume:2,\nvolume:3,\nx:"y"', [["A", 1.0, 2]]),
        (TEXT, "price:55.6,\nvolume:100", "it has 2 of 3 lines"),
        (TEXT, 'symbol:"A",\nprice:1,\nx:2', "it lacks volume"),
        (TEXT, 'symbol:"A",\nx:1,\nvolume:2', [["A", None, 2]]),  # Siddhi looks at the last attribute that is there
        (TEXT, 'symbol:"A",\nprice:x,\nvolume:2', "price: 'x' is not a float"),
        (TEXT, "symbol:A,\nprice:1,\nvolume:2", "is not a text in quotes"),
        (LOOSE, "price:55.6,\nvolume:100", [[None, f(55.6), 100]]),
        (LOOSE, "", [[None, None, None]]),
        (TEXT, "", "it has 0 of 3 lines"),
        (GROUPED, 'symbol:"A",\nprice:1,\nvolume:2\n####\nsymbol:"B",\nprice:3,\nvolume:4',
         [["A", 1.0, 2], ["B", 3.0, 4]]),
        (GROUPED, 'symbol:"A",\nprice:1,\nvolume:2', [["A", 1.0, 2]]),
        (GROUPED, "", "it is empty"),
        (r"@map(type='text', new.line.character='\r\n')", 'symbol:"A",\r\nprice:1,\r\nvolume:2', [["A", 1.0, 2]]),
        (PATTERNS, "wos2 550 volume 100", [["wos2", 550.0, 100]]),
        (PATTERNS, "wos2 550 volumes", "regex.B finds nothing for volume"),
        (PATTERNS.replace("regex.A", "fail.on.missing.attribute='false', regex.A"), "volume 1", [["volume", 1.0, 1]]),
        (PAIRS, "symbol=WSO2&price=55.6&volume=100", [["WSO2", f(55.6), 100]]),
        (PAIRS, "symbol=a+b%26%C3%A9&price=1&volume=2&more=3", [["a b&é", 1.0, 2]]),
        (PAIRS, "symbol=&price=1&volume=2", [["", 1.0, 2]]),
        (PAIRS, "symbol=WSO2&price=x&volume=100", "price: 'x' is not a float"),
        (PAIRS, "symbol=WSO2", "it has no 'price' for price"),
        (PAIRS, "WSO2", "not of the form key=value"),
        (PAIRS, "symbol=%C3%A9%FF&price=1&volume=2", "not UTF-8 text: a value has %FF"),
        ("@map(type='keyvalue', fail.on.missing.attribute='false')", "symbol=WSO2", [["WSO2", None, None]]),
        ("@map(type='keyvalue', implicit.cast.enable='true', @attributes(symbol='s', price='p', volume='v'))",
         "s=WSO2&p=55.6&v=100", [["WSO2", f(55.6), 100]]),
    ],
)  # fmt: skip
def test_messages(mapping: str, message: str, expected: list[list[object]] | str) -> None:
    found = decode(mapping, STOCK, message)
    if isinstance(expected, str):
        assert events(found) == []
        (rejected,) = found.rejected
        assert expected in rejected.reason
    else:
        assert found.rejected == ()
        assert events(found) == expected


def test_an_event_of_a_group_fails_alone() -> None:
    found = decode(GROUPED, "s string, v int", 's:"a",\nv:1\n####\ns:"b",\nv:x\n####\ns:"c",\nv:3')
    assert events(found) == [["a", 1], ["c", 3]]
    assert [r.text for r in found.rejected] == ['s:"b",\nv:x\n']


def test_patterns_that_do_not_work() -> None:
    with pytest.raises(Misuse, match=r"regex.A of a text mapping has 1 groups, and 3 is asked for"):
        decoder(*source("@map(type='text', regex.A='(x)', @attributes('A[3]'))", "s string"))
    with pytest.raises(Misuse, match=r"regex.A of a text mapping: the pattern '\(x' is not"):
        decoder(*source("@map(type='text', regex.A='(x', @attributes('A'))", "s string"))


def test_a_pattern_that_backtracks_rejects_the_message() -> None:
    found = decode("@map(type='text', regex.A='(x+x+)+y', @attributes('A'))", "s string", "x" * 5_000)
    assert len(found.rejected) == 1


ROWS = [["WSO2", f(55.6), 100], ["a&b", None, 7]]


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (TEXT, ['symbol:"WSO2",\nprice:55.6,\nvolume:100', 'symbol:"a&b",\nprice:null,\nvolume:7']),
        (GROUPED, ['symbol:"WSO2",\nprice:55.6,\nvolume:100\n####\nsymbol:"a&b",\nprice:null,\nvolume:7']),
        ("@map(type='text', event.grouping.enabled='true', @payload('{{symbol}} is {{price}}/='))",
         ["WSO2 is 55.6/=\n~~~~~~~~~~\na&b is null/="]),
        ("@map(type='text', mustache.enabled='false', @payload('Rs{{price}}'))", ["Rs55.6", "Rsnull"]),
        (PAIRS, ["symbol=WSO2&price=55.6&volume=100", "symbol=a%26b&volume=7"]),
        ("@map(type='keyvalue', @payload(a='symbol', b='{{symbol}} is here', c='`price`'))",
         ["a=WSO2&b=WSO2+is+here&c=price", "a=a%26b&b=a%26b+is+here&c=price"]),
    ],
)  # fmt: skip
def test_bodies(mapping: str, expected: list[str]) -> None:
    assert bodies(mapping, STOCK, ROWS) == expected
