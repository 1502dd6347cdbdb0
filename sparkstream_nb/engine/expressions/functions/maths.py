"""`math:*` (siddhi-execution-math): Java's `Math` on doubles; null where an argument is null."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....plan.nodes import Call
from ....types import Type
from ...columnar.column_data import Array, Column, Mask, StringPool, Texts
from ...notation.kernels import kernel
from ..env import Context, Env, Evaluator
from ..format_numbers import bits_texts
from ..java_arithmetic import as_type, either, narrow
from ..java_values import RowFailure, parse_double, parse_float, parse_int, parse_long
from ..parse_numbers import numbers_read
from ..rowwise import Builder, Plain, Whole, eager, rowwise, rowwise_typed
from .core import hash_rows

Numeric = Callable[..., Array]


def _doubles(function: Numeric) -> Builder:
    """A function of doubles whose result is a double, or is truncated to the call's type."""

    def kernel(columns: list[Column], env: Env, call: Call) -> Column:
        null = None
        for c in columns:
            null = either(null, c.null)
        out = function(*(as_type(c.values, Type.DOUBLE) for c in columns))
        if call.type in (Type.INT, Type.LONG):
            out = narrow(out, call.type)
        if null is not None:
            out[null] = 0
        return Column(call.type, out, null)

    return eager(kernel)


def _test(function: Numeric) -> Builder:
    def kernel(columns: list[Column], env: Env, call: Call) -> Column:
        return Column(Type.BOOL, function(columns[0].values) & ~columns[0].nulls())

    return eager(kernel)


def _constant(value: float) -> Builder:
    return eager(lambda columns, env, call: Column(Type.DOUBLE, np.broadcast_to(np.float64(value), env.n)))


def _power(x: Array, y: Array) -> Array:
    """`Math.pow`: unlike C's, 1 to the power of NaN and ±1 to the power of infinity are NaN."""
    out = np.power(x, y)
    return np.where(np.isnan(y) | (np.isinf(y) & (np.abs(x) == 1)), np.nan, out)


def _atan(x: Array, *y: Array) -> Array:
    out: Array = np.arctan2(x, y[0]) if y else np.arctan(x)
    return out


def _exponent(x: Array) -> Array:
    """`Math.getExponent`."""
    out = np.frexp(x)[1].astype(np.float64) - 1
    out = np.where(np.isnan(x) | np.isinf(x), 1024, out)
    return np.where(np.abs(x) < np.finfo(np.float64).tiny, -1023, out)


def _round(columns: list[Column], env: Env, call: Call) -> Column:
    """`Math.round`: half up, a float to an int and a double to a long."""
    x = columns[0].values
    floor = np.floor(x)
    return Column(call.type, narrow(floor + (x - floor >= 0.5), call.type), columns[0].null)


def _log(columns: list[Column], env: Env, call: Call) -> Column:
    number, base = (as_type(c.values, Type.DOUBLE) for c in columns)
    null = either(columns[0].null, columns[1].null)
    one = base == 1 if null is None else (base == 1) & ~null
    if one.any():
        env.fail(np.broadcast_to(one, env.n), "the logarithm to base 1 is undefined")
    out = np.log(number) / np.log(base)
    if null is not None:
        out[null] = 0
    return Column(Type.DOUBLE, out, null)


# ------------------------------------------------------------------------------------------------------------- text


def _bits(spec: str) -> Callable[[Call], Plain]:
    """`Integer.toBinaryString` and its like: the bits of the two's complement."""

    def make(call: Call) -> Plain:
        mask = 2**32 - 1 if call.args[0].type is Type.INT else 2**64 - 1
        return lambda v: None if v is None else format(v & mask, spec)

    return make


def _bits_whole(bits: int) -> Callable[[Call], Whole | None]:
    """`_bits` over whole columns, one digit for each `bits` bits."""

    def form(call: Call) -> Whole | None:
        word_type = {Type.INT: np.uint32, Type.LONG: np.uint64}.get(call.args[0].type)
        if word_type is None:
            return None

        def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
            texts = bits_texts(columns[0].values.astype(word_type).astype(np.uint64), bits)
            return Texts(texts, strings, many=True), columns[0].null

        return whole

    return form


def _float_hex(value: float, single: bool) -> str:
    """`Double.toHexString`, `Float.toHexString`."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if single and 0 < abs(value) < 2.0**-126:
        return _float_hex(math.ldexp(value, -1022 + 126), False).replace("p-1022", "p-126")
    mantissa, _, power = value.hex().partition("p")
    integer_part, _, fraction = mantissa.partition(".")
    return f"{integer_part}.{fraction.rstrip('0') or '0'}p{int(power)}"


def _hex(call: Call) -> Plain:
    kind = call.args[0].type
    if kind in (Type.INT, Type.LONG):
        return _bits("x")(call)
    return lambda v: None if v is None else _float_hex(v, kind is Type.FLOAT)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _conv(value: str | None, source: int | None, target: int | None) -> str | None:
    """`Integer.toString(Integer.parseInt(value, source), target)`."""
    if value is None or source is None or target is None:
        return None
    body = value[1:] if value[:1] in ("+", "-") else value
    digits = [_DIGITS.find(c) for c in body.lower()]
    if not 2 <= source <= 36 or not digits or not all(0 <= d < source for d in digits):
        raise RowFailure(f"'{value}' is not a number in base {source}")
    number = 0
    for d in digits:
        number = number * source + d
    negative = value[0] == "-"
    if number > 2**31 - (0 if negative else 1):
        raise RowFailure(f"'{value}' is too large for an int")
    base = target if 2 <= target <= 36 else 10
    out = ""
    while number or not out:
        number, d = divmod(number, base)
        out = _DIGITS[d] + out
    return "-" + out if negative and out != "0" else out


def _parse(parser: Callable[[str], Any], kind: str) -> Builder:
    def parse(text: str | None) -> Any:
        if text is None:
            return None
        value = parser(text)
        if value is None:
            raise RowFailure(f"'{text}' is not a {kind}")
        return value

    return rowwise(parse, numbers_read)


# --------------------------------------------------------------------------------------------------- random numbers


@kernel
def _next_doubles(state: int, out: Array) -> Any:
    """`nextDouble` of `java.util.Random` into each of `out`; answers the state behind the last."""
    now: Any = np.uint64(state)
    factor, term, mask = np.uint64(0x5DEECE66D), np.uint64(0xB), np.uint64(2**48 - 1)
    for i in range(len(out)):
        now = (now * factor + term) & mask
        high = now >> np.uint64(22)
        now = (now * factor + term) & mask
        out[i] = np.float64((high << np.uint64(27)) + (now >> np.uint64(21))) * 2.0**-53
    return np.int64(now)


def _rand(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """A number in [0, 1); with a constant seed, Java's sequence from the app's start on."""
    if not call.args:
        return lambda env: Column(Type.DOUBLE, context.random.random(env.n))
    if call.args[0].type is Type.STRING:  # frozen chance
        return lambda env: Column(Type.DOUBLE, (np.frombuffer(hash_rows(args, env), "<u8")[::2] >> 11) * 2.0**-53)
    state: list[int] = []

    def draw_seeded(env: Env) -> Column:
        out = np.empty(env.n)
        if env.n and not state:
            state.append((int(args[0](env).values[0]) ^ 0x5DEECE66D) & (2**48 - 1))
        if env.n:
            state[0] = _next_doubles(state[0], out)
        return Column(Type.DOUBLE, out)

    return draw_seeded


_DOUBLES: Mapping[str, Numeric] = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "floor": np.floor,
    "getExponent": _exponent,
    "ln": np.log,
    "log10": np.log10,
    "log2": lambda x: np.log(x) / math.log(2),
    "signum": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "toDegrees": np.degrees,
    "toRadians": np.radians,
    "atan": _atan,
    "copySign": np.copysign,
    "max": np.maximum,
    "min": np.minimum,
    "power": _power,
}

TABLE: Mapping[str, Builder] = {
    **{f"math:{name}": _doubles(function) for name, function in _DOUBLES.items()},
    "math:bin": rowwise_typed(_bits("b"), _bits_whole(1)),
    "math:conv": rowwise(_conv),
    "math:e": _constant(math.e),
    "math:hex": rowwise_typed(_hex, _bits_whole(4)),
    "math:isInfinite": _test(np.isinf),
    "math:isNan": _test(np.isnan),
    "math:log": eager(_log),
    "math:oct": rowwise_typed(_bits("o"), _bits_whole(3)),
    "math:parseDouble": _parse(parse_double, "double"),
    "math:parseFloat": _parse(parse_float, "float"),
    "math:parseInt": _parse(parse_int, "int"),
    "math:parseLong": _parse(parse_long, "long"),
    "math:pi": _constant(math.pi),
    "math:rand": _rand,
    "math:round": eager(_round),
}
