"""Apps on Spark: the session as `runners` asks for it, and an app's streaming query from inbox over nodes to commit."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ...errors import SparkStreamError
from ...journal.causes import SERVER_GONE, cause_of
from ...journal.checkpoints import SparkCheckpoint as SparkCheckpoint
from ...journal.resting import forget_resting
from ...journal.tasks import Task, TaskFailed
from ...journal.visible_folder import check_visible
from ...recovery.batch_care import BatchCare
from ..node_spec import NodeWork
from ..runner_protocol import Job
from ..stateless import app_of, options_at, options_of
from . import forks, hosts
from .handover import ConnectIntake, clear, handover
from .processor import NodeProcessor
from .release import Callback, Runners, begins, begun, collect, release
from .remote import is_remote
from .streaming_query import session_for, start_frame
from .versions import check_version, checkpoint_manager

_CANCEL_SECONDS = 0.2
_POLLING_SHARED_MS = 250
_CLUSTER_PLACES = 8
_MOST_KEPT = 5
"""Processes for planning that Spark keeps, at most."""
_KNOWN_SECONDS = 0.1
"""Seconds for which a query that ran is assumed to run."""
_TOO_SLOW = "Python worker failed to connect back"
"""Message of a Connect server if a Python process of its own took more than ten seconds to start."""
_GONE = (Py4JError, OSError)
"""Errors of a call to Spark on this machine when its process has ended."""
_UNSEEN = "Deploy it with shared=..., an address that both reach, a home=... that they see, or master='inline'"
_SPARK_ENDED = "Spark has ended. Restart the kernel or the program, and deploy the app again"


class SparkSessionOfApps:
    """A `protocol.Session` whose apps run on Spark."""

    def __init__(self, session: SparkSession) -> None:
        """Raises SparkUnavailable if the Spark that does the work is too old."""
        self.spark, self.about = session, check_version(session.version)

    @property
    def cores(self) -> int | None:
        return None if is_remote(self.spark) else int(self.spark.sparkContext.defaultParallelism)

    @property
    def places(self) -> int:
        """Number of partitions. A cluster may have more cores later: it may grow, or add executors on demand."""
        if self.cores is None:
            return _CLUSTER_PLACES
        return (
            self.cores if str(self.spark.sparkContext.master).startswith("local") else max(self.cores, _CLUSTER_PLACES)
        )

    def runner(self, job: Job) -> SparkRunner:
        if job.mirror is None:
            check_visible(self.spark, job.home, _UNSEEN)
        return SparkRunner(self.spark, job)

    def each(self, task: Task, count: int, schema: str, *, tasks: int | None = None) -> pa.Table:
        return self.over(self.spark.range(0, count, 1, count if tasks is None else tasks), task, schema)

    def over(self, frame: object, task: Task, schema: str) -> pa.Table:
        assert hasattr(frame, "mapInArrow")
        try:
            return frame.mapInArrow(task, schema).toArrow()
        except (PySparkException, Py4JError) as error:
            raise TaskFailed(cause_of(str(error))) from error

    @contextlib.contextmanager
    def tag_tasks(self, tag: str) -> Iterator[None]:
        try:
            self.spark.addTag(tag)
        except _GONE:
            raise SparkStreamError(f"{_SPARK_ENDED}.") from None
        try:
            yield
        finally:
            with contextlib.suppress(*_GONE):
                self.spark.removeTag(tag)

    def interrupt(self, tag: str) -> None:
        with contextlib.suppress(PySparkException, *_GONE):
            self.spark.interruptTag(tag)


class SparkRunner:
    """Carries an app's micro-batches as a streaming query of Spark's. A `protocol.Runner`."""

    def __init__(self, session: SparkSession, job: Job) -> None:
        self.job, self.commit, self.mirror = job, job.commit, job.mirror
        self.name, self.home = job.name, job.home
        self.layout = job.layout
        self.session = session_for(session, self.layout.partitions)
        shared = None if self.mirror is None else self.mirror.shared
        self.checkpoint = SparkCheckpoint.of(job.home, shared)
        if shared is None:
            # Spark's default asks of each file whether it is a link, for which Hadoop starts `readlink`: 24 processes
            # in each micro-batch of one node, two fifths of its time.
            manager = checkpoint_manager(session.version)
            self.session.conf.set("spark.sql.streaming.checkpointFileManagerClass", manager)
        else:
            self.session.conf.set("spark.sql.streaming.pollingDelay", _POLLING_SHARED_MS)
            for name, value in shared.settings().items():
                self.session.conf.set(name, value)
        self.intake = ConnectIntake(job.home, shared, job.commit) if is_remote(session) else None
        self.commits_here = self.intake is None
        self.query: StreamingQuery | None = None
        self._callback: Callback | None = None
        self._is_released = True
        self._stopping = threading.Lock()
        self._ran = -_KNOWN_SECONDS
        """When the query was seen to run (s, of the monotonic clock)."""
        self._is_ending = False
        """True from the query's stop on: only Spark tells whether it still runs."""

    def begin(self, instructions: BatchCare) -> None:
        if self.query is not None and not self._is_released:
            with contextlib.suppress(PySparkException, *_GONE):
                self._release(self.query, Runners.of(self.session))
        inbox, outputs = self.home / "inbox", self.home / "outputs"
        job = self.job
        # Spark's work for a key, and the frames to and from a worker, are once for all nodes of a partition.
        places = self.layout.places
        app = app_of(places, job.specs, job.schemas, outputs=str(outputs), instructions=instructions)
        options = options_of(inbox, [app], job.rows, job.retention)
        specs = dict(zip(self.layout.keys, job.specs, strict=True))
        shared = None
        if self.mirror is not None:
            shared = self.mirror.shared
            options |= options_at(shared, self.mirror.prepare(pickle.dumps([app])))
        processor = NodeProcessor(NodeWork(job.run, specs, inbox, outputs, instructions=instructions, shared=shared))
        forget_resting(inbox)
        # A query that is still ending, or that was handed over and not taken in, may name such files.
        if not self._runs():
            self.checkpoint.clear_half_written()
            if self.intake is None:
                self.commit.clear()
                clear(self.home, shared)
        if self.intake is not None:
            self.intake.start()
        begins(self.session)
        callback = Callback(self.commit)
        each = callback if self.intake is None else handover(self.home, shared)
        try:
            self.query = self._query(options, processor, each)
            begun(self.session, self.query)
            self._callback, self._is_released, self._is_ending = callback, False, False
        except PySparkException as error:
            raise SparkStreamError(f"{self.name} did not start: {self._cause(str(error))}") from error
        except Py4JJavaError as error:  # of a class that is missing, as where the checkpoint is at an address
            raise SparkStreamError(f"{self.name} did not start: {self._cause(str(error))}") from error
        except _GONE as error:
            raise SparkStreamError(f"{self.name} did not start: {_SPARK_ENDED}") from error

    def _query(self, options: Mapping[str, str], processor: NodeProcessor, each: Callable[..., None]) -> StreamingQuery:
        """Starts it. Spark notices that a process which it has kept was killed as it asks it, and then no longer keeps
        it: so it is asked again. So is a Connect server whose process was too slow: it gives that ten seconds."""
        for left in reversed(range(_MOST_KEPT)):
            try:
                query: StreamingQuery = (
                    start_frame(self.session, options, processor)
                    .writeStream.queryName(f"{self.name}-{self.job.run}")
                    .option("checkpointLocation", self.checkpoint.where)
                    .outputMode("append")
                    .foreachBatch(each)
                    .start()
                )
                return query
            except PySparkException as error:
                if not left or _TOO_SLOW not in str(error):
                    raise
            except Py4JJavaError as error:
                gateway = self.session.sparkContext._gateway
                if not left or not is_instance_of(gateway, error.java_exception, "java.io.IOException"):
                    raise
        raise AssertionError

    def notify_arrival(self) -> None:
        if self.mirror is not None:
            self.mirror.notify_appended()

    @property
    def active(self) -> bool:
        # Every event that is sent asks, and Spark takes its time.
        if self._is_ending or time.monotonic() > self._ran + _KNOWN_SECONDS:
            checked_at = time.monotonic()
            if not self._runs():
                return False
            self._ran = checked_at
        return self.intake is None or self.intake.failure is None

    def _runs(self) -> bool:
        try:
            return self.query is not None and bool(self.query.isActive)
        except (PySparkException, RuntimeError, *_GONE):  # RuntimeError: of Connect's client while this process ends
            return False

    def failure(self) -> str | None:
        if self.query is None or self.active:
            return None
        if self.intake is not None and self.intake.failure is not None:
            return str(self.intake.failure)
        try:
            error = self.query.exception()
        except (PySparkException, RuntimeError) as lost:
            return cause_of(str(lost))
        except _GONE:
            return _SPARK_ENDED
        return None if error is None else self._cause(str(error), self._java_trace())

    def _cause(self, text: str, trace: str = "") -> str:
        """Cause of an error of Spark's in one line. `trace`: Java's, where `text` does not have it."""
        return self.checkpoint.damage(text, trace) or cause_of(text)

    def _java_trace(self) -> str:
        """Java's trace of the query's error; empty over Spark Connect."""
        java_query = getattr(self.query, "_jsq", None)
        if java_query is None:
            return ""
        with contextlib.suppress(PySparkException, Py4JJavaError, RuntimeError, *_GONE):
            jvm: Any = self.session.sparkContext._jvm
            return str(jvm.org.apache.spark.util.Utils.exceptionString(java_query.exception().get()))
        return ""

    def stop(self, timeout: float) -> bool:
        query, self._is_ending = self.query, True
        if query is None or not self._runs():
            self.settle()
            hosts.end(forks.folder(), self.job.run)
            return True
        end_event = threading.Event()

        def end() -> None:
            try:
                with contextlib.suppress(PySparkException, *_GONE):
                    runners = Runners.of(self.session)
                    query.stop()
                    self.settle()
                    self._release(query, runners)
            finally:
                self._stopping.release()
                end_event.set()

        def cancel() -> None:
            """Spark cancels the jobs that it sees; the commit's, begun in a thread of its own, may come after that."""
            while not end_event.wait(_CANCEL_SECONDS):
                cancel_jobs(self.session, str(query.runId))

        if not self._stopping.acquire(timeout=timeout):
            return False  # it is being stopped
        for target in (end, cancel):
            threading.Thread(target=target, name=f"stop-{self.name}", daemon=True).start()
        return end_event.wait(timeout)

    def _release(self, query: StreamingQuery, runners: Runners) -> None:
        """Free what Spark keeps for a query that has ended."""
        self._is_released = True
        hosts.end(forks.folder(), self.job.run)
        release(self.session, query, self.checkpoint.where, self.layout.partitions)
        runners.release()
        if self._callback is not None:
            self._callback.close()
        collect()

    def settle(self) -> None:
        if self.intake is not None:
            self.intake.end()

    def wait_for_end(self, timeout: float) -> bool:
        end = time.monotonic() + timeout
        while self._runs() and time.monotonic() < end:
            time.sleep(0.05)
        if self._stopping.acquire(timeout=max(0.0, end - time.monotonic())):
            self._stopping.release()
        self.settle()
        return not self._runs()

    def ended_for_good(self) -> bool:
        return self.failure() in (_SPARK_ENDED, SERVER_GONE)

    def attempts(self) -> int:
        return 0  # events are worked on by processes of Spark's

    def cancel(self) -> None:
        self._is_ending = True
        with contextlib.suppress(PySparkException, *_GONE):
            if self.query is not None:
                self.query.stop()

    def last_commit(self) -> tuple[int, int]:  # over Connect the last batch taken in; `begin` continues with the rest
        if self.intake is None:
            return self.checkpoint.done()
        return self.intake.position.batch, self.intake.position.last


def cancel_jobs(session: SparkSession, run: str) -> None:
    """Cancels the jobs that the run of a streaming query has now, if Spark has not ended."""
    with contextlib.suppress(PySparkException, *_GONE):
        if is_remote(session):
            session.interruptAll()
        else:
            session.sparkContext.cancelJobGroup(run)
