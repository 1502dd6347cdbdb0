"""Why an output did not come: the clause, event or node that prevents it, and the smallest change with which it
comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...charts.value_texts import row_text, text_of, when
from ...durations import describe_duration
from ..results.frontend import Displayed
from ..results.moment import MomentEvent, MomentOutput

if TYPE_CHECKING:
    from ..results.moment import Moment


class Reason(Enum):
    """Why an output does not come."""

    ROUTING = "routing"
    CONDITION = "condition"
    TIME = "time"
    """An event came too early or too late, or at the wrong place of the order."""
    OTHER_EVENT = "other event"
    """An event in between, an event that should be absent, or one that came first."""
    MISSING = "missing event"
    SEVERAL = "several"
    UNKNOWN = "unknown"
    """No change that was tried brings it."""


class ChangeKind(Enum):
    """Kinds of changes of an event."""

    VALUE = "value"
    TIME = "time"
    LEFT_OUT = "left out"
    ADDED = "added"
    NODE = "node"


@dataclass(frozen=True)
class EventChange:
    """A change of an event: for a value, the attribute and its new value; for a time, the new one (ms); for a node, its
    name. An added event has its own values and the number that it would have."""

    kind: ChangeKind
    event: MomentEvent
    attribute: str = ""
    value: Any = None

    def __str__(self) -> str:
        event = f"event {self.event.number:,}"
        match self.kind:
            case ChangeKind.VALUE:
                return f"{event} with {self.attribute} {_bound_text(self.value)}"
            case ChangeKind.TIME:
                by = self.value - self.event.time
                if not by:
                    return f"{event} at another place of the order"
                return f"{event} {describe_duration(abs(by))} {'later' if by > 0 else 'earlier'}"
            case ChangeKind.LEFT_OUT:
                return f"no {event}"
            case ChangeKind.ADDED:
                return f"another event of {self.event.stream} {row_text(self.event.values)} at {when(self.event.time)}"
        return f"{event} on {self.value}"


@dataclass(frozen=True)
class Explanation:
    """A reason in a sentence, the clauses that it names, the events behind it, and the changes of events with which the
    output comes."""

    reason: Reason
    sentence: str
    clauses: Sequence[str] = ()
    events: Sequence[MomentEvent] = ()
    changes: Sequence[EventChange] = ()


@dataclass(frozen=True, repr=False, eq=False)
class WhyNot(Displayed):
    """Why an output of a stream with some values did not come.

    `proof` is the output that comes in a branch of the input that has the changes (None: no change brings it), and
    `others` are further explanations, each with a larger change that brings it too.
    """

    app: str
    stream: str
    values: Mapping[str, Any]
    explanation: Explanation
    proof: MomentOutput | None = None
    others: Sequence[Explanation] = ()
    moment_of_proof: Callable[[], Moment] | None = field(default=None, repr=False)

    @property
    def reason(self) -> Reason:
        """Why the output does not come."""
        return self.explanation.reason

    @property
    def sentence(self) -> str:
        """Why it did not come."""
        return self.explanation.sentence

    @property
    def changes(self) -> Sequence[EventChange]:
        """The smallest change with which it comes."""
        return self.explanation.changes

    @property
    def events(self) -> pd.DataFrame:
        """The events behind the sentence: number, stream, timestamp (ms), node, values."""
        rows = [[e.number, e.stream, e.time, e.node, list(e.values)] for e in self.explanation.events]
        return pd.DataFrame(rows, columns=["event", "stream", "timestamp", "node", "values"])

    @property
    def title(self) -> str:
        """The output that did not come."""
        values = ", ".join(f"{name} {text_of(value)}" for name, value in self.values.items())
        return f"{self.stream} with {values}" if values else self.stream

    def at(self) -> Moment:
        """The moment at which the output comes, in a branch of the input that has the changes. Raises ValueError if no
        change brings it."""
        if self.moment_of_proof is None:
            raise ValueError("no change brings the output")
        return self.moment_of_proof()

    def summary(self) -> str:
        return f"<WhyNot of {self.app}: {self.title}: {self.sentence}>"


def _bound_text(value: Any) -> str:
    """A value as text; of a float next to a shorter one, the shorter one."""
    if isinstance(value, float) and value != round(value, 9):
        return f"just {'over' if value > round(value, 9) else 'under'} {text_of(round(value, 9))}"
    return text_of(value)
