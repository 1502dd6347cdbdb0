"""Frees what Spark keeps after a query has ended, in its JVM on this machine and in the driver.

State stores, each with files and memory: Spark closes them when a check once a minute finds them unused, and an app
that is stopped and started often would hold many until then. The sockets, selectors and threads of the Python processes
that planned its micro-batches, the connection and the thread of the driver for its commits, and the place of its
session among the listeners of all events: Spark keeps them to the end. They are reached through Spark's own classes,
which are no part of its API: if these change, the only loss is that less is freed.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from . import planners
from .reflection import CHANGED, field_of, value_of
from .remote import is_remote

_STATE = "org.apache.spark.sql.execution.streaming.state"
_MONITOR = "Idle Worker Monitor"
_COLLECT_EVERY = 20
"""Queries that end between two collections of this process's garbage, each of which takes 0.1 s or so."""
_query_numbers = itertools.count(1)


def here(session: SparkSession) -> bool:
    """True if driver and workers of a session are on this machine, in one JVM."""
    return not is_remote(session) and str(session.sparkContext.master).startswith("local")


def begins(session: SparkSession) -> None:
    """Call before a query begins: its selectors can be found only while it waits in them."""
    if here(session):
        planners.listen(session)


def begun(session: SparkSession, query: StreamingQuery) -> None:
    """To be called as soon as it has begun."""
    if here(session):
        planners.watch(session, lambda: _execution(query).queryExecutionThread())


def release(session: SparkSession, query: StreamingQuery, checkpoint: str, partitions: int) -> None:
    """Close the state stores of this run of a query with the checkpoint at this address, and its selectors, and remove
    its session from the listeners of events. It must have ended.
    """
    if not here(session):
        return  # they are in other processes
    planners.sweep()
    jvm: Any = session._jvm
    run = str(query.runId)
    with contextlib.suppress(*CHANGED):
        # It has a session of its own, a copy of `session`, whose listener is never removed.
        listener = value_of(_execution(query).sparkSessionForStream().streams(), "listenerBus")
        session.sparkContext._jsc.sc().listenerBus().removeListener(listener)
    with contextlib.suppress(*CHANGED):
        state = getattr(jvm, _STATE)
        id_ = jvm.java.util.UUID.fromString(run)
        for partition in range(partitions):
            # Spark calls a path of this machine file:/..., though it was given file:///...
            store = state.StateStoreId(f"{checkpoint.replace('file:///', 'file:/')}/state", 0, partition, "default")
            state.StateStore.removeFromLoadedProvidersAndClose(state.StateStoreProviderId(store, id_))


def _execution(query: StreamingQuery) -> Any:
    """Spark's own object that runs a query."""
    return query._jsq.streamingQuery()


def collect() -> None:
    """Make the JVM release queries that have ended, now and then.

    It keeps all objects to which this process has references, with all that belongs to them: half a megabyte for a
    query with its plan. Py4J's references are in cycles, as soon as a method was called. Python collects those that
    have been there for long only when a quarter more objects have come, which here is thousands of queries later.
    """
    if next(_query_numbers) % _COLLECT_EVERY == 0:
        gc.collect()


@dataclass
class Runners:
    """Python processes that plan micro-batches, of all queries: (its supervising thread, worker, process), all Java's,
    the latter None if Spark has ended the process itself and keeps the thread. Those whose process has ended are
    released.
    """

    processes: list[tuple[Any, Any, Any]] = field(default_factory=list)

    @staticmethod
    def of(session: SparkSession) -> Runners:
        """The present runners. To be called while the query runs."""
        runners = Runners()
        if here(session):
            with contextlib.suppress(*CHANGED):
                runners.processes = list(_runners(session._jvm))
        return runners

    def release(self) -> None:
        """Release the objects of processes that have ended."""
        with contextlib.suppress(*CHANGED):
            for thread, worker, process in self.processes:
                if process is None:
                    thread.interrupt()
                elif not process.isAlive():
                    worker.stop()
                    thread.interrupt()


def _runners(jvm: Any) -> Iterator[tuple[Any, Any, Any]]:
    for thread in jvm.java.lang.Thread.getAllStackTraces().keySet():
        if str(thread.getName()).startswith(_MONITOR):
            factory = value_of(thread, "$outer")
            if value_of(factory, "useDaemon"):
                continue  # it has the workers of tasks
            workers = value_of(factory, "simpleWorkers").iterator()
            if not workers.hasNext():
                yield thread, None, None
            while workers.hasNext():
                pair = workers.next()
                yield thread, pair._1(), pair._2()


class Callback:
    """Callback of a query in this process for each micro-batch, with its connection. Spark never
    closes that, and Py4J keeps the callback as long as the JVM has the query, which it has as long as this process
    has a reference to it: neither side would release it first.
    """

    def __init__(self, commit: Callable[[DataFrame, int], None]) -> None:
        self._commit: Callable[[DataFrame, int], None] | None = commit
        self._connection: Any = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        with contextlib.suppress(*CHANGED):
            self._connection = _gateway()._gateway_client.get_thread_connection()
        if self._commit is None:
            raise RuntimeError("a micro-batch of a query that has ended")
        self._commit(frame, batch)

    def close(self) -> None:
        """Closes both ends of the connection, and so ends its thread, and calls nothing any more. The query must have
        ended."""
        self._commit = None
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*CHANGED):
                port = connection.socket.getpeername()[1]
                connection.socket.shutdown(socket.SHUT_RDWR)  # its thread, which is reading, does the rest
                _drop(port)


def _gateway() -> Any:
    return SparkContext._gateway


def _drop(port: int) -> None:
    """Close the JVM's end, at this port, of a connection to this process. Py4J keeps the connections of all threads
    there ever were in a list, and closes none.
    """
    client = _gateway().java_gateway_server.getCallbackClient()
    of_client = client.getClass().getSuperclass()
    connection_list = field_of(of_client, "connections").get(client)
    lock = field_of(of_client, "lock").get(client)
    lock.lock()
    try:
        connections = connection_list.iterator()
        while connections.hasNext():
            connection = connections.next()
            end = connection.getSocket()
            if end is not None and end.getLocalPort() == port:
                connections.remove()
                connection.shutdown()
                return
    finally:
        lock.unlock()
