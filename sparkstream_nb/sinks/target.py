"""Protocol of the targets of sinks, for files and servers, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, overload

from ..engine.columnar.column_data import Array
from ..mapping import Message


class TargetUnavailable(Exception):
    """The target cannot take anything now; it may later. `str()` is the reason, one line without secrets."""


class Undeliverable(Exception):
    """The target will never take this message. `str()` is the reason, one line without secrets."""


@dataclass(frozen=True)
class OutputPlace:
    """A message's place among the outputs of its stream: its first event is number `row` of micro-batch `batch`, in the
    order in which messages are sent."""

    batch: int
    row: int


class OutputPlaces(Sequence[OutputPlace]):
    """The places of messages in micro-batch `batch`, of which `rows` (int64) has each one's row."""

    def __init__(self, batch: int, rows: Array) -> None:
        self.batch, self.rows = batch, rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, i: int) -> OutputPlace: ...

    @overload
    def __getitem__(self, i: slice) -> OutputPlaces: ...

    def __getitem__(self, i: int | slice) -> OutputPlace | OutputPlaces:
        if isinstance(i, slice):
            return OutputPlaces(self.batch, self.rows[i])
        return OutputPlace(self.batch, int(self.rows[i]))


class Target:
    """A file, folder or server that takes messages. Used by one thread, except `cancel`. A class that derives from it
    writes `send` and `close`, and where it differs from this one the rest."""

    by_batch: bool = False
    """True if it takes a micro-batch whole: after a crash, that is sent again from its first row."""
    at_start: bool = False
    """True if it is opened when the app starts, and not with its first message."""
    at_once: int = 1
    """Messages that one call of `send` takes at most."""
    warnings: Sequence[str] = ()
    """Sentences about something that others did to the target, since the delivery last looked, which empties it."""
    templates: Mapping[str, str] = MappingProxyType({})
    """Texts with `{{attribute}}` in them, by name, that it needs filled in as `Message.properties`."""

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Continue from `state`, which is empty at first. Returns the state to keep before anything is sent.

        Raises TargetUnavailable.
        """
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        """Send messages, with the place of each; returns the number delivered: 0 if its `state` has to be kept before
        it continues. Raises TargetUnavailable if it cannot be reached, and Undeliverable if it does not take the first.
        """
        raise NotImplementedError

    def finish(self, batch: int) -> None:
        """All messages of a micro-batch were sent. Raises TargetUnavailable."""

    def state(self) -> Mapping[str, Any]:
        """State to keep with the position after messages were delivered: plain JSON."""
        return {}

    def close(self) -> None:
        """Close its files and connections; `open` may follow."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Ends a call that is under way, from another thread, unless it ends by itself within seconds."""
