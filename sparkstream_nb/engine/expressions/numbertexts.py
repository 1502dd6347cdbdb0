"""The texts of whole columns of numbers, as Java writes them, and the numbers of whole columns of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.nodes import Call
from ...types import Type
from ..columns import ARROW, DTYPES, Array, Column, Mask, Strings
from ..jit import inlined, kernel
from ..texts import string_array, text_buffers
from .rowwise import Whole

NUMBERS = (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)

_TENS = 10.0 ** np.arange(23)
_LONGEST = 26
"""Bytes of a number's text at most, and some more."""


_NAN, _INFINITY = tuple(b"NaN"), tuple(b"Infinity")


@inlined
def _lay(data: Array, begin: Any, digits: Array, size: Any, exponent: Any, negative: Any) -> Any:
    """Writes Java's form of 0.d1d2d3... * 10**exponent from `begin` on: plain from 10**-3 to 10**7, else with `E`.
    Answers where it ends. The last of the `size` digits is not 0, unless it is the only one."""
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
        data[at] = digits[j] if j < size else 48
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


@kernel
def _write(values: Array, null: Mask, tens: Array, ends: Array, data: Array, left: Mask) -> None:
    """The texts of doubles that are numbers of at most 15 digits, none behind the 22nd place, one after the other; the
    others stay `left`. `tens` are the powers of ten.

    A number of 15 digits is the only one of so many that reads as its double, so that the first that is found is the
    shortest. It is whole digits by a power of ten, which both are doubles: their quotient is what reading it gives.
    """
    at = np.int64(0)
    digits = np.empty(20, np.uint8)
    for i in range(len(values)):
        v = values[i]
        a = abs(v)
        places = -1
        near = 0.0
        if not null[i] and a > 1e-8 and a < 1e15:
            for k in range(len(tens)):
                p = a * tens[k]
                if p >= 1e15:
                    break
                near = np.floor(p + 0.5)
                if abs(p - near) <= p * 2.0**-51 and near / tens[k] == a:
                    places = k
                    break
        if places < 0:
            ends[i + 1] = at
            continue
        m: Any = np.uint64(near)
        size = 1
        while size < 15 and tens[size] <= near:
            size += 1
        exponent = size - places
        for j in range(size):
            tenth = m // np.uint64(10)
            digits[size - 1 - j] = np.uint8(48 + (m - tenth * np.uint64(10)))
            m = tenth
        while size > 1 and digits[size - 1] == 48:
            size -= 1
        at = _lay(data, at, digits, size, exponent, v < 0)
        ends[i + 1], left[i] = at, False


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
        size, whole, point = 0, 0, False
        while k < end and texts[k] != 101 and texts[k] < 102:
            if texts[k] == 46:
                point = True
            else:
                if size > 0 or texts[k] != 48:
                    digits[size] = texts[k]
                    size += 1
                    whole += not point
                elif point:
                    whole -= 1
            k += 1
        if k < end and texts[k] == 101:
            down = texts[k + 1] == 45
            for j in range(k + 2, end):
                exponent = 10 * exponent + np.int64(texts[j]) - 48
            if down:
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
            exponent += whole
            while size > 1 and digits[size - 1] == 48:
                size -= 1
            if size == 0:
                digits[0], size, exponent = 48, 1, 1
            at = _lay(data, at, digits, size, exponent, negative)
        ends[i + 1] = at


def number_texts(column: Column) -> pa.Array:
    """`String.valueOf` of each number, as an Arrow string array; null where the column is."""
    if column.type in (Type.INT, Type.LONG):
        return pa.array(column.values, ARROW[column.type], mask=column.null).cast(pa.string())
    n, null = len(column), column.null
    left = ~column.nulls()
    if column.type is Type.DOUBLE:
        ends, data = _room(n)
        _write(np.ascontiguousarray(column.values), column.nulls(), _TENS, ends, data, left)
        out = string_array(ends, data, null)
        if not left.any():
            return out
    # Arrow writes the shortest digits that read back, as Java does (`double_text`).
    offsets, written = text_buffers(pa.array(column.values[left], ARROW[column.type]).cast(pa.string()))
    ends, data = _room(len(offsets) - 1)
    _rewrite(offsets, written, ends, data)
    others = string_array(ends, data)
    if len(others) == n:
        return others
    if column.type is not Type.DOUBLE:
        out = pa.nulls(n, pa.string())
    return pc.replace_with_mask(out, pa.array(left), others)


def _room(n: int) -> tuple[Array, Array]:
    """For the ends and the bytes of `n` texts."""
    return np.zeros(n + 1, np.int32), np.empty(_LONGEST * n, np.uint8)


@kernel
def _read(offsets: Array, data: Array, tens: Array, out: Array, left: Array) -> None:
    """The doubles of texts that are digits, with a sign or without, with a point among them or without, of which those
    behind leading zeros are at most 15. In `left` of the others: `_PLAIN` for numbers, with an exponent or not, that
    are no larger or smaller than a double can be and that Arrow reads too, else `_ODD`.

    Both the digits and the power of ten are doubles: their quotient is the nearest to the number.
    """
    low = np.int64(offsets[0])
    for i in range(len(out)):
        k, end = np.int64(offsets[i]) - low, np.int64(offsets[i + 1]) - low
        negative, plus = k < end and data[k] == 45, k < end and data[k] == 43
        if negative or plus:
            k += 1
        m: Any = np.int64(0)
        point: Any = -1
        zeros: Any = 0
        digits: Any = 0
        good: Any = end - k <= 40
        while good and k < end and data[k] | 32 != 101:
            c = np.int64(data[k]) - 48
            if c >= 0 and c <= 9:
                m = m * 10 + c
                zeros += digits == 0 and c == 0
                digits += digits > 0 or c > 0
            else:
                good = c == -2 and point < 0
                point = k
            k += 1
        places: Any = k - 1 - point if point >= 0 else 0
        if not good or zeros + digits == 0:
            left[i] = _ODD
        elif k < end:
            k += 1
            if k < end and (data[k] == 45 or data[k] == 43):
                k += 1
            good = k < end and end - k <= 2
            while k < end:
                c = np.int64(data[k]) - 48
                good &= c >= 0 and c <= 9
                k += 1
            left[i] = _PLAIN if good and not plus else _ODD
        elif digits > 15 or places >= len(tens):
            left[i] = _ODD if plus else _PLAIN
        else:
            value = np.float64(m) / tens[places]
            out[i] = -value if negative else value


_PLAIN, _ODD = 1, 2


@kernel
def _read_integers(offsets: Array, data: Array, out: Array, left: Mask) -> None:
    """As `_read`, the integers of texts that are up to 18 digits, with a sign or without."""
    low = np.int64(offsets[0])
    for i in range(len(out)):
        k, end = np.int64(offsets[i]) - low, np.int64(offsets[i + 1]) - low
        negative = False
        if k < end and (data[k] == 45 or data[k] == 43):
            negative = data[k] == 45
            k += 1
        m: Any = np.int64(0)
        good = k < end and end - k <= 18
        if good:
            while k < end:
                c = np.int64(data[k]) - 48
                good &= c >= 0 and c <= 9
                m = m * 10 + c
                k += 1
        left[i] = not good
        out[i] = -m if negative else m


def numbers_read(call: Call) -> Whole | None:
    """The form of a call that reads its first argument as a number, over whole columns (`rowwise`). What is no plain
    number of so many digits that each is exact is left."""
    kind = call.type
    if kind is Type.BOOL:
        return None

    def whole(columns: Sequence[Column], strings: Strings) -> tuple[Column, Mask | None]:
        texts = columns[0].texts(strings)
        offsets, data = text_buffers(texts)
        left = np.zeros(len(texts), np.bool_)
        found: Array
        if kind in (Type.FLOAT, Type.DOUBLE):
            found, how = np.zeros(len(texts)), np.zeros(len(texts), np.uint8)
            _read(offsets, data, _TENS, found, how)
            left = how == _ODD
            if how.any():
                plain = how == _PLAIN
                found[plain] = texts.filter(pa.array(plain)).cast(pa.float64()).to_numpy(zero_copy_only=False)
        else:
            found = np.zeros(len(texts), np.int64)
            _read_integers(offsets, data, found, left)
            if kind is Type.INT:
                left |= found != found.astype(np.int32)
        if texts.null_count:
            left |= texts.is_null().to_numpy(zero_copy_only=False)
        return Column(kind, found.astype(DTYPES[kind], copy=False)), left

    return whole
