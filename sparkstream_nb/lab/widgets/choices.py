"""The menu of a group-by attribute: its values, or as many as suggestions where they are too many to list."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import Misuse
from ...stores import EVERY
from ...types import Type

# A menu longer than this cannot be read: a text field with suggestions stands in its place.
MOST_VALUES = 100
_SUGGESTIONS = 20


@dataclass(frozen=True)
class KeyMenu:
    """The choices for the group-by attribute `name`. `values`: all of them, or suggestions where `typed_in`.
    `every`: "all" can be chosen too."""

    name: str
    choice: Any
    values: Sequence[Any]
    typed_in: bool
    every: bool

    def state(self) -> dict[str, Any]:
        """Plain data for the page. Values are named by tokens, so that a page need not know their types."""
        extra_values = [] if self.choice is EVERY or self.choice in self.values else [self.choice]
        menu_values = self.values if self.typed_in else [*self.values, *extra_values]
        return {
            "name": self.name,
            "values": [[token(v), _label(v)] for v in menu_values],
            "chosen": token(self.choice),
            "label": "" if self.choice is EVERY else _label(self.choice),
            "typedIn": self.typed_in,
            "every": self.every,
        }


def key_menu(
    name: str, choice: Any, read: Callable[[int, str], list[Any]], *, typed_text: str = "", every: bool = True
) -> KeyMenu:
    """The menu of the values that `read(most, containing)` gives; `typed_text` is the user's input so far."""
    values = read(MOST_VALUES + 1, "")
    if len(values) <= MOST_VALUES:
        return KeyMenu(name, choice, values, False, every)
    return KeyMenu(name, choice, read(_SUGGESTIONS, typed_text) if typed_text else values[:_SUGGESTIONS], True, every)


def token(value: Any) -> str:
    """The name of a value between Python and the page; empty for `EVERY`."""
    return "" if value is EVERY else json.dumps(value)


def parse_token(text: str) -> Any:
    """The value that a `token` names."""
    return EVERY if text == "" else json.loads(text)


def parse_value(text: str, menu: KeyMenu, type_: Type) -> Any:
    """The value that a user typed: one of the menu's, or one of the type. Raises `Misuse` if it is neither."""
    if text == "" and menu.every:
        return EVERY
    for v in menu.values:
        if _label(v) == text:
            return v
    if type_ is Type.STRING:
        return text
    try:
        return int(text) if type_ in (Type.INT, Type.LONG) else float(text)
    except ValueError:
        raise Misuse(f"'{text}' is not a value of {menu.name}, a number") from None


def _label(value: Any) -> str:
    """A value in one line, whole."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value).replace("\r", "\\r").replace("\n", "\\n")
