"""The inbox as a streaming source of Spark: what a micro-batch takes from the journal, for every node.

`planning` says which entries those are. Events stay where they are, in files of the inbox: what goes to a node through
Spark are the entries of the journal. What needs no state is done by the tasks that read them (`stateless`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from . import journal
from .entries import Entry
from .journal import entries_from
from .kept import Kept
from .mirror import Mirrored
from .planning import Offset, Planner
from .shared import Shared

SCHEMA = f"key int, {journal.SCHEMA}"


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
        recording, days = options["recording"], options["days"]
        kept = Kept(self.folder, int(recording) if recording else None, float(days) if days else None)
        self.planner = Planner(self.folder, kept, options["work"] == "1")

    def initialOffset(self) -> Offset:
        return self.planner.beginning

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._follow()
        self.planner.target = max((e.seq for e, _ in entries_from(self.folder)), default=-1)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As far as the limit allows. Raises SparkStreamError as `Planner.latest` does."""
        self._follow()
        most = self.rows if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", self.rows)
        return self.planner.latest(start, most)

    def _follow(self) -> None:
        if self.mirrored is not None:
            self.mirrored.follow()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task that passes the entries on; one for each piece where some app has work to do here."""
        self._follow()  # a micro-batch that is repeated is planned by another process
        return [Share(share) for share in self.planner.shares(start, end)]

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
        else:
            self.planner.done(end)
