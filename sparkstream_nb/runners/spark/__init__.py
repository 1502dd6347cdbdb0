"""Spark as a runner: its session and JVM, the streaming query, and the node engine as its stateful processor."""

from __future__ import annotations

import warnings

# Before anything imports pyspark, which says this many times over. pandas 3 works with all that is used of Spark here,
# and a user can do nothing about the warning.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
