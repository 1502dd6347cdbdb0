"""Whole-column forms (`rowwise.Whole`) of string functions, over Arrow arrays without Python strings.

They handle strings of printable ASCII (0x20 to 0x7E) and leave others, and nulls, to the functions on Python values: in
ASCII a byte is a UTF-16 unit, case is simple, and there are no line ends for regular expressions to match. Arguments
other than the string must be constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.nodes import Call, Const
from ..columnar.column_data import Array, Column, Mask, StringPool, Texts
from ..columnar.string_dictionary import text_buffers
from ..notation.kernels import kernel
from .plainregex import never_empty, plain_regex
from .rowwise import Whole
from .textjoin import join_texts

Answer = tuple[pa.Array, Mask | None]
"""Answers, and the rows that are left all the same."""


@kernel
def _odd(offsets: Array, data: Array, out: Mask) -> None:
    """Marks texts that are not printable ASCII."""
    low = np.int64(offsets[0])
    for i in range(len(out)):
        out[i] = False
        for k in range(np.int64(offsets[i]) - low, np.int64(offsets[i + 1]) - low):
            out[i] |= np.uint8(data[k] - np.uint8(0x20)) > np.uint8(0x5E)


def odd_texts(texts: pa.Array) -> Mask | None:
    """The rows of a string array that are null or not printable ASCII; None for no row."""
    offsets, data = text_buffers(texts)
    data = data[: int(offsets[-1]) - int(offsets[0])]
    out = None
    if ((data - np.uint8(0x20)) > 0x5E).any():
        out = np.empty(len(texts), np.bool_)
        _odd(offsets, data, out)
    if texts.null_count:
        null = texts.is_null().to_numpy(zero_copy_only=False)
        out = null if out is None else out | null
    return out


def over_text(call: Call, text: int, function: Callable[..., Callable[[pa.Array], Answer] | None]) -> Whole | None:
    """The form of `call` over whole columns, whose argument number `text` is the text. `function` is called with the
    other arguments, which must be constants, and returns the function over an array; None if these arguments are not
    supported."""
    others = [a for i, a in enumerate(call.args) if i != text]
    values = [a.value for a in others if isinstance(a, Const)]
    apply = function(*values) if len(values) == len(others) else None
    if apply is None:
        return None

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        texts = columns[text].texts(strings)
        if strings.halves and not columns[text].many:
            return None
        odd = odd_texts(texts)
        if odd is not None:
            texts = pc.if_else(pa.array(odd), "", texts)
        answers, left = apply(texts)
        if odd is not None:
            left = odd if left is None else odd | left
        if pa.types.is_string(answers.type):
            return Texts(answers, strings, many=True), left
        return Column.from_arrow(call.type, answers, strings), left

    return whole


def on_text(text: int, function: Callable[..., Callable[[pa.Array], Answer] | None]) -> Callable[[Call], Whole | None]:
    """`over_text` for each call of a function."""
    return lambda call: over_text(call, text, function)


def simple(function: Callable[..., pa.Array]) -> Callable[[Call], Whole | None]:
    """A function of the string alone that supports every printable ASCII string."""
    return on_text(0, lambda: lambda texts: (function(texts), None))


# ------------------------------------------------------------------------------------------------------------- parts


def lengths(texts: pa.Array) -> Array:
    """The length of each text."""
    offsets, _ = text_buffers(texts)
    return np.diff(offsets)


def cut(begin: int, *length: int) -> Callable[[pa.Array], Answer] | None:
    """`str:substr` by position; rows with too short strings are left."""
    end = begin + length[0] if length else None
    if begin < 0 or (end is not None and end < begin):
        return None

    def run(texts: pa.Array) -> Answer:
        sizes = lengths(texts)
        short = sizes < (begin if end is None else end)
        stop = int(sizes.max()) if end is None else end
        parts = pc.binary_slice(texts.view(pa.binary()), begin, max(stop, begin)).view(pa.string())
        return parts, short if short.any() else None

    return run


def split_at(pattern: str, index: int) -> Callable[[pa.Array], Answer] | None:
    """`str:split`. Rows without that part, or with an empty part, are left (Java drops trailing empty parts)."""
    if index < 0 or not never_empty(pattern):
        return None
    by = pc.split_pattern if _literal(pattern) else pc.split_pattern_regex

    def run(texts: pa.Array) -> Answer:
        parts = by(texts, pattern)
        begins, ends = parts.offsets.to_numpy()[:-1], parts.offsets.to_numpy()[1:]
        at = begins + index
        none = at >= ends
        part_texts = parts.values.take(pa.array(np.where(none, begins, at)))
        return part_texts, none | (lengths(part_texts) == 0)

    return run


def _literal(pattern: str) -> bool:
    return all(c.isalnum() or c in " !\"#%&',-/:;<=>@_`~" for c in pattern)


def replace_matches(count: int) -> Callable[[str, str], Callable[[pa.Array], Answer] | None]:
    """`str:replaceAll` (count -1), `str:replaceFirst` (1)."""

    def function(pattern: str, replacement: str) -> Callable[[pa.Array], Answer] | None:
        if not never_empty(pattern) or "$" in replacement or "\\" in replacement:
            return None
        by = pc.replace_substring if _literal(pattern) else pc.replace_substring_regex
        return lambda texts: (by(texts, pattern, replacement, max_replacements=count), None)

    return function


def match_pattern(form: str) -> Callable[..., Callable[[pa.Array], Answer] | None]:
    """True if strings match a pattern, which replaces `{}` in `form`."""

    def function(pattern: str, *start: int) -> Callable[[pa.Array], Answer] | None:
        if start or not plain_regex(pattern):
            return None
        full_pattern = form.replace("{}", pattern)
        return lambda texts: (pc.match_substring_regex(texts, full_pattern), None)

    return function


ANYWHERE, BEGINNING, ENTIRE = "(?:{})", r"\A(?:{})", r"\A(?:{})\z"


def concat_strings(call: Call) -> Whole | None:
    """`str:concat`, of any strings."""

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        n = len(columns[0])
        parts = [str(a.value) if isinstance(a, Const) else c for a, c in zip(call.args, columns, strict=True)]
        texts = join_texts(parts, n, strings)
        if texts is None or strings.halves:
            return None
        return Texts(texts, strings, many=True), None

    return whole if any(not isinstance(a, Const) for a in call.args) else None
