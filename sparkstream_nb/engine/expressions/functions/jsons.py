"""`json:*` (siddhi-execution-json): JSONPath over texts or objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import jsonpath
from ..java_texts import object_text
from ..java_values import RowFailure, parse_double, parse_float, parse_int, parse_long
from ..jsontext import JsonError, map_leaves, read_smart, write_gson
from ..rowwise import Builder, rowwise_boxed


def document(json: Any) -> Any:
    """The parsed JSON of a string or object. Fails the row if it is invalid or null."""
    text = json if isinstance(json, str) else write_gson(json)
    try:
        value = read_smart(text)
    except JsonError as e:
        raise RowFailure(f"'{text}' is not JSON: {e}") from None
    if value is None or value == "":
        raise RowFailure("the JSON is null or empty")
    return value


def find(json: Any, path: str | None) -> Any:
    """The value at `path` in `json`. Raises `jsonpath.NotFound`; fails the row for an invalid path."""
    if not path:
        raise RowFailure("the path is null or empty")
    return jsonpath.read(document(json), path)


def _found(json: Any, path: str | None) -> Any:
    try:
        return find(json, path)
    except jsonpath.NotFound:
        return None


def _parse_only_value(parse: Callable[[str], Any]) -> Builder:
    """`getInt` and its like: the only value found, by its text; null where it does not parse."""

    def get(json: Any, path: str | None) -> Any:
        value = _found(json, path)
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else None
        return None if value is None else parse(object_text(value))

    return rowwise_boxed(get)


def _bool(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _read_string(json: Any, path: str | None) -> str | None:
    value = _found(json, path)
    return value if value is None or isinstance(value, str) else write_gson(value)


def _object(json: Any, path: str | None) -> Any:
    value = _found(json, path)
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _exists(json: Any, path: str | None) -> bool:
    try:
        find(json, path)
    except jsonpath.NotFound:
        return False
    return True


def _element(value: Any) -> Any:
    """A text that holds an object or array counts as that; its numbers are doubles (`Gson.fromJson`)."""
    if value is None:
        raise RowFailure("the element is null")
    text = object_text(value)
    try:
        json_value = read_smart(text) if text else None
    except JsonError as e:
        raise RowFailure(f"'{text}' is not JSON: {e}") from None
    if isinstance(value, str):
        if isinstance(json_value, str) and " " in text.strip() and text.strip()[0] not in "'\"":
            raise RowFailure(f"'{text}' is not JSON")
        if isinstance(json_value, dict | list):
            return map_leaves(json_value, _double)
    return value


def _double(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _set_element(json: Any, path: str | None, element: Any, *key: str | None) -> Any:
    """The document with the element set, added to the list at `path`, or put under `key` of the object there.

    A path that names no such place changes nothing (`SetElementJSONFunctionExtension`).
    """
    if not path or (key and key[0] is None):
        raise RowFailure("the path or the key is null or empty")
    order_key = document(json)
    parts = jsonpath.compile_path(path)
    try:
        current: Any = jsonpath.read(order_key, path)
    except jsonpath.NotFound:
        current = None
    owners = _owners(order_key, parts)
    if isinstance(current, list):
        value = _element(element)
        if all(isinstance(o, list) for o, _ in owners):
            for target, _ in owners:
                target.append(value)
    elif key:
        value = _element(element)
        for target, _ in owners:
            if isinstance(target, dict):
                target[key[0]] = value
    else:
        for _, (container, at) in owners:
            if container is not None:
                container[at] = element
    return order_key


def _owners(order_key: Any, parts: tuple[jsonpath.Part, ...]) -> list[tuple[Any, jsonpath.Place]]:
    """Values at the places that a path names, with the places."""
    try:
        places = jsonpath.places(order_key, parts)
    except jsonpath.NotFound:
        return []
    return [(order_key if c is None else c[k], (c, k)) for c, k in places]


def _to_object(text: Any) -> Any:
    if text is None:
        raise RowFailure("argument 1 of json:toObject() is null")
    try:
        return read_smart(object_text(text), as_hash_maps=True)
    except JsonError:
        return None


def _to_string(value: Any, *escape_flag: bool | None) -> str:
    if escape_flag and (value is None or escape_flag[0] is None):
        raise RowFailure("an argument of json:toString() is null")
    text = write_gson(value)
    return write_gson(text) if escape_flag and escape_flag[0] else text


TABLE: Mapping[str, Builder] = {
    "json:getBool": _parse_only_value(_bool),
    "json:getDouble": _parse_only_value(parse_double),
    "json:getFloat": _parse_only_value(parse_float),
    "json:getInt": _parse_only_value(parse_int),
    "json:getLong": _parse_only_value(parse_long),
    "json:getObject": rowwise_boxed(_object),
    "json:getString": rowwise_boxed(_read_string),
    "json:isExists": rowwise_boxed(_exists),
    "json:setElement": rowwise_boxed(_set_element),
    "json:toObject": rowwise_boxed(_to_object),
    "json:toString": rowwise_boxed(_to_string),
}
