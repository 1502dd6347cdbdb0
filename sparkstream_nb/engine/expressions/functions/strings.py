"""`str:*` (siddhi-execution-string). Positions and lengths count UTF-16 units, as in Java."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....plan.nodes import Call, Const
from ....types import Type
from ...columns import Column
from ..env import Context, Env, Evaluator
from ..javaregex import compile_java, limited, replace, split
from ..rowwise import Builder, Plain, asked, distinct, eager, rowwise, typed
from ..values import Failure, text
from .core import coalesce
from .regexes import check_constant, patterned, required


def units(s: str) -> str:
    """`s` with every character beyond U+FFFF as its two surrogates, so that Python's indexes are Java's."""
    if s.isascii() or max(s) <= "\uffff":
        return s
    raw = s.encode("utf-16-be", "surrogatepass")
    return "".join(chr(raw[i] << 8 | raw[i + 1]) for i in range(0, len(raw), 2))


def joined(s: str) -> str:
    """The inverse of `units`; a lone surrogate, which no output format can carry, becomes a question mark."""
    if s.isascii():
        return s
    whole = s.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return re.sub("[\ud800-\udfff]", "?", whole)


def _strict(key: str, function: Callable[..., Any]) -> Builder:
    """A function that fails the row on any null argument."""

    def checked(*args: Any) -> Any:
        required(key, *args)
        return function(*args)

    return rowwise(checked)


def _char_at(s: str, index: int) -> str:
    wide = units(s)
    if not 0 <= index < len(wide):
        raise Failure(f"index {index} is not in '{s}'")
    return joined(wide[index])


def _char_frequency(s: str, char: str) -> int:
    if len(units(char)) != 1:
        raise Failure(f"str:charFrequency() takes one character, not '{char}'")
    return units(s).count(char)


def _concat(*args: str | None) -> str:
    return "".join(a for a in args if a is not None)


_MANY = 100
"""Rows from which on Arrow joins texts sooner than Python."""


def _concat_all(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """`str:concat`; of several attributes there may be as many combinations as rows, which Arrow joins."""
    if sum(not isinstance(a, Const) for a in call.args) < 2:
        return rowwise(_concat)(call, args, context)

    def run(env: Env) -> Column:
        columns, strings = [a(env) for a in args], env.strings
        first, inverse = distinct(columns, strings, env.n)
        columns = [c.take(first) for c in columns]
        answers = None
        if len(first) >= _MANY:
            texts = [strings.to_arrow(c.values).cast(pa.string()) for c in columns]
            if not strings.halves:
                joined = pc.binary_join_element_wise(*texts, "", null_handling="skip")
                answers = Column(Type.STRING, strings.encode_arrow(joined))
        if answers is None:
            answers, _ = asked(_concat, columns, len(first), Type.STRING, strings)
        return answers if inverse is None else answers.take(inverse)

    return run


def _coalesce(columns: list[Column], env: Env, call: Call) -> Column:
    """The first argument that is not null; with a single argument always null, as Siddhi has it."""
    return coalesce(columns, env, call) if len(columns) > 1 else Column.all_null(call.type, env.n)


def _contains(s: str | None, part: str | None) -> bool:
    if s is None:
        return False
    if part is None:
        raise Failure("argument 2 of str:contains() is null")
    return part in s


def _equals_ignore_case(a: str | None, b: str | None) -> bool:
    if a is None:
        raise Failure("argument 1 of str:equalsIgnoreCase() is null")
    if b is None or len(units(a)) != len(units(b)):
        return False
    return all(x == y or x.upper() == y.upper() or x.lower() == y.lower() for x, y in zip(a, b, strict=False))


def _fill_template(call: Call) -> Plain:
    kinds = [a.type for a in call.args]

    def fill(template: str | None, *values: Any) -> str:
        required("str:fillTemplate", template)
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
                raise Failure(f"'{name}' in a template is not the number of a value") from None
            if not 0 <= index <= len(values):
                raise Failure(f"a template asks for value {index} of {len(values)}")
            value = values[index - 1] if index else template
            if value is not None:
                parts[i] = text(kinds[index], value)
        return "".join(parts)

    return fill


def _hex(s: str) -> str:
    return "".join(f"{ord(c):x}" for c in units(s))


def _unhex(s: str) -> str:
    if len(s) % 2:
        raise Failure(f"str:unhex() takes pairs of digits, found '{s}'")
    try:
        codes = [int(s[i : i + 2], 16) for i in range(0, len(s), 2) if s[i : i + 2].strip() == s[i : i + 2]]
    except ValueError:
        raise Failure(f"'{s}' is not hexadecimal") from None
    if any(c < 0 for c in codes) or 2 * len(codes) != len(s):
        raise Failure(f"'{s}' is not hexadecimal")
    return "".join(map(chr, codes))


def _locate(wanted: str, s: str, *start: int) -> int:
    wide, at = units(s), start[0] if start else 0
    if not 0 <= at <= len(wide):
        raise Failure(f"index {at} is not in '{s}'")
    return wide[at:].find(units(wanted)) + at


def _repeat(s: str, times: int) -> str:
    return s * max(times, 0)


def _reverse(s: str) -> str:
    return s[::-1]


def _split(s: str, pattern: str, index: int) -> str:
    parts = split(s, pattern)
    if not 0 <= index < len(parts):
        raise Failure(f"'{s}' has {len(parts)} parts, no part {index}")
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
        raise Failure(f"begin {begin}, end {end}, length {len(wide)}")
    return joined(wide[begin:end])


def _find(s: str, pattern: str, *group: int) -> str | None:
    compiled = compile_java(pattern)
    found: Any = limited(compiled.search, s)
    if found is None:
        return ""
    number = group[0] if group else 0
    if not 0 <= number <= compiled.groups:
        raise Failure(f"no group {number}")
    value: str | None = found.group(number)
    return value


def _substr(call: Call) -> Plain:
    by_pattern = call.args[1].type is Type.STRING
    if by_pattern:
        check_constant(call, 1)
    function: Plain = _find if by_pattern else _cut

    def substr(*args: Any) -> Any:
        required("str:substr", *args)
        return function(*args)

    return substr


def _regexp(s: str | None, pattern: str | None) -> bool:
    required("str:regexp", s, pattern)
    assert pattern is not None
    return limited(compile_java(pattern).fullmatch, s) is not None


_WHITE = "".join(map(chr, range(33)))

TABLE: Mapping[str, Builder] = {
    "str:charAt": _strict("str:charAt", _char_at),
    "str:charFrequency": _strict("str:charFrequency", _char_frequency),
    "str:coalesce": eager(_coalesce),
    "str:concat": _concat_all,
    "str:contains": rowwise(_contains),
    "str:equalsIgnoreCase": rowwise(_equals_ignore_case),
    "str:fillTemplate": typed(_fill_template),
    "str:hex": _strict("str:hex", _hex),
    "str:length": _strict("str:length", lambda s: len(units(s))),
    "str:locate": _strict("str:locate", _locate),
    "str:lower": _strict("str:lower", str.lower),
    "str:regexp": patterned(1, _regexp),
    "str:repeat": _strict("str:repeat", _repeat),
    "str:replaceAll": _strict("str:replaceAll", replace),
    "str:replaceFirst": _strict("str:replaceFirst", lambda s, p, r: replace(s, p, r, 1)),
    "str:reverse": _strict("str:reverse", _reverse),
    "str:split": _strict("str:split", _split),
    "str:strcmp": _strict("str:strcmp", _strcmp),
    "str:substr": typed(_substr),
    "str:trim": _strict("str:trim", lambda s: s.strip(_WHITE)),
    "str:unhex": _strict("str:unhex", _unhex),
    "str:upper": _strict("str:upper", str.upper),
}
