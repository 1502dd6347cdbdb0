"""The built-in functions without namespace: Siddhi's `core.executor.function`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from ....plan.nodes import Call, EventRef
from ....types import Type
from ...columnar.column_data import DTYPES, Array, Column, Mask, StringPool, Texts, writable
from ...columnar.string_dictionary import string_array
from ...notation.kernels import kernel
from ..env import Context, Env, Evaluator
from ..format_numbers import NUMBERS, number_texts
from ..function_checks import within
from ..java_arithmetic import as_type, choose, narrow
from ..java_texts import object_text, text
from ..java_values import RowFailure, box, parse_bool, parse_double, parse_float, parse_int, parse_long, type_of
from ..parse_numbers import numbers_read
from ..rowwise import Builder, apply, eager, rowwise, rowwise_typed

SMALLEST, LARGEST = 5e-324, 1.7976931348623157e308
"""Java's Double.MIN_VALUE and Double.MAX_VALUE."""

# ------------------------------------------------------------------------------------------------- cast and convert

_PARSERS: Mapping[Type, Callable[[str], Any]] = {
    Type.INT: parse_int,
    Type.LONG: parse_long,
    Type.FLOAT: parse_float,
    Type.DOUBLE: parse_double,
    Type.BOOL: parse_bool,
}


def _convert(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """`convert(value, type)`: by value; null where a text does not parse (`ConvertFunctionExecutor`)."""
    inner, source, target = args[0], call.args[0].type, call.type
    if source is target:
        return inner
    if target is Type.STRING:
        return _to_text(inner, source, context)
    if source is Type.STRING:
        parse = _PARSERS[target]
        return rowwise(lambda v: None if v is None else parse(v), numbers_read)(call, args[:1], context)

    def numbers(env: Env) -> Column:
        column = inner(env)
        return Column(target, _to_number(column, target), column.null)

    return numbers


def _to_text(inner: Evaluator, source: Type, context: Context) -> Evaluator:
    """Numbers all at once, of which most may be different, other values one of a kind each."""
    if source not in NUMBERS:
        plain = within(context.limits, lambda v: None if v is None else text(source, v))
        return lambda env: apply(plain, [inner(env)], Type.STRING, env)

    def texts(env: Env) -> Column:
        return Texts(number_texts(inner(env)), env.strings, many=True)

    return texts


def _to_number(column: Column, target: Type) -> Array:
    values = column.values
    if target is Type.BOOL:
        out: Array = values == 1
        return out
    return narrow(values, target) if target in (Type.INT, Type.LONG) else as_type(values, target)


def _cast_value(target: Type) -> Callable[[Any], Any]:
    """`cast` of single boxed values. Raises RowFailure for a value that `target` does not have."""

    def cast(value: Any) -> Any:
        source = type_of(value)
        result = None
        if value is None or source is target:
            return value
        if target is Type.STRING and source is not Type.OBJECT:
            return text(source, value)
        if source is Type.STRING:
            result = None if target is Type.BOOL and value.lower() not in ("true", "false") else _PARSERS[target](value)
        elif source.numeric and target.numeric:
            column = Column.of(source, [value], StringPool())
            values, has_value = _cast_numbers(column, target)
            result = values[0].item() if has_value[0] else None
        if result is None:
            raise RowFailure(f"cannot cast {object_text(value)} to {target}")
        return result

    return cast


def _cast_numbers(column: Column, target: Type) -> tuple[Array, Mask]:
    """(numbers in the dtype of `target`, as Java casts them; where they are within its range)."""
    with np.errstate(over="ignore"):
        values = _to_number(column, target)
    if target in (Type.FLOAT, Type.DOUBLE):
        return values, np.isfinite(values) | ~np.isfinite(column.values)
    if column.type in (Type.FLOAT, Type.DOUBLE):
        limit = 2.0 ** (31 if target is Type.INT else 63)
        integers = np.trunc(column.values.astype(np.float64))
        return values, (integers >= -limit) & (integers < limit)
    return values, values == column.values


def _cast(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """`cast(value, type)`: numbers as Java casts them, texts by parsing; an error if there is no such value.

    Siddhi hands the value on in its own type (`CastFunctionExecutor`), which a typed column cannot hold.
    """
    inner, source, target = args[0], call.args[0].type, call.type
    if source is target:
        return inner
    if target is Type.STRING and source is not Type.OBJECT:
        return _to_text(inner, source, context)
    if not (source.numeric and target.numeric):
        cast = within(context.limits, _cast_value(target))
        return lambda env: apply(cast, [inner(env)], target, env)

    def numbers(env: Env) -> Column:
        column = inner(env)
        values, has_value = _cast_numbers(column, target)
        missing = ~has_value & ~column.nulls()
        if missing.any():
            env.fail(missing, f"cannot cast {source} to {target}: the value is out of range")
        return Column(target, values, column.null)

    return numbers


def _same_type(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """The number that an object must hold to be computed with: of the type of the other side, or an int for a long."""
    inner, target = args[0], call.type

    def same(value: Any) -> Any:
        kind = type_of(value)
        if value is None or kind is target or (kind, target) == (Type.INT, Type.LONG):
            return value
        raise RowFailure(f"cannot compute with {object_text(value)} as {target}")

    return lambda env: apply(same, [inner(env)], target, env)


# ------------------------------------------------------------------------------------------------------- instanceOf


def _instance_of(target: Type) -> Builder:

    def kernel(columns: list[Column], env: Env, call: Call) -> Column:
        column = columns[0]
        if column.type is Type.OBJECT:
            return apply(lambda v: type_of(v) is target, [column], Type.BOOL, env)
        if column.type is not target:
            return Column(Type.BOOL, np.zeros(env.n, np.bool_))
        return Column(Type.BOOL, ~column.nulls())

    return eager(kernel)


# -------------------------------------------------------------------------------------------------------- choosing


def _choose(mask: Any, yes: Column, no: Column) -> Column:
    """`yes` where `mask`, else `no`; both of one type."""
    null = None
    if yes.null is not None or no.null is not None:
        null = choose(mask, yes.nulls(), no.nulls())
    return Column(yes.type, choose(mask, yes.values, no.values), null)


def _if_then_else(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """Only the branch that is taken is evaluated (`IfThenElseFunctionExecutor.execute`)."""
    condition, yes, no = args

    def run(env: Env) -> Column:
        mask = condition(env).values
        outer_active = env.narrow(mask)
        try:
            a = yes(env)
            env.active = outer_active
            env.narrow(~mask)
            b = no(env)
        finally:
            env.active = outer_active
        return _choose(mask, a, b)

    return run


def coalesce(columns: list[Column], env: Env, call: Call) -> Column:
    """The first argument that is not null."""
    out = columns[0]
    for other in columns[1:]:
        if out.null is None:
            break
        out = _choose(~out.null, out, other)
    return out


def _extreme(values: Sequence[Column], env: Env, call: Call, *, largest: bool) -> Column:
    """`maximum`/`minimum`, as in `MaximumFunctionExecutor` and `MinimumFunctionExecutor`.

    Numbers are compared as doubles and cast back; a null counts as the start value. The start value of the maximum is
    Java's `Double.MIN_VALUE`, the smallest positive double, so that negative numbers never win.
    """
    if len(values) == 1:
        return values[0]
    start = SMALLEST if largest else LARGEST
    best: Array = np.full(env.n, start)
    for column in values:
        wide = column.values.astype(np.float64)
        better = wide > best if largest else wide < best
        if column.null is not None:
            better &= ~column.null
        best = choose(better, wide, best)
    kind = call.type
    return Column(kind, narrow(best, kind) if kind in (Type.INT, Type.LONG) else best.astype(DTYPES[kind]))


# ------------------------------------------------------------------------------------------------------------ time


def _event_timestamp(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    if not call.args:
        return lambda env: Column(Type.LONG, env.ts)
    event = call.args[0]
    assert isinstance(event, EventRef), "eventTimestamp takes an event"

    def of_event(env: Env) -> Column:
        if env.event_time is None:
            raise LookupError("no events here to take a timestamp from")
        return env.event_time(event)

    return of_event


def _now(columns: list[Column], env: Env, call: Call) -> Column:
    return Column(Type.LONG, env.clock())


def _is_leader(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    return lambda env: Column(Type.BOOL, np.full(env.n, context.leads))


def _uuid(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    def run(env: Env) -> Column:
        draws = hash_rows(args, env) if args else context.random.bytes(16 * env.n)
        return Texts(_uuids(draws), env.strings, many=True)

    return run


def hash_rows(args: Sequence[Evaluator], env: Env) -> bytes:
    """16 bytes for each row: a hash of its time and arguments, in place of chance (`plan.rewrites.chance`)."""
    rows = zip(env.ts.tolist(), *(a(env).to_list(env.strings) for a in args), strict=True)
    return b"".join(blake2b(repr(row).encode(), digest_size=16).digest() for row in rows)


_HEX_DIGITS = tuple(b"0123456789abcdef")
_UUID_SIZE = 36


@kernel
def _spell(octets: Array, out: Array) -> None:
    """Writes the texts of random UUIDs (version 4 of RFC 9562), 16 bytes of chance for each."""
    for i in range(len(octets)):
        at = 0
        for j in range(16):
            octet = np.int64(octets[i, j])
            if j == 6:
                octet = octet & 0x0F | 0x40
            if j == 8:
                octet = octet & 0x3F | 0x80
            if j == 4 or j == 6 or j == 8 or j == 10:
                out[i, at] = 45
                at += 1
            out[i, at] = _HEX_DIGITS[octet >> 4]
            out[i, at + 1] = _HEX_DIGITS[octet & 15]
            at += 2


def _uuids(draws: bytes) -> pa.Array:
    """The texts of random UUIDs, 16 bytes for each."""
    octets = np.frombuffer(draws, np.uint8).reshape(-1, 16)
    out = np.empty((len(octets), _UUID_SIZE), np.uint8)
    _spell(writable(octets), out)
    return string_array(_UUID_SIZE * np.arange(len(octets) + 1, dtype=np.int32), out)


# ------------------------------------------------------------------------------------------------------------- sets


def _create_set(call: Call) -> Callable[[Any], Any]:
    kind = call.args[0].type
    return lambda value: {box(kind, value)}


def _size_of_set(value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, set | frozenset):
        raise RowFailure(f"sizeOfSet() takes a set, not {object_text(value)}")
    return len(value)


TABLE: Mapping[str, Builder] = {
    "cast": _cast,
    "sameType": _same_type,
    "convert": _convert,
    "coalesce": eager(coalesce),
    "coordination:isLeader": _is_leader,
    "createSet": rowwise_typed(_create_set),
    "currentTimeMillis": eager(_now),
    "default": eager(coalesce),
    "eventTimestamp": _event_timestamp,
    "ifThenElse": _if_then_else,
    "instanceOfBoolean": _instance_of(Type.BOOL),
    "instanceOfDouble": _instance_of(Type.DOUBLE),
    "instanceOfFloat": _instance_of(Type.FLOAT),
    "instanceOfInteger": _instance_of(Type.INT),
    "instanceOfLong": _instance_of(Type.LONG),
    "instanceOfString": _instance_of(Type.STRING),
    "maximum": eager(lambda c, env, call: _extreme(c, env, call, largest=True)),
    "minimum": eager(lambda c, env, call: _extreme(c, env, call, largest=False)),
    "sizeOfSet": rowwise(_size_of_set),
    "UUID": _uuid,
}
