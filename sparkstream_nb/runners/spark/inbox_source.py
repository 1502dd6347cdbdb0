"""The inbox as a streaming source of Spark: a micro-batch's entries of the journal, for every node.

`batch_planning` says which entries those are. Events stay in files of the inbox: only the entries of the journal go to
a node through Spark. Stateless work is done by the tasks that read them (`stateless`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ...journal import journal
from ...journal.batch_planning import Offset, Planner, TaskShare
from ...journal.checkpoints import SparkCheckpoint
from ...journal.kept import JournalRetention
from ...journal.mirror import Mirrored
from ...journal.shared import Shared

SCHEMA = f"key int, {journal.SCHEMA}"


class InboxSource(DataSource):
    """Spark's name for it is `sparkstream_inbox`; options as of `stateless.options_of`."""

    @classmethod
    def name(cls) -> str:
        return "sparkstream_inbox"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return JournalStreamReader(dict(self.options))


@dataclass
class PackTask(InputPartition):
    """Share of one task."""

    share: TaskShare


class JournalStreamReader(DataSourceStreamReader):
    """Follows the journal.

    Spark before 4.2 does not say where the next micro-batch begins (`versions.TOLD_START`): it is where the last one
    that was planned ends. That is the offset which this reader named last, as Spark plans one for each that it names;
    and for a reader that is new, the last one in the checkpoint, of a micro-batch that is done or comes again as it is.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.shared = Shared(options["shared"]) if options["shared"] else None
        self.digest = options["digest"]
        self.mirror = None if self.shared is None else Mirrored(self.shared)
        self.folder = Path(options["folder"]) if self.mirror is None else self.mirror.folder
        self.rows = int(options["rows"])
        recording, days = options["recording"], options["days"]
        retention = JournalRetention(self.folder, int(recording) if recording else None, float(days) if days else None)
        self.planner = Planner(self.folder, retention, options["work"] == "1")
        self._planned_end: Offset | None = None

    def initialOffset(self) -> Offset:
        return self.planner.beginning

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadMaxRows  # which is there where this is called

        return ReadMaxRows(self.rows)

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """Latest offset that the limit allows. Raises SparkStreamError as `Planner.latest` does, and if the checkpoint
        is read and damaged.
        """
        self._follow()
        begins = (
            start if start is not None else self._planned_end or self._checkpointed_offset() or self.planner.beginning
        )
        self._planned_end = self.planner.latest(begins, getattr(limit, "max_rows", self.rows))
        return self._planned_end

    def _checkpointed_offset(self) -> Offset | None:
        return SparkCheckpoint.of(self.folder.parent, self.shared).planned_offset()

    def _follow(self) -> None:
        if self.mirror is not None:
            self.mirror.follow()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task that passes the entries on; one for each piece where some app has work to do here."""
        self._follow()  # a micro-batch that is repeated is planned by another process
        self._planned_end = end
        return [PackTask(share) for share in self.planner.shares(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from ..stateless import rows_at, rows_of  # the reader that only plans does not need the engine

        assert isinstance(partition, PackTask)
        if self.shared is None:
            yield from rows_of(self.folder, partition.share)
        else:
            yield from rows_at(self.shared, self.digest, partition.share)

    def commit(self, end: Offset) -> None:
        """Release the input before `end`, which Spark will not read again."""
        if self.mirror is not None:
            self.mirror.end(end)
        else:
            self.planner.done(end)
