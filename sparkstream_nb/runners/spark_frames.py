"""`siddhi(...)` and its frames. Raises SparkUnavailable when it is imported without a pyspark that they run on."""

from __future__ import annotations

from ..errors import SparkUnavailable
from .spark.settings import NO_SPARK
from .spark.versions import check_installed

try:
    check_installed()
except ModuleNotFoundError:
    raise SparkUnavailable(NO_SPARK) from None

from .spark.dataframe_operator import SiddhiFrames as SiddhiFrames
from .spark.dataframe_operator import siddhi as siddhi
