"""`list:*` (siddhi-execution-list). Lists are copied on write: an emitted event never changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....plan.nodes import Call
from ....types import Type
from ..java_texts import object_text
from ..java_values import RowFailure, type_of
from ..lazy_collections import count_items, got, list_created
from ..objects import same
from ..rowwise import Builder, Plain, Whole, rowwise_boxed


def _with_lists(
    key: str, lists: int, function: Plain, column_form: Callable[[Call], Whole | None] | None = None
) -> Builder:  # fmt: skip
    """A function whose first `lists` arguments must be lists."""

    def call_checked(*args: Any) -> Any:
        for i, value in enumerate(args[:lists]):
            if not isinstance(value, list):
                raise RowFailure(f"argument {i + 1} of {key}() is not a list but {object_text(value)}")
        return function(*args)

    return rowwise_boxed(call_checked, column_form)


def _change_copy(change: Callable[..., Any]) -> Plain:
    """A function that changes a copy of its first argument, and answers the copy."""

    def function(target: list[Any], *args: Any) -> list[Any]:
        out = list(target)
        change(out, *args)
        return out

    return function


def _place(items: list[Any], index: int | None, last: int) -> int:
    if index is None or not 0 <= index <= last:
        raise RowFailure(f"index {object_text(index)} is out of range for a list of {len(items)}")
    return index


def _add(items: list[Any], value: Any, *index: int | None) -> None:
    items.insert(_place(items, index[0], len(items)) if index else len(items), value)


def _add_all(items: list[Any], more: list[Any], distinct: bool | None = False) -> None:
    if distinct is None:
        raise RowFailure("argument 3 of list:addAll() is null")
    for value in list(more):
        if not distinct or _index(items, value) < 0:
            items.append(value)


def _index(items: list[Any], value: Any) -> int:
    return next((i for i, x in enumerate(items) if same(x, value)), -1)


def _last_index(items: list[Any], value: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if same(items[i], value)), -1)


def _remove(items: list[Any], value: Any) -> None:
    at = _index(items, value)
    if at >= 0:
        del items[at]


def _set(items: list[Any], index: int | None, value: Any) -> None:
    items[_place(items, index, len(items) - 1)] = value


def _get(items: list[Any], index: int | None) -> Any:
    if index is None:
        raise RowFailure("argument 2 of list:get() is null")
    return items[index] if 0 <= index < len(items) else None


def _sort(items: list[Any], order: str = "REV") -> None:
    """Sort in order; texts case-insensitively. Without an order the list is only reversed, as in Siddhi."""
    order = order.upper()
    if order != "REV" and items:
        kinds = {type_of(x) for x in items}
        kind = kinds.pop()
        if kinds or kind in (Type.BOOL, Type.OBJECT):
            raise RowFailure("list:sort() takes strings, or numbers of one type")
        items.sort(key=(lambda s: s.upper().lower()) if kind is Type.STRING else None)
    if order in ("DESC", "REV"):
        items.reverse()


def _create(*args: Any) -> list[Any]:
    """A single null makes an empty list (`list.CreateFunctionExtension`)."""
    return [] if args == (None,) else list(args)


_CHANGES: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "add": (1, _add),
    "addAll": (2, _add_all),
    "clear": (1, lambda items: items.clear()),
    "clone": (1, lambda items: None),
    "remove": (1, _remove),
    "removeAll": (2, lambda a, b: a.__setitem__(slice(None), [x for x in a if _index(b, x) < 0])),
    "removeByIndex": (1, lambda items, index: items.pop(_place(items, index, len(items) - 1))),
    "retainAll": (2, lambda a, b: a.__setitem__(slice(None), [x for x in a if _index(b, x) >= 0])),
    "setValue": (1, _set),
    "sort": (1, _sort),
}
_READS: Mapping[str, tuple[int, Plain]] = {
    "contains": (1, lambda a, v: _index(a, v) >= 0),
    "containsAll": (2, lambda a, b: all(_index(a, x) >= 0 for x in b)),
    "containsAny": (2, lambda a, b: any(_index(a, x) >= 0 for x in b)),
    "get": (1, _get),
    "indexOf": (1, _index),
    "isEmpty": (1, lambda items: not items),
    "lastIndexOf": (1, _last_index),
    "size": (1, len),
}
_WHOLE: Mapping[str, Callable[[Call], Whole | None]] = {
    "get": got(list),
    "isEmpty": count_items(list, lambda n: n == 0),
    "size": count_items(list, lambda n: n),
}

TABLE: Mapping[str, Builder] = {
    **{f"list:{k}": _with_lists(f"list:{k}", n, _change_copy(f)) for k, (n, f) in _CHANGES.items()},
    **{f"list:{k}": _with_lists(f"list:{k}", n, f, _WHOLE.get(k)) for k, (n, f) in _READS.items()},
    "list:create": rowwise_boxed(_create, list_created(_create)),
    "list:isList": rowwise_boxed(lambda v: isinstance(v, list)),
}
