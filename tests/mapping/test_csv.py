"""CSV messages: facts of siddhi-map-csv 2.1 and of Commons CSV, mostly of their test suites."""

from __future__ import annotations

import numpy as np
import pytest

from sparkstream_nb.mapping import encoder

from .maps import STOCK, bodies, decode, encode, events, sink

CSV = "@map(type='csv')"
PLACES = "@map(type='csv', @attributes(symbol='2', price='0', volume='1'))"
LOOSE = "@map(type='csv', fail.on.unknown.attribute='false', @attributes(symbol='2', price='0', volume='1'))"
TABS = r"@map(type='csv', delimiter='\t')"


def f(value: float) -> float:
    return float(np.float32(value))


@pytest.mark.parametrize(
    ("mapping", "message", "expected"),
    [
        (CSV, "null,55.689,100", [["null", f(55.689), 100]]),
        (CSV, "IBM@#$%^*,75,0", [["IBM@#$%^*", 75.0, 0]]),
        (CSV, " WSO2,10.1,10", [[" WSO2", f(10.1), 10]]),
        (CSV, '"WSO2,No10,Palam ""Groove"" Rd" ,55.6 ,100', [['WSO2,No10,Palam "Groove" Rd', f(55.6), 100]]),
        (CSV, 'a"b,1,2', [['a"b', 1.0, 2]]),
        (CSV, '"a\nb",1,2\r\n\nc,3,4\n', [["a\nb", 1.0, 2], ["c", 3.0, 4]]),
        (CSV, ",1,2", [["", 1.0, 2]]),
        (CSV, "a,1,2,more", [["a", 1.0, 2]]),
        (CSV, "a,+1.5e3f,-2", [["a", 1500.0, -2]]),
        (CSV, "a,NaN,+7", [["a", pytest.approx(float("nan"), nan_ok=True), 7]]),
        (CSV, "", []),
        (CSV, "a,1", "a line has 2 of the 3 columns"),
        (CSV, "a,1, 100", "volume: ' 100' is not a long"),
        (CSV, "a,,100", "price: '' is not a float"),
        (CSV, "a,1,9223372036854775808", "is not a long"),
        (CSV, '"a"b,1,2', "a quote does not end where its value does"),
        (CSV, '"a,1,2', "a quote does not end where its value does"),
        (CSV, "é\u2028,1,2", [["é\u2028", 1.0, 2]]),
        (CSV, b"\xff,1,2", "not UTF-8 text: 0xff at byte 1"),
        (CSV, "\ufeffa,1,2", [["a", 1.0, 2]]),
        (PLACES, "29.3,100,\"WSO2,Colombo-3\"", [["WSO2,Colombo-3", f(29.3), 100]]),
        (PLACES, "75, ,IBM@#$%^*", "volume: ' ' is not a long"),
        (LOOSE, "75, ,IBM@#$%^*", [["IBM@#$%^*", 75.0, None]]),
        (LOOSE, " bb,10.6,WSO2", [["WSO2", None, None]]),
        (LOOSE, "1,2", "a line has 2 of the 3 columns"),
        (TABS, " WSO2\t 00.3 \t16", [["WSO2", f(0.3), 16]]),
        (TABS, ' "a b" \t1\t2', [["a b", 1.0, 2]]),
        ("@map(type='csv', delimiter='-/-')", "WSO2-/-55.6-/-100", [["WSO2", f(55.6), 100]]),
        ("@map(type='csv', delimiter='|')", "a|b|1", "price: 'b' is not a float"),
    ],
)  # fmt: skip
def test_messages(mapping: str, message: str | bytes, expected: list[list[object]] | str) -> None:
    """Events, or why there are none; alike in a batch that is read at once."""
    plain = {PLACES: "1,2,p", LOOSE: "1,2,p", TABS: "p\t1\t2"}.get(mapping, "p,1,2")
    if "delimiter='-" in mapping or "delimiter='|" in mapping:
        plain = plain.replace(",", "-/-" if "-/-" in mapping else "|")
    raw = message.encode() if isinstance(message, str) else message
    for found, at in (
        (decode(mapping, STOCK, raw), 0),
        (decode(mapping, STOCK, *[plain] * 70, raw, *[plain] * 70), 70),
    ):
        here = [e for e, i in zip(events(found), found.message.tolist(), strict=True) if i == at]
        if isinstance(expected, str):
            assert here == []
            (rejected,) = found.rejected
            assert expected in rejected.reason
            assert rejected.message == at
        else:
            assert here == expected
            assert found.rejected == ()


def test_a_bad_line_fails_alone() -> None:
    found = decode(CSV, STOCK, "a,1,2\nb,x,3\nc,4,5")
    assert events(found) == [["a", 1.0, 2], ["c", 4.0, 5]]
    assert [(r.reason, r.text) for r in found.rejected] == [("price: 'x' is not a float", "b,x,3")]


def test_the_first_message_is_the_header() -> None:
    header = "@map(type='csv', header='true', delimiter='-')"
    messages = ["symbol-price-volume", "WSO2-55.6-100", "IBM-75.6-10"]
    assert events(decode(header, STOCK, *messages, begins=True)) == [["WSO2", f(55.6), 100], ["IBM", f(75.6), 10]]
    later = decode(header, STOCK, *messages[1:])
    assert len(later) == 2
    many = decode(header, STOCK, *messages, *["a-1-2"] * 100, begins=True)
    assert many.message.tolist() == list(range(1, 103))


def test_types() -> None:
    found = decode(CSV, "b bool, o object, d double, i int", "TRUE,x,0x1p3,-2147483648", "yes,,1.,7")
    assert events(found) == [[True, "x", 8.0, -(2**31)], [False, "", 1.0, 7]]


ROWS = [["WSO2", f(55.645), 100], ["IBM", None, 57]]


@pytest.mark.parametrize(
    ("mapping", "rows", "expected"),
    [
        (CSV, ROWS, ["WSO2,55.645,100\n", "IBM,null,57\n"]),
        (TABS, ROWS[:1], ["WSO2\t55.645\t100\n"]),
        ("@map(type='csv', event.grouping.enabled='true')", ROWS, ["WSO2,55.645,100\nIBM,null,57\n"]),
        ("@map(type='csv', @payload(symbol='0', price='2', volume='1'))", ROWS[:1], ["WSO2,100,55.645\n"]),
        ("@map(type='csv', @payload(symbol='1', volume='0'))", ROWS[:1], ["100,WSO2\n"]),
        (CSV, [['a,"b"', 1.0, 1], ["", 1.0, 1], ["#x", 1.0, 1], ["x ", 1.0, 1], ["a\nb", 1.0, 1], ["-x", 1.0, 1]],
         ['"a,""b""",1.0,1\n', '"",1.0,1\n', '"#x",1.0,1\n', '"x ",1.0,1\n', '"a\nb",1.0,1\n', "-x,1.0,1\n"]),
    ],
)  # fmt: skip
def test_bodies(mapping: str, rows: list[list[object]], expected: list[str]) -> None:
    assert bodies(mapping, STOCK, rows) == expected


def test_the_header_of_a_sink() -> None:
    header = encoder(*sink("@map(type='csv', header='true', @payload(symbol='1', volume='0'))")).header()
    assert header is not None
    assert header.body == b"volume,symbol\n"
    assert encoder(*sink(CSV)).header() is None
    assert [(m.first, m.count) for m in encode(CSV, STOCK, ROWS)] == [(0, 1), (1, 1)]


def test_a_file_as_one_message() -> None:
    lines = [f"s{i},{i}.5,{i}" for i in range(1000)]
    found = decode(CSV, STOCK, "\r\n".join(lines) + "\r\n")
    assert events(found) == [[f"s{i}", i + 0.5, i] for i in range(1000)]
    assert set(found.message.tolist()) == {0}
    lines[500] = "a,b,c"
    lines[501] = '"a,b",1.5,2'
    odd = decode(CSV, STOCK, "\n".join(lines), "x,1,2")
    assert len(odd) == 1000
    assert [(r.message, r.text) for r in odd.rejected] == [(0, "a,b,c")]
    assert odd.message.tolist() == [0] * 999 + [1]
    tabs = decode(TABS, STOCK, "\n".join(f" s \t{i}\t{i}" for i in range(1000)))
    assert len(tabs) == 1000
