"""Aggregators whose value is a collection, or a string built from all values of a group.

A collection is copied when it changes, as in Siddhi, because an emitted event must never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.column_data import Array, Column, Mask, StringPool
from ..columnar.rows import CURRENT, EXPIRED, RESET
from ..expressions.java_texts import object_text, text
from ..expressions.java_values import boxes
from ..expressions.jsontext import JsonError, read_smart, write_gson
from ..expressions.objects import HashMap, same
from .aggregator_base import AggregateInput, Base, by_op


class ObjectAggregate(Base):
    """An aggregator with a Python object of state per group. Arguments come as boxed Python values."""

    result = Type.OBJECT

    def __init__(self, args: tuple[Type, ...], sliding: bool, strings: StringPool) -> None:
        self.types, self.sliding, self.strings = args, sliding, strings
        self.states: dict[int, dict[int, Any]] = {}
        """Partition instance → group → state."""

    def empty(self) -> Any:
        """The state of an empty group."""
        raise NotImplementedError

    def add(self, state: Any, args: tuple[Any, ...]) -> None:
        raise NotImplementedError

    def remove(self, state: Any, args: tuple[Any, ...]) -> None:
        raise NotImplementedError

    def value(self, state: Any, args: tuple[Any, ...]) -> Any:
        """The output value for a row with these arguments."""
        raise NotImplementedError

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        args, group, instance = by_op(args, feed)
        kinds = [CURRENT] * feed.n if feed.kind is None else feed.kind.tolist()
        shown_ops = feed.shown_ops
        is_op_shown = np.zeros(feed.n, np.bool_)
        is_op_shown[shown_ops] = True
        values: list[Any] = [None] * feed.n
        rows = zip(*(boxes(c.type, c.to_list(self.strings)) for c in args), strict=True)
        instances = [0] * feed.n if instance is None else instance.tolist()
        ops = zip(group.tolist(), instances, kinds, is_op_shown.tolist(), rows, strict=True)
        for i, (g, p, k, is_shown, row) in enumerate(ops):
            if k == RESET:
                self.states.pop(p, None)
                continue
            states = self.states.setdefault(p, {})
            state = states.get(g)
            if state is None:
                state = states[g] = self.empty()
            if k == CURRENT:
                self.add(state, row)
            elif k == EXPIRED:
                self.remove(state, row)
            if is_shown:
                values[i] = self.value(state, row)
        return Column.of(self.result, [values[i] for i in shown_ops.tolist()], self.strings)

    def forget(self, groups: Array, instances: Array) -> None:
        for p in instances.tolist():
            self.states.pop(p, None)

    def state(self) -> dict[str, Any]:
        return {"held": {p: dict(sorted(states.items())) for p, states in sorted(self.states.items())}}

    def load(self, state: dict[str, Any]) -> None:
        self.states = state["held"]


def not_of(column: Column, kind: type, why: str) -> tuple[Mask, str] | None:
    """Rows whose object is not of type `kind`; null is not."""
    mask = np.fromiter((not isinstance(v, kind) for v in column.values.tolist()), np.bool_, len(column))
    return (mask, why) if mask.any() else None


def _discard(items: list[Any], value: Any) -> None:
    for i, x in enumerate(items):
        if same(x, value):
            del items[i]
            return


class UnionSet(ObjectAggregate):
    """`unionSet`. Where events expire the elements are counted, in Siddhi's way: the count of one that leaves the set
    stays
    at one (`UnionSetAttributeAggregatorExecutor.processRemove`), until a group's set is empty."""

    def __init__(self, args: tuple[Type, ...], sliding: bool, strings: StringPool, has_groups: bool) -> None:
        super().__init__(args, sliding, strings)
        self.has_groups = has_groups

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return not_of(args[0], set, "unionSet takes sets")

    def empty(self) -> list[Any]:
        """The set, which is another one when a member comes or goes, and how often each element is held."""
        return [set(), {}]

    def add(self, state: list[Any], args: tuple[Any, ...]) -> None:
        members, counts = state
        for item in args[0]:
            counts[item] = counts.get(item, 0) + 1
        if not args[0] <= members:
            state[0] = members | args[0]

    def remove(self, state: list[Any], args: tuple[Any, ...]) -> None:
        members, counts = state
        leaving_items = {item for item in args[0] if not self.sliding or counts.get(item) == 1}
        for item in args[0] - leaving_items:
            if item in counts:
                counts[item] -= 1
        if not leaving_items.isdisjoint(members):
            state[0] = members - leaving_items
        if self.has_groups and not state[0]:
            counts.clear()

    def value(self, state: list[Any], args: tuple[Any, ...]) -> Any:
        return state[0]


class ListCollect(ObjectAggregate):
    """`list:collect(value[, is.distinct])`."""

    def empty(self) -> list[Any]:
        return []

    def add(self, state: list[Any], args: tuple[Any, ...]) -> None:
        if not (len(args) > 1 and args[1] and any(same(x, args[0]) for x in state)):
            state.append(args[0])

    def remove(self, state: list[Any], args: tuple[Any, ...]) -> None:
        _discard(state, args[0])

    def value(self, state: list[Any], args: tuple[Any, ...]) -> Any:
        return list(state)


class ListMerge(ListCollect):
    """`list:merge(list[, is.distinct])`: an expired list takes all its elements out, however often they are in."""

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return not_of(args[0], list, "list:merge takes lists")

    def add(self, state: list[Any], args: tuple[Any, ...]) -> None:
        for item in args[0]:
            super().add(state, (item, *args[1:]))

    def remove(self, state: list[Any], args: tuple[Any, ...]) -> None:
        state[:] = [x for x in state if not any(same(x, y) for y in args[0])]


class MapCollect(ObjectAggregate):
    """`map:collect(key, value)`."""

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        if args[0].type is not Type.OBJECT:
            return None
        mask = np.fromiter((isinstance(v, list | dict | set) for v in args[0].values.tolist()), np.bool_, len(args[0]))
        return (mask, "a list, set or map cannot be a key of a map here") if mask.any() else None

    def empty(self) -> HashMap:
        return HashMap()

    def add(self, state: HashMap, args: tuple[Any, ...]) -> None:
        state[args[0]] = args[1]

    def remove(self, state: HashMap, args: tuple[Any, ...]) -> None:
        state.pop(args[0], None)

    def value(self, state: HashMap, args: tuple[Any, ...]) -> Any:
        return HashMap(state)

    def load(self, state: dict[str, Any]) -> None:
        self.states = {p: {g: HashMap(m) for g, m in states.items()} for p, states in state["held"].items()}


class MapMerge(MapCollect):
    """`map:merge(map)`."""

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return not_of(args[0], dict, "map:merge takes maps")

    def add(self, state: HashMap, args: tuple[Any, ...]) -> None:
        state.update(args[0])

    def remove(self, state: HashMap, args: tuple[Any, ...]) -> None:
        for key in args[0]:
            state.pop(key, None)


class GroupConcat(ObjectAggregate):
    """`str:groupConcat(key[, separator[, distinct[, order]]])`; equal texts are adjacent, '' for none.

    Alone, a null key is skipped; with a separator it is the text 'null'. siddhi-execution-string 5.0.5
    (`GroupConcatFunctionExtension`) has one store of texts for all groups of the query, which WSO2 fixed later
    (wso2/api-manager#932): here each group has its own.
    """

    result = Type.STRING

    def empty(self) -> dict[str, int]:
        """Texts with their counts, in the order of their first coming."""
        return {}

    def add(self, state: dict[str, int], args: tuple[Any, ...]) -> None:
        key = self._key(args)
        if key is not None:
            state[key] = state.get(key, 0) + 1

    def remove(self, state: dict[str, int], args: tuple[Any, ...]) -> None:
        key = self._key(args)
        if key is None:
            return
        if state.get(key, 0) > 1:
            state[key] -= 1
        else:
            state.pop(key, None)

    @staticmethod
    def _key(args: tuple[Any, ...]) -> str | None:
        key: str | None = args[0]
        return "null" if key is None and len(args) > 1 else key

    def value(self, state: dict[str, int], args: tuple[Any, ...]) -> Any:
        keys = list(state)
        if len(args) > 3:
            keys.sort(key=lambda k: k.encode("utf-16-be", "surrogatepass"), reverse=str(args[3]).upper() == "DESC")
        separator = text(Type.STRING, args[1]) if len(args) > 1 else ","
        distinct = len(args) > 2 and args[2]
        return separator.join(keys if distinct else [k for k in keys for _ in range(state[k])])


class JsonGroup(ObjectAggregate):
    """`json:group(json[, enclosing.element][, distinct])`: the objects as the text of an array, or of an object
    around it.

    States are keyed by the objects' canonical texts, so that members in another order make no other object.
    """

    result = Type.STRING

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        bad = np.zeros(len(args[0]), np.bool_)
        for i, v in enumerate(args[0].to_list(self.strings)):
            try:
                bad[i] = not isinstance(_object(v), dict | None)
            except (JsonError, TypeError, ValueError):
                bad[i] = True
        return (bad, "json:group takes JSON objects") if bad.any() else None

    def empty(self) -> dict[str, Any]:
        return {}

    def add(self, state: dict[str, Any], args: tuple[Any, ...]) -> None:
        value = _object(args[0])
        key = json.dumps(value, sort_keys=True)
        count, first = state.get(key, (0, value))
        state[key] = (count + 1, first)

    def remove(self, state: dict[str, Any], args: tuple[Any, ...]) -> None:
        key = json.dumps(_object(args[0]), sort_keys=True)
        count, first = state.get(key, (0, None))
        if count > 1:
            state[key] = (count - 1, first)
        else:
            state.pop(key, None)

    def value(self, state: dict[str, Any], args: tuple[Any, ...]) -> Any:
        return write_smart(self.whole(state, args))

    def whole(self, state: dict[str, Any], args: tuple[Any, ...]) -> Any:
        """The array, or the object around it."""
        distinct = any(a is True for a in args[1:])
        element_name = next((a for a in args[1:] if isinstance(a, str)), None)
        items = [first for count, first in state.values() for _ in range(1 if distinct else count)]
        return items if element_name is None else {element_name: items}


class JsonGroupAsObject(JsonGroup):
    """`json:groupAsObject`: the same as an object."""

    result = Type.OBJECT

    def value(self, state: dict[str, Any], args: tuple[Any, ...]) -> Any:
        return self.whole(state, args)


def _object(value: Any) -> Any:
    """A JSON object from a text or a map; None for null."""
    if value is None:
        return None
    return read_smart(value if isinstance(value, str) else write_gson(value))


_ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quote_json(value: str) -> str:
    out = []
    for c in value:
        if c in _ESCAPES:
            out.append(_ESCAPES[c])
        elif c < " " or "\x7f" <= c <= "\x9f" or "\u2000" <= c <= "\u20ff":
            out.append(f"\\u{ord(c):04X}")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def write_smart(value: Any) -> str:
    """A JSON text as json-smart's `toJSONString` writes it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return _quote_json(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote_json(object_text(k))}:{write_smart(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(write_smart, value)) + "]"
    return object_text(value)


COLLECTED: dict[str, Callable[[tuple[Type, ...], bool, StringPool], ObjectAggregate]] = {
    "list:collect": ListCollect,
    "list:merge": ListMerge,
    "map:collect": MapCollect,
    "map:merge": MapMerge,
    "str:groupConcat": GroupConcat,
    "json:group": JsonGroup,
    "json:groupAsObject": JsonGroupAsObject,
}
"""Aggregators that need the node's dictionary."""
