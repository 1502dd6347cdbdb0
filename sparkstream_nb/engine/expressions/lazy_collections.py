"""Whole-column forms (`rowwise.Whole`) of map and list functions: created objects are lazy (`LazyObjectColumn`), and
reads of them use the columns they consist of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...plan.nodes import Call, Const
from ...types import Type
from ..columnar.column_data import DTYPES, Column, Mask, StringPool
from ..columnar.made import LazyObjectColumn
from .java_values import box
from .objects import HashMap
from .rowwise import Plain, Whole, box_arguments


def map_created(create: Plain) -> Callable[[Call], Whole | None]:
    """`map:create` of constant texts, all different, and any values."""

    def form(call: Call) -> Whole | None:
        keys = tuple(a.value for a in call.args[::2] if isinstance(a, Const) and a.type is Type.STRING)
        if not keys or 2 * len(set(keys)) != len(call.args):
            return None
        make = box_arguments(create, call)

        def with_keys(*values: Any) -> Any:
            return make(*(x for pair in zip(keys, values, strict=True) for x in pair))

        return lambda columns, strings: (LazyObjectColumn(HashMap, keys, with_keys, columns[1::2], strings), None)

    return form


def list_created(create: Plain) -> Callable[[Call], Whole | None]:
    """`list:create` of several values. (A single one may be null, which makes an empty list.)"""

    def form(call: Call) -> Whole | None:
        if len(call.args) < 2:
            return None
        keys, make = tuple(range(len(call.args))), box_arguments(create, call)
        return lambda columns, strings: (LazyObjectColumn(list, keys, make, columns, strings), None)

    return form


def got(kind: type) -> Callable[[Call], Whole | None]:
    """`map:get`, `list:get` of a constant key or place."""

    def form(call: Call) -> Whole | None:
        key = call.args[1]
        if not isinstance(key, Const) or key.type not in (Type.STRING, Type.INT) or len(call.args) > 2:
            return None
        sought = key.value

        def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
            collection = columns[0]
            if not isinstance(collection, LazyObjectColumn) or collection.kind is not kind:
                return None
            if sought not in collection.keys:
                return Column.all_null(call.type, len(collection)), None
            return _box_values(collection.parts[collection.keys.index(sought)], strings), None

        return whole if call.type is Type.OBJECT else None

    return form


def _box_values(column: Column, strings: StringPool) -> Column:
    """The values of a column as objects."""
    if column.type is Type.OBJECT:
        return column
    return LazyObjectColumn(object, (), _BOXES.get(column.type), [column], strings, column.null)


_BOXES: dict[Type, Plain] = {t: partial(box, t) for t in (Type.LONG, Type.FLOAT)}


def count_items(kind: type, count: Callable[[int], Any]) -> Callable[[Call], Whole | None]:
    """Functions of the size of a map or list."""

    def form(call: Call) -> Whole:
        def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
            collection = columns[0]
            if not isinstance(collection, LazyObjectColumn) or collection.kind is not kind:
                return None
            return Column(call.type, np.full(len(collection), count(len(collection.keys)), DTYPES[call.type])), None

        return whole

    return form
