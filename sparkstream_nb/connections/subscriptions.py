"""Connections to message brokers that bring messages, and their error."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import printable

SECONDS = 5.0
"""Seconds after which a broker counts as unavailable, by default."""
_WAIT = 0.1


class BrokerFailed(Exception):
    """The broker cannot be reached, or refuses. `str()` is the reason, one line without secrets."""


def unreachable(broker: object, error: Exception | str) -> BrokerFailed:
    """The error for a `broker` that cannot be reached, with its name and the reason."""
    why = str(error).strip() or type(error).__name__
    return BrokerFailed(f"{broker} cannot be reached: {printable(' '.join(why.split()))[:200]}")


@dataclass(frozen=True, eq=False)
class BrokerMessage:
    """A message, and the number by which it is acknowledged at the connection that brought it; `tag` is None where it
    needs no acknowledgement."""

    body: bytes
    connection: Subscription
    tag: int | None = None


class Subscription:
    """A connection that brings messages. A class that derives from it writes `open` and `close`, and `acknowledge`
    where its broker sends a message again that is not acknowledged."""

    dropped_messages: int = 0
    """Messages that were dropped, as they were not taken in time."""

    @property
    def open(self) -> bool:
        """True if the broker is still there."""
        raise NotImplementedError

    def acknowledge(self, tags: Sequence[int]) -> None:
        """Tell the broker that the messages with these tags, in their order, are on the disk. Raises BrokerFailed."""

    def close(self) -> None:
        """End the connection. No message comes in after that."""
        raise NotImplementedError

    def put(self, waiting: queue.Queue[BrokerMessage], body: bytes, tag: int | None = None) -> None:
        """Put a message behind those that are `waiting`. While that is full, the thread of the connection waits, and so
        does the broker; a message for which there is no room when the connection ends is left out."""
        message = BrokerMessage(body, self, tag)
        while self.open:
            try:
                waiting.put(message, timeout=_WAIT)
                return
            except queue.Full:
                continue
