"""Protocol of the readers of sources, for brokers, files and listeners, and their errors."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..mapping.decoding import Decoded

PLACE = "@place"
"""The part of a position that names its place: the cluster of a broker, a database. A position without one is from
before there was this part, and is taken as it is.
"""


class SourceUnavailable(Exception):
    """Nothing can be read now; it may be later. `str()` is the reason, one line without secrets."""


@dataclass(frozen=True, eq=False)
class ReadMessages:
    """Messages read at once: `received` messages as events. `reached` has the changes of the reader's position with
    them, by part (a partition, a file); None: the part is no longer needed. `lasting`: these changes are to be kept
    also without an event. `token` is the reader's own.
    """

    events: Decoded
    received: int
    reached: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = False
    token: object = None


@dataclass(frozen=True)
class Behind:
    """Number of unread messages of a partition, or bytes of a file, by part, `at` a time (s of the
    monotonic clock).
    """

    at: float
    parts: Mapping[str, int]


class SourceReader:
    """Reads one source. Used by one thread, except `cancel` and `behind`. A class that derives from it writes `open`,
    `read` and `behind`, and where it differs from this one the rest."""

    def open(self, positions: Mapping[str, Any]) -> str | None:
        """Continue from `positions`, which is empty at first. Returns a sentence if something between is gone or cannot
        be read now, and if `positions` is of another place, so that it starts over.

        Raises SourceUnavailable.
        """
        raise NotImplementedError

    def read(self, seconds: float) -> ReadMessages | None:
        """Read the available messages, in order, as many as are worth an entry; None if none came within `seconds`.

        Raises SourceUnavailable; `open` follows, with all that was kept.
        """
        raise NotImplementedError

    def behind(self) -> Behind | None:
        """Unread amounts; None: not known yet."""
        raise NotImplementedError

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        """Note that the result of `read` is in the inbox, on the disk. `refusals`: the reasons, by message, for which
        events became errors because of their time.
        """

    def busy(self, *, full: bool) -> None:
        """With `full`, the app has such a backlog that nothing is read. By default unread messages wait."""

    def close(self) -> None:
        """Close its files and connections; `open` may follow."""

    def cancel(self) -> None:
        """Ends a call that is under way, from another thread, unless it ends by itself within seconds."""


T = TypeVar("T")
GATHER_SECONDS = 0.01
"""The time for more messages to come in, once there is one."""


def gather(waiting: queue.Queue[T], seconds: float, most: int) -> list[T]:
    """The messages that wait, and those that come in soon after the first; none if that does not come in `seconds`."""
    try:
        messages = [waiting.get(timeout=seconds)]
    except queue.Empty:
        return []
    end = time.monotonic() + GATHER_SECONDS
    with contextlib.suppress(queue.Empty):
        while len(messages) < most:
            messages.append(waiting.get(timeout=max(end - time.monotonic(), 0.0)))
    return messages
