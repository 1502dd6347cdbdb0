"""Messages that are under way from the active node to the passive one: the link delays them and keeps their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch

LONG_AGO = -(1 << 62)


@dataclass(frozen=True)
class SentEvents:
    """The events of steps of `source` from number `at` on, by step: the sender's `number` of the last one, the number
    of the `first` of them among all that came in, how many (`counts`), and when (ms) they arrive (`due`, ascending)."""

    source: InputBatch
    at: int
    number: Array
    first: Array
    counts: Array
    due: Array

    def between(self, first: int, end: int) -> SentEvents:
        """The steps from number `first` to before `end`, counted from the first one here."""
        number, numbers, counts, due = (a[first:end] for a in (self.number, self.first, self.counts, self.due))
        return replace(self, at=self.at + first, number=number, first=numbers, counts=counts, due=due)


@dataclass(frozen=True)
class Trim:
    """The message that events up to `number` are part of a revision; it arrives at `due` (ms)."""

    number: int
    due: int


@dataclass
class Transit:
    """Messages under way to a node, in order of arrival. `last`: arrival time (ms) of the latest message."""

    messages: list[SentEvents | Trim] = field(default_factory=list)
    last: int = LONG_AGO

    def add(self, message: SentEvents | Trim) -> None:
        """Takes a message, which arrives after all others."""
        self.messages.append(message)
        self.last = message.due if isinstance(message, Trim) else int(message.due[-1])

    def take(self, upto: int) -> Iterator[SentEvents | Trim]:
        """Remove and yield the messages that arrive up to `upto` (ms, inclusive), in order."""
        while self.messages:
            match self.messages[0]:
                case Trim(due=due) as message if due <= upto:
                    self.messages.pop(0)
                    yield message
                case SentEvents(due=due) as message:
                    arrivals = int(np.searchsorted(due, upto, "right"))
                    if arrivals == len(due):
                        self.messages.pop(0)
                    else:
                        self.messages[0] = message.between(arrivals, len(due))
                    if arrivals:
                        yield message.between(0, arrivals)
                    if arrivals < len(due):
                        return
                case _:
                    return

    def lose(self, after: int = LONG_AGO) -> list[SentEvents]:
        """The events that would arrive later than `after` (ms). They, and such trims, are not under way any more."""
        arrivals = list(self.take(after))
        losses = [m for m in self.messages if isinstance(m, SentEvents)]
        self.messages, self.last = arrivals, min(self.last, after)
        return losses
