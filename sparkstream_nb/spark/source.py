"""The inbox as a streaming source of Spark: entries become one packed blob per node.

An offset is a place in the journal. A trigger takes entries up to a number of rows, so that a backlog is worked off in
large micro-batches; the offsets that Spark logs make a micro-batch the same after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..engine.batch import InputBatch
from ..errors import SparkStreamError
from ..types import Schema, Type
from . import routing, segments
from .inbox import Entry, entries_from

ROWS_PER_TRIGGER = 4_000_000
STEPS_PER_BLOB = 1_000_000
SCHEMA = "key int, seq long, last long, step long, kind string, blob binary"
"""`key` chooses the node's partition; entries `seq`..`last` are in `blob`, whose first step has number `step`."""

Offset = dict[str, int]


def options_of(
    folder: Path,
    apps: Sequence[tuple[Sequence[int], Mapping[str, Schema]]],
    rows_per_trigger: int = ROWS_PER_TRIGGER,
) -> dict[str, str]:
    """The source's options. Each app is (the key of every node, schema of every input stream)."""
    described = [
        {"keys": list(keys), "streams": {s: [[a.name, a.type.value] for a in schema] for s, schema in schemas.items()}}
        for keys, schemas in apps
    ]
    return {"folder": str(folder), "apps": json.dumps(described), "rows": str(rows_per_trigger)}


class InboxSource(DataSource):
    """Spark's name for it is `sparkstream_inbox`; options as of `options_of`."""

    @classmethod
    def name(cls) -> str:
        return "sparkstream_inbox"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return InboxReader(dict(self.options))


@dataclass
class Share(InputPartition):
    """Consecutive entries that one task packs."""

    entries: list[Entry]


@dataclass(frozen=True)
class App:
    keys: tuple[int, ...]
    schemas: Mapping[str, Schema]


class InboxReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the journal."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.folder = Path(options["folder"])
        self.rows = int(options["rows"])
        self.apps = [
            App(
                tuple(a["keys"]),
                {s: Schema.of(*((n, Type(t)) for n, t in attributes)) for s, attributes in a["streams"].items()},
            )
            for a in json.loads(options["apps"])
        ]
        self.target: int | None = None
        self.swept = self.initialOffset()

    def initialOffset(self) -> Offset:
        return {"seq": 0, "at": 0, "skip": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = max((e["seq"] for e, _ in entries_from(self.folder, self.initialOffset())), default=-1)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As far as the limit allows; one entry at least. An entry with `barrier` begins a micro-batch of its own.

        Raises SparkStreamError where the inbox is gone, so that a query which outlived its app's process ends.
        """
        if not self.folder.exists():
            raise SparkStreamError(f"The inbox {self.folder} is gone: the app was deployed anew.")
        most = self.rows if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", self.rows)
        reached, rows = start, 0
        for entry, after in entries_from(self.folder, start):
            if self.target is not None and entry["seq"] > self.target:
                break
            if reached is not start and (rows + entry["steps"] > most or entry.get("barrier")):
                break
            reached, rows = after, rows + entry["steps"]
        return reached

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        shares: list[Share] = []
        steps = 0
        for entry, _ in entries_from(self.folder, start):
            if entry["seq"] >= end["seq"]:
                break
            if not shares or steps + entry["steps"] > STEPS_PER_BLOB:
                shares.append(Share([]))
                steps = 0
            shares[-1].entries.append(entry)
            steps += entry["steps"]
        return shares

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        run: list[Entry] = []
        for entry in partition.entries:
            if run and (entry["kind"] in ("ask", "reject") or entry["app"] != run[0]["app"]):
                yield self._steps(run)
                run = []
            if entry["kind"] in ("ask", "reject"):
                yield self._aside(entry)
            else:
                run.append(entry)
        if run:
            yield self._steps(run)

    def _steps(self, run: Sequence[Entry]) -> pa.RecordBatch:
        app = self.apps[run[0]["app"]]
        count = len(app.keys)
        packed: list[list[InputBatch]] = [[] for _ in range(count)]
        for entry in run:
            batch = segments.load(self.folder, entry)
            route = routing.Route.parse(entry["route"], count)
            places = routing.assign(batch, route, app.schemas, count, entry["request"]) if count > 1 else {}
            for k, part in enumerate(routing.split(batch, places, count) if count > 1 else [batch]):
                packed[k].append(part)
        blobs = [segments.join(parts).to_bytes() for parts in packed]
        return _rows(app.keys, run[0], run[-1], "steps", blobs)

    def _aside(self, entry: Entry) -> pa.RecordBatch:
        """A question goes to every node; rejected rows pass through the first one to the commit."""
        keys = self.apps[entry["app"]].keys
        if entry["kind"] == "reject":
            blob = (self.folder / entry["file"]).read_bytes()
            return _rows(keys[:1], entry, entry, "reject", [blob])
        return _rows(keys, entry, entry, "ask", [entry["text"].encode()] * len(keys))

    def commit(self, end: Offset) -> None:
        """Removes the files of entries that will not be read again."""
        named: set[str] = set()
        needed: set[str] = set()
        for entry, _ in entries_from(self.folder, self.swept):
            if "file" in entry:
                (named if entry["seq"] < end["seq"] else needed).add(entry["file"])
        for name in named - needed:
            (self.folder / name).unlink(missing_ok=True)
        self.swept = end


def _rows(keys: Sequence[int], first: Entry, last: Entry, kind: str, blobs: Sequence[bytes]) -> pa.RecordBatch:
    n = len(keys)
    return pa.record_batch(
        [
            pa.array(keys, pa.int32()),
            pa.array([first["seq"]] * n, pa.int64()),
            pa.array([last["seq"]] * n, pa.int64()),
            pa.array([first["step"]] * n, pa.int64()),
            pa.array([kind] * n, pa.string()),
            pa.array(blobs, pa.binary()),
        ],
        names=["key", "seq", "last", "step", "kind", "blob"],
    )
