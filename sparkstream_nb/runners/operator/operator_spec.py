"""The plan of an operator: what `siddhi(...)` asks for, checked against the frames' columns before a query starts."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...engine.scripts import refuse_scripts
from ...errors import Misuse, SiddhiError, nearest, shown
from ...lang import tree
from ...lang.parser import parse
from ...plan import bind, rewrite
from ...plan.dataflow import Dataflow
from ...plan.distributed.placement import split
from ...plan.gaps import refuse
from ...plan.needed import needed_attributes
from ...plan.nodes import AggDuration, Plan, Ref
from ...plan.query_parts import connector_type, sources
from ...plan.shard_safety.safety import dependent_under
from ...plan.spelling import check_options
from ...plan.state_units import content_tokens
from ...types import Schema, Type
from .column_types import described_column, fits_column, type_of_column

NODES = 8
"""Number of nodes of an operator with a key, unless the caller gives another."""
ORDERS = ("time", "arrival")
LATE, ERRORS, TIMESTAMP, NODE, OUTPUT = "_late", "_errors", "_timestamp", "_node", "_output"
"""Names of the outputs and columns that an operator adds."""
MAX_AHEAD = 86_400_000
"""The bound (ms) by default of times of a stream that are ahead of the machine's: a day."""
ADDED = (TIMESTAMP, NODE, OUTPUT, LATE, ERRORS)


@dataclass(frozen=True)
class InputFrame:
    """A frame as the caller gives it: the stream that it feeds, its columns with Spark's simple type names, its columns
    of event times and of keys, whether it is a stream, and the column of its watermark (None: it has none)."""

    stream: str
    columns: Mapping[str, str]
    time: str
    key: str | None
    streaming: bool = False
    watermark: str | None = None


@dataclass(frozen=True)
class OperatorRequest:
    """The parameters of `siddhi(...)` besides its frames and its text: see there. `all_attributes`: late rows and
    errors are outputs, and have all columns."""

    outputs: tuple[str, ...] = ()
    nodes: int | None = None
    order: str = "time"
    delay: str | None = None
    all_attributes: bool = False
    unsafe: bool = False
    allow_scripts: bool = False
    max_ahead: int | None = None


@dataclass(frozen=True)
class InputStream:
    """A stream that a frame feeds: its schema, and the columns of event times and of keys."""

    stream: str
    schema: Schema
    time: str
    key: str | None


@dataclass(frozen=True)
class AggregationOutput:
    """Rows of an aggregation as an output: its name there, such as `Sums.sec`, the aggregation, and the duration."""

    name: str
    aggregation: str
    per: AggDuration


@dataclass(frozen=True)
class OperatorSpec:
    """An operator as Spark's workers need it.

    `plan` is pickled. `outputs`: the outputs with their schemas, of which `buckets` are rows of aggregations and the
    others streams. `stateless`: no query keeps anything, so rows need no node and no order. `tokens` name the parts of
    a node's state by their content, so that a checkpoint of an operator whose text has changed since continues with
    what is unchanged. `needed_attributes`: the attributes that are kept of each stream: those that the text reads, or
    all. `delays`: how much later (ms) a row of each input may come than a row of a later time (None: unknown).
    `max_ahead`: how far (ms) the time of a row may be ahead of the machine's that packs it (None: at will).
    """

    id: str
    plan: bytes
    inputs: tuple[InputStream, ...]
    outputs: tuple[tuple[str, Schema], ...]
    buckets: tuple[AggregationOutput, ...]
    nodes: int
    in_order: bool
    stateless: bool
    scripts: bool
    tokens: Mapping[str, str]
    needed_attributes: Mapping[str, frozenset[int]]
    delays: tuple[int, ...] | None = None
    max_ahead: int | None = None

    @property
    def layout(self) -> dict[str, object]:
        """The number of nodes, and the streams with their columns: a checkpoint fits if they are the same."""
        streams = {i.stream: [*map(str, i.schema), i.time, i.key] for i in self.inputs}
        return {"nodes": self.nodes, "in_order": self.in_order, "streams": streams}

    @cached_property
    def bound_plan(self) -> Plan:
        """The plan, which each process unpickles once."""
        plan: Plan = pickle.loads(self.plan)
        return plan

    @cached_property
    def read_by_text(self) -> Mapping[str, frozenset[int]]:
        """The attributes of each stream that the text reads."""
        return needed_attributes(self.bound_plan)

    def __getstate__(self) -> dict[str, object]:
        """Without the plan that was unpickled."""
        return {k: v for k, v in self.__dict__.items() if k not in ("bound_plan", "read_by_text")}


def plan_operator(id: str, text: str, frames: Sequence[InputFrame], request: OperatorRequest) -> OperatorSpec:
    """The operator of an app's text over frames.

    Raises SiddhiError for a wrong text, NotInThisBuild for a declared gap, and `Misuse` for frames or arguments that do
    not fit it.
    """
    if request.order not in ORDERS:
        raise Misuse(nearest(f"order: {shown(request.order)} is neither 'time' nor 'arrival'", request.order, ORDERS))
    for frame in frames:
        _check_columns(frame)
    plan = _compile(text, frames)
    refuse(plan)
    refuse_scripts(plan, request.allow_scripts)
    _refuse_outside(plan)
    inputs = tuple(_input_of(frame, plan) for frame in frames)
    _check_fed(plan, inputs)
    nodes = _count_nodes(inputs, request)
    in_order = request.order == "time"
    outputs = {name: _aggregation_output(plan, name) for name in request.outputs}
    buckets = {name: bucket for name, bucket in outputs.items() if bucket is not None}
    streams = _stream_outputs(plan, [o for o in request.outputs if o not in buckets], inputs, only=not buckets)
    for bucket in buckets.values():
        _check_aggregation(plan, bucket, inputs, in_order=in_order)
    if nodes > 1 and not request.unsafe:
        _check_keys(plan, inputs)
        for bucket in buckets.values():
            _check_groups(plan, bucket, inputs)
    is_stateless = _is_stateless(plan)
    for frame in frames if in_order and not is_stateless else ():
        _check_watermark(frame, request.delay)
    return OperatorSpec(
        id=id,
        plan=pickle.dumps(replace(plan, text="")),
        inputs=inputs,
        outputs=(
            *((o, plan.schema(o)) for o in streams),
            *((o, plan.schema(b.aggregation)) for o, b in buckets.items()),
        ),
        buckets=tuple(buckets.values()),
        nodes=nodes,
        in_order=in_order,
        stateless=is_stateless,
        scripts=request.allow_scripts,
        tokens=content_tokens(plan),
        needed_attributes=_attributes_read(plan, inputs, all_attributes=request.all_attributes),
        # A time ahead can only make rows late where there are rows to come, and a node that has a clock.
        max_ahead=request.max_ahead if frames[0].streaming and not is_stateless else None,
    )


def _attributes_read(
    plan: Plan, inputs: Sequence[InputStream], *, all_attributes: bool
) -> Mapping[str, frozenset[int]]:
    attributes = needed_attributes(plan)
    return {i.stream: frozenset(range(len(i.schema))) if all_attributes else attributes[i.stream] for i in inputs}


# ------------------------------------------------------------------------------------------------------------- text


def _compile(text: str, frames: Sequence[InputFrame]) -> Plan:
    """The text's plan; a stream that the text does not define has the columns of its frame."""
    try:
        app = parse(text, may_begin_with_query=True)
        defined_streams = {d.id.id for d in app.definitions if isinstance(d, tree.StreamDefinition)}
        frame_definitions = tuple(_definition(frame) for frame in frames if frame.stream not in defined_streams)
        plan = bind(replace(app, definitions=frame_definitions + app.definitions), text)
        check_options(plan)
        return rewrite(plan)
    except SiddhiError as error:
        raise error.with_source(text) from None


def _definition(frame: InputFrame) -> tree.StreamDefinition:
    """The definition of a frame's stream. Raises `Misuse` for a column that SiddhiQL cannot express."""
    attributes = []
    for name, spark_type in frame.columns.items():
        type_ = type_of_column(spark_type)
        if type_ is None:
            other = "double" if spark_type.startswith("decimal") else "string"
            raise Misuse(
                f"{frame.stream}: column '{name}' is {spark_type}, which SiddhiQL has no type for. Leave it out "
                f"(frame.drop('{name}')) or convert it: "
                f"frame.withColumn('{name}', frame['{name}'].cast('{other}'))"
            )
        if "`" in name:
            raise Misuse(
                f"{frame.stream}: SiddhiQL cannot express the column name {shown(name)}, as it has a backquote. Rename "
                "it: frame.withColumnRenamed(...)"
            )
        attributes.append(tree.AttributeDefinition(name, type_))
    return tree.StreamDefinition(tree.SourceName(frame.stream), tuple(attributes))


def _refuse_outside(plan: Plan) -> None:
    """Raises `Misuse` for a connection to the outside: an operator's frames are its only input and output."""
    for kind, definitions in (("stream", plan.streams), ("table", plan.tables), ("aggregation", plan.aggregations)):
        for id, definition in definitions.items():
            for a in getattr(definition, "annotations", ()):
                if a.name.lower() in ("source", "sink", "store"):
                    type_ = connector_type(a, plan.properties) or "?"
                    raise Misuse(
                        f"{kind} '{id}' has a @{a.name}(type='{type_}'): siddhi() takes its events from frames, and "
                        "gives frames. Leave the annotation out, or deploy the text as an app"
                    )


def _is_stateless(plan: Plan) -> bool:
    """True if each event's outputs depend on that event alone."""
    first, rest = split(plan)
    holds = rest.elements or plan.aggregations or rest.triggers or rest.windows or rest.tables
    return first is not None and not holds


# ----------------------------------------------------------------------------------------------------------- frames


def _check_columns(frame: InputFrame) -> None:
    for what, column in (("time", frame.time), ("key", frame.key)):
        if column is not None and column not in frame.columns:
            message = f"{what}: the frame of '{frame.stream}' has no column {shown(column)}"
            raise Misuse(nearest(message, column, frame.columns))
    if type_of_column(frame.columns[frame.time]) not in (Type.LONG, Type.INT):
        is_text = type_of_column(frame.columns[frame.time]) is Type.STRING
        convert = f": frame.withColumn('{frame.time}', to_timestamp('{frame.time}'))" if is_text else ""
        raise Misuse(
            f"time: column '{frame.time}' of '{frame.stream}' is {frame.columns[frame.time]}. An event time is a "
            f"timestamp, a date, or a whole number of milliseconds{convert}"
        )


def _check_watermark(frame: InputFrame, delay: str | None) -> None:
    """Raises `Misuse` if a streaming frame has no watermark by which its rows can be put in order, or two."""
    if delay is not None and frame.watermark is not None:
        raise Misuse(f"delay: '{frame.stream}' has a watermark already, on '{frame.watermark}'. Leave delay out")
    if not frame.streaming or delay is not None:
        return
    if frame.watermark is None:
        raise Misuse(
            f"'{frame.stream}' has no watermark, and its rows must be in the order of '{frame.time}'. Say how late "
            "they may be: delay='10 seconds', or frame.withWatermark(...). Or take them as they come: order='arrival'"
        )
    if frame.watermark != frame.time:
        raise Misuse(
            f"the watermark of '{frame.stream}' is on column '{frame.watermark}', and its rows are ordered by "
            f"'{frame.time}'. Use one column for both"
        )


def _input_of(frame: InputFrame, plan: Plan) -> InputStream:
    """A frame's stream. Raises `Misuse` if the text's definition does not fit the frame's columns."""
    stream = plan.streams.get(frame.stream)
    if stream is None or stream.kind != "defined":
        raise Misuse(f"'{frame.stream}' is not a stream that frames can feed: the text makes it")
    schema = stream.source.schema
    for attribute in schema:
        if attribute.name not in frame.columns:
            message = f"'{frame.stream}' has the attribute '{attribute.name}', and its frame has no such column"
            raise Misuse(nearest(message, attribute.name, frame.columns))
        if not fits_column(frame.columns[attribute.name], attribute.type):
            raise Misuse(
                f"'{frame.stream}' defines '{attribute.name} {attribute.type}', and the frame's column is "
                f"{described_column(frame.columns[attribute.name])}. Change the definition, or convert the column"
            )
    return InputStream(frame.stream, schema, frame.time, frame.key)


def _check_fed(plan: Plan, inputs: Sequence[InputStream]) -> None:
    """Raises `Misuse` if a query reads a stream that has neither a frame nor a query that writes it."""
    fed_streams = [i.stream for i in inputs]
    read = {source.id for query in plan.queries for source in sources(query)}
    read |= {a.input.source.id for a in plan.aggregations.values()}
    for stream in sorted(read & set(plan.input_streams) - set(fed_streams)):
        raise Misuse(f"no frame feeds stream '{stream}', which the text reads. Frames feed {_list_names(fed_streams)}")


def _count_nodes(inputs: Sequence[InputStream], request: OperatorRequest) -> int:
    keys = [i.key for i in inputs]
    if request.nodes is not None and (type(request.nodes) is not int or not 1 <= request.nodes <= 10_000):
        raise Misuse(f"nodes: {shown(request.nodes)} is not a number from 1 to 10,000")
    if all(key is None for key in keys):
        if (request.nodes or 1) > 1:
            raise Misuse("nodes: several nodes need a key, by which rows are divided among them: key='card'")
        return 1
    if None in keys:
        raise Misuse(f"key: '{inputs[keys.index(None)].stream}' has none. Give each frame a key, or none of them")
    return NODES if request.nodes is None else request.nodes


def _check_keys(plan: Plan, inputs: Sequence[InputStream]) -> None:
    """Raises `Misuse` if rows divided by their keys do not give what one node with all rows would."""
    keys = {i.stream: i.key for i in inputs if i.key is not None}
    wrong = frozenset(dependent_under(plan, keys))
    for query in plan.queries:
        if query.name in wrong:
            by = ", ".join(sorted(set(keys.values())))
            raise Misuse(
                f"key: with rows divided by {by}, query '{query.name}' does not give what one node would: "
                f"{query.safety.reason}. {_other_keys(plan, inputs)} leave the key out (one node), or accept it: "
                "unsafe=True"
            )


def _other_keys(plan: Plan, inputs: Sequence[InputStream]) -> str:
    """The keys that would do, of the attributes that all inputs have under one name."""
    common = [n for n in inputs[0].schema.names if all(n in i.schema.names and n != i.time for i in inputs)]
    good = [n for n in common if not dependent_under(plan, {i.stream: n for i in inputs})]
    if good:
        return f"Choose another key ({' or '.join(good)}),"
    return "Choose other keys," if len(inputs) > 1 else "No other key would do:"


# ---------------------------------------------------------------------------------------------------------- outputs


def _aggregation_output(plan: Plan, name: str) -> AggregationOutput | None:
    """The rows of an aggregation that a name such as `Sums.sec` asks for; None for the name of a stream."""
    aggregation, _, per = name.partition(".")
    definition = plan.aggregations.get(aggregation)
    if definition is None:
        return None
    durations = {d: d for d in definition.durations}
    if per not in durations:
        output_names = ", ".join(f"'{aggregation}.{d}'" for d in definition.durations)
        raise Misuse(f"output: the rows of aggregation '{aggregation}' are {output_names}, by duration")
    return AggregationOutput(name, aggregation, durations[per])


def _check_aggregation(
    plan: Plan, output: AggregationOutput, inputs: Sequence[InputStream], *, in_order: bool
) -> None:
    """Raises `Misuse` if rows of an aggregation could still change after their bucket has ended."""
    aggregation = plan.aggregations[output.aggregation]
    times = {i.stream: i.time for i in inputs}
    by = aggregation.by
    if not in_order:
        raise Misuse(
            f"output: rows of aggregation '{aggregation.id}' are complete by time, and order='arrival' has none"
        )
    if by is not None and not (isinstance(by, Ref) and times.get(aggregation.input.source.id) == by.name):
        raise Misuse(
            f"output: aggregation '{aggregation.id}' goes by another time than its frame's, so its buckets never end. "
            "Leave 'aggregate by' out, or name the column of event times there"
        )


def _check_groups(plan: Plan, output: AggregationOutput, inputs: Sequence[InputStream]) -> None:
    """Raises `Misuse` if a bucket of an aggregation has rows of several nodes for one group."""
    aggregation = plan.aggregations[output.aggregation]
    key = {i.stream: i.key for i in inputs}.get(aggregation.input.source.id)
    if not any(isinstance(g, Ref) and g.name == key for g in aggregation.select.group_by):
        by = f"rows divided by {key}" if key else "several nodes"
        raise Misuse(
            f"key: with {by}, each node would have its own rows of aggregation '{aggregation.id}'. Group by the key, "
            "leave the key out (one node), or accept it and merge them: unsafe=True"
        )


def _only_end(plan: Plan, targets: Sequence[str]) -> str:
    """The only one of `targets` that no query reads. Raises `Misuse` for none or several."""
    flow = Dataflow(plan)
    ends = [w for w in targets if not flow.readers(w)]
    if len(ends) == 1:
        return ends[0]
    if not targets:
        raise Misuse("output: no query of the text writes to a stream: give one that does")
    example = f"output={(ends or targets)[0]!r}, or several in a list"
    raise Misuse(f"output: which one? The text writes {_list_names(targets)}: give {example}")


def _stream_outputs(
    plan: Plan, names: Sequence[str], inputs: Sequence[InputStream], *, only: bool
) -> tuple[str, ...]:
    """The streams whose events are outputs: those asked for, or, if no other output is asked for (`only`), the only one
    that a query writes and none reads."""
    input_streams = {i.stream for i in inputs}
    targets = list(dict.fromkeys(q.output.target.id for q in plan.queries if q.output.target.kind == "stream"))
    targets = [w for w in targets if "#" not in w]
    faults = [s for s, d in plan.streams.items() if d.kind == "fault"]
    if not names and only:
        names = [_only_end(plan, targets)]
    for name in names:
        if name not in (*targets, *faults):
            what = f"output: no query writes to '{name}'"
            if name in input_streams:
                what = f"output: '{name}' is an input, and no query writes to it"
            raise Misuse(nearest(f"{what}. The text writes {_list_names(targets)}", name, targets))
        clashes = [a for a in plan.schema(name).names if a in ADDED]
        if clashes:
            raise Misuse(f"output: '{name}' has an attribute '{clashes[0]}', which siddhi() adds. Rename it: as ...")
    return tuple(dict.fromkeys(names))


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) if names else "no stream"
