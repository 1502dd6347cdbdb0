"""The texts of whole columns of numbers, as Java writes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...types import Type
from ..columns import ARROW, Column
from .values import text

NUMBERS = (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)


def number_texts(column: Column) -> pa.Array:
    """`String.valueOf` of each number, as an Arrow string array; null where the column is.

    Arrow writes the shortest digits that read back, as Java does (`double_text`), but without `.0`, and begins to write
    exponents elsewhere.
    """
    if column.type in (Type.INT, Type.LONG):
        return pa.array(column.values, ARROW[column.type], mask=column.null).cast(pa.string())
    values, null = column.values, column.nulls()
    size = np.abs(values)
    plain = (size >= 1e-3) & (size < 1e7) & ~null
    out = pa.array(values, ARROW[column.type], mask=~plain).cast(pa.string())
    whole = plain & (values == np.trunc(values))
    if whole.any():
        out = pc.if_else(pa.array(whole), pc.binary_join_element_wise(out, ".0", ""), out)
    rest = ~plain & ~null
    if rest.any():
        told = pa.array([text(column.type, v) for v in values[rest].tolist()], pa.string())
        out = pc.replace_with_mask(out, pa.array(rest), told)
    return out
