"""Outputs of an app as Spark's DataFrames: a data source over the files of the app's committed outputs.

It reads files alone, in a process of Spark's, whether the app runs there, inline, or not at all. An offset is the
number of a committed micro-batch, with the run of the app that has it. It also says where the query began: Spark asks
for the initial offset again if a query was ended in its first micro-batch, and that one must then be as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame as DataFrame
from pyspark.sql import SparkSession as SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ...errors import Misuse, SparkStreamError, shown
from ...outputs.committed_outputs import BatchRange, CommittedOutputs
from ...types import Schema, Type
from .remote import ship
from .shared_session import spark_session
from .versions import TOLD_START as TOLD_START
from .versions import check_installed, check_version

if TYPE_CHECKING:
    import pyarrow as pa

Offset = dict[str, Any]
"""`run` and `batch`; `begin`, the batch with which the query began, or `initial` in an offset that is its beginning."""
_REGISTERED = "_sparkstream_outputs"
"""The attribute of a session that knows the data source."""


@dataclass(frozen=True)
class OutputFrameSpec:
    """Outputs that a frame reads: of `stream`, with the attributes of `schema`, in the folder `folder` of run `run`.

    `title` names the stream in messages, `first` is the first micro-batch with these attributes. `after`: the last
    micro-batch before the frame's outputs (None: it has all that are kept); `last`: the last one of a batch frame.
    `max_rows`: how many outputs one of Spark's micro-batches has at most, unless one of the app's has more.
    """

    folder: Path
    run: str
    stream: str
    title: str
    schema: Schema
    columns: str
    first: int
    after: int | None = None
    last: int | None = None
    max_rows: int | None = None

    def to_options(self) -> dict[str, str]:
        """Options of the data source, for `of_options`."""
        return {
            "folder": str(self.folder), "run": self.run, "stream": self.stream, "title": self.title,
            "schema": json.dumps([(a.name, a.type.value) for a in self.schema]), "columns": self.columns,
            "first": str(self.first), "after": _to_text(self.after), "last": _to_text(self.last),
            "rows": _to_text(self.max_rows),
        }  # fmt: skip

    @staticmethod
    def of_options(options: Mapping[str, str]) -> OutputFrameSpec:
        """The inverse of `to_options`."""
        return OutputFrameSpec(
            Path(options["folder"]), options["run"], options["stream"], options["title"],
            Schema.of(*((name, Type(type)) for name, type in json.loads(options["schema"]))), options["columns"],
            int(options["first"]), _to_number(options["after"]), _to_number(options["last"]),
            _to_number(options["rows"]),
        )  # fmt: skip

    def open(self) -> CommittedOutputs:
        """A reader of the outputs."""
        return CommittedOutputs(self.folder, self.stream, self.title, self.first)


def _to_text(number: int | None) -> str:
    return "" if number is None else str(number)


def _to_number(text: str) -> int | None:
    return int(text) if text else None


class OutputSource(DataSource):
    """Spark's name for it is `sparkstream_outputs`; options as of `OutputFrameSpec.to_options`."""

    @classmethod
    def name(cls) -> str:
        return "sparkstream_outputs"

    def schema(self) -> str:
        return self._spec().columns

    def reader(self, schema: StructType) -> DataSourceReader:
        return OutputBatchReader(self._spec())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        spec = self._spec()
        return OutputStreamReader(spec) if spec.max_rows is None else _limited_reader(spec)

    def _spec(self) -> OutputFrameSpec:
        return OutputFrameSpec.of_options(self.options)


@dataclass
class OutputTask(InputPartition):
    """The outputs that one task reads."""

    range: BatchRange


def _read_task(spec: OutputFrameSpec, task: InputPartition) -> Iterator[pa.RecordBatch]:
    from ..output_columns import spark_batches  # a process that only plans does not need it

    assert isinstance(task, OutputTask)
    yield from spark_batches(spec.open().read(task.range), spec.schema, spec.title)


class OutputBatchReader(DataSourceReader):
    """Reads the micro-batches of a spec with `after` and `last`."""

    def __init__(self, spec: OutputFrameSpec) -> None:
        self.spec = spec

    def partitions(self) -> Sequence[InputPartition]:
        assert self.spec.after is not None
        assert self.spec.last is not None
        ranges = self.spec.open().divide(BatchRange(self.spec.after, self.spec.last))
        nothing = BatchRange(self.spec.last, self.spec.last)  # without a task, Spark calls `read` with None
        return [OutputTask(part) for part in ranges or [nothing]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read_task(self.spec, partition)


class OutputStreamReader(DataSourceStreamReader):
    """Follows the committed outputs.

    Spark before 4.2 does not say where a micro-batch begins (`versions.TOLD_START`). Offsets then say that the query
    began where this reader's frame begins, which matters in its first micro-batch alone.
    """

    def __init__(self, spec: OutputFrameSpec) -> None:
        self.spec = spec
        self._begin: int | None = None

    def initialOffset(self) -> Offset:
        return {"run": self.spec.run, "batch": self._first_batch(), "initial": True}

    def _first_batch(self) -> int:
        if self._begin is None:
            self._begin = self.spec.open().find_start() if self.spec.after is None else self.spec.after
        return self._begin

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """The last committed micro-batch. Raises SparkStreamError if `start` is of another run, or the folder is not
        there."""
        if start is None:
            begins = last_batch = self._first_batch()
        else:
            self._check_run(start)
            last_batch = start["batch"]
            begins = last_batch if start.get("initial") else start["begin"]
        return {"run": self.spec.run, "batch": max(self.spec.open().last_committed(), last_batch), "begin": begins}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Raises SparkStreamError if outputs between the offsets are no longer kept, or are of another run."""
        self._check_run(start)
        self._check_run(end)
        after = end["begin"] if start.get("initial") else start["batch"]
        if after >= end["batch"]:
            return []
        return [OutputTask(part) for part in self.spec.open().divide(BatchRange(after, end["batch"]))]

    def _check_run(self, offset: Offset) -> None:
        if offset["run"] != self.spec.run:
            raise SparkStreamError(
                f"{self.spec.title}: the checkpoint of this query is of an earlier run of the app, which began from "
                f"nothing since: run {offset['run']}, and now {self.spec.run}. Give the query a new checkpoint"
            )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read_task(self.spec, partition)


def _limited_reader(spec: OutputFrameSpec) -> OutputStreamReader:
    """A reader whose micro-batches have at most `max_rows` outputs, which needs a Spark with `TOLD_START`."""
    from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

    class LimitedReader(OutputStreamReader, SupportsTriggerAvailableNow):
        """Reads as many outputs at a time as the limit says, and with `availableNow` all that were there at first."""

        target: int | None = None

        def prepareForTriggerAvailableNow(self) -> None:
            self.target = self.spec.open().last_committed()

        def getDefaultReadLimit(self) -> ReadLimit:
            assert spec.max_rows is not None
            return ReadMaxRows(spec.max_rows)

        def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
            offset = super().latestOffset(start, limit)
            first = offset["begin"] if start is None or start.get("initial") else start["batch"]
            end = offset["batch"] if self.target is None else max(first, min(offset["batch"], self.target))
            if isinstance(limit, ReadMaxRows) and end > first:
                end = self.spec.open().last_within(BatchRange(first, end), limit.max_rows)
            return {**offset, "batch": end}

    return LimitedReader(spec)


def session_for_frames(user_session: object, of_app: SparkSession | None) -> SparkSession:
    """The session of an app's frames: the `user_session`, else the app's, else the running one or a new one.

    Raises `Misuse` if something else is given, and SparkUnavailable for a Spark that is too old, cannot be had, or
    whose workers lack this package.
    """
    check_installed()
    if user_session is not None and not (hasattr(user_session, "readStream") and hasattr(user_session, "dataSource")):
        raise Misuse(f"session is a session of Spark's, not {shown(user_session)}")
    session: Any = user_session or of_app or spark_session()
    check_version(session.version)
    ship(session)
    if not hasattr(session, _REGISTERED):
        session.dataSource.register(OutputSource)
        setattr(session, _REGISTERED, True)
    frames_session: SparkSession = session
    return frames_session


def stream_frame(session: SparkSession, spec: OutputFrameSpec) -> DataFrame:
    """A streaming frame of outputs."""
    return session.readStream.format(OutputSource.name()).options(**spec.to_options()).load()


def batch_frame(session: SparkSession, spec: OutputFrameSpec) -> DataFrame:
    """A batch frame of outputs."""
    return session.read.format(OutputSource.name()).options(**spec.to_options()).load()


def local_frame(session: SparkSession, table: pa.Table, columns: str) -> DataFrame:
    """A batch frame of rows of this process; `columns` as Spark writes a schema."""
    frame: DataFrame = session.createDataFrame(table, columns)
    return frame
