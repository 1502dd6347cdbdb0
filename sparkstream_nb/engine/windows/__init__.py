"""Windows, one class each, found by the name that SiddhiQL gives them."""

from __future__ import annotations

from importlib import import_module

from ...plan.plugins import WithExtensions
from .batch import BatchWindow
from .cron import CronWindow
from .delay import delay_window
from .expression import ExpressionBatchWindow, ExpressionWindow
from .external import ExternalTimeWindow, external_time_batch_window
from .frequent import FrequentWindow, LossyFrequentWindow
from .length import LengthWindow, length_batch_window
from .session import SessionWindow
from .sort import SortWindow
from .time import time_window
from .time_batch import time_batch_window
from .timelength import TimeLengthWindow
from .window_protocol import Window, WindowFactory, WindowSetup, entering_rows, for_joins, rows_held


def _on_first_use(module: str, name: str) -> WindowFactory:
    """A window of a module that is loaded when an app has it: few have one of an extension."""

    def make(setup: WindowSetup) -> Window:
        factory: WindowFactory = getattr(import_module(f".{module}", __package__), name)
        return factory(setup)

    return make


_BUILT_IN: dict[str, WindowFactory] = {
    "length": LengthWindow,
    "lengthBatch": length_batch_window,
    "time": time_window,
    "timeBatch": time_batch_window,
    "timeLength": TimeLengthWindow,
    "externalTime": ExternalTimeWindow,
    "externalTimeBatch": external_time_batch_window,
    "session": SessionWindow,
    "batch": BatchWindow,
    "delay": delay_window,
    "cron": CronWindow,
    "sort": SortWindow,
    "expression": ExpressionWindow,
    "expressionBatch": ExpressionBatchWindow,
    "frequent": FrequentWindow,
    "lossyFrequent": LossyFrequentWindow,
    "unique:ever": _on_first_use("unique", "UniqueEverWindow"),
    "unique:first": _on_first_use("unique", "UniqueFirstWindow"),
    "unique:length": _on_first_use("unique", "UniqueLengthWindow"),
    "unique:time": _on_first_use("unique", "UniqueTimeWindow"),
    "unique:lengthBatch": _on_first_use("unique_batches", "unique_length_batch"),
    "unique:timeBatch": _on_first_use("unique_batches", "unique_time_batch"),
    "unique:timeLengthBatch": _on_first_use("unique_batches", "unique_time_length_batch"),
    "unique:firstLengthBatch": _on_first_use("unique_batches", "unique_first_length_batch"),
    "unique:firstTimeBatch": _on_first_use("unique_batches", "unique_first_time_batch"),
    "unique:externalTimeBatch": _on_first_use("unique_batches", "UniqueExternalTimeBatchWindow"),
}
WINDOWS: WithExtensions[WindowFactory] = WithExtensions(_BUILT_IN, "window", "implementation")
"""Window by its key in `plan.functions.WINDOWS`."""

__all__ = ["WINDOWS", "Window", "WindowFactory", "WindowSetup", "entering_rows", "for_joins", "rows_held"]
