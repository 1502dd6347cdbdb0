"""Texts that match regular expressions."""

from __future__ import annotations

import re

import pytest

from sparkstream_nb import columns as c
from sparkstream_nb import generate
from sparkstream_nb.errors import Misuse

PATTERNS = [
    r"[A-Z]{3}-\d{4}", r"a*b+c?", r"(ab|cd|e){2,4}", r"^\w{2}\s\w$", r"x(y(z|\.)){0,3}w", r"[^a-z0-9]{5}",
    r"\+49 \d{3}",
    r"[a\-z]+?", r"[\d.]{2,}", r"(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z|ä|ö|ü|ß|€|\||\()", r"",
    r"(|a)b", r".",
    r"(?:ja|nein)!",
]  # fmt: skip


def texts_of(pattern: str, n: int = 300) -> list[str]:
    return list(generate("define stream S (a string)", n=n, columns={"a": c.regex(pattern)})["a"])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_text_matches(pattern: str) -> None:
    found = texts_of(pattern)
    assert [t for t in found if not re.fullmatch(pattern, t)] == []


def test_all_alternatives_letters_and_counts_occur() -> None:
    assert set(texts_of("[ab]{1,2}|c", 1000)) == {"a", "b", "aa", "ab", "ba", "bb", "c"}
    assert set(texts_of("(x|yz){0,2}", 1000)) == {"", "x", "yz", "xx", "xyz", "yzx", "yzyz"}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "regex: '(a', at column 2: a group is not closed"),
        ("a)", "')' closes no group"),
        ("*a", "'*' is not expected here: write \\* for the character itself"),
        ("a{2,1}", "a repetition is from few to many"),
        ("a{x}", "a repetition is written {3} or {2,5}"),
        ("[z-a]", "the range z-a has no characters"),
        ("[ab", "it ends too early"),
        ("\\b", "\\b is not known"),
        ("(?=a)", "a group with '?' is not known"),
        ("a$b", "'$' is not expected here"),
        ("(a{100}){100}", "has texts of more than 1,000 characters"),
    ],
)
def test_an_unknown_expression_is_refused_with_its_place(pattern: str, message: str) -> None:
    with pytest.raises(Misuse, match=re.escape(message)):
        c.regex(pattern)
