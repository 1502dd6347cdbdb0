"""Texts of whole columns, and of events that consist of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import ARROW, Column, StringPool
from ..engine.expressions.format_numbers import number_texts
from ..types import Type
from .attribute_values import Values

_ROWS = 1 << 16
"""Events that are joined at once: Arrow's string arrays hold 2 GiB."""


def normalize_column(type: Type, column: Values) -> Values:
    """A column as one Arrow array of `ARROW[type]`, from any Arrow array; lists are returned unchanged."""
    if isinstance(column, list):
        return column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if type is Type.OBJECT or column.type == ARROW[type] else column.cast(ARROW[type])


def value_texts(type: Type, column: pa.Array) -> pa.Array:
    """`String.valueOf` of each value, as an Arrow string array; null stays null."""
    if type is Type.STRING:
        return column
    if type is Type.BOOL:
        return column.cast(pa.string())
    return number_texts(Column.from_arrow(type, column, StringPool()))


def rewrite_matches(texts: pa.Array, pattern: str, rewrite: Callable[[str], str]) -> pa.Array:
    """The texts, those in which the regular expression finds something rewrite_matches."""
    matches = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    if not pc.any(matches).as_py():
        return texts
    new = [rewrite(t).encode("utf-8", "replace").decode() for t in texts.filter(matches).to_pylist()]
    return pc.replace_with_mask(texts, matches, pa.array(new, pa.string()))


def joined_texts(pieces: Sequence[str | pa.Array], n: int) -> list[str] | None:
    """The pieces of each of `n` events one after the other; a text is the same for all. None if they are too long
    for Arrow."""
    out: list[str] = []
    try:
        for start in range(0, n, _ROWS):
            parts = [p if isinstance(p, str) else p.slice(start, _ROWS) for p in pieces]
            if all(isinstance(p, str) for p in parts):
                out += ["".join(p for p in parts if isinstance(p, str))] * min(_ROWS, n - start)
            else:
                out += pc.binary_join_element_wise(*parts, "").to_pylist()
    except pa.ArrowException:
        return None
    return out
