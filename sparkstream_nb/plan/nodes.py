"""The typed logical plan of an app: immutable, printable data.

`bind` makes it from a syntax tree; rewrites and `explain` work on it; the node engine runs it. A plan holds no
syntax and no live object, so it can be compared, printed and shipped to a Spark worker.

`expression_nodes.py` has the expressions, and says what their slots are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import NOWHERE, Span
from ..lang import tree
from ..types import Schema, Type
from .expression_nodes import OUTPUT as OUTPUT
from .expression_nodes import TABLE as TABLE
from .expression_nodes import Agg as Agg
from .expression_nodes import Arith as Arith
from .expression_nodes import Call as Call
from .expression_nodes import Compare as Compare
from .expression_nodes import Const as Const
from .expression_nodes import EventRef as EventRef
from .expression_nodes import Expr as Expr
from .expression_nodes import InTable as InTable
from .expression_nodes import IsNull as IsNull
from .expression_nodes import Logic as Logic
from .expression_nodes import Not as Not
from .expression_nodes import Ref as Ref
from .expression_nodes import ScriptCall as ScriptCall
from .expression_nodes import children as children
from .expression_nodes import walk as walk

# --------------------------------------------------------------------------------------------------------- inputs

SourceKind = Literal["stream", "window", "table", "aggregation"]


@dataclass(frozen=True)
class Source:
    """A stream, table, window, trigger or aggregation that a query reads or writes. `id` is unique in the app: inner
    streams are `#S` after the id of their partition (`partition0#S`; `#S` outside of any), fault streams are `!S`. A
    trigger is a stream."""

    kind: SourceKind
    id: str
    schema: Schema


def is_of_partition(id: str) -> bool:
    """True for the id of a partition's inner stream, whose events belong to an instance."""
    return "#" in id[1:]


@dataclass(frozen=True)
class FilterStep:
    condition: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class FunctionStep:
    """A stream function or stream processor, such as `#log(...)`, `#pol2Cart(...)`, `#str:tokenize(...)`.

    `appends` are the attributes that it adds to the event, after the existing ones.
    """

    function: str
    args: tuple[Expr, ...]
    appends: Schema
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class WindowStep:
    """A window: `function` is its key in `plan.functions.WINDOWS`, such as `timeBatch`.

    `args` are constants, or references to attributes of the event where the window takes such. `condition` is the bound
    condition of an `expression` window with a constant string: slot 0 is the current event, 1 `first`, 2 `last`.
    """

    function: str
    args: tuple[Expr, ...]
    condition: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Step = FilterStep | FunctionStep | WindowStep


@dataclass(frozen=True)
class StreamInput:
    """One source and the steps applied to its events. `schema` is the schema after the last step. `ignored`: the window
    of a table in a join, which has no effect."""

    source: Source
    steps: tuple[Step, ...]
    schema: Schema
    ignored: WindowStep | None = None


RANGE = Schema.of(("_START", Type.LONG), ("_END", Type.LONG))
"""Columns that a join with an aggregation appends to the other side's events: the bounds in ms of `within`, end
exclusive (`AggregationRuntime.compileExpression`).
"""


@dataclass(frozen=True)
class JoinInput:
    """Slots 0 and 1. `within`/`per` only with an aggregation, and the other side's schema ends with `RANGE` then. A
    side with kind table/aggregation never triggers.

    `triggers`: for (left, right), whether an arriving event produces output (`unidirectional` clears one).
    """

    left: StreamInput
    right: StreamInput
    kind: Literal["inner", "left outer", "right outer", "full outer"]
    on: Expr | None
    triggers: tuple[bool, bool]
    within: tuple[Expr, ...] = ()
    per: Expr | None = None


@dataclass(frozen=True)
class State:
    """Base of the states of a pattern or sequence."""


@dataclass(frozen=True)
class StreamState(State):
    """Waits for an event of `input` (filters in its steps see all slots); it is kept in `slot`."""

    slot: int
    input: StreamInput


@dataclass(frozen=True)
class CountState(State):
    """`least`..`most` events into one slot; `most` is `tree.UNBOUNDED` for no limit."""

    state: StreamState
    least: int
    most: int


@dataclass(frozen=True)
class AbsentState(State):
    """No event of `state.input` for `wait` ms; None: until the other side of a logical state came."""

    state: StreamState
    wait: int | None


@dataclass(frozen=True)
class LogicalState(State):
    op: Literal["and", "or"]
    left: StreamState | AbsentState
    right: StreamState | AbsentState


@dataclass(frozen=True)
class NextState(State):
    first: State
    then: State


@dataclass(frozen=True)
class EveryState(State):
    state: State


@dataclass(frozen=True)
class Slot:
    """A state's event in the select: its name in the text (if any), schema, and whether it holds several."""

    ref: str | None
    source: Source
    schema: Schema
    counted: bool


@dataclass(frozen=True)
class StateInput:
    kind: Literal["pattern", "sequence"]
    state: State
    slots: tuple[Slot, ...]
    within: int | None


Input = StreamInput | JoinInput | StateInput

# ---------------------------------------------------------------------------------------------- selection and output


@dataclass(frozen=True)
class OutputItem:
    name: str
    expr: Expr


@dataclass(frozen=True)
class OrderItem:
    attr: int
    descending: bool


@dataclass(frozen=True)
class Select:
    """`items` is always filled, also for `select *`. `having` and `order_by` see OUTPUT, and the inputs if there are
    several: attributes of the inputs that `order_by` names are in `unselected`, numbered after `items`.

    `aggregates`: whether any item contains an `Agg`.
    """

    items: tuple[OutputItem, ...]
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int | None = None
    unselected: tuple[Expr, ...] = ()

    @property
    def schema(self) -> Schema:
        return Schema.of(*((i.name, i.expr.type) for i in self.items))

    @property
    def aggregates(self) -> bool:
        return any(isinstance(e, Agg) for i in self.items for e in walk(i.expr))


@dataclass(frozen=True)
class Rate:
    """Output rate limit: `every` counts events, or ms where `unit` is "time"."""

    kind: Literal["all", "first", "last", "snapshot"]
    unit: Literal["events", "time"]
    every: int


@dataclass(frozen=True)
class SetItem:
    attr: int
    value: Expr


@dataclass(frozen=True)
class Insert:
    """Into a stream, window or table. `event_type` says which events of the query go there."""

    target: Source
    event_type: tree.EventType


@dataclass(frozen=True)
class Delete:
    """`on` sees the query's output row (OUTPUT) and TABLE; None deletes all."""

    target: Source
    event_type: tree.EventType
    on: Expr | None


@dataclass(frozen=True)
class Update:
    """`set` None: every attribute of the table that the output row has by name."""

    target: Source
    event_type: tree.EventType
    on: Expr
    set: tuple[SetItem, ...] | None


@dataclass(frozen=True)
class Upsert:
    target: Source
    event_type: tree.EventType
    on: Expr
    set: tuple[SetItem, ...] | None


Output = Insert | Delete | Update | Upsert

# ---------------------------------------------------------------------------------------------------------- safety


@dataclass(frozen=True)
class Safety:
    """True if a query's result stays correct when events are routed over shards, and why.

    `stateless`: correct under any routing. `merged`: correct after a retrieval merges the shards. `keyed`: correct if
    events are routed by `keys` (stream id → attribute name). `node-dependent`: correct under no routing.
    """

    level: Literal["stateless", "merged", "keyed", "node-dependent"]
    reason: str
    keys: tuple[tuple[str, str], ...] = ()


# ------------------------------------------------------------------------------------------------- queries and app


@dataclass(frozen=True)
class Query:
    """One query. `name` is given by `@info(name=...)`, or `query1`, `query2` ... by position; `named` says which."""

    name: str
    named: bool
    input: Input
    select: Select
    rate: Rate | None
    output: Output
    safety: Safety
    annotations: tuple[tree.Annotation, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class ValueKey:
    stream: str
    expr: Expr


@dataclass(frozen=True)
class RangeKey:
    stream: str
    ranges: tuple[tuple[Expr, str], ...]


@dataclass(frozen=True)
class Purge:
    """`@purge` of a partition, in ms."""

    interval: int
    idle: int


@dataclass(frozen=True)
class Partition:
    """Queries that run once per key. `id` is `partition0`, `partition1`, ...; `inner` its inner streams by full id."""

    id: str
    keys: tuple[ValueKey | RangeKey, ...]
    queries: tuple[Query, ...]
    inner: tuple[Source, ...]
    purge: Purge | None
    safety: Safety
    annotations: tuple[tree.Annotation, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class StreamDef:
    """`kind`: defined in the text, inferred from an `insert into`, a fault stream, or a trigger's."""

    source: Source
    kind: Literal["defined", "inferred", "fault", "trigger"]
    on_error: Literal["LOG", "STREAM", "STORE"] | None = None
    annotations: tuple[tree.Annotation, ...] = ()


@dataclass(frozen=True)
class TableDef:
    """`indexes`: attributes with an index of their own; `joint_indexes`: those that have one together, which tables in
    a database may have."""

    source: Source
    primary_key: tuple[int, ...] = ()
    indexes: tuple[int, ...] = ()
    annotations: tuple[tree.Annotation, ...] = ()
    joint_indexes: tuple[tuple[int, ...], ...] = ()

    @property
    def is_stored(self) -> bool:
        """True if it is in a database, which all nodes share (`@store`)."""
        return tree.find_annotation(self.annotations, "store") is not None


@dataclass(frozen=True)
class WindowDef:
    source: Source
    window: WindowStep
    output: tree.EventType
    annotations: tuple[tree.Annotation, ...] = ()


@dataclass(frozen=True)
class TriggerDef:
    """One of `every` (ms), `start`, `cron`."""

    id: str
    every: int | None = None
    start: bool = False
    cron: str | None = None


@dataclass(frozen=True)
class FunctionDef:
    id: str
    language: str
    returns: Type
    body: str


AggDuration = Literal["sec", "min", "hour", "day", "month", "year"]
DURATIONS: tuple[AggDuration, ...] = ("sec", "min", "hour", "day", "month", "year")


@dataclass(frozen=True)
class BaseColumn:
    """A column that an aggregation stores, with the merge of its partials.

    `kind` is the merge: sum, count, min, max, set (distinctCount), last (a plain attribute: latest by event time).
    `arg` is None for count(). `name` is the column's name in the store, such as `AGG_SUM_price`.
    """

    name: str
    kind: Literal["sum", "count", "min", "max", "set", "last"]
    arg: Expr | None
    type: Type


@dataclass(frozen=True)
class BatchClock:
    """The app's clock over a micro-batch (ms): after the very first step of the app, before the batch, and after it."""

    first: int
    before: int
    after: int


@dataclass(frozen=True)
class PurgeRule:
    """`@purge` of an aggregation (`IncrementalDataPurger`): a purge is due every `interval` since the first clock step,
    and keeps the buckets of a duration for the time in `kept`; in ms."""

    interval: int
    kept: Mapping[AggDuration, int]

    def due(self, clock: BatchClock) -> int | None:
        """The time (ms) of the last purge that falls due in a micro-batch; None for none."""
        before, after = ((t - clock.first) // self.interval for t in (clock.before, clock.after))
        return clock.first + after * self.interval if after > before else None

    def begins(self, duration: AggDuration, due: int) -> int | None:
        """The time (ms) before which the purge of time `due` deletes buckets of `duration`; None: it deletes none."""
        kept_ms = self.kept.get(duration)
        return None if kept_ms is None else due - kept_ms


@dataclass(frozen=True)
class AggregationDef:
    """An incremental aggregation (`AggregationParser` of Siddhi).

    `select` is the select as written, its `Agg`s over slot 0. `base` are the columns stored per bucket and group;
    `output` gives each selected name as an expression over the stored columns: slot 0 = group-by attributes
    then `base` in order. `by` is `aggregate by`, None for the app's clock. `schema` is the readers' schema:
    `AGG_TIMESTAMP long`, then the selected names.
    `partitioned`: rows carry SHARD_ID. `retention` is None without `@purge`.
    """

    source: Source
    input: StreamInput
    select: Select
    base: tuple[BaseColumn, ...]
    output: tuple[OutputItem, ...]
    by: Expr | None
    durations: tuple[AggDuration, ...]
    partitioned: bool
    annotations: tuple[tree.Annotation, ...] = ()
    retention: PurgeRule | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def id(self) -> str:
        return self.source.id


@dataclass(frozen=True)
class IdleClock:
    """`@app:playback(idle.time, increment)`: where no event comes for `idle` ms of the machine's time, the app's clock
    moves on by `increment` ms."""

    idle: int
    increment: int


@dataclass(frozen=True)
class PluginUse:
    """An extension that a plan uses, and the package that had it where the app was bound."""

    key: str
    package: str
    version: str


@dataclass(frozen=True)
class Plan:
    """A whole app, bound and typed.

    `streams` holds every stream by id (inner ones too), `elements` the queries and partitions in the order of the
    text, which is the order in which an event reaches them. `gaps` names declared gaps that the app needs. `name` is
    that of `@app:name`, None without one. `plugins`: the extensions of other packages that it calls.
    """

    name: str | None
    text: str = field(repr=False)
    streams: Mapping[str, StreamDef]
    tables: Mapping[str, TableDef]
    windows: Mapping[str, WindowDef]
    triggers: Mapping[str, TriggerDef]
    functions: Mapping[str, FunctionDef]
    aggregations: Mapping[str, AggregationDef]
    elements: tuple[Query | Partition, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    annotations: tuple[tree.Annotation, ...] = ()
    idle_clock: IdleClock | None = field(default=None, compare=False)
    plugins: tuple[PluginUse, ...] = field(default=(), compare=False)

    @property
    def queries(self) -> tuple[Query, ...]:
        """All queries in the order of the text, those in partitions too."""
        out: list[Query] = []
        for e in self.elements:
            out.extend(e.queries if isinstance(e, Partition) else (e,))
        return tuple(out)

    @property
    def input_streams(self) -> tuple[str, ...]:
        """The streams whose events come from outside alone: the text defines them, and no query writes to them."""
        written_streams = {q.output.target.id for q in self.queries}
        return tuple(s for s, d in self.streams.items() if d.kind == "defined" and s not in written_streams)

    @property
    def aggregation_zone(self) -> str:
        """The time zone in which aggregations begin their hours, days, months and years."""
        return self.properties.get("aggTimeZone", "GMT")

    def schema(self, source_id: str) -> Schema:
        """Schema of a stream, table, window or aggregation. Raises KeyError for an unknown id."""
        maps: tuple[Mapping[str, Any], ...] = (self.streams, self.tables, self.windows, self.aggregations)
        for m in maps:
            if source_id in m:
                schema: Schema = m[source_id].source.schema
                return schema
        raise KeyError(source_id)


# ------------------------------------------------------------------------------------------------ on-demand queries


@dataclass(frozen=True)
class Retrieval:
    """An on-demand query, bound against a plan.

    `source` is read into slot 0 (None for `select ... insert into T`, whose expressions see no event); `on` sees
    slot 0. `within` (one wildcard text or two bounds) and `per` only over aggregations. Changes set `output`, whose
    conditions see OUTPUT (the selected row, if any) and TABLE.
    """

    source: Source | None
    on: Expr | None
    within: tuple[Expr, ...]
    per: Expr | None
    select: Select
    output: Output | None
    text: str = field(repr=False)
    shared: bool = False
    """True if it reads or changes a table that all nodes share."""

    @property
    def columns(self) -> Schema:
        """The columns of the answer: the selected ones; for a change without a select, the columns of the changed
        table.
        """
        return self.select.schema if self.output is None or self.select.items else self.output.target.schema
