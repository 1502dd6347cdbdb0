"""Results of a reader for one message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from .attribute_values import Row


@dataclass(frozen=True)
class RejectedPart:
    """A part of a message that is no event: why, and its text."""

    reason: str
    text: str


@dataclass
class ParsedMessage:
    """The events of one message in their order, and its rejected parts."""

    rows: list[Row]
    bad: list[RejectedPart] = field(default_factory=list)


class FormatReader(Protocol):
    """Reads messages of one format, one by one."""

    def read(self, text: str) -> ParsedMessage:
        """The events of a message. Raises MessageError if the message as a whole is refused."""
        ...


@runtime_checkable
class BytesReader(Protocol):
    """Reads messages of one format that are no texts, one by one."""

    def read_bytes(self, message: bytes) -> ParsedMessage:
        """The events of a message. Raises MessageError if the message as a whole is refused."""
        ...
