"""Whole-column parsing of numbers, as in Java."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...plan.nodes import Call
from ...types import Type
from ..columnar.column_data import DTYPES, Array, Column, Mask, StringPool
from ..columnar.string_dictionary import text_buffers
from ..notation.kernels import kernel
from .rowwise import Whole

_TENS = 10.0 ** np.arange(23)


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
    """`_read` for integers: texts of up to 18 digits, with or without a sign."""
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
    """The whole-column form (`rowwise.Whole`) of a call that parses its first argument as a number. Strings other than
    plain numbers with few enough digits to be exact are left."""
    kind = call.type
    if kind is Type.BOOL:
        return None

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        texts = columns[0].texts(strings)
        offsets, data = text_buffers(texts)
        left = np.zeros(len(texts), np.bool_)
        numbers: Array
        if kind in (Type.FLOAT, Type.DOUBLE):
            numbers, how = np.zeros(len(texts)), np.zeros(len(texts), np.uint8)
            _read(offsets, data, _TENS, numbers, how)
            left = how == _ODD
            if how.any():
                plain = how == _PLAIN
                numbers[plain] = texts.filter(pa.array(plain)).cast(pa.float64()).to_numpy(zero_copy_only=False)
        else:
            numbers = np.zeros(len(texts), np.int64)
            _read_integers(offsets, data, numbers, left)
            if kind is Type.INT:
                left |= numbers != numbers.astype(np.int32)
        if texts.null_count:
            left |= texts.is_null().to_numpy(zero_copy_only=False)
        return Column(kind, numbers.astype(DTYPES[kind], copy=False)), left

    return whole
