"""Apps in one process, without Spark: for tests, continuous integration and a first look.

An app has a thread. It follows the inbox as Spark's source does, does the stateless work, then one node after the
other, and commits, with the functions that Spark's workers call. No JVM is started, and pyspark is not imported.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import pyarrow as pa

from ..errors import SparkStreamError
from ..journal.batch_planning import Planner
from ..journal.causes import cause_of
from ..journal.resting import forget_resting
from ..journal.result_rows import Row
from ..journal.tasks import Task, TaskFailed
from ..recovery.batch_care import BatchCare
from .app_node import AppNode
from .inline_checkpoint import BufferedState, InlineCheckpoint, Planned
from .node_spec import NodeWork
from .node_work import process_entries
from .runner_protocol import Job, NodesJob
from .stateless import SourceApp, app_of, work_off_share

ABOUT = "Runs in this process, without Spark (master='inline'): meant for tests, CI and a first look."
_ENDING_SECONDS = 60.0
_log = logging.getLogger(__name__)
_cancel_event: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


class _Stopped(BaseException):
    """The app was stopped in the middle of a micro-batch, which is repeated when it is started again."""


class InlineSession:
    """A `protocol.Session` whose apps run in this process."""

    about = ABOUT
    cores = places = 1

    def __init__(self) -> None:
        self._tags: dict[str, threading.Event] = {}

    def runner(self, job: Job) -> InlineRunner:
        return InlineRunner(job)

    def each(self, task: Task, count: int, schema: str, *, tasks: int | None = None) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        cancel_event = _cancel_event.get()
        for number in range(count):
            if cancel_event is not None and cancel_event.is_set():
                raise TaskFailed("it was cancelled")
            try:
                batches += task(iter([pa.record_batch([pa.array([number], pa.int64())], ["id"])]))
            except Exception as error:
                raise TaskFailed(_cause(error)) from error
        if batches:
            return pa.Table.from_batches(batches)
        return pa.table({column.split()[0]: pa.array([], pa.null()) for column in schema.split(",")})

    def over(self, frame: object, task: Task, schema: str) -> pa.Table:
        raise SparkStreamError("A Spark data frame needs Spark: give its toPandas(), or deploy the app on Spark.")

    @contextlib.contextmanager
    def tag_tasks(self, tag: str) -> Iterator[None]:
        event = self._tags[tag] = threading.Event()
        token = _cancel_event.set(event)
        try:
            yield
        finally:
            _cancel_event.reset(token)

    def interrupt(self, tag: str) -> None:
        event = self._tags.pop(tag, None)
        if event is not None:
            event.set()


class InlineRunner:
    """Carries an app's micro-batches in a thread of this process. A `protocol.Runner`."""

    commits_here = True

    def __init__(self, job: Job) -> None:
        self.job = job
        self.checkpoint = InlineCheckpoint(job.home / "checkpoint")
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._more = threading.Event()
        self._failure: str | None = None

    @property
    def active(self) -> bool:
        return self._alive() and self._failure is None and not self._stopping.is_set()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self, instructions: BatchCare) -> None:
        self._stopping.set()
        self._more.set()
        if self._thread is not None:
            self._thread.join(_ENDING_SECONDS)
            if self._alive():
                raise SparkStreamError(f"{self.job.name} did not start: it is still ending its former run")
        self.checkpoint.open()
        self.checkpoint.begin_again()
        self.job.commit.clear()
        self._failure, self._stopping = None, threading.Event()
        micro_batches = _MicroBatches(self.job, self.checkpoint, instructions, self._stopping)
        self._thread = threading.Thread(
            target=self._run, args=(micro_batches,), name=f"sparkstream-{self.job.name}", daemon=True
        )
        self._thread.start()

    def _run(self, micro_batches: _MicroBatches) -> None:
        stopping = micro_batches.stopping
        try:
            while not stopping.is_set():
                self._more.clear()
                if not micro_batches.work():
                    self._more.wait()
        except _Stopped:
            pass
        except BaseException as error:
            _log.info("%s ended", self.job.name, exc_info=True)
            self._failure = _cause(error)
            with self.job.commit.progress.changed:
                self.job.commit.progress.changed.notify_all()

    def notify_arrival(self) -> None:
        self._more.set()

    def failure(self) -> str | None:
        return self._failure

    def ended_for_good(self) -> bool:
        return False

    def attempts(self) -> int:
        micro_batch = self.checkpoint.unfinished_batch
        return 0 if micro_batch is None else micro_batch.tries + 1

    def settle(self) -> None:
        """Nothing is handed over: the commit is part of a micro-batch."""

    def cancel(self) -> None:
        self._stopping.set()
        self._more.set()

    def stop(self, timeout: float) -> bool:
        self.cancel()
        if self._thread is not None:
            self._thread.join(timeout)
        return not self._alive()

    def wait_for_end(self, timeout: float) -> bool:
        if self._thread is not None:
            self._thread.join(timeout)
        if self._alive():
            return False
        AppNode.release(self.job.run)
        self.checkpoint.close()
        return True

    def last_commit(self) -> tuple[int, int]:
        return self.checkpoint.done()


class InlineNodes:
    """The nodes of an app in this process: their results in one micro-batch after the other. Their large results go
    into the folder `outputs`; `check` is called between pieces of work, and may raise.
    """

    def __init__(
        self,
        job: NodesJob,
        checkpoint: InlineCheckpoint,
        instructions: BatchCare,
        outputs: Path,
        check: Callable[[], None],
    ) -> None:
        self.job, self.checkpoint, self.check = job, checkpoint, check
        inbox, keys = job.home / "inbox", job.layout.keys
        self.app: SourceApp = app_of(keys, job.specs, job.schemas, outputs=str(outputs), instructions=instructions)
        self.nodes = NodeWork(
            job.run, dict(zip(keys, job.specs, strict=True)), inbox, outputs, instructions=instructions, check=check
        )
        self.planner = Planner.of(inbox, job.retention, work=self.app.works)

    def plan(self) -> Planned | None:
        """Plans the next micro-batch; None if nothing has come in."""
        start = self.checkpoint.done_offset() or self.planner.beginning
        end = self.planner.latest(start, self.job.rows)
        return None if end == start else self.checkpoint.plan(start, end)

    def work(self, micro_batch: Planned) -> tuple[list[Row], list[BufferedState]]:
        """Output of the nodes in a micro-batch, and their states after it."""
        rows_by_key: dict[int, list[Row]] = {}
        for share in self.planner.shares(micro_batch.start, micro_batch.end):
            for key, row in work_off_share(self.nodes.folder, self.app, share, self.check):
                rows_by_key.setdefault(key, []).append(row)
        out: list[Row] = []
        states: list[BufferedState] = []
        for key, rows in sorted(rows_by_key.items()):
            self.check()
            states.append(BufferedState(self.checkpoint, key))
            out += process_entries(self.nodes, states[-1], key, rows)
        return out, states

    def release(self) -> None:
        """Drop the engines that are kept between micro-batches."""
        AppNode.release(self.job.run)


class _MicroBatches:
    """The micro-batches of an app, one after the other, until `stopping`."""

    def __init__(
        self, job: Job, checkpoint: InlineCheckpoint, instructions: BatchCare, stopping: threading.Event
    ) -> None:
        self.job, self.checkpoint, self.stopping = job, checkpoint, stopping
        self.nodes = InlineNodes(job, checkpoint, instructions, job.home / "outputs", self._check)
        forget_resting(job.home / "inbox")

    def _check(self) -> None:
        if self.stopping.is_set():
            raise _Stopped

    def work(self) -> bool:
        """Carries out the next micro-batch, or once more the one that is planned and not done; whether there is one."""
        micro_batch = self.checkpoint.unfinished_batch or self.nodes.plan()
        if micro_batch is None:
            return False
        commit = self.job.commit
        began = commit.clock()
        rows, states = self.nodes.work(micro_batch)
        self._check()
        commit.commit(sorted(rows, key=lambda row: (row.node, row.seq)), micro_batch.batch, began)
        self.checkpoint.finish(micro_batch, states)
        self.nodes.planner.done(micro_batch.end)
        return True


def _cause(error: BaseException) -> str:
    """Cause of an error, in the line that a traceback of Spark's would give."""
    return cause_of("".join(traceback.format_exception(error)))
