"""Whole-column formatting of numbers, as in Java."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...types import Type
from ..columnar.column_data import Array, Column, Mask
from ..columnar.string_dictionary import string_array, text_buffers
from ..notation.intrinsics import store64
from ..notation.kernels import inlined, kernel
from .java_texts import text
from .shortest import FIRST, POWERS, shortest

NUMBERS = (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)

_TENS = 10.0 ** np.arange(9)
_LONGEST = 26
"""Bytes of a number's text at most, and some more."""


_NAN, _INFINITY = tuple(b"NaN"), tuple(b"Infinity")


@inlined
def _lay(data: Array, begin: Any, digits: Array, first: Any, size: Any, exponent: Any, negative: Any) -> Any:
    """Writes Java's form of 0.d1d2d3... * 10**exponent from `begin` on: plain from 10**-3 to 10**7, else with `E`.
    Answers where it ends. The `size` digits begin at `first`, and the last is not 0, unless it is the only one."""
    at = np.int64(begin)
    plain = exponent > -3 and exponent <= 7
    before = exponent if plain else 1  # digits before the point
    if negative:
        data[at] = 45
        at += 1
    if before <= 0:
        data[at] = 48
        data[at + 1] = 46
        at += 2
        for _ in range(-before):
            data[at] = 48
            at += 1
    for j in range(max(size, before + 1)):
        if j == before and before > 0:
            data[at] = 46
            at += 1
        data[at] = digits[first + j] if j < size else 48
        at += 1
    if not plain:
        data[at] = 69
        at += 1
        power = exponent - 1
        if power < 0:
            data[at] = 45
            at += 1
            power = -power
        for unit in (100, 10, 1):
            if power >= unit or unit == 1:
                data[at] = 48 + power // unit % 10
                at += 1
    return at


@inlined
def _eight(number: Any) -> Any:
    """The eight digits of a number below 10**8 as bytes 0 to 9 of a word, the first one lowest."""
    x = np.uint64(number)
    high = x // np.uint64(10_000)
    fours = high | (x - high * np.uint64(10_000)) << np.uint64(32)
    high = (fours * np.uint64(10_486)) >> np.uint64(20) & np.uint64(0x7F_0000_007F)
    twos = high | (fours - high * np.uint64(100)) << np.uint64(16)
    high = (twos * np.uint64(103)) >> np.uint64(10) & np.uint64(0x000F_000F_000F_000F)
    return high | (twos - high * np.uint64(10)) << np.uint64(8)


@inlined
def _size(number: Any) -> Any:
    """Number of digits of a number below 10**8, without branches, which no processor could predict."""
    x = np.int64(number)
    few = 1 + (x >= 10) + (x >= 100) + (x >= 1000)
    return few + (x >= 10_000) + (x >= 100_000) + (x >= 1_000_000) + (x >= 10_000_000)


@inlined
def _lay_whole(data: Array, begin: Any, number: Any) -> Any:
    """Writes the digits of a whole number below 10**16 from `begin` on, and up to 15 bytes more. Answers its end."""
    at = np.int64(begin)
    rest = np.uint64(number)
    if rest >= np.uint64(100_000_000):
        upper = rest // np.uint64(100_000_000)
        rest -= upper * np.uint64(100_000_000)
        size = _size(upper)
        word = _eight(upper)
        word = (word | _ZEROS) >> np.uint64(64 - 8 * size)
        store64(data, at, word)
        at += size
        size = 8
    else:
        size = _size(rest)
    word = _eight(rest)
    word = (word | _ZEROS) >> np.uint64(64 - 8 * size)
    store64(data, at, word)
    return at + size


_ZEROS = np.uint64(0x3030_3030_3030_3030)
_UNSIGNED = np.uint64(2**63 - 1)
_LAST = 1.7976931348623157e308


@kernel
def _write_whole(values: Array, null: Mask, ends: Array, data: Array, left: Mask) -> None:
    """The texts of whole numbers nearer to 0 than 10**16, one after the other; the others stay `left`."""
    at = np.int64(0)
    for i in range(len(values)):
        v = np.int64(values[i])
        if not null[i] and v > -10_000_000_000_000_000 and v < 10_000_000_000_000_000:
            if v < 0:
                data[at] = 45
                at += 1
                v = -v
            at = _lay_whole(data, at, v)
            left[i] = False
        ends[i + 1] = at


@kernel
def _write(values: Array, null: Mask, tens: Array, powers: Array, ends: Array, data: Array, left: Mask) -> None:
    """The texts of doubles, one after the other; NaN, infinite and nearly zero ones stay `left`. `tens` are powers
    of ten, `powers` are `POWERS`.

    Most are numbers of at most 15 digits, with few behind the point. No other number with that many digits parses to
    the same double, so without trailing zeros it is the shortest. It is an integer divided by a power of ten, both of
    them doubles, and their quotient is the parsed value. The last number's count of decimal places is tried first.
    """
    at = np.int64(0)
    digits = np.empty(24, np.uint8)
    bits = values.view(np.uint64)
    guess = 0
    for i in range(len(values)):
        v = values[i]
        a = abs(v)
        if null[i] or not (a >= FIRST or a == 0) or a > _LAST:
            ends[i + 1] = at
            continue
        left[i] = False
        negative = bits[i] >> np.uint64(63) != np.uint64(0)
        places: Any = -1
        m: Any = np.uint64(0)
        if a >= 1e-3 and a < 1e7:
            for k in range(guess, len(tens)):
                p = a * tens[k]
                near = np.floor(p + 0.5)
                if abs(p - near) <= p * 2.0**-51 and near / tens[k] == a:
                    places = k
                    m = np.uint64(near)
                    break
        if places >= 0:
            guess = places
            while places > 0:
                tenth = m // np.uint64(10)
                if tenth * np.uint64(10) != m:
                    break
                m = tenth
                places -= 1
            if negative:
                data[at] = 45
                at += 1
            integer_part = np.uint64(a)
            at = _lay_whole(data, at, integer_part)
            data[at] = 46
            size = max(places, 1)
            part = m - integer_part * np.uint64(tens[places])
            word = _eight(part)
            word = (word | _ZEROS) >> np.uint64(64 - 8 * size)
            store64(data, at + 1, word)
            at += 1 + size
        else:
            exponent = 24
            if a > 0:
                shortest_form = shortest(bits[i] & _UNSIGNED, powers)
                m = shortest_form[0]
                exponent += shortest_form[1]
            upper = m // np.uint64(100_000_000)
            word = _eight(m - upper * np.uint64(100_000_000))
            store64(digits, 16, word | _ZEROS)
            top = upper // np.uint64(100_000_000)
            word = _eight(upper - top * np.uint64(100_000_000))
            store64(digits, 8, word | _ZEROS)
            word = _eight(top)
            store64(digits, 0, word | _ZEROS)
            first, last = 7, 23
            while first < 23 and digits[first] == 48:
                first += 1
            while last > first and digits[last] == 48:
                last -= 1
            exponent = 1 if a == 0 else exponent - first
            size = last - first + 1
            at = _lay(data, at, digits, first, size, exponent, negative)
        ends[i + 1] = at


@kernel
def _rewrite(offsets: Array, texts: Array, ends: Array, data: Array) -> None:
    """Java's texts of numbers from Arrow's, which write the same digits, but `nan` and `inf`, no `.0`, and begin to
    write exponents elsewhere."""
    at, low = np.int64(0), np.int64(offsets[0])
    digits = np.empty(40, np.uint8)
    for i in range(len(ends) - 1):
        k, end = np.int64(offsets[i]) - low, np.int64(offsets[i + 1]) - low
        negative = k < end and texts[k] == 45
        if negative:
            k += 1
        exponent: Any = 0
        size, before_point, point = 0, 0, False
        while k < end and texts[k] != 101 and texts[k] < 102:
            if texts[k] == 46:
                point = True
            else:
                if size > 0 or texts[k] != 48:
                    digits[size] = texts[k]
                    size += 1
                    before_point += not point
                elif point:
                    before_point -= 1
            k += 1
        if k < end and texts[k] == 101:
            minus = texts[k + 1] == 45
            for j in range(k + 2, end):
                exponent = 10 * exponent + np.int64(texts[j]) - 48
            if minus:
                exponent = -exponent
            k = end
        if k < end:  # NaN, Infinity
            if texts[k] == 110:
                negative = False
            if negative:
                data[at] = 45
                at += 1
            for j in range(3 if texts[k] == 110 else 8):
                data[at] = _NAN[j] if texts[k] == 110 else _INFINITY[j]
                at += 1
        elif np.int64(offsets[i + 1]) > np.int64(offsets[i]):
            exponent += before_point
            while size > 1 and digits[size - 1] == 48:
                size -= 1
            if size == 0:
                digits[0], size, exponent = 48, 1, 1
            at = _lay(data, at, digits, 0, size, exponent, negative)
        ends[i + 1] = at


def number_texts(column: Column) -> pa.Array:
    """`String.valueOf` of each number, as an Arrow string array; null where the column is."""
    values, null = np.ascontiguousarray(column.values), column.nulls()
    (ends, data), left = _room(len(column)), ~null
    if column.type is Type.DOUBLE:
        _write(values, null, _TENS, POWERS, ends, data, left)
    elif column.type is not Type.FLOAT:
        _write_whole(values, null, ends, data, left)
    out = string_array(ends, data, column.null)
    if not left.any():
        return out
    if column.type is Type.FLOAT:
        # Arrow writes the shortest digits that read back, as Java does (`float_text`).
        offsets, arrow_texts = text_buffers(pa.array(values[left]).cast(pa.string()))
        ends, data = _room(len(offsets) - 1)
        _rewrite(offsets, arrow_texts, ends, data)
        others = string_array(ends, data)
    else:
        others = pa.array([text(column.type, v) for v in values[left].tolist()], pa.string())
    return pc.replace_with_mask(out, pa.array(left), others)


@kernel
def _write_bits(values: Array, bits: int, ends: Array, data: Array) -> None:
    """Texts of numbers (uint64), one digit for each `bits` bits."""
    at = np.int64(0)
    for i in range(len(values)):
        v = np.uint64(values[i])
        size = 1
        rest = v >> np.uint64(bits)
        while rest > np.uint64(0):
            size += 1
            rest >>= np.uint64(bits)
        at += size
        for j in range(size):
            digit = v & np.uint64((1 << bits) - 1)
            data[at - 1 - j] = np.uint8(digit + np.uint64(48 if digit < 10 else 87))
            v >>= np.uint64(bits)
        ends[i + 1] = at


def bits_texts(values: Array, bits: int) -> pa.Array:
    """The texts of numbers (uint64) to the base 2**bits."""
    ends, data = np.zeros(len(values) + 1, np.int32), np.empty((64 // bits + 1) * len(values), np.uint8)
    _write_bits(values, bits, ends, data)
    return string_array(ends, data)


def _room(n: int) -> tuple[Array, Array]:
    """For the ends and the bytes of `n` texts."""
    return np.zeros(n + 1, np.int32), np.empty(_LONGEST * n + 16, np.uint8)
