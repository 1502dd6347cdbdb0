"""Values of one generated column, before they become one of a frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..types import Type
from .ieee_arithmetic import Array

DTYPES = {
    Type.INT: ("int32", "Int32"),
    Type.LONG: ("int64", "Int64"),
    Type.FLOAT: ("float32", "float32"),
    Type.DOUBLE: ("float64", "float64"),
    Type.BOOL: ("bool", "boolean"),
}
"""The types of a frame's column, without nulls and with some, by the attribute's type."""


@dataclass(frozen=True)
class Drawn:
    """The values of a column: numbers or booleans [n], or positions (int64[n]) in `pool`, an array of values that occur
    again. `missing`: bool[n], True where the value is null; None without nulls."""

    values: Array
    pool: Array | None = None
    missing: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    def group_by_value(self) -> Array:
        """Numbers of groups of equal values, int64[n]; nulls are group 0. Fewer rows have the same numbers."""
        codes = self.values if self.pool is not None else pd.factorize(self.values)[0].astype(np.int64)
        return codes + 1 if self.missing is None else np.where(self.missing, 0, codes + 1)

    def expand_pool(self) -> Array:
        """The values themselves."""
        return self.values if self.pool is None else self.pool[self.values]

    def to_series(self, type: Type) -> pd.Series:
        """The values as a column of a frame, for an attribute of that type."""
        if type is Type.OBJECT:
            return pd.Series([None] * len(self), dtype=object)
        if type is Type.STRING:
            return self._to_texts()
        values = self.expand_pool()
        plain, nullable = DTYPES[type]
        if self.missing is None:
            return pd.Series(values.astype(plain))
        if type in (Type.FLOAT, Type.DOUBLE):
            return pd.Series(np.where(self.missing, np.nan, values).astype(plain))
        array = {"Int32": pd.arrays.IntegerArray, "Int64": pd.arrays.IntegerArray, "boolean": pd.arrays.BooleanArray}
        return pd.Series(array[nullable](np.where(self.missing, 0, values).astype(plain), self.missing))

    def _to_texts(self) -> pd.Series:
        """Texts in the type that this version of pandas has for them."""
        if self.pool is None:
            texts = self.values.astype(object)
            if self.missing is not None:
                texts[self.missing] = None
            return pd.Series(texts).infer_objects()
        pool = pd.Series(self.pool.astype(object)).infer_objects()
        codes = self.values if self.missing is None else np.where(self.missing, -1, self.values)
        if not len(codes):
            return pool.iloc[:0]
        return pd.Series(pool.array.take(codes, allow_fill=self.missing is not None))
