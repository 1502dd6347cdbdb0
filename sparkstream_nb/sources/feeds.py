"""Feeds: a data frame or a file becomes typed chunks on disk, in order of event time, ready for the inbox.

Input read by tasks (CSV, parquet, Spark frames) is typed and written by them, a chunk at a time; a pandas or Arrow
frame is in this process already and is typed here. Most feeds are in order and their chunks enter as they are. One
that is not is ordered here by its times alone (16 bytes an event), and its chunks are rewritten.

A parquet file whose columns have the stream's types, and whose rows are in order, enters as it is: it is copied into
the inbox, and its row groups are the chunks.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..engine.columnar.column_data import ARROW
from ..errors import SparkStreamError, shown
from ..ingest.column_matching import NO_COLUMN, match_column, match_columns
from ..ingest.csvfile import MALFORMED
from ..ingest.feed_files import FilePart, columns_of_file, parts_of, refuse_damaged, tables_of
from ..ingest.ingest import check_object, fits, fits_time, one, times, valid
from ..ingest.row_typing import RowReading, type_rows
from ..ingest.time_formats import BY_DEFAULT, DoubtCounts, TimeFormat
from ..ingest.value_formats import AS_WRITTEN, ValueFormat
from ..journal import result_codec
from ..journal.inbox import unwritten
from ..journal.private import private_file, write_private
from ..journal.segments import column_sizes
from ..journal.shared import Shared
from ..journal.tasks import TaskFailed, Tasks
from ..limits import Limits
from ..types import Schema, Type
from ..wording import choose_words

CHUNK_ROWS = 250_000
"""Rows of an entry: small enough that a feed of a few seconds has several, so that one sees how far it is."""
MOST_GROUP_ROWS = 4_000_000
"""Rows of the largest row group that is taken as it is; it is in memory at once."""
REJECTS_KEPT = 100_000
"""Rejected rows of a feed (of one Spark task) that are kept in the error table with their values; all are counted."""
NOT_KEPT = "rows"
"""Name of the value of an error that counts several rows: their number."""

_INFO = "part int, number int, file string, rows long, rejected long, twice long, skipped long"


@dataclass(frozen=True)
class Shape:
    """Schema and parameters of a feed: `columns` maps attributes to source columns, `time` names the column of event
    times.

    `time_format` is the format of these times, `values` the format of other texts. `source_columns` are all columns of
    the source, for hints. Events after `latest` (ms) are rejected. `limits`: bounds on what one event may use.
    `most_rejects`: maximum number of rejected rows that are kept (None: all). `guesses`: the columns that were found by
    a name that differs in case or separators, by attribute; the one of event times by "".
    """

    stream: str
    schema: Schema
    time: str | None
    columns: Mapping[str, str]
    source_columns: tuple[str, ...] = ()
    latest: int | None = None
    limits: Limits = field(default_factory=Limits)
    time_format: TimeFormat = BY_DEFAULT
    values: ValueFormat = AS_WRITTEN
    most_rejects: int | None = REJECTS_KEPT
    guesses: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The source columns that matter."""
        columns = [self.columns.get(a.name, a.name) for a in self.schema]
        return [n for n in dict.fromkeys([*columns, *([self.time] if self.time else [])]) if n != NO_COLUMN]

    @property
    def row_reading(self) -> RowReading:
        """The reading of the source's rows."""
        return RowReading(
            self.time, self.time_format, self.values, self.columns, self.source_columns, latest=self.latest
        )

    def fit_columns(self, columns: Sequence[str]) -> Shape:
        """The shape for a source with these columns: a name that it lacks means the only column which differs in
        case, spaces, underscores or hyphens."""
        guesses = match_columns(self.schema.names, self.columns, columns)
        time = None if self.time is None else match_column(self.time, columns)
        if time is not None and time != self.time:
            guesses[""] = time
        if not guesses:
            return self
        columns_by_attribute = {a: column for a, column in guesses.items() if a}
        return replace(self, time=time, columns={**self.columns, **columns_by_attribute}, guesses=guesses)

    def describe_guesses(self) -> list[str]:
        """The note on columns that were guessed; none where none was."""
        if not self.guesses:
            return []
        pairs = ", ".join(f"{a or 'event times'} from '{column}'" for a, column in self.guesses.items())
        otherwise = choose_words("--map ATTRIBUTE=COLUMN says otherwise", "columns={ATTRIBUTE: COLUMN} says otherwise")
        return [f"{self.stream}: columns by names that differ in case or separators: {pairs}; {otherwise}."]


@dataclass
class Chunk:
    """A file of typed rows: `ts`, then a column per attribute; or row groups of a parquet file, and their last time."""

    file: str
    rows: int
    groups: tuple[int, ...] = ()
    highest: int = 0


@dataclass
class FeedOnDisk:
    """A feed on disk: chunks in the feed's order, files of rejected rows, how many those are, and how many times of the
    others are doubtful."""

    chunks: list[Chunk] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    rejected: int = 0
    doubts: DoubtCounts = field(default_factory=DoubtCounts)

    @property
    def rows(self) -> int:
        return sum(c.rows for c in self.chunks)


# ----------------------------------------------------------------------------------------------------------- reading


def new_stem() -> str:
    """A beginning for the names of a feed's files."""
    return f"feed-{uuid.uuid4().hex[:12]}"


@dataclass(frozen=True)
class ChunkPlace:
    """The place of a feed's chunks: the folder `inbox`, to which `tasks` write. If Spark's tasks do not see the folder,
    they leave chunks at a `shared` address, and files are read here."""

    inbox: Path
    tasks: Tasks
    shared: Shared | None = None


def read_feed(source: Any, shape: Shape, place: ChunkPlace, limit: int | None, *, as_it_is: bool = True) -> FeedOnDisk:
    """Read a feed into typed chunks; a parquet file may stay `as_it_is`.

    `source` is a pandas or Arrow frame, a Spark frame, or the path of a `.csv` or `.parquet` file; the last two kinds
    are read by the place's tasks. `limit`: maximum number of rows, from the first. Raises SparkStreamError for any
    other source, for a missing file, and if the chunks cannot be written; none of them is left then.
    """
    inbox, feed = place.inbox, new_stem()
    with whole_feed(inbox, feed):
        if hasattr(source, "columns"):
            names = source.column_names if isinstance(source, pa.Table) else source.columns
            shape = replace(shape, source_columns=tuple(map(str, names)))
        if isinstance(source, pd.DataFrame):
            keep = [c for c in shape.names if c in source.columns]
            source = arrow_of(source[keep], shape.limits)
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if isinstance(source, pa.Table):
            return _read_arrow(source if limit is None else source.slice(0, limit), shape, inbox, feed)
        if isinstance(source, str | Path):
            parquet_feed = _take_parquet(Path(source), shape, inbox, feed) if as_it_is and limit is None else None
            if parquet_feed is not None:
                return parquet_feed
            return _read_file(Path(source), shape, place, feed, limit)
        if not hasattr(source, "mapInArrow"):
            raise SparkStreamError(
                f"An object of type {type(source).__name__} cannot be fed: give a pandas, Arrow or Spark frame, "
                "or the path of a .csv or .parquet file."
            )
        writing = _FeedTask(str(inbox), feed, shape, place.shared)
        return _read_spark(source if limit is None else source.limit(limit), shape, writing, place.tasks)


@contextlib.contextmanager
def whole_feed(folder: Path, feed: str) -> Iterator[None]:
    """Remove the files in `folder` whose names begin with `feed` if the body fails."""
    try:
        yield
    except BaseException:
        for file in folder.glob(f"{feed}*"):
            file.unlink(missing_ok=True)
        raise


_SIMPLE = ("string", "empty", "floating", "integer", "boolean", "decimal", "datetime", "date", "bytes")


def arrow_of(frame: pd.DataFrame, limits: Limits) -> pa.Table:
    """The frame's columns. If Arrow does not accept a column, each of its values is checked separately: mixed types
    become texts, and a row with a value that Arrow does not know is malformed.
    """
    arrays: dict[str, Any] = {}
    reasons: list[str | None] = [None] * len(frame)
    for name in frame.columns:
        column = frame[name]
        kind = pd.api.types.infer_dtype(column, skipna=True)
        if kind == "complex":
            raise _unfed_error(name, column, ": feed its real and imaginary parts as columns of their own")
        if column.dtype != object or kind in _SIMPLE:
            try:
                arrays[name] = pa.Array.from_pandas(column)
                continue
            except (pa.ArrowException, UnicodeError, OverflowError):
                pass
        arrays[name] = _each_value(name, column, reasons, limits)
    if any(why is not None for why in reasons):
        arrays[MALFORMED] = pa.array(reasons, pa.string())
    return pa.table(arrays)


def _unfed_error(name: str, column: pd.Series, hint: str) -> SparkStreamError:
    type_ = str(column.dtype) if column.dtype != object else type(column.dropna().iloc[0]).__name__
    return SparkStreamError(f"Column '{name}' of the frame has values of type {type_}, which no attribute takes{hint}.")


def _each_value(name: str, column: pd.Series, reasons: list[str | None], limits: Limits) -> pa.Array:
    is_mixed = pd.api.types.infer_dtype(column, skipna=True).startswith("mixed")
    values: list[Any] = []
    is_nested = False
    for i, value in enumerate(column):
        try:
            if isinstance(value, list | tuple | dict | set | np.ndarray):
                check_object(value, name, limits)
                is_nested = True
            elif isinstance(value, str):
                value.encode()
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise SparkStreamError(f"{name}: {shown(value)} is more than a long holds")
            elif isinstance(value, complex | np.complexfloating) or not pd.api.types.is_scalar(value):
                raise ValueError("no value")
            values.append(value)
        except (ValueError, SparkStreamError) as e:
            values.append(None)
            reasons[i] = str(e) if isinstance(e, SparkStreamError) else f"{name}: {shown(value)} is no value"
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, UnicodeError):
        if not is_mixed and not is_nested:
            raise _unfed_error(name, column, "") from None
        return pa.array([None if pd.api.types.is_scalar(v) and pd.isna(v) else str(v) for v in values], pa.string())


def _read_arrow(table: pa.Table, shape: Shape, inbox: Path, feed: str) -> FeedOnDisk:
    writer = _ChunkWriter(inbox, feed, 0, shape)
    for at in range(0, table.num_rows, CHUNK_ROWS):
        writer.take(table.slice(at, CHUNK_ROWS))
    return _gather(writer.close())


def _take_parquet(path: Path, shape: Shape, inbox: Path, feed: str) -> FeedOnDisk | None:
    """A parquet file as it is; None for any other file, and for one whose rows must be looked at one by one."""
    if path.suffix != ".parquet" or not path.is_file() or not (shape.time_format.plain and shape.values.plain):
        return None
    try:
        file_schema = pq.read_schema(path)
    except pa.ArrowInvalid:
        return None  # Spark reports the error
    for attribute in shape.schema:
        place = file_schema.get_field_index(shape.columns.get(attribute.name, attribute.name))  # NO_COLUMN is none
        if place < 0 or not fits(file_schema.field(place).type, attribute.type):
            return None
    if shape.time is not None:
        place = file_schema.get_field_index(shape.time)
        if place < 0 or not fits_time(file_schema.field(place).type):
            return None
    with checked_write(inbox):
        shutil.copyfile(path, private_file(inbox / feed))
    texts = [n for n in shape.names if n != shape.time and _is_text(file_schema.field(n).type)]
    with refuse_damaged(path):
        out = _row_groups(inbox / feed, shape, texts)
    if out is None or (shape.latest is not None and any(c.highest > shape.latest for c in out.chunks)):
        (inbox / feed).unlink()
        return None
    return out


def _is_text(type: pa.DataType) -> bool:
    return fits(type, Type.STRING)


def _row_groups(file: Path, shape: Shape, texts: list[str]) -> FeedOnDisk | None:
    """The chunks of a parquet file; None if its times are not in order, its row groups are too large, or one of the
    columns `texts` has values that are not texts. All columns of the shape are read once: what cannot be read here
    would stop the app later. Raises Arrow's errors for that.
    """
    out = FeedOnDisk()
    with pa.memory_map(str(file)) as source:
        parquet = pq.ParquetFile(source, read_dictionary=texts)  # to look at each text once
        sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
        if max(sizes, default=0) > MOST_GROUP_ROWS:
            return None
        highest = [0] * len(sizes)
        at: int | None = None
        for i, size in enumerate(sizes):
            values = parquet.read_row_group(i, columns=shape.names)
            if values.num_rows != size:
                raise pa.ArrowInvalid("a row group has another number of rows than its metadata says")
            if not all(valid(values[name]) for name in texts):
                return None
            if shape.time is not None:
                group_times, bad = times(one(values[shape.time]))
                if (
                    bad is not None
                    or (group_times[1:] < group_times[:-1]).any()
                    or (at is not None and len(group_times) and group_times[0] < at)
                ):
                    return None
                at = int(group_times[-1]) if len(group_times) else at
                highest[i] = at or 0
        column_sizes(parquet.metadata, range(len(sizes)))  # as nodes do
    groups: list[int] = []
    rows = 0
    for i, size in enumerate(sizes):
        groups.append(i)
        rows += size
        if i + 1 == len(sizes) or rows + sizes[i + 1] > CHUNK_ROWS:
            if rows:
                out.chunks.append(Chunk(file.name, rows, tuple(groups), highest[i]))
            groups, rows = [], 0
    return out


def _read_file(path: Path, shape: Shape, place: ChunkPlace, feed: str, limit: int | None) -> FeedOnDisk:
    """A file's parts, each read by a task; with `limit` all by one, and with a shared address here."""
    shape = replace(shape, source_columns=tuple(columns_of_file(path, shape.names)))
    path = path.absolute()
    parts = parts_of(path) if limit is None else [FilePart()]
    if not parts:
        return FeedOnDisk()
    writing = _FeedTask(str(place.inbox), feed, shape)

    if place.shared is not None:
        return _gather(writing.rows(_first((t for part in parts for t in tables_of(path, shape.names, part)), limit)))

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [n for batch in batches for n in batch.column(0).to_pylist()]
        tables = (t for n in numbers for t in tables_of(path, shape.names, parts[n]))
        yield from writing(_first(tables, limit), min(numbers, default=None))

    with _report_read_errors(shape.stream):
        return _feed_of(place.tasks.each(write, len(parts), _INFO))


def _first(tables: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first `limit` rows."""
    for table in tables:
        if limit is not None:
            table = table.slice(0, limit)
            limit -= len(table)
        yield table
        if limit == 0:
            return


def _read_spark(frame: Any, shape: Shape, writing: _FeedTask, tasks: Tasks) -> FeedOnDisk:
    columns = [n for n in shape.names if n in frame.columns]
    writing = replace(writing, shape=replace(shape, source_columns=tuple(frame.columns)))

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from writing(pa.Table.from_batches([b]) for b in batches)

    with _report_read_errors(shape.stream):
        selection = frame.select(*(frame[f"`{c}`"] for c in columns)) if columns else frame
        feed = _feed_of(tasks.over(selection, write, _INFO))
    if writing.shared is not None:
        names = [*(c.file for c in feed.chunks), *feed.rejects]
        for name in names:
            writing.shared.get_file(f"feeds/{name}", Path(writing.folder) / name)
        writing.shared.remove(*(f"feeds/{name}" for name in names))
    return feed


@contextlib.contextmanager
def _report_read_errors(stream: str) -> Iterator[None]:
    """Turn the errors of tasks that cannot read a feed into one line."""
    try:
        yield
    except TaskFailed as error:
        raise SparkStreamError(f"The feed of {stream} could not be read: {error}") from error


def _feed_of(info: pa.Table) -> FeedOnDisk:
    """The chunks that tasks have written, from the rows that describe them."""
    rows = list(zip(*(info[c].to_pylist() for c in _INFO_NAMES), strict=True))
    return _gather(sorted(rows, key=lambda r: (r[0], r[1])))


@dataclass(frozen=True)
class _FeedTask:
    """Work of a task on the rows that it reads: it writes chunks in the folder, or at a shared address, and a row
    for each.
    """

    folder: str
    feed: str
    shape: Shape
    shared: Shared | None = None

    def rows(
        self, tables: Iterable[pa.Table], folder: str | None = None, part: int | None = None
    ) -> list[_Info]:
        """Write the chunks; returns the description of each, as in `_INFO`. `part` numbers the input (None: as Spark
        does).
        """
        number, attempt = _task()
        part = number if part is None else part
        writer = _ChunkWriter(Path(folder or self.folder), f"{self.feed}-{attempt}", part, self.shape)
        for table in tables:
            writer.take(table)
        return writer.close()

    def __call__(self, tables: Iterable[pa.Table], part: int | None = None) -> Iterator[pa.RecordBatch]:
        if self.shared is None:
            info = self.rows(tables, part=part)
        else:
            with self.shared.at_hand([]) as folder:
                info = self.rows(tables, str(folder))
                for _, _, name, *_ in info:
                    self.shared.put_file(f"feeds/{name}", folder / name)
        if info:
            columns = [pa.array(c, t) for c, t in zip(zip(*info, strict=True), _INFO_TYPES, strict=True)]
            yield pa.record_batch(columns, names=_INFO_NAMES)


def _task() -> tuple[int, int]:
    """The numbers of Spark's task and of this attempt at it; zeros where no task of Spark's runs."""
    spark = sys.modules.get("pyspark")
    context = None if spark is None else spark.TaskContext.get()
    return (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())


_INFO_TYPES = (pa.int32(), pa.int32(), pa.string(), *[pa.int64()] * 4)
_INFO_NAMES = [column.split()[0] for column in _INFO.split(", ")]
_Info = tuple[int, int, str, int, int, int, int]
"""Description of a file: the columns of `_INFO`."""


def _gather(info: Sequence[_Info]) -> FeedOnDisk:
    out = FeedOnDisk()
    for _, _, file, rows, reject_count, twice, ambiguous in info:
        out.doubts += DoubtCounts(twice, ambiguous)
        if rows:
            out.chunks.append(Chunk(file, rows))
        elif reject_count:
            out.rejects.append(file)
            out.rejected += reject_count
    return out


class _ChunkWriter:
    """Writes the chunks and rejected rows of one part of a feed. Spark's batches are small and are put together."""

    def __init__(self, folder: Path, feed: str, part: int, shape: Shape) -> None:
        self.folder, self.feed, self.part, self.shape = folder, feed, part, shape
        self.waiting: list[pa.RecordBatch] = []
        self.rows = 0
        self.errors: list[list[Any]] = []
        self.reject_count = 0
        self.doubts = DoubtCounts()
        self.info: list[_Info] = []

    def take(self, table: pa.Table) -> None:
        if table.num_rows == 0:
            return
        keep = max(0, self._most - len(self.errors))
        typed_rows = type_rows(table, self.shape.schema, self.shape.row_reading, keep=keep)
        self.reject_count += len(typed_rows.rejected)
        self.doubts += typed_rows.doubts
        for at, values, reason in typed_rows.rejected[:keep]:
            self.errors.append([self.shape.stream, at, values, reason])
        n = len(typed_rows)
        if n == 0:
            return
        # Without event times the clock advances by 1 ms an event from where the inbox then stands.
        ts = np.zeros(n, np.int64) if typed_rows.ts is None else typed_rows.ts
        columns = typed_rows.columns
        self.waiting.append(
            pa.record_batch([pa.array(ts), *columns], schema=chunk_schema(self.shape.schema, columns))
        )
        self.rows += n
        if self.rows >= CHUNK_ROWS:
            self._flush()

    @property
    def _most(self) -> int:
        return sys.maxsize if self.shape.most_rejects is None else self.shape.most_rejects

    def _flush(self) -> None:
        if not self.rows:
            return
        name = f"{self.feed}-{self.part:05d}-{len(self.info):05d}"
        write_chunk(self.folder / name, pa.Table.from_batches(self.waiting))
        self.info.append((self.part, len(self.info), name, self.rows, 0, self.doubts.twice, self.doubts.skipped))
        self.waiting, self.rows, self.doubts = [], 0, DoubtCounts()

    def close(self) -> list[_Info]:
        self._flush()
        if self.reject_count > len(self.errors):
            del self.errors[max(1, self._most - 1) :]  # the error that stands for the others is one of the `most`
            count = self.reject_count - len(self.errors)
            sentence = "1 more row did not fit, and is" if count == 1 else f"{count:,} more rows did not fit, and are"
            self.errors.append([self.shape.stream, None, {NOT_KEPT: count}, f"{sentence} not kept: feed them again"])
        if self.reject_count:
            name = f"{self.feed}-{self.part:05d}-rejected"
            with checked_write(self.folder):
                write_private(self.folder / name, result_codec.error_lines(self.errors))
            self.info.append((self.part, len(self.info), name, 0, self.reject_count, 0, 0))
        return self.info


def chunk_schema(schema: Schema, columns: Sequence[pa.Array]) -> pa.Schema:
    """The Arrow schema of a chunk: `ts`, then `a0`, `a1`, ... An object keeps the type that it was read with."""
    types = [ARROW.get(a.type, c.type) for a, c in zip(schema, columns, strict=True)]
    return pa.schema([("ts", pa.int64()), *((f"a{i}", t) for i, t in enumerate(types))])


def write_chunk(path: Path, table: pa.Table) -> None:
    """Writes rows as an Arrow IPC file with one record batch, so that it can be mapped. Raises SparkStreamError if
    it cannot be written."""
    table = table.combine_chunks()
    with (
        checked_write(path.parent),
        pa.OSFile(str(private_file(path)), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


@contextlib.contextmanager
def checked_write(folder: Path) -> Iterator[None]:
    """Turn a failed write, as on a full disk, into an error of one line."""
    try:
        yield
    except OSError as e:
        raise unwritten(folder, e) from e


def discard(feed: FeedOnDisk, inbox: Path) -> None:
    """Removes the files of a feed that does not enter the journal."""
    for name in {*(c.file for c in feed.chunks), *feed.rejects}:
        (inbox / name).unlink(missing_ok=True)


def reasons(feed: FeedOnDisk, inbox: Path) -> dict[str, int]:
    """Rejected rows that are kept, counted by reason, the most frequent first."""
    counts: Counter[str] = Counter()
    for file in feed.rejects:
        errors = result_codec.errors_of((inbox / file).read_bytes())
        counts.update(str(reason) for _, _, values, reason in errors if NOT_KEPT not in values)
    return dict(sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])))
