"""`siddhi(...)`: SiddhiQL as an operator on Spark's DataFrames.

A stream goes through three operators of Spark's: rows are packed by node (`mapInArrow`), the nodes run as a stateful
operator by their number (`transformWithStateInPandas`), and their outputs are unpacked (`mapInArrow`). A batch is
packed, sorted by node and time, and run by `mapInArrow`. Where no query keeps anything, one `mapInArrow` does it all,
or Spark's own expressions, if they mean the same (`column_expressions.py`).
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...argument_checks import check_bool, optional_int, optional_str, optional_str_list, optional_str_map, require_str
from ...argument_types import explain_arguments
from ...engine.warm import is_compiled
from ...errors import Misuse, SparkUnavailable, shown
from ...journal.causes import cause_of
from ..operator.operator_spec import ERRORS, LATE, MAX_AHEAD, InputFrame, OperatorRequest, OperatorSpec, plan_operator
from ..operator.operator_tasks import work_batch, work_stateless
from ..operator.output_rows import MESSAGES, columns_of_all, columns_of_output, struct_types, unpack_all, unpack_output
from ..operator.packing import PACKED, columns_read, pack_rows
from .column_expressions import translate
from .operator_processor import OperatorProcessor
from .remote import is_remote, ship
from .session_settings import read_setting
from .versions import check_installed, has_state_over_connect

if TYPE_CHECKING:
    import pyarrow as pa

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_WATERMARK = "spark.watermarkDelayMs"
"""In the metadata of a column that has a watermark: its delay."""
_AT = "_at"
_metrics_lock = threading.Lock()
_calls_by_metrics: WeakKeyDictionary[SparkSession, dict[str, list[tuple[str, ...]]]] = WeakKeyDictionary()
"""By session and name of metrics, the calls of siddhi() with these outputs."""


class SiddhiFrames:
    """The outputs of `siddhi(...)` where there are several: one frame of them all, and a frame of each.

    `frame` has the columns `_output` (the name of the row's output), `_timestamp`, `_node`, and a struct for each
    output, null in the rows of others. `frames["Alerts"]` has the rows of one output with its own columns,
    `frames.late` the late rows and `frames.errors` the rows that failed. Each of these is a query of its own once it is
    started: to write several outputs of one query, start `frame` with `foreachBatch`. `metrics` is the name of their
    counts among the `observedMetrics` of a query.
    """

    def __init__(self, spec: OperatorSpec, messages: DataFrame, outputs: Sequence[str], metrics: str) -> None:
        self._spec, self._messages = spec, messages
        self.outputs = tuple(outputs)
        self.metrics = metrics

    @property
    def frame(self) -> DataFrame:
        """The rows of all outputs."""
        outputs, types = self.outputs, struct_types(self._spec, self.outputs)
        columns = columns_of_all(self._spec, outputs)
        messages = self._messages.where(F.col("output").isin(list(outputs)))
        return messages.mapInArrow(lambda batches: unpack_all(outputs, types, batches), columns)

    def __getitem__(self, output: str) -> DataFrame:
        if output not in self.outputs:
            raise Misuse(f"there is no output {shown(output)}. Outputs: {', '.join(self.outputs)}")
        messages = self._messages.where(F.col("output") == output)
        return messages.mapInArrow(unpack_output, columns_of_output(self._spec, output))

    @property
    def late(self) -> DataFrame:
        """Rows that came when the watermark had passed their time: stream and row (as JSON)."""
        return self[LATE]

    @property
    def errors(self) -> DataFrame:
        """Rows that failed: query, stream, message and row (as JSON)."""
        return self[ERRORS]

    def __getattr__(self, name: str) -> NoReturn:
        outputs = ", ".join(self.outputs)
        raise AttributeError(f"SiddhiFrames has no '{name}'. Take it of .frame, or of one output: {outputs}")

    def __repr__(self) -> str:
        return f"SiddhiFrames({', '.join(self.outputs)})"


@explain_arguments
def siddhi(
    frames: DataFrame | Mapping[str, DataFrame],
    text: str,
    *,
    time: str | Mapping[str, str],
    name: str | None = None,
    key: str | Mapping[str, str] | None = None,
    output: str | Sequence[str] | None = None,
    nodes: int | None = None,
    order: str = "time",
    delay: str | None = None,
    late: bool = False,
    errors: bool = False,
    max_ahead: int | None = MAX_AHEAD,
    unsafe: bool = False,
    allow_scripts: bool = False,
) -> DataFrame | SiddhiFrames:
    """Runs SiddhiQL over streaming or batch frames, and gives its outputs as a frame.

        alerts = siddhi(payments, '''
            from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > a.amount] within 10 min
            select a.card as card, a.amount as first, b.amount as then insert into Sprees;''',
            name="Payments", time="at", key="card", output="Sprees")

    `frames`: one frame, which feeds the stream `name`, or several by the names of their streams. A stream that the text
    does not define has the columns of its frame; times are longs there (ms since 1970). All frames are streaming, or
    all are batches. `time`: the column of event times, or one for each stream. `key`: the column by which rows are
    divided among `nodes` (8 unless given), or one for each stream; without a key there is one node. `output`: the
    stream, or the streams, whose events are given; it can be left out where one stream is written and not read.

    A node takes its rows in the order of their times. A stream needs a watermark for that: of `withWatermark`, or of
    `delay` ("10 seconds": how late a row may come). With `order="arrival"` it takes them as they come. A row
    whose time is more than `max_ahead` ms (by default a day; None: at will) after the machine's time is an error: it
    would make the rows after it late. Batches, and queries that keep nothing, take such rows.

    Returns a frame with the output's attributes, `_timestamp` and `_node`; for several outputs, and with `late` or
    `errors`, `SiddhiFrames`. Metrics of the query (`observedMetrics`) count late rows and errors in any case: under the
    names of the outputs (`siddhi Sprees`), with a number for further texts or frames (`siddhi Sprees 2`).

    Raises SiddhiError for a wrong text; `Misuse` for arguments that do not fit, and for a key under which a query would
    not give what one node gives, unless `unsafe`; NotInThisBuild for a declared gap; SparkUnavailable for a Spark that
    is too old.
    """
    check_installed()
    require_str("text", text)
    _check_texts("time", time, can_be_absent=False)
    _check_texts("key", key)
    optional_str("name", name)
    optional_str("delay", delay)
    optional_int("max_ahead", max_ahead, 0)
    require_str("order", order)
    for argument, value in (("late", late), ("errors", errors), ("unsafe", unsafe), ("allow_scripts", allow_scripts)):
        check_bool(argument, value)
    if not isinstance(output, str):
        optional_str_list("output", output)
    frames_by_stream = _by_stream(frames, name)
    _check_frames(frames_by_stream)
    first = next(iter(frames_by_stream.values()))
    session = first.sparkSession
    streaming = first.isStreaming
    if any(frame.isStreaming is not streaming for frame in frames_by_stream.values()):
        raise Misuse("frames: some are streams and some are batches. Give all as streams, or all as batches")
    inputs = [
        _input_frame(stream, frame, _column_of("time", time, stream), _column_of("key", key, stream))
        for stream, frame in frames_by_stream.items()
    ]
    request = OperatorRequest(
        outputs=() if output is None else (output,) if isinstance(output, str) else tuple(output),
        nodes=nodes,
        order=order,
        delay=delay,
        all_attributes=late or errors,
        unsafe=unsafe,
        allow_scripts=allow_scripts,
        max_ahead=max_ahead,
    )
    spec = plan_operator(os.urandom(8).hex(), text, inputs, request)
    _check_case(spec, frames_by_stream, session)
    plain = isinstance(output, str | None) and not late and not errors
    names = [o for o, _ in spec.outputs]
    metrics = _name_metrics(session, names, (text, repr(inputs), repr(request)), frames_by_stream.values())
    if plain:
        translation = translate(spec, inputs, list(frames_by_stream.values()), metrics)
        if translation is not None:
            return translation
    ship(session)
    _tell_of_compilation(session)
    counted_outputs = [*names, LATE, ERRORS]
    messages = _messages_of(spec, list(frames_by_stream.values()), session, delay)
    messages = messages.observe(metrics, *(_count(output).alias(output) for output in counted_outputs))
    if plain:
        return SiddhiFrames(spec, messages, names, metrics)[names[0]]
    outputs = [*names, *([LATE] if late else []), *([ERRORS] if errors else [])]
    return SiddhiFrames(spec, messages, outputs, metrics)


def _tell_of_compilation(session: SparkSession) -> None:
    """Warns if Spark's workers on this machine have to compile the engine's loops first."""
    if is_remote(session) or not str(session.sparkContext.master).startswith("local"):
        return
    if not is_compiled():
        warnings.warn(
            "the engine's loops are not compiled yet, which the first micro-batches do: they take a minute or more. "
            "python -m sparkstream_nb.engine.warm compiles all of them once",
            stacklevel=4,
        )


def _name_metrics(
    session: SparkSession, outputs: Sequence[str], call: tuple[str, ...], frames: Iterable[DataFrame]
) -> str:
    """The name of a call's metrics. A query may have several siddhi() with outputs of one name, as in a union, and
    Spark refuses metrics of one name in it; the same call again, as a cell that is run twice, has the same name."""
    name = f"siddhi {' '.join(outputs)}"
    call = (*call, *(str(frame.semanticHash()) for frame in frames))
    with _metrics_lock:
        calls = _calls_by_metrics.setdefault(session, {}).setdefault(name, [])
        if call not in calls:
            calls.append(call)
        number = calls.index(call) + 1
    return name if number == 1 else f"{name} {number}"


def _count(output: str) -> Column:
    """The number of an output's events, of its messages."""
    return F.coalesce(F.sum(F.when(F.col("output") == output, F.col("events"))), F.lit(0))


# ------------------------------------------------------------------------------------------------------- arguments


def _by_stream(frames: DataFrame | Mapping[str, DataFrame], name: str | None) -> dict[str, DataFrame]:
    if not isinstance(frames, Mapping):
        if name is None:
            raise Misuse('name: which stream does the frame feed? name="Payments"')
        return {name: frames}
    if name is not None:
        raise Misuse("name: several frames have the names of their streams already: leave it out")
    if not frames:
        raise Misuse("frames: there is none")
    return dict(frames)


def _check_frames(frames: Mapping[str, Any]) -> None:
    """Raises `Misuse` for a frame that is not one of Spark's."""
    for stream, frame in frames.items():
        if not isinstance(frame, DataFrame):
            type_name = f"{type(frame).__module__.partition('.')[0]}'s {type(frame).__name__}"
            raise Misuse(
                f"frames: Spark's DataFrame is expected for '{stream}', not {type_name}: spark.createDataFrame()"
            )


def _check_texts(what: str, value: Any, *, can_be_absent: bool = True) -> None:
    """Raises `Misuse` for a value that is neither a text nor a dict of texts by texts."""
    if isinstance(value, Mapping):
        optional_str_map(what, value)
    elif can_be_absent:
        optional_str(what, value)
    else:
        require_str(what, value)


def _check_case(spec: OperatorSpec, frames: Mapping[str, DataFrame], session: SparkSession) -> None:
    """Raises `Misuse` if a column is read that the session, as it ignores case, cannot tell from another."""
    for i, (stream, frame) in enumerate(frames.items()):
        for column in columns_read(spec, i):
            same = [c for c in frame.columns if c.lower() == column.lower()]
            if len(same) > 1 and (read_setting(session, "spark.sql.caseSensitive") or "").lower() != "true":
                raise Misuse(
                    f"the frame of '{stream}' has the columns {' and '.join(map(shown, same))}, and the session "
                    "ignores case. Rename one of them, or set spark.sql.caseSensitive"
                )


def _column_of(what: str, argument: str | Mapping[str, str] | None, stream: str) -> Any:
    """The column for a stream of an argument that is one for all streams, or one for each."""
    if not isinstance(argument, Mapping):
        return argument
    if stream not in argument:
        raise Misuse(f"{what}: there is no column for '{stream}'. Give one for each stream: {what}={{'{stream}': ...}}")
    return argument[stream]


def _input_frame(stream: str, frame: DataFrame, time: str, key: str | None) -> InputFrame:
    fields = frame.schema.fields
    watermark_column = next((f.name for f in fields if f.metadata and _WATERMARK in f.metadata), None)
    columns = {f.name: f.dataType.simpleString() for f in fields}
    if len(columns) < len(fields):
        raise Misuse(f"the frame of '{stream}' has two columns of one name. Rename one of them")
    return InputFrame(stream, columns, time, key, frame.isStreaming, watermark_column)


# ---------------------------------------------------------------------------------------------------------- frames


def _messages_of(
    spec: OperatorSpec, frames: Sequence[DataFrame], session: SparkSession, delay: str | None
) -> DataFrame:
    """The messages of all outputs."""
    streaming = frames[0].isStreaming
    read = [frame.select(*(F.col(f"`{c}`") for c in columns_read(spec, i))) for i, frame in enumerate(frames)]
    if spec.stateless:
        return _union(frame.mapInArrow(_stateless(spec, i), MESSAGES) for i, frame in enumerate(read))
    packed_frames = [frame.mapInArrow(_pack(spec, i, clock=not streaming), PACKED) for i, frame in enumerate(read)]
    if not streaming:
        # As many partitions as Spark finds good, each with several nodes.
        by_node = _union(packed_frames).repartition("node")
        place = ("node", "first", "task", "number") if spec.in_order else ("node", "task", "number")
        return by_node.sortWithinPartitions(*place).mapInArrow(_batch(spec), MESSAGES)
    _check_stream(session, spec)
    watermarked_frames = frames
    if delay is not None and spec.in_order:
        watermarked_frames = [_with_watermark(frame, delay) for frame in packed_frames]
        # Spark itself would drop late messages by the column.
        packed_frames = [frame.drop(_AT) for frame in watermarked_frames]
    spec = replace(spec, delays=tuple(map(_delay_of, watermarked_frames)) if spec.in_order else None)
    mode, processor = "EventTime" if spec.in_order else "None", OperatorProcessor.of(spec)
    return _union(packed_frames).groupBy("node").transformWithStateInPandas(processor, MESSAGES, "append", mode)


def _with_watermark(packed_rows: DataFrame, delay: str) -> DataFrame:
    """Packed rows under a watermark, on a column of its own."""
    try:
        return packed_rows.withColumn(_AT, F.timestamp_millis("last")).withWatermark(_AT, delay)
    except PySparkException:
        raise Misuse(f"delay: {shown(delay)} is not a duration, such as '10 seconds'") from None


def _delay_of(frame: DataFrame) -> int:
    """The delay (ms) of a frame's watermark."""
    return next(int(f.metadata[_WATERMARK]) for f in frame.schema.fields if f.metadata and _WATERMARK in f.metadata)


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)


def _pack(spec: OperatorSpec, stream: int, *, clock: bool) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        return pack_rows(spec, stream, 0 if context is None else context.partitionId(), batches, clock=clock)

    return pack


def _batch(spec: OperatorSpec) -> Callable[[Iterable[Any]], Iterator[Any]]:
    return lambda batches: work_batch(spec, batches)


def _stateless(spec: OperatorSpec, stream: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    return lambda batches: work_stateless(spec, stream, batches)


def _check_stream(session: SparkSession, spec: OperatorSpec) -> None:
    """Sets the state store that stateful operators in Python need, and warns if a micro-batch would have many idle
    tasks. Raises SparkUnavailable for a Connect server without such operators."""
    if is_remote(session) and not has_state_over_connect(session.version):
        raise SparkUnavailable(
            f"siddhi() over a stream needs Spark 4.1 or newer over Spark Connect, and the server has {session.version}"
        )
    provider = read_setting(session, _PROVIDER)
    if provider is not None and "RocksDB" not in provider:  # a session that does not tell it is one of Databricks'
        try:
            session.conf.set(_PROVIDER, _ROCKSDB)
        except PySparkException as error:
            raise SparkUnavailable(
                f"Spark's stateful operators need the RocksDB state store, and this session refuses the setting "
                f"({cause_of(str(error))}). Set {_PROVIDER}={_ROCKSDB} where the server is started, or the compute "
                "configured"
            ) from error
        warnings.warn(f"siddhi() has set {_PROVIDER} to RocksDB, which Spark's stateful operators need", stacklevel=5)
    tasks = read_setting(session, "spark.sql.shuffle.partitions") or "200"
    if not tasks.isdecimal() or int(tasks) > 4 * spec.nodes:  # Databricks has "auto"
        warnings.warn(
            f"each micro-batch starts spark.sql.shuffle.partitions={tasks} tasks for {spec.nodes} nodes. Before the "
            f"query's first start, set it to {spec.nodes} or less",
            stacklevel=5,
        )
