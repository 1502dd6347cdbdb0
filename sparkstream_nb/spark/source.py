"""The inbox as a streaming source of Spark: what a micro-batch takes from the journal, for every node.

An offset is a place in the journal. A trigger takes entries up to a number of rows, so that a backlog is worked off in
large micro-batches; the offsets that Spark logs make a micro-batch the same after a crash.

Events stay where they are, in files of the inbox: what goes to a node through Spark are the entries of the journal.
What needs no state is done by the tasks that read them (`stateless`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..errors import SparkStreamError
from . import journal
from .entries import Entry
from .journal import entries_from
from .kept import Kept
from .marks import forget_tasks
from .mirror import Mirrored
from .shared import Shared

ROWS_PER_TRIGGER = 10_000_000
SCHEMA = f"key int, {journal.SCHEMA}"
Offset = dict[str, int]


class InboxSource(DataSource):
    """Spark's name for it is `sparkstream_inbox`; options as of `stateless.options_of`."""

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


class InboxReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the journal."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.shared = Shared(options["shared"]) if options["shared"] else None
        self.digest = options["digest"]
        self.mirrored = None if self.shared is None else Mirrored(self.shared)
        self.folder = Path(options["folder"]) if self.mirrored is None else self.mirrored.folder
        self.rows = int(options["rows"])
        self.work = options["work"] == "1"
        self.target: int | None = None
        recording, days = options["recording"], options["days"]
        self.kept = Kept(self.folder, int(recording) if recording else None, float(days) if days else None)

    def initialOffset(self) -> Offset:
        return {"seq": 0, "at": 0, "skip": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._follow()
        self.target = max((e.seq for e, _ in entries_from(self.folder)), default=-1)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As far as the limit allows; one entry at least. An entry with `barrier` begins a micro-batch of its own.

        Raises SparkStreamError where the inbox is gone, so that a query which outlived its app's process ends.
        """
        self._follow()
        most = self.rows if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", self.rows)
        reached, rows = start, 0
        for entry, after in entries_from(self.folder, start):
            if self.target is not None and entry.seq > self.target:
                break
            if reached is not start and (rows + entry.steps > most or entry.barrier):
                break
            reached, rows = after, rows + entry.steps
        return reached

    def _follow(self) -> None:
        """Raises SparkStreamError where the inbox is gone."""
        if self.mirrored is not None:
            self.mirrored.follow()
        elif not self.folder.exists():
            raise SparkStreamError(f"The inbox {self.folder} no longer exists: the app was deployed again.")

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task that passes the entries on; one for each piece where some app has work to do here."""
        if self.mirrored is not None:  # a micro-batch that is repeated is planned by another process
            self.mirrored.follow()
        entries: list[Entry] = []
        for entry, _ in entries_from(self.folder, start):
            if entry.seq >= end["seq"]:
                break
            entries.append(entry)
        if self.work:
            return [Share(run) for run in journal.runs(entries)]
        return [Share(entries)] if entries else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from .stateless import rows_at, rows_of  # the reader that only plans does not need the engine

        assert isinstance(partition, Share)
        if self.shared is None:
            yield from rows_of(self.folder, partition.entries)
        else:
            yield from rows_at(self.shared, self.digest, partition.entries)

    def commit(self, end: Offset) -> None:
        """What came in until `end` will not be read again by Spark."""
        if self.mirrored is not None:
            self.mirrored.end(end)
            return
        self.kept.end(end)
        forget_tasks(self.folder, end["seq"])
