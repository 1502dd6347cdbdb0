"""Retention: the amounts of input, outputs and errors that an app keeps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from .errors import Misuse, nearest, shown

GB = 1_000_000_000
_UNITS = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": GB, "tb": 1_000 * GB}
_OFF = "off"
_EXAMPLES = {"days": 7, "errors": 5000}
"""Limits that are no sizes."""


@dataclass(frozen=True)
class Retention:
    """The amounts that an app's folder keeps; the oldest goes first.

    `recording`: bytes of input that Spark is done with. Divergences and studies replay it. `outputs`: bytes of the
    outputs of all derived streams together. `days`: none of these that is older. `errors`: rows and events that could
    not be processed (a hundredth more for a while). None: without this limit. Input in process, the state of the nodes,
    tables and aggregations are kept regardless of the limits.
    """

    recording: int | None = GB
    outputs: int | None = 10 * GB
    days: float | None = None
    errors: int | None = 100_000

    @staticmethod
    def of(wanted: Retention | str | None) -> Retention:
        """A `Retention`, the default for None, or that of a text such as `recording=500MB,outputs=off,days=7`.

        Raises `Misuse` for anything else, and for limits that are not above 0."""
        if wanted is None:
            return Retention()
        if isinstance(wanted, str):
            wanted = _parse_retention(wanted)
        if not isinstance(wanted, Retention):
            raise Misuse(f"retention is a Retention, or a text such as 'outputs=5GB,days=7', not {shown(wanted)}")
        for field in fields(wanted):
            value = getattr(wanted, field.name)
            number = int if field.name != "days" else (int, float)
            if value is not None and (isinstance(value, bool) or not isinstance(value, number) or not value > 0):
                raise Misuse(f"retention: {field.name} is a number above 0, or None for no limit, not {shown(value)}")
        return wanted


def _parse_retention(text: str) -> Retention:
    values = named_values("retention", text, [f.name for f in fields(Retention)])
    limits = {name: None if value == _OFF else _number(name, value) for name, value in values.items()}
    return Retention(**limits)  # type: ignore[arg-type]


def named_values(what: str, text: str, names: Sequence[str]) -> dict[str, str]:
    """A text such as `a=1,b=2`, by name. Raises `Misuse`, naming `what`, for a part without a name that is in
    `names`."""
    values = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = (p.strip() for p in part.partition("="))
        if name not in names or not equals:
            raise Misuse(nearest(f"{what}: '{part}' is not one of {', '.join(f'{k}=...' for k in names)}", name, names))
        values[name] = value
    return values


def bytes_of(name: str, value: str) -> int:
    """A size such as `500MB`. Raises `Misuse`, naming `name`, for another text."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", value.strip())
    if match is None or match[2].lower() not in _UNITS:
        raise Misuse(f"{name} cannot be '{value}'. Write a size, such as 500MB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def _number(name: str, value: str) -> float:
    if name not in _EXAMPLES:
        return bytes_of(f"retention: {name}", value)
    try:
        return int(value) if name == "errors" else float(value)
    except ValueError:
        raise Misuse(
            f"retention: {name} cannot be '{value}'. Write a number, such as {_EXAMPLES[name]}, or {_OFF}"
        ) from None
