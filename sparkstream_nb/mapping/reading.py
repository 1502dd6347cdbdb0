"""What a reader of messages makes of one message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from .values import Row


@dataclass(frozen=True)
class Part:
    """A part of a message that is no event: why, and its text."""

    reason: str
    text: str


@dataclass
class Reading:
    """The events of one message in their order, and what of it is none."""

    rows: list[Row]
    bad: list[Part] = field(default_factory=list)


class Reader(Protocol):
    """Reads messages of one format, one by one."""

    def read(self, text: str) -> Reading:
        """The events of a message. Raises Unfit where the message as a whole is refused."""
        ...
