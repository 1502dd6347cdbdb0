"""The table of `docs/mappings.md` that says what null looks like, held against the mappings."""

from __future__ import annotations

import re

import pytest

from docs.generator.recipes import ROOT
from tests.mapping.maps import bodies, decode, events

ATTRIBUTES = "symbol string, price double"
LOOSE = "fail.on.missing.attribute='false'"


def shown() -> str:
    """The section of the page."""
    text = (ROOT / "docs" / "mappings.md").read_text(encoding="utf-8")
    return text.partition("## What null looks like")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("mapping", "written"),
    [
        ("type='json'", '{"event":{"symbol":"A","price":"undefined"}}'),
        ("type='json', enable.null.attribute.value='true'", '{"event":{"symbol":"A","price":null}}'),
        ("type='csv'", "A,null"),
        ("type='keyvalue'", "symbol=A"),
        ("type='xml'", '<price xsi:nil="true"/>'),
        ("type='text'", "price:null"),
    ],
)
def test_null_as_it_is_written(mapping: str, written: str) -> None:
    assert f"`{written}`" in shown()
    (body,) = bodies(f"@map({mapping})", ATTRIBUTES, [["A", None]], chunk=[0])
    assert written in body


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("type='json'", '{"event":{"symbol":"A","price":null}}'),
        ("type='csv', fail.on.unknown.attribute='false'", "A,"),
        (f"type='keyvalue', {LOOSE}", "symbol=A"),
        (f"type='text', {LOOSE}", 'symbol:"A"'),
        (f"type='xml', {LOOSE}", "<events><event><symbol>A</symbol></event></events>"),
    ],
)
def test_null_as_it_is_read(mapping: str, message: str) -> None:
    option = re.search(r"[\w.]+='false'", mapping)
    assert option is None or f"`{option[0]}`" in shown()
    assert events(decode(f"@map({mapping})", ATTRIBUTES, message)) == [["A", None]]
    if option is not None:
        assert events(decode(f"@map({mapping.partition(',')[0]})", ATTRIBUTES, message)) == []
