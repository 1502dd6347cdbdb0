"""The syntax tree of SiddhiQL: immutable, comparable nodes, each with its span.

Spans do not take part in equality, so that text → tree → text → tree is the identity on trees.
The shapes follow the rules of Siddhi's grammar `SiddhiQL.g4` (5.1); rule names are given where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..errors import NOWHERE, Span
from ..masking import masked_option
from ..types import Type


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base of all nodes."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# ---------------------------------------------------------------------------------------------------------- names


@dataclass(frozen=True)
class SourceName(Node):
    """A stream, table, window or aggregation as named in the text: `S`, inner `#S`, or fault `!S`."""

    id: str
    inner: bool = False
    fault: bool = False

    def __str__(self) -> str:
        return ("#" if self.inner else "!" if self.fault else "") + self.id


@dataclass(frozen=True)
class EventIndex(Node):
    """`[0]` is EventIndex(0); `[last]` is EventIndex(0, from_last=True); `[last-2]` EventIndex(2, from_last=True)."""

    offset: int
    from_last: bool = False


# ---------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Expression(Node):
    """Base of all expressions."""


@dataclass(frozen=True)
class Constant(Expression):
    """A literal. INT and LONG hold int, FLOAT and DOUBLE float, BOOL bool, STRING str."""

    value: int | float | bool | str
    type: Type


@dataclass(frozen=True)
class TimeConstant(Expression):
    """`1 min 5 sec`: a LONG of milliseconds, `parts` as written, e.g. ((1, "min"), (5, "sec"))."""

    millis: int
    parts: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Variable(Expression):
    """An attribute reference: `a`, `S.a`, `e1[0].a`, `#S.a`, `!S.a`, `S#fn.a` (`inner_*` of `name1#name2.a`)."""

    name: str
    source: SourceName | None = None
    index: EventIndex | None = None
    inner_name: str | None = None
    inner_index: EventIndex | None = None


@dataclass(frozen=True)
class StreamReference(Expression):
    """A whole event, only under `is null`: `e1`, `e1[last]`."""

    source: SourceName
    index: EventIndex | None = None


@dataclass(frozen=True)
class FunctionCall(Expression):
    """`ns:name(args)`; `star` for `name(*)`. Also the form of a stream function or window call."""

    namespace: str | None
    name: str
    args: tuple[Expression, ...] = ()
    star: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}:{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Arithmetic(Expression):
    op: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    op: Literal["==", "!=", "<", "<=", ">", ">="]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class And(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Or(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True)
class IsNull(Expression):
    operand: Expression


@dataclass(frozen=True)
class In(Expression):
    operand: Expression
    table: str


# ---------------------------------------------------------------------------------------------------- annotations


@dataclass(frozen=True)
class AnnotationElement(Node):
    """`key='value'`, or `'value'` with key None. `quoted_key` remembers a key written as a string."""

    key: str | None
    value: str
    quoted_key: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        return f"AnnotationElement(key={self.key!r}, value={masked_option(self.key, self.value)!r})"


@dataclass(frozen=True)
class Annotation(Node):
    """`@name(key='v', 'v', @nested(...))`. `app` is True for `@app:name(...)`."""

    name: str
    elements: tuple[AnnotationElement, ...] = ()
    nested: tuple[Annotation, ...] = ()
    app: bool = False

    def get(self, key: str | None) -> str | None:
        """The value under `key` (case-insensitive; None: the first element without key), or None."""
        for e in self.elements:
            if (e.key and e.key.lower()) == (key and key.lower()):
                return e.value
        return None


def find_annotation(annotations: tuple[Annotation, ...], name: str) -> Annotation | None:
    """The first annotation called `name`, in any case, or None."""
    for a in annotations:
        if a.name.lower() == name.lower():
            return a
    return None


# ---------------------------------------------------------------------------------------------------- definitions


@dataclass(frozen=True)
class AttributeDefinition(Node):
    name: str
    type: Type


@dataclass(frozen=True)
class Definition(Node):
    """Base of `define ...`."""


@dataclass(frozen=True)
class StreamDefinition(Definition):
    id: SourceName
    attributes: tuple[AttributeDefinition, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class TableDefinition(Definition):
    id: SourceName
    attributes: tuple[AttributeDefinition, ...]
    annotations: tuple[Annotation, ...] = ()


EventType = Literal["current", "expired", "all"]


@dataclass(frozen=True)
class WindowDefinition(Definition):
    id: SourceName
    attributes: tuple[AttributeDefinition, ...]
    window: FunctionCall
    output: EventType | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class TriggerDefinition(Definition):
    """`at every 5 min` sets `every`; `at 'start'` and `at '<cron>'` set `at`."""

    id: str
    every: TimeConstant | None = None
    at: str | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class FunctionDefinition(Definition):
    id: str
    language: str
    returns: Type
    body: str
    annotations: tuple[Annotation, ...] = ()


Duration = Literal["sec", "min", "hour", "day", "week", "month", "year"]


@dataclass(frozen=True)
class AggregationDefinition(Definition):
    """`durations` as written: for a range its two ends, else the list. `is_range` says which."""

    id: str
    input: StandardStream
    select: Selection
    by: Variable | None
    durations: tuple[Duration, ...]
    is_range: bool
    annotations: tuple[Annotation, ...] = ()


# ---------------------------------------------------------------------------------------------------- query parts


@dataclass(frozen=True)
class Filter(Node):
    """`[condition]` or `#[condition]`."""

    condition: Expression


@dataclass(frozen=True)
class StreamFunction(Node):
    """`#ns:name(args)`."""

    call: FunctionCall


@dataclass(frozen=True)
class Window(Node):
    """`#window.name(args)` or `#window.ns:name(args)`."""

    call: FunctionCall


Handler = Filter | StreamFunction | Window


@dataclass(frozen=True)
class StandardStream(Node):
    source: SourceName
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True)
class JoinSide(Node):
    source: SourceName
    handlers: tuple[Handler, ...] = ()
    alias: str | None = None


@dataclass(frozen=True)
class JoinStream(Node):
    left: JoinSide
    right: JoinSide
    kind: Literal["inner", "left outer", "right outer", "full outer"] = "inner"
    unidirectional: Literal["left", "right"] | None = None
    on: Expression | None = None
    within: tuple[Expression, ...] = ()
    per: Expression | None = None


@dataclass(frozen=True)
class StateElement(Node):
    """Base of the elements of a pattern or sequence."""


@dataclass(frozen=True)
class StreamState(StateElement):
    """`e1=S[filter]`; `ref` is None if the event has no name."""

    source: SourceName
    ref: str | None = None
    handlers: tuple[Handler, ...] = ()


UNBOUNDED = -1


@dataclass(frozen=True)
class CountState(StateElement):
    """`e1=S<m:n>`, `<m:>` (most = UNBOUNDED), `<:n>` (least = 0), `<n>`; in sequences also `*` `+` `?`."""

    state: StreamState
    least: int
    most: int


@dataclass(frozen=True)
class AbsentState(StateElement):
    """`not S[filter] for t`; `wait` is None for the form without `for`."""

    state: StreamState
    wait: TimeConstant | None = None


@dataclass(frozen=True)
class LogicalState(StateElement):
    op: Literal["and", "or"]
    left: StreamState | AbsentState
    right: StreamState | AbsentState


@dataclass(frozen=True)
class NextState(StateElement):
    """`first -> then` in a pattern, `first, then` in a sequence. Chains lean to the right: a -> (b -> c)."""

    first: StateElement
    then: StateElement


@dataclass(frozen=True)
class EveryState(StateElement):
    state: StateElement


@dataclass(frozen=True)
class StateStream(Node):
    """A pattern (`->`) or sequence (`,`) as a query's input."""

    kind: Literal["pattern", "sequence"]
    state: StateElement
    within: TimeConstant | None = None


@dataclass(frozen=True)
class AnonymousStream(Node):
    """`from (from X select ... return) ...`, which Siddhi parses and then rejects."""

    query: Query


QueryInput = StandardStream | JoinStream | StateStream | AnonymousStream


@dataclass(frozen=True)
class OutputAttribute(Node):
    """`expression as name`; `name` is None for a plain attribute, which keeps its own."""

    expression: Expression
    name: str | None = None


@dataclass(frozen=True)
class OrderBy(Node):
    attribute: Variable
    descending: bool = False


@dataclass(frozen=True)
class Selection(Node):
    """`attributes` is empty for `select *` and for an omitted select (`star` False and `attributes` empty)."""

    attributes: tuple[OutputAttribute, ...] = ()
    star: bool = False
    group_by: tuple[Variable, ...] = ()
    having: Expression | None = None
    order_by: tuple[OrderBy, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None


@dataclass(frozen=True)
class OutputRate(Node):
    """`output all|first|last every 3 events` (`events`), or `... every 2 sec` (`time`), or `snapshot every t`."""

    kind: Literal["all", "first", "last", "snapshot"]
    events: int | None = None
    time: TimeConstant | None = None


@dataclass(frozen=True)
class SetAssignment(Node):
    target: Variable
    value: Expression


@dataclass(frozen=True)
class InsertInto(Node):
    target: SourceName
    event_type: EventType | None = None


@dataclass(frozen=True)
class DeleteFrom(Node):
    target: SourceName
    event_type: EventType | None = None
    on: Expression | None = None


@dataclass(frozen=True)
class UpdateTable(Node):
    target: SourceName
    on: Expression
    event_type: EventType | None = None
    set: tuple[SetAssignment, ...] | None = None


@dataclass(frozen=True)
class UpdateOrInsert(Node):
    target: SourceName
    on: Expression
    event_type: EventType | None = None
    set: tuple[SetAssignment, ...] | None = None


@dataclass(frozen=True)
class Return(Node):
    event_type: EventType | None = None


QueryOutput = InsertInto | DeleteFrom | UpdateTable | UpdateOrInsert | Return


@dataclass(frozen=True)
class Query(Node):
    input: QueryInput
    select: Selection
    output: QueryOutput
    rate: OutputRate | None = None
    annotations: tuple[Annotation, ...] = ()


# ----------------------------------------------------------------------------------------------------- partitions


@dataclass(frozen=True)
class ValuePartition(Node):
    """`expression of S`."""

    expression: Expression
    stream: str


@dataclass(frozen=True)
class RangePartition(Node):
    """`cond as 'k' or cond as 'k2' of S`."""

    ranges: tuple[tuple[Expression, str], ...]
    stream: str


@dataclass(frozen=True)
class Partition(Node):
    keys: tuple[ValuePartition | RangePartition, ...]
    queries: tuple[Query, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class App(Node):
    """A whole SiddhiQL text. `annotations` holds the `@app:...` ones."""

    annotations: tuple[Annotation, ...]
    definitions: tuple[Definition, ...]
    elements: tuple[Query | Partition, ...]


# ------------------------------------------------------------------------------------------------ on-demand query


@dataclass(frozen=True)
class StoreInput(Node):
    """`from T as x on cond within a, b per 'days'` of an on-demand query."""

    id: str
    alias: str | None = None
    on: Expression | None = None
    within: tuple[Expression, ...] = ()
    per: Expression | None = None


@dataclass(frozen=True)
class OnDemandQuery(Node):
    """`store_query`: a retrieval when `output` is None, else a change of a table (then `input` is None)."""

    input: StoreInput | None
    select: Selection | None
    output: InsertInto | DeleteFrom | UpdateTable | UpdateOrInsert | None = None
