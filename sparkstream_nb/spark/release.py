"""What a query that has ended still holds in Spark's JVM on this machine: its state stores, each with files and memory.

Spark lets go of them when a check once a minute finds that nobody asked for them, and an app that is stopped and
started often would hold many till then, with those that the check does not find to the end of the process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from .remote import is_remote

_STATE = "org.apache.spark.sql.execution.streaming.state"


def release(session: SparkSession, checkpoint: Path, run: str, partitions: int) -> None:
    """Closes the state stores of run `run` (its UUID) of the query with this checkpoint. It must have ended."""
    if is_remote(session) or not str(session.sparkContext.master).startswith("local"):
        return  # they are in other processes
    jvm: Any = session._jvm
    # Spark's own classes, and no part of its API: where they change, stores are closed as they were without this.
    with contextlib.suppress(Py4JError, OSError, TypeError, AttributeError):
        state = getattr(jvm, _STATE)
        id_ = jvm.java.util.UUID.fromString(run)
        for partition in range(partitions):
            store = state.StateStoreId(f"file:{checkpoint.absolute()}/state", 0, partition, "default")
            state.StateStore.removeFromLoadedProvidersAndClose(state.StateStoreProviderId(store, id_))
