"""Java's collections inside OBJECT columns.

A list is a Python list, a set a Python set, a map with an order of its own (from JSON, from outside) a dict; what
Siddhi keeps in a `HashMap` is a `HashMap`, which is a dict whose order for readers is Java's (`walk`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ...types import Type
from ..columnar.error_routing import ErrorObject
from ..columnar.javamap import hash_code, walk_order
from .java_values import type_of


class HashMap(dict[Any, Any]):
    """A `java.util.HashMap`: `walk` gives its keys in Java's order."""

    __slots__ = ()


class Null:
    """`JSONObject.NULL` of org.json: a null that a map made from JSON holds as a value."""

    __slots__ = ()

    def __str__(self) -> str:
        return "null"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Null)

    def __hash__(self) -> int:
        return 0


NULL = Null()


def java_hash(value: Any) -> int:
    """`hashCode` of a boxed value; 0 for null and for values without a hash of their own in Java."""
    kind = type_of(value)
    if kind is not Type.OBJECT:
        return hash_code(kind, value)
    if isinstance(value, list | tuple):
        h = 1
        for item in value:
            h = (31 * h + java_hash(item)) & 0xFFFFFFFF
        return h
    if isinstance(value, dict):
        return sum(java_hash(k) ^ java_hash(v) for k, v in value.items()) & 0xFFFFFFFF
    if isinstance(value, set | frozenset):
        return sum(map(java_hash, value)) & 0xFFFFFFFF
    return 0


def hash_order(keys: Iterable[Any]) -> list[Any]:
    """The iteration order of `keys` (given in insertion order) in a Java hash table that never held more."""
    key_list = list(keys)
    return [key_list[i] for i in walk_order([java_hash(k) for k in key_list], len(key_list))]


def walk(value: Any) -> list[Any]:
    """The keys of a map, or the items of a collection, in Java's order."""
    if isinstance(value, set | frozenset):  # in no order of its own: sorted, items of one bucket are always in the same
        return hash_order(sorted(value, key=repr))
    return hash_order(value) if isinstance(value, HashMap) else list(value)


def same(a: Any, b: Any) -> bool:
    """`Object.equals` of boxed values: numbers of different types differ."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    return type_of(a) is type_of(b) and bool(a == b)


def to_json(value: Any) -> str:
    """An object, or the values of a row, as JSON."""
    return json.dumps(jsonable(value))


def jsonable(value: Any) -> Any:
    """A value as JSON can hold it: non-finite numbers as text, collections as arrays, other objects as `<Class>`."""
    if isinstance(value, ErrorObject):
        return f"<{value.exception}>"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if isinstance(value, set | frozenset):
        return [jsonable(v) for v in walk(value)]
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    return f"<{type(value).__name__}>"
