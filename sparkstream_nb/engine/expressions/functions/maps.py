"""`map:*` (siddhi-execution-map). Maps are copied on write: an emitted event never changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

from ....plan.nodes import Call
from ..java_texts import object_text
from ..java_values import Long, RowFailure, parse_double, parse_long
from ..jsontext import JsonError, read_org, write_org
from ..lazy_collections import count_items, got, map_created
from ..objects import HashMap, same, walk
from ..rowwise import Builder, Plain, Whole, rowwise_boxed


def copy_map(value: dict[Any, Any]) -> dict[Any, Any]:
    """A copy with the same order for readers."""
    return type(value)(value)


def _with_maps(
    key: str, maps: int, function: Plain, column_form: Callable[[Call], Whole | None] | None = None
) -> Builder:  # fmt: skip
    """A function whose first `maps` arguments must be maps (0: all)."""

    def call_checked(*args: Any) -> Any:
        for i, value in enumerate(args[: maps or len(args)]):
            if not isinstance(value, dict):
                raise RowFailure(f"argument {i + 1} of {key}() is not a map but {object_text(value)}")
        return function(*args)

    return rowwise_boxed(call_checked, column_form)


def _change_copy(change: Callable[..., Any]) -> Plain:
    """A function that changes a copy of its first argument, and answers the copy."""

    def function(target: dict[Any, Any], *args: Any) -> dict[Any, Any]:
        out = copy_map(target)
        change(out, *args)
        return out

    return function


def _create(*args: Any) -> HashMap:
    try:
        return HashMap(zip(args[::2], args[1::2], strict=True))
    except TypeError:
        raise RowFailure("a list or a map cannot be a key of a map here") from None


def _put(target: dict[Any, Any], key: Any, value: Any) -> None:
    try:
        target[key] = value
    except TypeError:
        raise RowFailure("a list or a map cannot be a key of a map here") from None


def _replace(target: dict[Any, Any], key: Any, value: Any) -> None:
    if key in target:
        target[key] = value


def _replace_all(target: dict[Any, Any], source: dict[Any, Any]) -> None:
    for key, value in source.items():
        _replace(target, key, value)


def _combine(*maps: dict[Any, Any]) -> HashMap:
    keys = dict.fromkeys(k for m in maps for k in walk(m))
    return HashMap({k: [m.get(k) for m in maps] for k in keys})


def _from_json(text: Any) -> HashMap:
    if not isinstance(text, str):
        raise RowFailure("map:createFromJSON() takes a string")
    try:
        return read_org(text)
    except JsonError as e:
        raise RowFailure(f"'{text}' is not a JSON object: {e}") from None


def _from_xml(text: Any) -> HashMap:
    if not isinstance(text, str):
        raise RowFailure("map:createFromXML() takes a string")
    if "<!DOCTYPE" in text:
        raise RowFailure("a document type is not accepted in XML")
    try:
        return _element(ElementTree.fromstring(text))
    except ElementTree.ParseError as e:
        raise RowFailure(f"'{text}' is not XML: {e}") from None


def _element(parent: ElementTree.Element) -> HashMap:
    return HashMap({child.tag: _element(child) if len(child) else _scalar(child.text or "") for child in parent})


def _scalar(text: str) -> Any:
    """A boolean, a Long, a Double or a text, as `NumberFormat.parse` makes numbers."""
    if text in ("true", "false"):
        return text == "true"
    integer = parse_long(text)
    if integer is not None:
        return Long(integer)
    number = parse_double(text) if text[:1] in "+-.0123456789" and text[:1] and text == text.strip() else None
    return text if number is None else number


def _to_xml(value: dict[Any, Any], *order_key: str) -> str:
    if None in value:
        raise RowFailure("map:toXML() cannot write a null")
    body = "".join(f"<{object_text(k)}>{_xml_value(value[k])}</{object_text(k)}>" for k in walk(value))
    return f"<{order_key[0]}>{body}</{order_key[0]}>" if order_key else body


def _xml_value(value: Any) -> str:
    if value is None:
        raise RowFailure("map:toXML() cannot write a null")
    return _to_xml(value) if isinstance(value, dict) else object_text(value)


def _hashable(function: Plain) -> Plain:
    """A key that cannot be in a map is not in it."""

    def lookup(target: dict[Any, Any], key: Any, *rest: Any) -> Any:
        try:
            return function(target, key, *rest)
        except TypeError:
            return function({}, None, *rest)

    return lookup


_CHANGES: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "clear": (1, lambda m: m.clear()),
    "clone": (1, lambda m: None),
    "put": (1, _put),
    "putAll": (2, lambda m, n: m.update((k, n[k]) for k in walk(n))),
    "putIfAbsent": (1, lambda m, k, v: _put(m, k, v) if m.get(k) is None else None),
    "remove": (1, lambda m, k: m.pop(k, None)),
    "replace": (1, _replace),
    "replaceAll": (2, _replace_all),
}
_READS: Mapping[str, Plain] = {
    "containsKey": _hashable(lambda m, k: k in m),
    "containsValue": lambda m, v: any(same(x, v) for x in m.values()),
    "get": _hashable(lambda m, k, *default: m.get(k, *default)),
    "isEmpty": lambda m: not m,
    "keys": walk,
    "size": len,
    "toJSON": lambda m: None if None in m else write_org(m),
    "toXML": _to_xml,
    "values": lambda m: [m[k] for k in walk(m)],
}
_WHOLE: Mapping[str, Callable[[Call], Whole | None]] = {
    "get": got(HashMap),
    "isEmpty": count_items(HashMap, lambda n: n == 0),
    "size": count_items(HashMap, lambda n: n),
}

TABLE: Mapping[str, Builder] = {
    **{f"map:{k}": _with_maps(f"map:{k}", n, _change_copy(f)) for k, (n, f) in _CHANGES.items()},
    **{f"map:{k}": _with_maps(f"map:{k}", 1, f, _WHOLE.get(k)) for k, f in _READS.items()},
    "map:combineByKey": _with_maps("map:combineByKey", 0, _combine),
    "map:create": rowwise_boxed(_create, map_created(_create)),
    "map:createFromJSON": rowwise_boxed(_from_json),
    "map:createFromXML": rowwise_boxed(_from_xml),
    "map:isMap": rowwise_boxed(lambda v: isinstance(v, dict)),
}
