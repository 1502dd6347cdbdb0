"""An app's streaming query: inbox → nodes → commit."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ..errors import SparkStreamError
from ..retention import Retention
from ..types import Schema
from . import journal
from .care import Care
from .causes import SERVER_GONE, cause_of
from .checkpoints import Checkpoint
from .commit import Commit, Progress
from .handover import Intake, clear, handover
from .mending import Mending
from .mirror import Mirror
from .processor import NodeProcessor, NodeSpec
from .release import Callback, Runners, begins, begun, collect, release
from .remote import is_remote, sibling
from .routing import keys_apart
from .settings import defaults
from .source import ROWS_PER_TRIGGER, InboxSource
from .stateless import app_of, options_at, options_of

STOP_SECONDS = 1.5
"""How long a person who stops something waits for Spark: under two seconds with all that is around it."""
_CANCEL_SECONDS = 0.2
MOST_PARTITIONS = 32
_POLLING_MS, _POLLING_SHARED_MS = 25, 250
_OWN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""How Spark writes a checkpoint in a folder. Its default asks of each file whether it is a link, for which Hadoop
starts `readlink`: 24 processes in each micro-batch of one node, two fifths of its time."""
_MOST_KEPT = 5
"""Processes for planning that Spark keeps, at most."""
_TOO_SLOW = "Python worker failed to connect back"
"""What a Connect server says where a Python process of its own took more than ten seconds to start."""
_GONE = (Py4JError, OSError)
"""What a call of Spark on this machine raises when its process has ended."""
_SPARK_ENDED = "Spark has ended. Restart the kernel or the program, and deploy the app again"


@dataclass(frozen=True)
class Layout:
    """Where nodes live: the key of each, and the number of Spark partitions they are spread over."""

    keys: tuple[int, ...]
    partitions: int

    @staticmethod
    def of(nodes: int, began: int) -> Layout:
        """That of an app which began with `began` nodes: Spark keeps the number of partitions for good, and a node its
        key."""
        partitions = min(began, MOST_PARTITIONS)
        return Layout(tuple(keys_apart(nodes, partitions)), partitions)


class Stream:
    """Starts, stops and waits for the streaming query of one app."""

    def __init__(
        self,
        session: SparkSession,
        name: str,
        home: Path,
        run: str,
        specs: Sequence[NodeSpec],
        schemas: Mapping[str, Schema],
        commit: Commit,
        rows_per_trigger: int | None = None,
        retention: Retention | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        """`mirror` puts the inbox at a shared address, where Spark's machines do not see the folder `home`."""
        self.name, self.home, self.run = name, home, run
        self.layout = Layout.of(len(specs), specs[0].count)
        self.specs, self.schemas, self.commit = list(specs), dict(schemas), commit
        self.rows_per_trigger = rows_per_trigger or ROWS_PER_TRIGGER
        self.retention = Retention() if retention is None else retention
        self.session = session_for(session, self.layout.partitions)
        self.mirror = mirror
        shared = None if mirror is None else mirror.shared
        self.checkpoint = Checkpoint.of(home, shared)
        if shared is None:
            self.session.conf.set("spark.sql.streaming.checkpointFileManagerClass", _OWN_FILES)
        else:
            self.session.conf.set("spark.sql.streaming.pollingDelay", _POLLING_SHARED_MS)
            for name, value in shared.settings().items():
                self.session.conf.set(name, value)
        self.intake = Intake(home, shared, commit) if is_remote(session) else None
        self.query: StreamingQuery | None = None
        self.care = Care()
        self.mending = Mending(self, home / "inbox", commit.progress.say)
        self._callback: Callback | None = None
        self._released = True
        self._stopping = threading.Lock()

    @property
    def progress(self) -> Progress:
        return self.commit.progress

    def start(self) -> None:
        """Starts the query where it does not run, and keeps it running. Raises SparkStreamError where Spark refuses."""
        self.mending.start()

    def begin(self) -> None:
        """Begins the query where it left off. Raises SparkStreamError where Spark refuses to."""
        if self.query is not None and not self._released:
            with contextlib.suppress(PySparkException, *_GONE):
                self._release(self.query, Runners.of(self.session))
        inbox, outputs = self.home / "inbox", self.home / "outputs"
        app = app_of(self.layout.keys, self.specs, self.schemas, outputs=str(outputs), care=self.care)
        options = options_of(inbox, [app], self.rows_per_trigger, self.retention)
        specs = dict(zip(self.layout.keys, self.specs, strict=True))
        shared = None
        if self.mirror is not None:
            shared = self.mirror.shared
            options |= options_at(shared, self.mirror.prepare(pickle.dumps([app])))
        processor = NodeProcessor(self.run, specs, inbox, outputs, care=self.care, shared=shared)
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
            self._callback, self._released = callback, False
        except PySparkException as error:
            raise SparkStreamError(f"{self.name} did not start: {cause_of(str(error))}") from error
        except Py4JJavaError as error:  # of a class that is missing, as where the checkpoint is at an address
            raise SparkStreamError(f"{self.name} did not start: {cause_of(str(error))}") from error
        except _GONE as error:
            raise SparkStreamError(f"{self.name} did not start: {_SPARK_ENDED}") from error

    def _query(self, options: Mapping[str, str], processor: NodeProcessor, each: Callable[..., None]) -> StreamingQuery:
        """Starts it. Spark notices that a process which it has kept was killed as it asks it, and then no longer keeps
        it: so it is asked again. So is a Connect server whose process was too slow: it gives that ten seconds."""
        for left in reversed(range(_MOST_KEPT)):
            try:
                return (
                    carried(self.session, options, processor)
                    .writeStream.queryName(f"{self.name}-{self.run}")
                    .option("checkpointLocation", self.checkpoint.where)
                    .outputMode("append")
                    .foreachBatch(each)
                    .start()
                )
            except PySparkException as error:
                if not left or _TOO_SLOW not in str(error):
                    raise
            except Py4JJavaError as error:
                gateway = self.session.sparkContext._gateway
                if not left or not is_instance_of(gateway, error.java_exception, "java.io.IOException"):
                    raise
        raise AssertionError

    @property
    def active(self) -> bool:
        return self._runs() and (self.intake is None or self.intake.failure is None)

    def _runs(self) -> bool:
        try:
            return self.query is not None and bool(self.query.isActive)
        except (PySparkException, *_GONE):
            return False

    def failure(self) -> str | None:
        """Why the query ended by itself; None where it did not."""
        if self.query is None or self.active:
            return None
        if self.intake is not None and self.intake.failure is not None:
            return str(self.intake.failure)
        try:
            error = self.query.exception()
        except PySparkException as lost:
            return cause_of(str(lost))
        except _GONE:
            return _SPARK_ENDED
        return None if error is None else cause_of(str(error))

    def wait(self, seq: int, timeout: float | None = None, tell: Callable[[], None] | None = None) -> bool:
        """Waits until entry `seq` is committed. False after `timeout` seconds. Calls `tell` five times a second.

        Raises SparkStreamError where the query ended before that.
        """
        end = None if timeout is None else time.monotonic() + timeout
        progress = self.progress
        while True:
            with progress.changed:
                if progress.last >= seq:
                    return True
                # A query that fails wakes nobody, hence the short wait.
                progress.changed.wait(0.2)
                if progress.last >= seq:
                    return True
            if tell is not None:
                tell()
            if not self.active:
                failure = self.failure()
                self._take_rest()
                if progress.last >= seq:
                    return True
                if self.mending.again():
                    continue
                raise SparkStreamError(f"{self.name} stopped: {failure or 'its Spark query was cancelled'}")
            if end is not None and time.monotonic() > end:
                return False

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """Cancels the query. Returns within `timeout` seconds: False where Spark is still busy ending it."""
        self.mending.leave(timeout)
        query = self.query
        if query is None or not self._runs():
            self._take_rest()
            return True
        done = threading.Event()

        def end() -> None:
            try:
                with contextlib.suppress(PySparkException, *_GONE):
                    runners = Runners.of(self.session)
                    query.stop()
                    self._take_rest()
                    self._release(query, runners)
            finally:
                self._stopping.release()
                done.set()

        def cancel() -> None:
            """Spark cancels the jobs that it sees; the commit's, begun in a thread of its own, may come after that."""
            while not done.wait(_CANCEL_SECONDS):
                cancel_jobs(self.session, str(query.runId))

        if not self._stopping.acquire(timeout=timeout):
            return False  # it is being stopped
        for target in (end, cancel):
            threading.Thread(target=target, name=f"stop-{self.name}", daemon=True).start()
        return done.wait(timeout)

    def _release(self, query: StreamingQuery, runners: Runners) -> None:
        """Lets go of what a query that has ended still holds."""
        self._released = True
        release(self.session, query, self.checkpoint.where, self.layout.partitions)
        runners.release()
        if self._callback is not None:
            self._callback.close()
        collect()

    def _take_rest(self) -> None:
        """Commits what an ended query has handed over."""
        if self.intake is not None:
            self.intake.end()

    def ended(self, timeout: float = 60.0) -> bool:
        """Waits until a query that was stopped has let go of its files, its name, and all else that it held."""
        end = time.monotonic() + timeout
        while self._runs() and time.monotonic() < end:
            time.sleep(0.05)
        if self._stopping.acquire(timeout=max(0.0, end - time.monotonic())):
            self._stopping.release()
        self._take_rest()
        return not self._runs()

    def planned(self) -> int:
        """The number of the first entry that no micro-batch has been planned for."""
        return self.checkpoint.reached().reached

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        """The number of the last micro-batch that is planned, and its entries: the first, and the first after it."""
        return self.checkpoint.planned_batch()

    def ended_for_good(self) -> bool:
        """Whether Spark itself has ended."""
        return self.failure() in (_SPARK_ENDED, SERVER_GONE)

    def cancel(self) -> None:
        """Ends the query."""
        with contextlib.suppress(PySparkException, *_GONE):
            if self.query is not None:
                self.query.stop()

    def committed(self) -> tuple[int, int]:
        """(id of the last micro-batch that is committed as far as Spark knows, its last entry); -1 for none.

        Over Connect it is what was taken in; `start` goes on with the rest.
        """
        if self.intake is None:
            return self.checkpoint.done()
        return self.intake.taken.batch, self.intake.taken.last


@contextlib.contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Marks the Spark jobs that are started inside. Raises SparkStreamError where Spark has ended."""
    try:
        session.addTag(tag)
    except _GONE:
        raise SparkStreamError(f"{_SPARK_ENDED}.") from None
    try:
        yield
    finally:
        with contextlib.suppress(*_GONE):
            session.removeTag(tag)


def cancel_jobs(session: SparkSession, run: str) -> None:
    """Cancels the jobs that the run of a streaming query has now, if Spark has not ended."""
    with contextlib.suppress(PySparkException, *_GONE):
        if is_remote(session):
            session.interruptAll()
        else:
            session.sparkContext.cancelJobGroup(run)


def interrupt(session: SparkSession, tag: str) -> None:
    """Cancels the jobs of a tag, if Spark has not ended."""
    with contextlib.suppress(PySparkException, *_GONE):
        session.interruptTag(tag)


def session_for(session: SparkSession, partitions: int) -> SparkSession:
    """A session of its own on the same Spark, with as many shuffle partitions as nodes have places."""
    own = sibling(session)
    for name, value in defaults().items():
        if name.startswith("spark.sql.") and own.conf.isModifiable(name):
            own.conf.set(name, value)
    own.conf.set("spark.sql.shuffle.partitions", partitions)
    own.conf.set("spark.sql.streaming.pollingDelay", _POLLING_MS)
    own.conf.set("spark.sql.adaptive.enabled", "false")
    own.dataSource.register(InboxSource)
    return own


def carried(session: SparkSession, options: Mapping[str, str], processor: NodeProcessor) -> Any:
    """The streaming frame of `journal.SCHEMA`: the inbox's blobs through the node processor."""
    return (
        session.readStream.format(InboxSource.name())
        .options(**options)
        .load()
        .groupBy("key")
        .transformWithStateInPandas(processor, journal.SCHEMA, "append", "none")
    )
