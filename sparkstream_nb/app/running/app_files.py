"""The files of a running app: its store, its journal, its outputs, and the runner of its micro-batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...errors import SparkStreamError
from ...journal.batch_planning import ROWS_PER_TRIGGER
from ...journal.checkpoints import SparkCheckpoint
from ...journal.inbox import Inbox
from ...journal.kept import JournalRetention, list_missing
from ...journal.mirror import Mirror
from ...journal.private import private_folder
from ...outputs.commit import AfterCommit, Commit, CommittedRun, ErrorLimit, Progress
from ...outputs.last_reports import LastReports
from ...outputs.merging import Merging
from ...outputs.output_files import OutputFiles
from ...plan.distributed.leader import LEADER, Parts
from ...plan.nodes import Plan
from ...runners.runner_protocol import Job, Session
from ...runners.spark.handover import left
from ...runners.stream import Stream
from ...stores import Store, shard_warnings
from ...stores.address import MEMORY
from ...stores.patience import Patience
from ..connectors.stores import open_store, prepare_tables
from ..deployment.app_folder import AppRun
from ..deployment.changing import purge_dropped
from ..deployment.deployment import Deployment
from ..deployment.emptied import outside_stores
from ..deployment.node_plans import node_specs
from ..deployment.whole import Found, check_whole, not_whole


@dataclass(frozen=True)
class AppDefinition:
    """A deployment, the plan of each of its nodes, and its run in the app's folder."""

    deployment: Deployment
    plans: Sequence[Plan]
    app_run: AppRun

    @property
    def plan(self) -> Plan:
        """The plan of the first node."""
        return self.plans[0]

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.app_run.folder(self.deployment.home)

    @cached_property
    def parts(self) -> Parts:
        """The parts of the plan that the leader does, and the nodes."""
        return Parts(self.plan, self.deployment.led)

    def writers(self, aggregation: str) -> tuple[str, ...]:
        """The shard ids under which an aggregation is stored."""
        duty = self.parts.duty
        leads = duty is not None and aggregation in duty.aggregations
        return (LEADER,) if leads else self.deployment.shard_ids


class AppFiles:
    """The open files of an app. `emptied`: removals of `fresh` from stores outside the app's folder, a sentence for
    each; `warnings`: about stores that other deployments share.

    Raises SparkStreamError if they cannot be opened, or parts of the app's folder are missing; nothing stays open then.
    """

    def __init__(self, definition: AppDefinition, session: Session, progress: Progress) -> None:
        self._definition, self._session, self._progress = definition, session, progress
        deployment, app_run, folder = definition.deployment, definition.app_run, definition.folder
        purge_dropped(deployment.home, deployment.name, app_run, own_store=deployment.request.store is None)
        self.emptied: Sequence[str] = ()
        self.store = self._open_store()
        prepare_tables(deployment.connections.tables, Patience(tell=progress.say))
        self.warnings = [*self.emptied, *self._shard_warnings()]
        try:
            self.inbox = Inbox(folder / "inbox", over=app_run.over)
        except (SparkStreamError, NotADirectoryError) as error:
            self.store.close()
            if isinstance(error, NotADirectoryError):
                raise not_whole(deployment.home, "its inbox is a file, and was a folder") from None
            raise
        self.mirror = self._open_mirror()
        self.outputs = OutputFiles(folder / "outputs", app_run.shards)
        self.reports = None if deployment.groups is None else LastReports(folder / "nodes.json")
        self.error_limit = ErrorLimit(self.store, deployment.name, deployment.retention.errors, progress)
        try:
            job = self._job()
            self.stream = Stream(job, session.runner(job))
        except SparkStreamError:
            self.inbox.close()
            self.store.close()
            raise
        self.inbox.tell = self.stream.runner.notify_arrival
        try:
            check_whole(deployment.home, self._read_contents())
        except SparkStreamError:
            self.close()
            raise
        self._continue_progress()

    def _open_store(self) -> Store:
        """The store of the aggregations; emptied where one that is not in the app's folder is to be fresh."""
        d, aggregations = self._definition.deployment, self._definition.plan.aggregations
        patience = Patience(tell=self._progress.say)
        trash = d.home / "trash" / self._definition.app_run.run
        outside = outside_stores(d, aggregations.values(), trash) if d.request.fresh else ()
        for place in outside:
            place.copy_to_trash()
        threads = 1 if self._session.cores == 1 else None  # for work on one core a second thread only costs
        own_file = d.home / "store.duckdb"
        file = own_file if d.request.store is None else d.request.store
        store = open_store(file, d.connections.databases, patience, threads)
        sentences = (place.empty(store, self._definition.writers) for place in outside)
        self.emptied = [sentence for sentence in sentences if sentence is not None]
        store.prepare(aggregations.values())
        return store

    def _shard_warnings(self) -> list[str]:
        aggregations = (a for a in self._definition.plan.aggregations.values() if a.partitioned)
        return [w for a in aggregations for w in shard_warnings(self.store, a.id, self._definition.writers(a.id))]

    def _open_mirror(self) -> Mirror | None:
        """The mirror of the inbox at a shared address, if there is one."""
        shared = self._definition.app_run.shared_folder
        if shared is None:
            return None
        retention, progress = self._definition.deployment.retention, self._progress
        journal = JournalRetention(self.inbox.folder, retention.recording, retention.days)
        return Mirror(self.inbox.folder, shared, journal, lambda: progress.last, progress.say)

    def _job(self) -> Job:
        deployment, app_run, plan = self._definition.deployment, self._definition.app_run, self._definition.plan
        merging = Merging(self.outputs, deployment.retention)
        after = AfterCommit(merging, self.reports, self.error_limit, self.inbox.folder, self.inbox.arrivals)
        shared = None if self.mirror is None else self.mirror.shared
        run = CommittedRun(deployment.name, app_run.run, app_run.shards, plan, shared)
        commit = Commit(run, self.store, self.outputs, self._progress, after)
        return Job(
            name=deployment.name,
            home=self._definition.folder,
            run=app_run.run,
            specs=node_specs(deployment, self._definition.plans, app_run),
            schemas={s: d.source.schema for s, d in plan.streams.items()},
            commit=commit,
            rows=deployment.request.rows_per_micro_batch or ROWS_PER_TRIGGER,
            retention=deployment.retention,
            mirror=self.mirror,
            partitions=app_run.partitions,
        )

    def _read_contents(self) -> Found:
        """The contents of the app's folder. Raises SparkStreamError if the checkpoint or the journal cannot be
        read."""
        deployment, app_run, folder = self._definition.deployment, self._definition.app_run, self._definition.folder
        checkpoint, entries = self.stream.checkpoint, self.inbox.position.seq
        if isinstance(checkpoint, SparkCheckpoint):
            checkpoint.check_logs()
        spark = checkpoint.read_progress()
        # A Connect server is ahead of the store until the owner has committed the batches handed over.
        commits_here = deployment.request.store != MEMORY and self.stream.runner.commits_here
        ledger = self.store.last_committed(deployment.name, app_run.run) if commits_here else None
        outputs = folder / "outputs"
        if spark.done < 0:
            private_folder(outputs)
        missing = list_missing(self.inbox.folder, checkpoint.done_offset()) if entries >= spark.reached else ()
        handed_over = ledger is not None and ledger < spark.done and bool(left(folder, app_run.shared_folder))
        lacking = self.outputs.describe_lacking() if outputs.is_dir() else None
        last_output = self.outputs.accounted_batch if outputs.is_dir() and lacking is None else -1
        return Found(entries, spark, ledger, outputs.is_dir(), missing, handed_over, lacking, last_output)

    def _continue_progress(self) -> None:
        """The figures of an earlier process."""
        progress, arrivals = self._progress, self.inbox.arrivals
        progress.batch, progress.last = self.stream.last_commit()
        if not progress.rows:
            progress.rows = self.outputs.totals()
            progress.faulty = Counter(self.store.errors(self._definition.deployment.name)["stream"].to_pylist())
            progress.errors = progress.faulty.total()
        progress.throughput.begin(arrivals.total, arrivals.through(progress.last))

    def close(self) -> None:
        """Closes them. The stream has to be stopped before."""
        if self.mirror is not None:
            self.mirror.stop()
        self.inbox.close()
        self.store.close()
