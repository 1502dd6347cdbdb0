"""Formats of the values of a feed as texts: the decimal separator, and the texts for a missing value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import Misuse, shown
from ..types import Type

DECIMALS = (".", ",")
_WITH_COMMA = r"^\s*[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?\s*$"
"""A number with a decimal comma. Its points are between groups of three digits: with 8.38 meaning 838, a file of the
other kind would be read without a word."""
_NUMBERS = (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)


@dataclass(frozen=True)
class ValueFormat:
    """`decimal` separates the fraction of a number; with a comma, points separate thousands. A text that is one of
    `missing` is null, also with space around it.
    """

    decimal: str = "."
    missing: tuple[str, ...] = ()

    @staticmethod
    def of(decimal: str | None, missing: Sequence[str] | None) -> ValueFormat:
        """Parse a user's values. Raises `Misuse` for a separator other than point and comma."""
        if decimal is not None and decimal not in DECIMALS:
            raise Misuse(f"decimal is ',' or '.', not {shown(decimal)}")
        return ValueFormat(decimal or ".", tuple(text.strip() for text in missing or ()))

    @property
    def plain(self) -> bool:
        """True if values are as they are by default."""
        return self.decimal == "." and not self.missing

    def present(self, texts: pa.Array) -> pa.Array:
        """Texts, with null for those that mean a missing value."""
        if not self.missing:
            return texts
        none = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(self.missing, texts.type))
        return pc.if_else(none, None, texts)

    def plain_numbers(self, texts: pa.Array, type: Type) -> pa.Array:
        """Texts of a column of `type`, numbers as SiddhiQL writes them. One that is a number only with a decimal point
        is left such that it is none."""
        if self.decimal == "." or type not in _NUMBERS:
            return texts
        with_points = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        fits = pc.match_substring_regex(texts, _WITH_COMMA)
        unfit = pc.and_(pc.match_substring_regex(texts, "[.,]"), pc.invert(fits))
        return pc.if_else(unfit, "no number", with_points)


    def value(self, text: str, type: Type) -> Any:
        """One text as a value of `type`: a number, None for a missing value, or the text if it is neither."""
        (plain,) = self.plain_numbers(self.present(pa.array([text], pa.string())), type).to_pylist()
        if plain is None or type not in _NUMBERS:
            return plain
        try:
            return int(plain) if type in (Type.INT, Type.LONG) else float(plain)
        except ValueError:
            return text


AS_WRITTEN = ValueFormat()
"""A decimal point, and null for an empty cell alone."""
