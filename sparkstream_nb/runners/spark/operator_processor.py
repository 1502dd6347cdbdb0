"""The nodes of an operator as Spark's stateful processor: one key per node.

Spark starts a process in each micro-batch that only asks the processor for its state variables: this module loads
quickly, and the engine is loaded where rows are worked on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from .hosts import PackedWork
from .processor import SparkNodeState, node_key

if TYPE_CHECKING:
    import pandas as pd

    from ..operator.operator_spec import OperatorSpec

_COLUMNS = ("stream", "task", "number", "first", "last", "rows")


class OperatorProcessor(StatefulProcessor):
    """Runs the nodes of an operator, whose pickled `OperatorSpec` is `spec`, over the messages that Spark brings.
    `in_order`: by event time, else as they come."""

    def __init__(self, spec: PackedWork[OperatorSpec], in_order: bool) -> None:
        self.spec, self.in_order = spec, in_order

    @staticmethod
    def of(spec: OperatorSpec) -> OperatorProcessor:
        """The processor of an operator."""
        return OperatorProcessor(PackedWork.of(spec.id, spec), spec.in_order)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.state = SparkNodeState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        messages = [row for frame in rows for row in zip(*(frame[c].tolist() for c in _COLUMNS), strict=True)]
        yield from self._work(node_key(key), messages, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield from self._work(node_key(key), [], timerValues)

    def _work(self, key: int, messages: list[tuple[Any, ...]], timer: Any) -> Iterator[pd.DataFrame]:
        from .operator_frames import work_on_messages

        watermark = timer.getCurrentWatermarkInMs() if self.in_order else 0
        frame, former_timer, now = work_on_messages(self.spec, self.state, key, messages, watermark)
        if former_timer != now:
            if former_timer is not None:
                self.handle.deleteTimer(former_timer)
            if now is not None:
                self.handle.registerTimer(now)
        yield frame

    def close(self) -> None:
        """Nothing is held open."""
