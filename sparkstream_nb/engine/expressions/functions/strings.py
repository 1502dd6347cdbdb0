"""`str:*` (siddhi-execution-string). Positions and lengths count UTF-16 units, as in Java."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....plan.nodes import Call
from ....types import Type
from ...columnar.column_data import Column
from ..asciitexts import (
    ENTIRE,
    Answer,
    concat_strings,
    cut,
    match_pattern,
    on_text,
    over_text,
    replace_matches,
    simple,
    split_at,
)
from ..env import Context, Env, Evaluator
from ..function_checks import check_text
from ..java_texts import text
from ..java_values import RowFailure
from ..javaregex import compile_java, match_in_time, replace, split
from ..rowwise import Builder, Plain, Whole, eager, rowwise, rowwise_typed
from .core import coalesce
from .regexes import check_constant, require_values, rowwise_pattern, without_nulls


def units(s: str) -> str:
    """`s` with every character beyond U+FFFF as its two surrogates, so that Python's indexes are Java's."""
    if s.isascii() or max(s) <= "\uffff":
        return s
    raw = s.encode("utf-16-be", "surrogatepass")
    return "".join(chr(raw[i] << 8 | raw[i + 1]) for i in range(0, len(raw), 2))


def join_units(s: str) -> str:
    """The inverse of `units`; a lone surrogate, which no output format can carry, becomes a question mark."""
    if s.isascii():
        return s
    text = s.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return re.sub("[\ud800-\udfff]", "?", text)


def _strict(
    key: str, function: Callable[..., Any], column_form: Callable[[Call], Whole | None] | None = None
) -> Builder:
    """A function that fails the row on any null argument."""
    return rowwise(without_nulls(key, function), column_form)


def _char_at(s: str, index: int) -> str:
    wide = units(s)
    if not 0 <= index < len(wide):
        raise RowFailure(f"index {index} is out of range in '{s}'")
    return join_units(wide[index])


def _char_frequency(s: str, char: str) -> int:
    if len(units(char)) != 1:
        raise RowFailure(f"str:charFrequency() takes one character, not '{char}'")
    return units(s).count(char)


def _concat(*args: str | None) -> str:
    return "".join(a for a in args if a is not None)


def _coalesce(columns: list[Column], env: Env, call: Call) -> Column:
    """The first argument that is not null; with a single argument always null, as in Siddhi."""
    return coalesce(columns, env, call) if len(columns) > 1 else Column.all_null(call.type, env.n)


def _contains(s: str | None, part: str | None) -> bool:
    if s is None:
        return False
    if part is None:
        raise RowFailure("argument 2 of str:contains() is null")
    return part in s


def _match_substring(part: str) -> Callable[[pa.Array], Answer]:
    return lambda texts: (pc.match_substring(texts, part), None)


def _equals_ignore_case(a: str | None, b: str | None) -> bool:
    if a is None:
        raise RowFailure("argument 1 of str:equalsIgnoreCase() is null")
    if b is None or len(units(a)) != len(units(b)):
        return False
    return all(x == y or x.upper() == y.upper() or x.lower() == y.lower() for x, y in zip(a, b, strict=False))


def _fill_template(call: Call) -> Plain:
    kinds = [a.type for a in call.args]

    def fill(template: str | None, *values: Any) -> str:
        require_values("str:fillTemplate", template)
        assert template is not None
        parts = split(template, r"(\{\{)|(\}\})")
        first = values[0]
        for i in range(1, len(parts), 2):
            name = parts[i].strip()
            if isinstance(first, dict):
                if first.get(name) is not None:
                    parts[i] = text(Type.OBJECT, first[name])
                continue
            try:
                index = int(name)
            except ValueError:
                raise RowFailure(f"'{name}' in the template is not the number of a value") from None
            if not 0 <= index <= len(values):
                raise RowFailure(f"the template refers to value {index} of {len(values)}")
            value = values[index - 1] if index else template
            if value is not None:
                parts[i] = text(kinds[index], value)
        return "".join(parts)

    return fill


def _hex(s: str) -> str:
    return "".join(f"{ord(c):x}" for c in units(s))


def _unhex(s: str) -> str:
    if len(s) % 2:
        raise RowFailure(f"str:unhex() takes pairs of digits, found '{s}'")
    try:
        codes = [int(s[i : i + 2], 16) for i in range(0, len(s), 2) if s[i : i + 2].strip() == s[i : i + 2]]
    except ValueError:
        raise RowFailure(f"'{s}' is not hexadecimal") from None
    if any(c < 0 for c in codes) or 2 * len(codes) != len(s):
        raise RowFailure(f"'{s}' is not hexadecimal")
    return "".join(map(chr, codes))


def _locate(part: str, s: str, *start: int) -> int:
    wide, at = units(s), start[0] if start else 0
    if not 0 <= at <= len(wide):
        raise RowFailure(f"index {at} is out of range in '{s}'")
    return wide[at:].find(units(part)) + at


def _repeat(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """Text that would be too long is not made at all."""

    def repeat(s: str, times: int) -> str:
        check_text(len(s) * max(times, 0), context.limits)
        return s * max(times, 0)

    return _strict("str:repeat", repeat)(call, args, context)


def _reverse(s: str) -> str:
    return s[::-1]


def _split(s: str, pattern: str, index: int) -> str:
    parts = split(s, pattern)
    if not 0 <= index < len(parts):
        raise RowFailure(f"'{s}' has {len(parts)} parts, no part {index}")
    return parts[index]


def _strcmp(a: str, b: str) -> int:
    wide_a, wide_b = units(a), units(b)
    for x, y in zip(wide_a, wide_b, strict=False):
        if x != y:
            return ord(x) - ord(y)
    return len(wide_a) - len(wide_b)


def _cut(s: str, begin: int, *length: int) -> str:
    wide = units(s)
    end = begin + length[0] if length else len(wide)
    if not 0 <= begin <= end <= len(wide):
        raise RowFailure(f"begin {begin}, end {end} is out of range for length {len(wide)}")
    return join_units(wide[begin:end])


def _find(s: str, pattern: str, *group: int) -> str | None:
    matcher = compile_java(pattern)
    first_match: Any = match_in_time(matcher.search, s)
    if first_match is None:
        return ""
    number = group[0] if group else 0
    if not 0 <= number <= matcher.groups:
        raise RowFailure(f"no group {number}")
    value: str | None = first_match.group(number)
    return value


def _substr(call: Call) -> Plain:
    by_pattern = call.args[1].type is Type.STRING
    if by_pattern:
        check_constant(call, 1)
    function: Plain = _find if by_pattern else _cut

    def substr(*args: Any) -> Any:
        require_values("str:substr", *args)
        return function(*args)

    return substr


def _regexp(s: str | None, pattern: str | None) -> bool:
    require_values("str:regexp", s, pattern)
    assert pattern is not None
    return match_in_time(compile_java(pattern).fullmatch, s) is not None


_WHITE = "".join(map(chr, range(33)))

TABLE: Mapping[str, Builder] = {
    "str:charAt": _strict("str:charAt", _char_at, on_text(0, lambda index: cut(index, 1))),
    "str:charFrequency": _strict("str:charFrequency", _char_frequency),
    "str:coalesce": eager(_coalesce),
    "str:concat": rowwise(_concat, concat_strings),
    "str:contains": rowwise(_contains, on_text(0, _match_substring)),
    "str:equalsIgnoreCase": rowwise(_equals_ignore_case),
    "str:fillTemplate": rowwise_typed(_fill_template),
    "str:hex": _strict("str:hex", _hex),
    "str:length": _strict("str:length", lambda s: len(units(s)), simple(pc.binary_length)),
    "str:locate": _strict("str:locate", _locate),
    "str:lower": _strict("str:lower", str.lower, simple(pc.ascii_lower)),
    "str:regexp": rowwise_pattern(1, _regexp, on_text(0, match_pattern(ENTIRE))),
    "str:repeat": _repeat,
    "str:replaceAll": _strict("str:replaceAll", replace, on_text(0, replace_matches(-1))),
    "str:replaceFirst": _strict(
        "str:replaceFirst", lambda s, p, r: replace(s, p, r, 1), on_text(0, replace_matches(1))
    ),
    "str:reverse": _strict("str:reverse", _reverse, simple(pc.ascii_reverse)),
    "str:split": _strict("str:split", _split, on_text(0, split_at)),
    "str:strcmp": _strict("str:strcmp", _strcmp),
    "str:substr": rowwise_typed(
        _substr, lambda call: None if call.args[1].type is Type.STRING else over_text(call, 0, cut)
    ),
    "str:trim": _strict("str:trim", lambda s: s.strip(_WHITE), simple(lambda texts: pc.ascii_trim(texts, " "))),
    "str:unhex": _strict("str:unhex", _unhex),
    "str:upper": _strict("str:upper", str.upper, simple(pc.ascii_upper)),
}
