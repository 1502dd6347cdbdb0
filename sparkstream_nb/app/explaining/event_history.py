"""The history of an event on its nodes, and the origin of an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pandas as pd

from ...charts.value_texts import row_text, text_of, when
from ...errors import Misuse
from ..results.frontend import Displayed
from ..results.moment import Moment, MomentEvent, MomentOutput, MomentSource


class EntryKind(Enum):
    """Kinds of what happens to an event."""

    CAME = "came"
    CONDITION = "condition"
    WINDOW = "window"
    PARTIAL_MATCH = "partial match"
    TABLE = "table"
    OUTPUT = "output"


@dataclass(frozen=True)
class HistoryEntry:
    """Something that happened to an event: after which step, at which time of the clock (ms), on which node; the query,
    table or window, and a sentence. `holds` is the result of a condition."""

    kind: EntryKind
    position: int
    clock: int
    node: str
    subject: str
    text: str
    holds: bool | None = None


@dataclass(frozen=True, repr=False, eq=False)
class EventHistory(Displayed):
    """The history of an event: its `entries` in order of time. `rest` names the windows, patterns and tables that
    hold it at the end of the input, `notes` its place in running aggregates and outputs that are not listed.
    `is_complete`: all changes are listed.
    """

    app: str
    event: MomentEvent
    entries: Sequence[HistoryEntry]
    rest: Sequence[str]
    notes: Sequence[str]
    is_complete: bool
    source: MomentSource = field(repr=False)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each entry: step, timestamp (ms, of the clock), node, subject (a query, table or window), what
        (`EntryKind`), text, and whether a condition holds (missing: it depends on other events, or is none)."""
        rows = [[e.position, e.clock, e.node, e.subject, e.kind.value, e.text, e.holds] for e in self.entries]
        columns = ["step", "timestamp", "node", "subject", "what", "text", "holds"]
        return pd.DataFrame(rows, columns=columns).astype({"holds": "boolean"})

    @property
    def outputs(self) -> list[HistoryEntry]:
        """The outputs that it is in."""
        return [e for e in self.entries if e.kind is EntryKind.OUTPUT]

    @property
    def title(self) -> str:
        """The event."""
        event = self.event
        return f"Event {event.number:,} of {event.stream} {row_text(event.values)} at {when(event.time)}"

    @property
    def sentence(self) -> str:
        """The end of it in a sentence."""
        if not self.is_complete:
            return f"Only the changes up to {when(self.entries[-1].clock)} are here: there are too many."
        if self.rest:
            return f"At the end of the input it is still in {' and in '.join(self.rest)}."
        if all(e.kind in (EntryKind.CAME, EntryKind.CONDITION) for e in self.entries):
            return "Nothing came of it."
        return f"Nothing is left of it since {when(self.entries[-1].clock)}."

    def at(self, entry: int) -> Moment:
        """The moment of an entry, the first is 0. Raises `Misuse` if there is none."""
        if not 0 <= entry < len(self.entries):
            raise Misuse(f"the history has the entries 0 to {len(self.entries) - 1}, and not {entry}")
        return self.source.moment(self.entries[entry].position)

    def summary(self) -> str:
        return f"<EventHistory of {self.app}: {self.title}: {self.sentence}>"


@dataclass(frozen=True, repr=False, eq=False)
class OutputOrigin(Displayed):
    """The events that an output was made of. `count` is the number of events that its aggregates hold, of which
    `events` may have the first and the last alone (0: it has none)."""

    app: str
    output: MomentOutput
    events: Sequence[MomentEvent]
    count: int

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each event: event (its number), stream, timestamp (ms), node, values."""
        rows = [[e.number, e.stream, e.time, e.node, list(e.values)] for e in self.events]
        return pd.DataFrame(rows, columns=["event", "stream", "timestamp", "node", "values"])

    @property
    def title(self) -> str:
        """The output."""
        output = self.output
        return f"{output.stream} {row_text(output.values)} at {when(output.time)} on {output.node}, by {output.query}"

    @property
    def sentence(self) -> str:
        """The number of its events in a sentence."""
        if not self.events:
            return "It was made of no event."
        if self.count > len(self.events):
            return f"It was made of {self.count:,} events, of which the first and the last are here."
        return f"It was made of {len(self.events):,} {'event' if len(self.events) == 1 else 'events'}."

    def summary(self) -> str:
        return f"<OutputOrigin of {self.app}: {self.title}: {self.sentence}>"


def values_text(values: Mapping[str, Any]) -> str:
    """ "amount is 250.0, card is a"."""
    return ", ".join(f"{name} is {text_of(value)}" for name, value in values.items())
