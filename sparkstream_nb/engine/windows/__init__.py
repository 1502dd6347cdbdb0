"""Windows, one class each, found by the name that SiddhiQL gives them."""

from __future__ import annotations

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
from .unique import UniqueEverWindow, UniqueFirstWindow, UniqueLengthWindow, UniqueTimeWindow
from .unique_batches import (
    UniqueExternalTimeBatchWindow,
    unique_first_length_batch,
    unique_first_time_batch,
    unique_length_batch,
    unique_time_batch,
    unique_time_length_batch,
)
from .window_protocol import Window, WindowFactory, WindowSetup, entering_rows, for_joins, rows_held

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
    "unique:ever": UniqueEverWindow,
    "unique:first": UniqueFirstWindow,
    "unique:length": UniqueLengthWindow,
    "unique:time": UniqueTimeWindow,
    "unique:lengthBatch": unique_length_batch,
    "unique:timeBatch": unique_time_batch,
    "unique:timeLengthBatch": unique_time_length_batch,
    "unique:firstLengthBatch": unique_first_length_batch,
    "unique:firstTimeBatch": unique_first_time_batch,
    "unique:externalTimeBatch": UniqueExternalTimeBatchWindow,
}
WINDOWS: WithExtensions[WindowFactory] = WithExtensions(_BUILT_IN, "window", "implementation")
"""Window by its key in `plan.functions.WINDOWS`."""

__all__ = ["WINDOWS", "Window", "WindowFactory", "WindowSetup", "entering_rows", "for_joins", "rows_held"]
