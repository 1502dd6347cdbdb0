"""The kinds of chains, read link by link, are those that the rules of Siddhi's grammar make of them."""

from __future__ import annotations

from itertools import product

import pytest

from sparkstream_nb.lang.build_patterns import _PATTERN, _SEQUENCE, Kinds, _ChainRules, _starts

PATTERN = {
    ("C", "C"): "C", ("P", "P"): "P",
    ("E", "P"): "L", ("L", "L"): "L", ("L", "E"): "L", ("P", "L"): "L",
    ("P", "E"): "R", ("R", "R"): "R", ("E", "R"): "R", ("R", "P"): "R",
}  # fmt: skip
SEQUENCE = {
    ("S", "S"): "S",
    ("N", "S"): "L", ("L", "L"): "L", ("L", "N"): "L", ("S", "L"): "L",
    ("S", "N"): "R", ("R", "R"): "R", ("N", "R"): "R", ("R", "S"): "R",
}  # fmt: skip


def by_rules(leaves: tuple[Kinds, ...], table: dict[tuple[str, str], str]) -> dict[tuple[int, int], Kinds]:
    """The kinds of links i..j together, bottom-up (CYK)."""
    out = {(i, i): leaf for i, leaf in enumerate(leaves)}
    for width in range(1, len(leaves)):
        for i in range(len(leaves) - width):
            j = i + width
            pairs = (pair for k in range(i, j) for pair in product(out[i, k], out[k + 1, j]))
            found = {table[pair] for pair in pairs if pair in table}
            out[i, j] = frozenset(found | {"P"} if "C" in found else found)
    return out


@pytest.mark.parametrize(
    ("rules", "table", "kinds"),
    [
        (_PATTERN, PATTERN, ("CP", "P", "E", "LA", "RA", "LRA", "CPL")),
        (_SEQUENCE, SEQUENCE, ("OS", "N", "LA", "RA", "LRA", "SLR")),
    ],
    ids=["pattern", "sequence"],
)  # fmt: skip
def test_kinds_are_those_of_the_rules(
    rules: _ChainRules, table: dict[tuple[str, str], str], kinds: tuple[str, ...]
) -> None:
    for length in range(1, 6):
        for leaves in product(map(frozenset, kinds), repeat=length):
            expected = by_rules(leaves, table)
            last = length - 1
            assert _starts(list(leaves), rules) == [expected[0, j] for j in range(length)]
            backwards = _starts(list(leaves[::-1]), rules, backwards=True)
            assert backwards == [expected[last - j, last] for j in range(length)]
