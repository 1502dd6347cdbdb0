"""The words in an attribute's name, by which its usual values are chosen."""

from __future__ import annotations

import re

from ..types import Schema, Type

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

TIME_NAMES = frozenset({"timestamp", "time", "ts", "at", "when", "moment"})
"""Last words of the names of event times: `eventTime`, `event_time`, `created_at`."""
KEY_WORDS = frozenset(
    {"account", "card", "client", "customer", "device", "email", "host", "iban", "id", "ip", "key", "login", "machine",
     "mail", "name", "node", "password", "phone", "plate", "player", "sensor", "server", "session", "ssn", "token",
     "user", "uuid", "vehicle"}
)  # fmt: skip
"""Words of names of columns whose values tell things or persons apart."""


def split_name(name: str) -> tuple[str, ...]:
    """The words of a name in small letters: `eventTime2` is `event`, `time`."""
    return tuple(w.lower() for w in _WORD.findall(name))


def is_time_name(name: str) -> bool:
    """True if a name says that the value is a time."""
    words = split_name(name)
    return bool(words) and (words[-1] in TIME_NAMES or words[0] == "timestamp")


def find_event_time(schema: Schema, with_generators: frozenset[str]) -> str | None:
    """The first attribute of type long whose name says that it is the event time; None without one. `with_generators`
    are attributes that have a generator of their own."""
    return next(
        (a.name for a in schema if a.type is Type.LONG and a.name not in with_generators and is_time_name(a.name)), None
    )
