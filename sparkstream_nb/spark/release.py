"""What a query that has ended still holds, in Spark's JVM on this machine and in the driver.

Its state stores, each with files and memory: Spark lets go of them when a check once a minute finds that nobody asked
for them, and an app that is stopped and started often would hold many till then. The sockets, selectors and threads of
the Python processes that planned its micro-batches, and the thread of the driver that its commits ran in: Spark keeps
them to the end. They are reached through Spark's own classes, which are no part of its API: where these change, all
that is lost is that less is let go.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from .remote import is_remote

_STATE = "org.apache.spark.sql.execution.streaming.state"
_MONITOR = "Idle Worker Monitor"
_CHANGED = (Py4JError, OSError, TypeError, AttributeError)


def here(session: SparkSession) -> bool:
    """Whether driver and workers of a session are on this machine, in one JVM."""
    return not is_remote(session) and str(session.sparkContext.master).startswith("local")


def release(session: SparkSession, checkpoint: str, run: str, partitions: int) -> None:
    """Closes the state stores of run `run` (its UUID) of the query with the checkpoint at this address. It must have
    ended."""
    if not here(session):
        return  # they are in other processes
    jvm: Any = session._jvm
    with contextlib.suppress(*_CHANGED):
        state = getattr(jvm, _STATE)
        id_ = jvm.java.util.UUID.fromString(run)
        for partition in range(partitions):
            # Spark calls a path of this machine file:/..., though it was given file:///...
            store = state.StateStoreId(f"{checkpoint.replace('file:///', 'file:/')}/state", 0, partition, "default")
            state.StateStore.removeFromLoadedProvidersAndClose(state.StateStoreProviderId(store, id_))


@dataclass
class Runners:
    """Python processes that plan micro-batches, of all queries: (thread that looks after one, worker, process), all
    Java's, the latter None where Spark has ended the process itself and keeps the thread. Those whose process has ended
    are let go."""

    found: list[tuple[Any, Any, Any]] = field(default_factory=list)

    @staticmethod
    def of(session: SparkSession) -> Runners:
        """Those that there are. To be asked for while the query runs."""
        runners = Runners()
        if here(session):
            with contextlib.suppress(*_CHANGED):
                runners.found = list(_runners(session._jvm))
        return runners

    def release(self) -> None:
        """Lets go of what belongs to processes that have ended."""
        with contextlib.suppress(*_CHANGED):
            for thread, worker, process in self.found:
                if process is None:
                    thread.interrupt()
                elif not process.isAlive():
                    worker.stop()
                    thread.interrupt()


def _runners(jvm: Any) -> Iterator[tuple[Any, Any, Any]]:
    for thread in jvm.java.lang.Thread.getAllStackTraces().keySet():
        if str(thread.getName()).startswith(_MONITOR):
            factory = _field(thread, "$outer")
            if _field(factory, "useDaemon"):
                continue  # it has the workers of tasks
            workers = _field(factory, "simpleWorkers").iterator()
            if not workers.hasNext():
                yield thread, None, None
            while workers.hasNext():
                pair = workers.next()
                yield thread, pair._1(), pair._2()


def _field(thing: Any, name: str) -> Any:
    found = thing.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(thing)


class Callback:
    """The connection that a JVM's thread calls this process over. One for each query, which Spark never closes."""

    def __init__(self) -> None:
        self._connection: Any = None

    def note(self) -> None:
        """Called within such a call."""
        with contextlib.suppress(*_CHANGED):
            self._connection = SparkContext._gateway._gateway_client.get_thread_connection()  # type: ignore[union-attr]

    def close(self) -> None:
        """Closes it, and so ends its thread. The query must have ended."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_CHANGED):
                connection.socket.shutdown(socket.SHUT_RDWR)  # its thread, which is reading, does the rest
