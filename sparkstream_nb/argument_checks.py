"""Checks of the user's arguments: each raises `Misuse`, one line that names the argument.

All but `require_str` and `require_int` let None pass, the value of an argument that was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .durations import parse_duration
from .errors import Misuse, escape_controls, has_surrogate, shown

Check = Callable[[str, Any], None]
"""Raises `Misuse` if the value of the argument with this name is wrong."""
_LONGEST_NAME = 255
"""Bytes of a file's name."""


def optional_str(name: str, value: Any) -> None:
    """A text that can be written down: no half of a surrogate pair."""
    if value is None:
        return
    if not isinstance(value, str):
        raise Misuse(f"{name} is a text, not {shown(value)}")
    if has_surrogate(value):
        raise Misuse(f"{name} has half of a surrogate pair, which is no character: {shown(value)}")


def require_str(name: str, value: Any) -> None:
    """A text that cannot be left out."""
    if value is None:
        raise Misuse(f"{name} is a text, not None")
    optional_str(name, value)


def check_name(what: str, value: Any) -> None:
    """A text that is not empty, no longer than the name of a file, and without control characters."""
    optional_str(what, value)
    if value is not None and escape_controls(value) != value:
        raise Misuse(f"{what} has characters that cannot be printed: {escape_controls(shown(value))}")
    if value is not None and not 0 < len(value.encode()) <= _LONGEST_NAME - 20:
        raise Misuse(f"{what} has 1 to {_LONGEST_NAME - 20} characters, not {len(value):,}")


def duration_of(name: str, value: Any) -> int:
    """The ms of a duration such as '1 min', or of a number of ms."""
    ms = parse_duration(value) if isinstance(value, str) else value
    if not isinstance(ms, int) or isinstance(ms, bool) or ms < 0:
        raise Misuse(f"{name} is a duration such as '1 min', not {shown(value)}")
    return ms


def optional_str_list(name: str, value: Any) -> None:
    """Several texts, not one."""
    if value is None:
        return
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Misuse(f"{name} is a list of texts, not {shown(value)}")
    for one in value:
        if one is None:
            raise Misuse(f"{name} is a list of texts, and has a None")
        optional_str(f"each of {name}", one)


def optional_str_map(name: str, value: Any) -> None:
    """Texts by texts."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise Misuse(f"{name} is a dict of texts, not {shown(value)}")
    optional_str_list(f"the names in {name}", list(value))
    optional_str_list(f"the values in {name}", list(value.values()))


def optional_int(name: str, value: Any, least: int | None = None, most: int | None = None) -> None:
    """A whole number within bounds."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misuse(f"{name} is a whole number, not {shown(value)}")
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = f"at least {least:,}" if most is None else f"{least:,} to {most:,}"
        # Python writes no number of more than some 4,000 digits.
        digits = f"{value:,}" if value.bit_length() < 200 else f"a number of {value.bit_length():,} bits"
        raise Misuse(f"{name} is {bounds}, not {digits}")


def require_int(name: str, value: Any, least: int | None = None, most: int | None = None) -> None:
    """A whole number within bounds that cannot be left out."""
    if value is None:
        raise Misuse(f"{name} is a whole number, not None")
    optional_int(name, value, least, most)


def check_number(name: str, value: Any) -> None:
    """A number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise Misuse(f"{name} is a number from 0, not {shown(value)}")


def check_bool(name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise Misuse(f"{name} is True or False, not {shown(value)}")


def check_path(name: str, value: Any) -> None:
    """A path that a file can have."""
    if value is None:
        return
    if not isinstance(value, str | Path):
        raise Misuse(f"{name} is a path, not {shown(value)}")
    optional_str(name, str(value))
    if "\0" in str(value) or not str(value):
        raise Misuse(f"{name} is no path: {shown(str(value))}")
    if any(len(part.encode()) > _LONGEST_NAME for part in Path(value).parts):
        raise Misuse(f"{name} has a name of more than {_LONGEST_NAME} bytes in it: {shown(str(value))}")


def check_paths(name: str, value: Any) -> None:
    """A path, or several."""
    if isinstance(value, str | Path):
        check_path(name, value)
    elif value is not None and not isinstance(value, Sequence):
        raise Misuse(f"{name} is a path, or several, not {shown(value)}")
