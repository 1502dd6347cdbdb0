"""Result types of a running app: plain, typed data. `lab.display` has the display of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from ...charts.loading import draw_figure
from ...engine.columnar.column_data import ARROW
from ...engine.state.node_batch import RetrievalAnswer
from ...journal.throughput import BatchFigures, BatchTimes, Rates
from ...outputs.output_files import series_of
from ...retention import Retention
from ...sinks.delivery import SinkFigures
from ...sources.intake import SourceFigures
from ...types import Type
from ..pictures.errors_picture import errors_picture
from .frontend import Displayed
from .listeners import OnCommit, always_running
from .plotly_results import Plottable
from .prometheus_text import prometheus_text

if TYPE_CHECKING:
    from ...charts.loading import Figure

SHARD = "SHARD_ID"


@dataclass(frozen=True, repr=False)
class FeedReport(Displayed):
    """The report of a feed: `rows` read, of which `rejected` did not fit the stream; `seconds` until all was committed.

    `not_fed` counts the events that a feed which was stopped did not put into the app any more. `outputs` counts the
    outputs of each derived stream meanwhile. `reasons` counts rejected rows by reason (all faults of a row, with `; `
    between them), the most frequent first; of more than are `kept` at most (see `Retention`; None: all are), the first
    ones, of each Spark task that read the feed. `notes` are warnings for the user; `time` is an example of a time of
    the feed. `unfit_streams`: streams whose rows were all rejected.
    """

    app: str
    stream: str
    rows: int
    rejected: int
    seconds: float
    outputs: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    not_fed: int = 0
    notes: Sequence[str] = ()
    time: str | None = None
    kept: int | None = None
    unfit_streams: Sequence[str] = ()

    @property
    def events(self) -> int:
        """Events that the app took."""
        return self.rows - self.rejected - self.not_fed

    @property
    def events_per_second(self) -> float:
        """Events that were taken, by second."""
        return self.events / self.seconds if self.seconds else 0.0

    def summary(self) -> str:
        return f"<FeedReport {self.app}.{self.stream}: {self.rows:,} rows, {self.rejected:,} rejected>"


@dataclass(frozen=True, repr=False, eq=False)
class Result(Plottable):
    """The answer to an on-demand query: `columns` are (name, type) pairs, `rows` Python values, merged over shards.

    `by_shard` is the same by shard, SHARD_ID first; None if the query has no shards. `limit`: how many rows are
    displayed; None: the front end's default. `hint`: why there are no rows, if known, or which buckets of an
    aggregation the range cuts. `beside`: `by_shard` is displayed as well.
    """

    columns: list[tuple[str, str]]
    rows: list[list[Any]]
    read_by_shard: Callable[[], pd.DataFrame] | None = None
    limit: int | None = None
    hint: str | None = None
    beside: bool = False

    @cached_property
    def by_shard(self) -> pd.DataFrame | None:
        """The answer by shard. That of a retrieval over very many stored rows is read when it is first asked for."""
        return None if self.read_by_shard is None else self.read_by_shard()

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a pandas frame with the columns' types."""
        return typed_frame(self.columns, self.rows)

    def _rows_to_plot(self, by: str | None) -> tuple[pd.DataFrame, str]:
        frame = self.by_shard if by == SHARD and self.by_shard is not None else self.frame
        return frame, ", ".join(n for n, _ in self.columns)

    def __len__(self) -> int:
        return len(self.rows)

    def summary(self) -> str:
        return f"<Result: {len(self):,} rows of {', '.join(f'{n} {t}' for n, t in self.columns)}>"


@dataclass(frozen=True)
class InputCounts:
    """The number of events of a stream in all, and of the `gone` ones: no longer kept in the inbox."""

    total: int
    gone: int


@dataclass(frozen=True, repr=False)
class Sent(Displayed):
    """The report of `events` that were sent to `stream` at `at` (ms): the shard ids of the `nodes` that take them
    (empty in modes whose nodes take turns), and the number of outputs of each derived stream until they were committed
    (`outputs`; None: that was not waited for, or is not done).

    `clock`: the app's clock (ms) before, where the time is this machine's and that clock was more than a day behind.
    `started`: the app was stopped, and runs again.
    """

    app: str
    stream: str
    events: int
    at: int
    nodes: Sequence[str] = ()
    outputs: Mapping[str, int] | None = None
    clock: int | None = None
    started: bool = False

    def summary(self) -> str:
        return f"<Sent {self.events} to {self.app}.{self.stream}>"


@dataclass(frozen=True, repr=False, eq=False)
class Events(Plottable):
    """The outputs of `stream` so far. `frame` has all of it: `node`, `timestamp` (ms), the attributes.

    If the stream has an attribute `timestamp` of its own, the event's time is `event_timestamp`. `limit`: number of
    rows shown; None: as many as the front end shows. For an input stream `frame` has the last events that came in, with
    the node that took each, and `came` their number. `dropped` events before `frame` are no longer kept (`retention` of
    `deploy`). `waiting` events have come in whose outputs are not computed yet.
    """

    app: str
    stream: str
    frame: pd.DataFrame
    limit: int | None = None
    came: InputCounts | None = None
    dropped: int = 0
    waiting: int = 0

    def _rows_to_plot(self, by: str | None) -> tuple[pd.DataFrame, str]:
        return self.frame, f"{self.app}.{self.stream}"

    def __len__(self) -> int:
        return len(self.frame)

    def summary(self) -> str:
        return f"<Events of {self.app}.{self.stream}: {len(self):,}>"


@dataclass(frozen=True, repr=False, eq=False)
class Errors(Displayed):
    """Rows and events that an app could not process. `frame` has all by their id: stream, timestamp (ms), values,
    reason. The values of a row that is not whole are a dict with its text, `row`; for rows of a feed that are not kept,
    a dict with their number, `rows`.

    `limit`: how many rows are shown; None: as many as the front end shows. `dropped`: how many older ones are not kept
    any more (`retention` of `deploy`). `away` says which sources cannot be read now and which sinks cannot deliver.
    """

    app: str
    frame: pd.DataFrame
    limit: int | None = None
    dropped: int = 0
    away: Sequence[str] = ()

    def plot(self) -> Figure:
        """The number of errors by reason over the time of their events, as a Plotly figure. Raises `Misuse` without
        errors, SparkStreamError where Plotly is not installed."""
        return draw_figure(errors_picture(self.frame, f"errors of {self.app}"))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def reasons(self) -> dict[str, int]:
        """Count by reason, the most frequent first."""
        counts = Counter(map(str, self.frame["reason"].tolist()))
        return dict(sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])))

    def summary(self) -> str:
        return f"<Errors of {self.app}: {len(self):,}>"


@dataclass(frozen=True)
class StateSize:
    """The contents of a query, table, window or aggregation on a node. `rows`: events of windows and joins, partial
    matches of patterns, rows of tables; None if they are not counted."""

    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class NodeStats:
    """Figures of a node: `events` it took and `events_per_second` of its own working time, since this process deployed
    the app; the time of the last micro-batch (`ms`), the size of its state (`state_bytes`) and its `clock` (ms since
    1970) after that. The rate is None for nodes that pass all their work on to Spark's tasks, as it needs no state.
    `runs` is how the node works: "by operator", or event by event, "by chunk", and then why. `held`: sizes of the state
    of each query, table, window and aggregation, by name; empty ones are left out.
    """

    shard: str
    events: int
    events_per_second: float | None
    ms: float
    state_bytes: int
    clock: int | None
    runs: str = "by operator"
    held: dict[str, StateSize] = field(default_factory=dict)


@dataclass(frozen=True)
class PartStats:
    """Figures of a query, table, window or aggregation (`kind`): the bytes and rows (see `StateSize`) that all nodes
    hold for it, and, for a query that writes a stream, its `output` and the number of that stream's events
    (`events_out`, of all its queries).
    """

    kind: str
    name: str
    output: str | None
    events_out: int | None
    state_bytes: int
    state_rows: int | None = None


@dataclass(frozen=True)
class DiskStats:
    """The size of an app's folder in bytes: the `recording` of the input, the `outputs` of derived streams, the `state`
    of the nodes with Spark's data on the micro-batches, and the `store` of aggregations, tables and errors if it is a
    file of the app's own. `retention` is how much is kept of the first two; `dropped` counts the events by derived
    stream that are not kept any more.
    """

    recording: int
    outputs: int
    state: int
    store: int
    retention: Retention
    dropped: dict[str, int]


@dataclass(frozen=True)
class LiveStats:
    """The figures of a running app: `read` gives the present ones; `follow` and `state` as in `Followed`."""

    read: Callable[[], Stats]
    follow: Callable[[OnCommit], Callable[[], None]]
    state: Callable[[], str] = always_running


@dataclass(frozen=True, repr=False)
class Stats(Displayed):
    """The progress of an app.

    `clock`: the app's clock (ms since 1970; None before the first event), and `clock_kind` its kind: "virtual" or
    "wall" (see `deploy`). `events`: events and chunks that were sent. `waiting`: entries of the inbox that are not
    committed yet. `micro_batches`: number of those committed. `outputs` counts the outputs of each derived stream,
    `errors` the events that could not be processed, both since this process deployed the app. `nodes`: by shard id, of
    the nodes that a micro-batch has reached. `parts`: queries, tables, windows and aggregations. `disk`: sizes of the
    parts of the app's folder. `sinks`: progress of the sinks that publish outside, one for each target. `sources`:
    progress of the sources that read outside.

    `came`: events that came in by stream, since the app began. `lag`: the number of them not committed yet. `rates`
    and `times` of micro-batches, of which `recent` has the last. `faulty`: `errors` by stream, aggregation or sink.
    `dropped_errors`: errors that are not kept any more, since the app began.
    `live`: source of later figures, for a display that follows the app.
    """

    app: str
    state: str
    clock: int | None
    events: int
    waiting: int
    micro_batches: int
    outputs: dict[str, int]
    errors: int
    nodes: dict[str, NodeStats]
    parts: tuple[PartStats, ...]
    disk: DiskStats
    sinks: tuple[SinkFigures, ...] = ()
    sources: tuple[SourceFigures, ...] = ()
    clock_kind: str = "virtual"
    came: dict[str, int] = field(default_factory=dict)
    lag: int = 0
    rates: Rates = field(default_factory=Rates)
    times: BatchTimes = field(default_factory=BatchTimes)
    recent: tuple[BatchFigures, ...] = ()
    faulty: dict[str, int] = field(default_factory=dict)
    dropped_errors: int = 0
    live: LiveStats | None = field(default=None, compare=False)

    def prometheus(self) -> str:
        """The figures in the text exposition format of Prometheus, version 0.0.4."""
        return prometheus_text([self])

    @property
    def nodes_frame(self) -> pd.DataFrame:
        """A row for each node, with the fields of `NodeStats` but `held`, which `state_frame` has."""
        names = [f.name for f in fields(NodeStats) if f.name != "held"]
        return pd.DataFrame([asdict(n) for n in self.nodes.values()], columns=names)

    @property
    def state_frame(self) -> pd.DataFrame:
        """A row for each node and part with state: node, name, bytes, rows."""
        rows = [[n.shard, name, s.bytes, s.rows] for n in self.nodes.values() for name, s in n.held.items()]
        return pd.DataFrame(rows, columns=["node", "name", "bytes", "rows"]).astype({"rows": "Int64"})

    @property
    def parts_frame(self) -> pd.DataFrame:
        """A row for each query, table, window and aggregation, with the fields of `PartStats`."""
        return pd.DataFrame([asdict(p) for p in self.parts], columns=[f.name for f in fields(PartStats)])

    @property
    def sources_frame(self) -> pd.DataFrame:
        """A row for each source outside, with the fields of `SourceFigures`."""
        return pd.DataFrame([asdict(s) for s in self.sources], columns=[f.name for f in fields(SourceFigures)])

    @property
    def sinks_frame(self) -> pd.DataFrame:
        """A row for each target of a sink, with the fields of `SinkFigures`."""
        return pd.DataFrame([asdict(s) for s in self.sinks], columns=[f.name for f in fields(SinkFigures)])

    def summary(self) -> str:
        return f"<Stats: {self.state}, {self.events:,} events, {self.waiting:,} entries waiting>"



def typed_frame(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """A pandas frame with the columns' SiddhiQL types; numbers and bools with nulls use nullable types."""
    data = []
    for i, (_, kind) in enumerate(columns):
        values = [row[i] for row in rows]
        type = ARROW.get(Type(kind)) if kind in {t.value for t in Type} else None
        if type is None:
            data.append(pd.Series(values, dtype=object))
        else:
            data.append(series_of(pa.array(values, type)))
    frame = pd.DataFrame(dict(enumerate(data)))
    frame.columns = pd.Index([name for name, _ in columns], dtype=object)
    return frame


def frame_of(answer: RetrievalAnswer) -> pd.DataFrame:
    """An answer's rows as a pandas frame."""
    return typed_frame(answer.columns, answer.rows)
