"""Work divided into tasks: the protocol of their executor, and their input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from ..errors import SparkStreamError

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A task: from batches of its input to batches of results."""


class TaskFailed(SparkStreamError):
    """A task ended with an error: the text is its cause, in one line."""


class Tasks(Protocol):
    """Has tasks done: Spark, or this process."""

    @property
    def cores(self) -> int | None:
        """Number of tasks that run at once; None if unknown."""

    def each(self, task: Task, count: int, schema: str, *, tasks: int | None = None) -> pa.Table:
        """Has `task` work on the numbers from 0 to before `count` (a batch has one column of them), divided over so
        many `tasks` (None: one for each); all results, whose columns are `schema` as Spark writes it. Raises
        TaskFailed."""

    def over(self, frame: Any, task: Task, schema: str) -> pa.Table:
        """Run `task` on the rows of a Spark data frame. Raises TaskFailed, and SparkStreamError if that is not possible
        here.
        """
