"""What a source reads from: the protocol of brokers, files and listeners, and how they fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..mapping.decoding import Decoded

PLACE = "@place"
"""The part of a position that says of what it is: the cluster of a broker, a database. A position without one is from
before there was this part, and is taken as it is."""


class SourceUnavailable(Exception):
    """Nothing can be read now; it may be later. `str()` is the reason, one line without secrets."""


@dataclass(frozen=True, eq=False)
class ReadMessages:
    """What was read at once: `received` messages as events. `reached` is what changed of the reader's position with
    them, by part (a partition, a file); None: the part is not needed any more. `lasting`: that is to be kept also
    where there is no event. `token` is the reader's own."""

    decoded: Decoded
    received: int
    reached: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = False
    token: object = None


@dataclass(frozen=True)
class Behind:
    """How much was there and not read, by part (messages of a partition, bytes of a file), `at` a time (s of the
    monotonic clock)."""

    at: float
    parts: Mapping[str, int]


class SourceReader(Protocol):
    """Reads one source. Used by one thread, but for `cancel` and `behind`."""

    def open(self, reached: Mapping[str, Any]) -> str | None:
        """Goes on where `reached` says, which is empty at first. Returns a sentence where something between is gone or
        cannot be read now, and where `reached` is of another place, so that it begins anew.

        Raises Away.
        """
        ...

    def read(self, seconds: float) -> ReadMessages | None:
        """What there is, in its order, as much as is worth an entry; None where nothing came for so long.

        Raises Away; `open` follows, with all that was kept.
        """
        ...

    def kept(self, taken: ReadMessages, refused: Mapping[int, str]) -> None:
        """What `read` returned is in the inbox, on the disk. `refused`: of which messages events became errors, as
        their time was refused, and why."""
        ...

    def busy(self, *, full: bool) -> None:
        """True if the app has so much before it that nothing is read."""
        ...

    def behind(self) -> Behind | None:
        """How much is there that was not read; None: not known yet."""
        ...

    def close(self) -> None:
        """Lets go of what is open; `open` may follow."""
        ...

    def cancel(self) -> None:
        """Ends a call that is under way, from another thread."""
        ...
