"""Recordings: the input of an app in one parquet file, with streams, times, nodes and order, and back.

A row is an event, in the order in which events came in. Columns: `stream`, `timestamp` (event time, ms), `clock` (the
app's clock after it, ms), `step` (events that were sent at once have the same), `node` (shard id of the node that took
it), then `STREAM.ATTRIBUTE` for each attribute of each stream, null for events of others.
In the metadata are the name of the app and its streams, and a checksum of the whole file. A recording that another
program wrote again, as a part of one, has none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..checksums import NO_SUM, check_sum, from_json, put_sum, to_json
from ..engine.columnar.column_data import ARROW, Array
from ..engine.state.node_batch import InputBatch
from ..errors import DamagedFile, Misuse, SparkStreamError, nearest, shown
from ..ingest import ingest
from ..journal.entries import EventsEntry
from ..journal.inbox import Inbox
from ..journal.journal import entries_from
from ..journal.routing import nodes_of
from ..journal.segments import load
from ..limits import FURTHEST
from ..types import Attribute, Schema, Type
from .disorder import Ranked
from .feed_cursor import FeedCursor, Spacing
from .feeds import CHUNK_ROWS, Chunk, FeedOnDisk, Shape, chunk_schema, new_stem, write_chunk

_METADATA = b"sparkstream"
_ROWS = b"sparkstream-rows"
"""The key of the metadata in which the number of rows is."""
_CHECKSUM = b"sparkstream-checksum"
_CHECKSUM_MARKER = _CHECKSUM + bytes([0x18, len(NO_SUM)])
"""The bytes before the checksum: its key, and Thrift's notation of a text of that length."""
_VERSION = 1
_OWN = ("stream", "timestamp", "clock", "step", "node")
_SHARES = 1 << 32
_MOST_IN_STEP = 1_000_000
"""Events that are sent at once, at most: a step is processed as a whole, in memory."""


@dataclass(frozen=True)
class RecordedApp:
    """An app whose inbox in `folder` is recorded: the `schemas` of all its streams and of the recorded ones
    (`recorded_schemas`), the `shards` of all nodes that there ever were, and how many it `began` with."""

    name: str
    folder: Path
    schemas: Mapping[str, Schema]
    recorded_schemas: Mapping[str, Schema]
    shards: Sequence[str]
    began: int


@dataclass(frozen=True)
class Anonymizing:
    """Events that are left out and values that are replaced. Of each attribute in `samples`, by name, a share of the
    values is kept, with all of their events (`card` 0.01: the events of 1 % of the cards). Values of the attributes in
    `masks` are replaced by a hash under `key`: equal ones stay equal, and others cannot be computed back.
    """

    key: bytes
    samples: Mapping[str, float] = field(default_factory=dict)
    masks: Sequence[str] = ()

    def check(self, schemas: Mapping[str, Schema]) -> None:
        """Raises `Misuse` for attributes that no stream has, shares that are none, and values that cannot be masked."""
        names = dict.fromkeys(a.name for schema in schemas.values() for a in schema)
        for what, parameters in (("sample", self.samples), ("mask", self.masks)):
            for name in parameters:
                if name not in names:
                    raise Misuse(nearest(f"{what}: no stream has an attribute '{name}'", name, names))
        for name, value in self.samples.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise Misuse(f"sample: {name} is a share above 0, up to 1, not {shown(value)}")
        for schema in schemas.values():
            for a in schema:
                if a.name in self.masks and a.type not in (Type.STRING, Type.INT, Type.LONG):
                    raise Misuse(f"mask: '{a.name}' is a {a.type}; texts, ints and longs can be masked")

    def keep(self, name: str, column: pa.Array) -> Array:
        """True for values that are kept, bool[n]; null is."""
        if name not in self.samples:
            return np.ones(len(column), bool)
        limit = int(self.samples[name] * _SHARES)
        in_sample = [v is None or self._hash(b"sample", v) % _SHARES < limit for v in _values(column)]
        return np.array(in_sample, bool)[_codes(column)]

    def mask(self, name: str, column: pa.Array, type: Type) -> pa.Array:
        """The column, with masked values if it is among the masks."""
        if name not in self.masks:
            return column
        values: list[Any] = []
        for v in _values(column):
            if v is None:
                values.append(None)
            elif type is Type.STRING:
                values.append(f"{self._hash(b'mask', v):016x}")
            else:
                values.append(self._hash(b"mask", v) % (1 << (31 if type is Type.INT else 63)))
        return pa.array(values, ARROW[type]).take(pa.array(_codes(column)))

    def _hash(self, purpose: bytes, value: Any) -> int:
        text = repr(value).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=self.key[:64], person=purpose).digest(), "big")


def _values(column: pa.Array) -> list[Any]:
    """The distinct values of a column, null among them."""
    values: list[Any] = column.dictionary_encode(null_encoding="encode").dictionary.to_pylist()
    return values


def _codes(column: pa.Array) -> Array:
    """The place of each value among the distinct ones."""
    return np.asarray(column.dictionary_encode(null_encoding="encode").indices)


def write_recording(app: RecordedApp, path: Path, anonymizing: Anonymizing | None = None) -> int:
    """Writes an app's recorded input into a parquet file; returns the number of events. Raises SparkStreamError if its
    beginning is no longer kept, a stream has attributes of type object, or the file cannot be written."""
    for stream, schema in app.recorded_schemas.items():
        if objects := [a.name for a in schema if a.type is Type.OBJECT]:
            raise SparkStreamError(f"{app.name} cannot be recorded: '{objects[0]}' of stream {stream} is an object.")
    schema = _file_schema(app)
    count = 0
    new = path.with_name(f"{path.name}.new")
    try:
        with pq.ParquetWriter(new, schema, compression="zstd", write_page_checksum=True) as out:
            for table in _tables(app, schema, anonymizing):
                out.write_table(table)
                count += len(table)
            out.add_key_value_metadata({_ROWS: str(count).encode(), _CHECKSUM: NO_SUM})
        put_sum(new, _CHECKSUM_MARKER)
        new.replace(path)
    except FileNotFoundError:
        raise SparkStreamError(
            f"{app.name} cannot be recorded: the beginning of its input is no longer kept. Deploy it with fresh=True "
            "and a larger retention, such as retention='recording=10GB'."
        ) from None
    except OSError as error:
        raise SparkStreamError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        new.unlink(missing_ok=True)
    return count


def _file_schema(app: RecordedApp) -> pa.Schema:
    metadata = {
        "version": _VERSION,
        "app": app.name,
        "streams": {s: _types(x) for s, x in app.recorded_schemas.items()},
    }
    text = pa.dictionary(pa.int32(), pa.string())
    event_columns = [
        ("stream", text),
        ("timestamp", pa.int64()),
        ("clock", pa.int64()),
        ("step", pa.int64()),
        ("node", text),
    ]
    columns = [(f"{s}.{a.name}", ARROW[a.type]) for s, x in app.recorded_schemas.items() for a in x]
    return pa.schema([*event_columns, *columns], metadata={_METADATA: to_json(metadata).encode()})


def _types(schema: Schema) -> list[list[str]]:
    return [[a.name, a.type.value] for a in schema]


def _tables(app: RecordedApp, schema: pa.Schema, anonymizing: Anonymizing | None) -> Iterator[pa.Table]:
    clock: int | None = None
    for entry, _ in entries_from(app.folder, {"seq": 0, "at": 0, "skip": 0}):
        if not isinstance(entry, EventsEntry):
            continue
        batch = load(app.folder, entry, app.schemas)
        clocks = np.maximum.accumulate(batch.clock) if clock is None else np.maximum(
            np.maximum.accumulate(batch.clock), clock
        )  # fmt: skip
        clock = int(clocks[-1]) if len(clocks) else clock
        shards = np.array(app.shards, object)
        nodes = {s: shards[numbers] for s, numbers in nodes_of(batch, entry, app.schemas, app.began).items()}
        parts = [
            _rows(app, schema, stream, _StoredBatch(batch, clocks, entry.step, nodes[stream]), anonymizing)
            for stream in batch.rows
            if stream in app.recorded_schemas
        ]
        if parts:
            table = pa.concat_tables(parts)
            yield table.take(pa.array(np.argsort(table["step"].to_numpy(), kind="stable")))


@dataclass(frozen=True)
class _StoredBatch:
    """A batch of the journal: the `clocks` at its steps, the number of its first `step`, and the node of each event."""

    batch: InputBatch
    clocks: Array
    step: int
    nodes: Any


def _rows(
    app: RecordedApp, schema: pa.Schema, stream: str, events: _StoredBatch, anonymizing: Anonymizing | None
) -> pa.Table:
    rows = events.batch.rows[stream]
    n = len(rows.ts)
    columns: dict[str, Any] = {
        "stream": pa.array([stream] * n, pa.string()).dictionary_encode(),
        "timestamp": pa.array(rows.ts, pa.int64()),
        "clock": pa.array(events.clocks[rows.step], pa.int64()),
        "step": pa.array(rows.step + events.step, pa.int64()),
        "node": pa.array(events.nodes.tolist(), pa.string()).dictionary_encode(),
    }
    keep = np.ones(n, bool)
    for attribute, column in zip(app.schemas[stream], rows.columns, strict=True):
        plain = pa.array(column, ARROW[attribute.type]) if isinstance(column, list) else column
        plain = plain.cast(ARROW[attribute.type]) if pa.types.is_dictionary(plain.type) else plain
        if anonymizing is not None:
            keep &= anonymizing.keep(attribute.name, plain)
            plain = anonymizing.mask(attribute.name, plain, attribute.type)
        columns[f"{stream}.{attribute.name}"] = plain
    table = pa.table([columns.get(f.name, pa.nulls(n, f.type)) for f in schema], schema=schema)
    return table if keep.all() else table.filter(pa.array(keep))


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class RecordingFile:
    """A recording on disk, of the app `app`, with the streams that it has."""

    path: Path
    app: str
    schemas: Mapping[str, Schema]
    events: int

    @staticmethod
    def open(path: Path) -> RecordingFile:
        """Raises SparkStreamError if there is no such file, or it is no recording, or damaged."""
        try:
            if path.exists() and not path.is_file():
                raise ValueError("a folder or a device")
            check_sum(path, _CHECKSUM_MARKER)
            file = pq.read_metadata(path)
        except DamagedFile as error:
            raise SparkStreamError(f"{error}. {_WAY_OUT}") from None
        except (OSError, pa.ArrowException, ValueError):
            reason = "is no parquet file" if _exists(path) else "does not exist"
            raise SparkStreamError(f"{path} {reason}: a recording is made by app.recording.save('{path}').") from None
        metadata = file.metadata or {}
        if _METADATA not in metadata:
            raise SparkStreamError(
                f"{path} is no recording: to feed a parquet file, name its stream, as in STREAM={path.name}."
            )
        try:
            app, schemas = _parse_metadata(path, metadata[_METADATA])
            arrow = file.schema.to_arrow_schema()
        except (ValueError, pa.ArrowException) as error:
            raise _damage_error(path, error) from None
        recording = RecordingFile(path, app, schemas, file.num_rows)
        if metadata.get(_ROWS, str(file.num_rows).encode()) != str(file.num_rows).encode():
            raise _damage_error(path, f"it has {file.num_rows:,} rows, and {_shorten(metadata[_ROWS])} were recorded")
        for name, type in recording.column_types.items():
            i = arrow.get_field_index(name)
            if i < 0 or not _holds(arrow.field(i).type, type):
                raise _damage_error(path, f"it lacks the column {name} of type {type}")
        return recording

    @property
    def column_types(self) -> Mapping[str, pa.DataType]:
        """The types of the columns that are read, by name."""
        event_columns = {"stream": pa.string(), "timestamp": pa.int64(), "clock": pa.int64(), "step": pa.int64()}
        return event_columns | {f"{s}.{a.name}": ARROW[a.type] for s, schema in self.schemas.items() for a in schema}

    def match(self, schemas: Mapping[str, Schema]) -> list[str]:
        """The recorded streams that an app of these `schemas` takes. Raises SparkStreamError if there is none, or an
        attribute is missing or of another type."""
        here = [s for s in self.schemas if s in schemas]
        if not here:
            raise SparkStreamError(
                f"{self.path} has streams {', '.join(self.schemas) or 'none'} of app {self.app}, and the app has none "
                f"of these: {', '.join(schemas)}."
            )
        for s in here:
            recorded_types = {a.name: a.type for a in self.schemas[s]}
            for a in schemas[s]:
                if a.name not in recorded_types:
                    raise SparkStreamError(f"{self.path}: stream {s} was recorded without attribute '{a.name}'.")
                if recorded_types[a.name] is not a.type:
                    types = f"was recorded as {recorded_types[a.name]}, and is a {a.type} here"
                    raise SparkStreamError(f"{self.path}: '{a.name}' of stream {s} {types}.")
        return here

    def notes(self, schemas: Mapping[str, Schema], inputs: Iterable[str]) -> list[str]:
        """Sentences about streams that only one of the recording and an app has; `inputs` are the app's."""
        extra = [s for s in self.schemas if s not in schemas]
        missing = [s for s in inputs if s not in self.schemas]
        out = [f"The recording's {', '.join(extra)} was left out: the app has no such stream."] if extra else []
        return out + ([f"The recording has no events for {', '.join(missing)}."] if missing else [])

    def read(self, schemas: Mapping[str, Schema], folder: Path, stem: str) -> list[Ranked]:
        """The events of each stream that the app has, in chunks in `folder`, whose names begin with `stem`. Raises
        SparkStreamError as `match` does, if the file is damaged, and if the disk is full."""
        streams = self.match(schemas)
        writers = {s: _StreamChunks(folder, f"{stem}-{i:05d}", s, schemas[s]) for i, s in enumerate(streams)}
        for batch in self._batches():
            for stream in streams:
                stream_rows = batch.filter(pc.equal(batch["stream"].cast(pa.string()), stream))
                if stream_rows.num_rows:
                    writers[stream].take(stream_rows)
        return [writers[s].close() for s in streams]

    def check(self) -> None:
        """Read all of it. Raises SparkStreamError if it is damaged."""
        for _ in self._batches():
            pass

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, checked: they are what was written, times and order are there and in order, streams and texts are
        some, and no step has more than `_MOST_IN_STEP` events."""
        rows, step, clock, in_step = 0, 0, -FURTHEST, 0
        try:
            check_sum(self.path, _CHECKSUM_MARKER)
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(CHUNK_ROWS, columns=list(self.column_types)):
                    for name in _ORDER:
                        if batch[name].null_count:
                            row = rows + batch[name].is_null().to_pylist().index(True)
                            raise _damage_error(self.path, f"row {row:,} has no {name}")
                    self._check_rows(batch, rows, step, clock)
                    clock = int(batch["clock"][-1].as_py()) if batch.num_rows else clock
                    lengths = np.unique(batch["step"].to_numpy(), return_counts=True)
                    for number, count in zip(*lengths, strict=True):
                        in_step = in_step + count if number == step else count
                        step = number
                        if in_step > _MOST_IN_STEP:
                            raise SparkStreamError(
                                f"{self.path}: more than {_MOST_IN_STEP:,} events were sent at once, as step {step:,}, "
                                "which is more than is processed as a whole. Record it with smaller batches."
                            )
                    rows += batch.num_rows
                    yield batch
        except DamagedFile as error:
            raise SparkStreamError(f"{error}. {_WAY_OUT}") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damage_error(self.path, error) from None

    def _check_rows(self, batch: pa.RecordBatch, before: int, step: int, clock: int) -> None:
        """Raises SparkStreamError for rows, after `before` others, that no app has recorded. `step` and `clock`: of
        the row before."""
        faults = {"a step out of order": _descends(batch["step"], step)}
        faults["a clock out of order"] = _descends(batch["clock"], clock)
        for name in ("timestamp", "clock"):
            times = batch[name].to_numpy()
            faults[f"a {name} that no event has"] = (times < -FURTHEST) | (times > FURTHEST)
        names = pa.array([*self.schemas], pa.string())
        for name in batch.schema.names:
            if not ingest.valid(batch[name]):
                raise _damage_error(self.path, f"column {name} has texts that are not UTF-8")
        streams = batch["stream"].cast(pa.string())
        faults["a stream that was not recorded"] = ~np.asarray(pc.is_in(streams, names))
        for what, is_wrong in faults.items():
            if is_wrong.any():
                raise _damage_error(self.path, f"row {before + int(is_wrong.argmax()):,} has {what}")

    def add_to(self, cursor: FeedCursor, schemas: Mapping[str, Schema]) -> list[Ranked]:
        """Adds the events of the streams of `schemas` to a feed's rows, and returns them. Raises as `read` does."""
        streams = self.read(schemas, cursor.folder, new_stem())
        for stream in streams:
            cursor.add_ranked(stream)
        return streams

    def fill_inbox(self, inbox: Inbox, schemas: Mapping[str, Schema]) -> None:
        """Puts the events of the streams of `schemas` into an inbox, dealt out in turn. Raises as `read` does."""
        cursor = FeedCursor(inbox.folder)
        self.add_to(cursor, schemas)
        inbox.append(cursor.take(inbox, "round_robin", Spacing(0)))
        cursor.discard()


_ORDER = ("stream", "timestamp", "clock", "step")
"""Columns without nulls."""


def _parse_metadata(path: Path, text: bytes) -> tuple[str, dict[str, Schema]]:
    """The app of a recording and its streams. Raises ValueError, with the reason, for a text of another form."""
    members = from_json(text)
    try:
        version, app, streams = members["version"], members["app"], members["streams"]
        if type(version) is not int or type(app) is not str:
            raise TypeError(version, app)
        if version > _VERSION:
            raise SparkStreamError(f"{path} was recorded by a later version: update sparkstream_nb.")
        schemas = {s: Schema(tuple(Attribute(n, _recorded_type(t)) for n, t in x)) for s, x in streams.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("its app and streams are not described as in a recording") from None
    return app, schemas


def _recorded_type(name: str) -> Type:
    """Raises ValueError for a name that no type of columns has."""
    if (type := Type(name)) not in ARROW:
        raise ValueError(name)
    return type


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long
        return False


def _descends(column: pa.Array, before: int) -> Array:
    """True for whole numbers that are less than the one before them, bool[n]."""
    values = column.to_numpy()
    return values < np.concatenate([[before], values[:-1]])


def _holds(type: pa.DataType, value_type: pa.DataType) -> bool:
    """True if a column of `type` has values of `value_type`, with or without a dictionary."""
    return bool((type.value_type if pa.types.is_dictionary(type) else type) == value_type)


def _shorten(text: bytes) -> str:
    return shown(text.decode("utf-8", "replace"))


def _damage_error(path: Path, what: object) -> SparkStreamError:
    first = str(what).strip().partition("\n")[0].rstrip(".")
    return SparkStreamError(f"{path} is damaged: {first}. {_WAY_OUT}")


_WAY_OUT = "Put it back from a copy, or record it again."


class _StreamChunks:
    """Writes the events of one stream into chunks."""

    def __init__(self, folder: Path, stem: str, stream: str, schema: Schema) -> None:
        self.folder, self.stem, self.stream, self.schema = folder, stem, stream, schema
        self.chunks: list[Chunk] = []
        self.steps: list[Array] = []
        self.clocks: list[Array] = []

    def take(self, batch: pa.RecordBatch) -> None:
        columns = [batch[f"{self.stream}.{a.name}"] for a in self.schema]
        table = pa.Table.from_arrays(
            [batch["timestamp"], *columns], schema=chunk_schema(self.schema, [ingest.one(c) for c in columns])
        )
        name = f"{self.stem}-{len(self.chunks):05d}"
        write_chunk(self.folder / name, table)
        self.chunks.append(Chunk(name, len(table)))
        self.steps.append(batch["step"].to_numpy())
        self.clocks.append(batch["clock"].to_numpy())

    def close(self) -> Ranked:
        shape = Shape(self.stream, self.schema, "timestamp", {})
        steps = np.concatenate([np.empty(0, np.int64), *self.steps])
        clocks = np.concatenate([np.empty(0, np.int64), *self.clocks])
        return Ranked(FeedOnDisk(self.chunks), shape, steps, clocks, is_chunked=True)
