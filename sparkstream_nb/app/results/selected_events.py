"""The selected events of an app, as frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
import pyarrow as pa

from ...errors import Misuse
from ...outputs.event_tables import frame_of_events
from ...outputs.output_files import stamps
from .frontend import Displayed
from .listeners import Followed
from .selected_ends import SelectedEnds
from .selection_criteria import Criteria


@dataclass(frozen=True)
class SelectedEvents:
    """The selected events of a stream, as `Criteria.filter` gives them. `is_input`: they come from outside."""

    stream: str
    table: pa.Table
    is_input: bool


@dataclass(frozen=True)
class SelectedStream:
    """A stream as the display of a selection follows it."""

    name: str
    is_input: bool
    ends: SelectedEnds

    def last_events(self, most: int) -> SelectedEvents:
        """Its last selected events."""
        return SelectedEvents(self.name, self.ends.table(most)[0], self.is_input)


@dataclass(frozen=True, repr=False, eq=False)
class Selection(Displayed):
    """The selection in an app's pictures and tables: the `criteria`, and the events of its streams that meet them. In a
    notebook its display follows the selection.

    `read` gives the selected events of all streams, as of one commit. `streams` are for the display, `target` is the
    app, and `renew` gives its present selection.
    """

    criteria: Criteria
    read: Callable[[Criteria], Sequence[SelectedEvents]]
    streams: Sequence[SelectedStream]
    target: Followed
    renew: Callable[[], Selection]

    @property
    def app(self) -> str:
        """The app's name."""
        return self.target.app

    @cached_property
    def _streams_of_events(self) -> Sequence[SelectedEvents]:
        return self.read(self.criteria)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The selected outputs of all streams: `stream`, `node`, `timestamp` (ms), then the attributes of all of them.
        """
        return frame_of_streams([s for s in self._streams_of_events if not s.is_input])

    @cached_property
    def events(self) -> pd.DataFrame:
        """The events behind the selection, with the same columns: of alerts, the events that they were computed from;
        else events that came in and meet the criteria."""
        return frame_of_streams([s for s in self._streams_of_events if s.is_input])

    def stream(self, name: str) -> pd.DataFrame:
        """The selected events of a stream: `node`, `timestamp` (ms), the attributes. Raises `Misuse` for another
        name."""
        for events in self._streams_of_events:
            if events.stream == name:
                return frame_of_events(events.table)
        raise Misuse(f"{self.app} has no stream '{name}': it has {', '.join(s.name for s in self.streams)}")

    def summary(self) -> str:
        return f"<Selection of {self.app}: {self.criteria}>"


def frame_of_streams(streams: Sequence[SelectedEvents]) -> pd.DataFrame:
    """The events of several streams below one another; a stream without some adds no columns. Attributes of one name
    and several types become texts."""
    streams = [s for s in streams if s.table.num_rows] or streams
    attributes = list(dict.fromkeys(name for s in streams for name in s.table.column_names[2:]))
    stream_name = "event_stream" if "stream" in attributes else "stream"
    tables = []
    for s in streams:
        names = pa.array([s.stream] * s.table.num_rows, pa.string()).dictionary_encode()
        table = s.table.rename_columns([*stamps(attributes), *s.table.column_names[2:]])
        tables.append(table.add_column(0, stream_name, names))
    types: dict[str, set[pa.DataType]] = {name: set() for name in attributes}
    for s in streams:
        for column in list(s.table.schema)[2:]:
            types[column.name].add(column.type)
    mixed_names = {name for name, kinds in types.items() if len(kinds) > 1}
    if not tables:
        return pd.DataFrame(columns=["stream", "node", "timestamp"])
    return frame_of_events(pa.concat_tables([_with_texts(t, mixed_names) for t in tables], promote_options="default"))


def _with_texts(table: pa.Table, names: set[str]) -> pa.Table:
    """The table with columns of `names` as texts."""
    for i, column in enumerate(table.schema):
        if column.name in names:
            table = table.set_column(i, column.name, table.column(i).cast(pa.string()))
    return table
