"""Messages of text formats that are not UTF-8: rejected as a whole, with the place, and with their bytes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.mapping.decoding import decoder, is_utf8, message_of
from tests.profiles import examples

from .maps import STOCK, decode, events, source

FORMATS = {
    "json": ('{"symbol":"', '","price":1.0,"volume":2}'),
    "csv": ("", ",1,2"),
    "text": ('symbol:"', '",\nprice:1,\nvolume:2'),
    "xml": ("<events><event><symbol>", "</symbol><price>1</price><volume>2</volume></event></events>"),
    "keyvalue": ("symbol=", "&price=1&volume=2"),
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("spoilt", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", "Müller".encode("latin-1")])
@pytest.mark.parametrize("neighbours", [0, 70])
def test_a_message_that_is_not_utf8_is_rejected(kind: str, spoilt: bytes, neighbours: int) -> None:
    begin, end = FORMATS[kind]
    raw = begin.encode() + spoilt + end.encode()
    good = [begin + "é" + end] * neighbours
    found = decode(f"@map(type='{kind}')", STOCK, *good, raw, *good)
    assert events(found) == [["é", 1.0, 2]] * (2 * neighbours)
    (rejected,) = found.rejected
    place = next(i for i in range(len(raw)) if not is_utf8(raw[: i + 1]) and not raw[i] < 0x80) + 1
    assert rejected.message == neighbours
    assert rejected.reason.startswith(f"not UTF-8 text: 0x{raw[place - 1]:02x} at byte {place}")
    assert rejected.text == "base64:" + base64.b64encode(raw).decode()
    assert message_of(rejected.text) == raw


@settings(max_examples=examples(200), deadline=None)
@given(st.binary() | st.text().map(str.encode) | st.binary().map(lambda b: b"base64:" + base64.b64encode(b)))
def test_a_rejected_message_can_be_made_again(message: bytes) -> None:
    """Its bytes are those of the message, apart from a byte order mark."""
    rejected = decoder(*source("@map(type='json')")).reject(0, "why", message)
    if not rejected.text.endswith("…"):
        assert message_of(rejected.text) in (message, message.removeprefix("\ufeff".encode()))
