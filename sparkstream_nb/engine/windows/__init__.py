"""Windows, one class each, found by the name that SiddhiQL gives them."""

from __future__ import annotations

from .base import Window, WindowFactory, WindowSetup
from .length import LengthBatchWindow, LengthWindow
from .time import TimeBatchWindow, TimeWindow

WINDOWS: dict[str, WindowFactory] = {
    "length": LengthWindow,
    "lengthBatch": LengthBatchWindow,
    "time": TimeWindow,
    "timeBatch": TimeBatchWindow,
}
"""Window by its key in `plan.functions.WINDOWS`."""

__all__ = ["WINDOWS", "Window", "WindowFactory", "WindowSetup"]
