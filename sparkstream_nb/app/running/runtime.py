"""A deployed app at work: its files, its stream of micro-batches, its sources and sinks, and its clock."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ... import argument_checks
from ...errors import Misuse, SparkStreamError, nearest, shown
from ...interrupts import deferred
from ...journal.entries import Entry
from ...journal.inbox import Ticket
from ...journal.kept import clear_unnamed
from ...journal.marks import Marks
from ...nodes.distributed import Distributed
from ...outputs.commit import Progress
from ...outputs.input_events import InboxReader
from ...plan.arrival_time import ByArrival
from ...plan.distributed import placement
from ...plan.nodes import Plan
from ...runners.runner_protocol import Session
from ...sources.intake import Entrance
from ...types import Schema
from ..deployment.app_folder import AppRun
from ..deployment.deployment import Deployment, milliseconds
from ..deployment.owner import Ownership
from ..results.listeners import CommitListeners, OnCommit
from ..results.selection_criteria import SharedSelection
from .app_clock import AppClock
from .app_connections import AppConnections
from .app_files import AppDefinition, AppFiles
from .app_waits import AppWaits, retraction
from .background import Feed, Feeds, feeds_of
from .feeding import AppStreams, FeedTarget
from .part_method import PartAttribute


class AppRuntime:
    """A deployed app at work: its open files, its stream of micro-batches, its sources and sinks, and its clock."""

    owner: Ownership | None = None
    """The ownership of the app's folder, which `close` gives up."""
    emptied: Sequence[str] = ()
    """Removals of `fresh` from stores outside the app's folder, a sentence for each."""

    def __init__(
        self,
        deployment: Deployment,
        plans: Sequence[Plan],
        app_run: AppRun,
        session: Session,
        redeployed: str | None = None,
    ) -> None:
        """`plans`: one for each node. `redeployed`: a sentence about the state of an earlier deployment."""
        self.redeployed = redeployed
        self.session = session
        self.lock = threading.RLock()
        self.waits = AppWaits(self)
        self._closed = False
        self.progress = Progress()
        self.listeners = CommitListeners(deployment.name, self.progress)
        self.selection = SharedSelection()
        self._open(AppDefinition(deployment, plans, app_run))
        clear_unnamed(self.inbox.folder)  # here: nothing feeds the app yet

    def _open(self, definition: AppDefinition) -> None:
        """Opens the app's files, with the nodes that it has from now on, and makes its sinks, sources and clock."""
        self.definition = definition
        self.deployment, self.plan, self.app_run = definition.deployment, definition.plan, definition.app_run
        self.parts, self.writers = definition.parts, definition.writers
        self.schemas: dict[str, Schema] = {s: d.source.schema for s, d in self.plan.streams.items()}
        self.stopped = False
        self.files = files = AppFiles(definition, self.session, self.progress)
        self.emptied, self.warnings = files.emptied, files.warnings
        self.store, self.inbox, self.outputs, self.stream = files.store, files.inbox, files.outputs, files.stream
        self.reports = files.reports
        self.clock = AppClock(
            definition, files, self.progress, self.lock, lambda: self.stream.active and not self.stopped
        )
        self.target = FeedTarget(
            self.name, self.nodes, self.inbox, self.stream, self.session, self.lock,
            self.start, self.append, self.clock.now,
            self._marks(), spacing_ms=1 if self.clock.wall is None else 0, shards=self.shard_ids,
            app_streams=AppStreams(self.schemas, self.plan.input_streams, ByArrival.of(self.plan)),
        )  # fmt: skip
        entrance = Entrance(
            self.inbox, self.progress, self.lock, self.routing,
            lambda: not (self.stopped or self._closed), self.append, self.clock.now, self.clock.latest_time,
        )  # fmt: skip
        try:
            self.connections = AppConnections(definition, files, entrance)
        except SparkStreamError:
            files.close()
            raise

    def _marks(self) -> Marks:
        """The progress of nodes and tasks within a micro-batch."""
        if self.deployment.groups is not None:  # its nodes do all of it themselves
            working = 1 if isinstance(self.deployment.groups, Distributed) else self.nodes
            return Marks(self.inbox.folder, working, tasks=False)
        tasks, rest = placement.split(self.parts.part_of(self.plan, leads=False))
        return Marks(self.inbox.folder, 0 if placement.idle(rest) else self.nodes, tasks=tasks is not None)

    name = PartAttribute[str]("deployment", "The name under which it was deployed.")
    mode = PartAttribute[str]("deployment", '"single", "active-active", "ha", "scalable" or "distributed".')
    routing = PartAttribute[str](
        "deployment",
        'The rule that gives an event its node: "round_robin", "hash:ATTRIBUTE", "node:K", "random:SEED" or "sticky".',
    )
    shard_ids = PartAttribute[tuple[str, ...]]("deployment", "The shard id of each node, in order.")
    nodes = PartAttribute[int]("deployment", "The number of nodes.")
    home = PartAttribute[Path]("deployment", "The app's folder.")

    @property
    def closed(self) -> bool:
        """True if it can no longer be used, because it was deployed again or all apps were stopped."""
        return self._closed

    @property
    def state(self) -> str:
        """ "running", "stopped" (by `stop` or `interrupt`) or "failed"."""
        if self.stopped:
            return "stopped"
        if self.stream.active:
            return "running"
        return "failed" if self.stream.failure() else "stopped"

    def view_state(self) -> str:
        return "closed" if self.closed else self.state

    @deferred()
    def start(self) -> None:
        """Starts the app, or starts it again where it left off. Raises SparkStreamError if that cannot be."""
        with self.lock:
            self.check_open()
            if self.stopped:
                self.stream.wait_for_end()  # it may still be busy ending the stopped query
            if not self.stream.active:
                self.target.marks.clear()
            self.stream.start()
            if self.files.mirror is not None:
                self.files.mirror.start()
            self.connections.start_sinks()
            self.stopped = False
            self.connections.start_sources()
            self.clock.start()

    @deferred()
    def stop(self) -> None:
        """Cancels the app's work, within 2 s, and stops its feeds in the background.

        State, outputs and aggregations stay; an event or a query starts it again.
        """
        with self.lock:
            self.clock.stop()
            self._end_feeds()
            self.stopped = True
            self.connections.stop_sources()
            self.stream.stop()
            self.connections.stop_sinks()

    @deferred()
    def interrupt(self) -> dict[str, int]:
        """Stops the app as `stop` does, and takes back events of feeds and queries that it had not begun to process;
        returns their number by stream, which is also in `logs`. Events that were sent stay.

        The app starts again with the next event or query; a micro-batch that was under way is then carried through.
        """
        with self.lock:
            self.clock.stop()
            ended_feeds = self._end_feeds()
            self.session.interrupt(self.target.tag)
            self.stopped = True
            self.connections.stop_sources()
            self.connections.stop_sinks()
            if not self.stream.stop():
                return {}
            seq = max(self.stream.next_unplanned(), self.progress.last + 1)
            with contextlib.nullcontext() if self.files.mirror is None else self.files.mirror.taking_back(seq):
                retracted_events = self.inbox.take_back(seq)
            for feed in ended_feeds:
                feed.withdraw(seq)
            if retracted_events:
                self.progress.say(retraction(retracted_events))
            return retracted_events

    def _end_feeds(self) -> list[Feed]:
        """Stops the feeds in the background; those that were running."""
        running = [f for f in self.feeds.values() if f.active]
        for feed in running:
            feed.end()
        return running

    @property
    def feeds(self) -> Feeds:
        """The feeds in the background since the app was deployed, by their numbers."""
        return feeds_of(self.target)

    @deferred()
    def close(self) -> None:
        """Stops the app if it runs, and closes its files. It cannot be used afterwards; calls raise an error."""
        if not self.stopped:
            self.stop()
        self._closed = True
        self.stream.wait_for_end()
        for feed in self.feeds.values():
            feed.join()
        self.listeners.clear()
        self._close_files()
        if self.owner is not None:
            self.owner.release()

    def _close_files(self) -> None:
        self.connections.close()
        self.files.close()

    def reopen(self, definition: AppDefinition) -> None:
        """Continues with the nodes of `definition`, whose run is written into the app's folder. Everything that was
        sent must be committed."""
        self.stop()
        self.stream.wait_for_end()
        self._close_files()
        definition.app_run.write(self.home)
        self._open(definition)
        self.start()

    def check_open(self) -> None:
        """Raises `Misuse` if this app was closed: a variable may still hold it after a new deployment."""
        if self._closed:
            raise Misuse(
                f"this app '{self.name}' is closed, as it was deployed again or all apps were stopped. "
                f"sparkstream_nb.get('{self.name}') is the one that runs"
            )

    def on_commit(self, callback: OnCommit) -> Callable[[], None]:
        """Calls `callback(n)` after each committed micro-batch, where `n` of the app are; returns a function that ends
        that.

        It is called on a thread of its own, outside all locks, so it may ask the app and takes the time it needs:
        commits meanwhile are reported in one call. Its exceptions are logged. It ends with `close`, thus when the app
        is deployed again.
        """
        if not callable(callback):
            raise Misuse(f"callback is a function, not {shown(callback)}")
        return self.listeners.add(callback)

    def end_input(self) -> None:
        """Takes nothing more in: of feeds, of sources, and from the clock."""
        self.clock.stop()
        self._end_feeds()
        self.connections.stop_sources()

    def tick(self, ms: int) -> None:
        """Moves the app's clock to `ms` with no event, so that windows and timers run."""
        to = milliseconds(ms, "ms")
        with self.lock:
            self.start()
            self.append([self.clock.tick_entry(to)])

    def append(self, entries: Sequence[Entry]) -> None:
        """Put a user's events into the inbox, and wait until they are on the disk."""
        self.inbox.settle(self.put(entries))

    def put(self, entries: Sequence[Entry]) -> Ticket:
        """`_append` without waiting for the disk."""
        ticket = self.inbox.put(entries)
        self.clock.note_event()
        return ticket

    def schema_of(self, stream: str) -> Schema:
        argument_checks.require_str("stream", stream)
        if stream not in self.schemas:
            raise Misuse(nearest(f"{self.name} has no stream '{stream}'", stream, self.schemas))
        return self.schemas[stream]

    def input_reader(self) -> InboxReader:
        """A reader of the events that came in."""
        run = self.app_run
        return InboxReader(self.inbox.folder, self.schemas, run.shards, run.began, run.entries)

    def remember(self, *, variable: str | None, lines_before: int) -> None:
        """Keeps which variable of the notebook holds the app, and the lines above its text, for `attach`."""
        with self.lock:
            record = self.app_run.deployed
            if record is not None:
                new_record = replace(record, variable=variable, lines_before=int(lines_before))
                self.app_run = replace(self.app_run, deployed=new_record)
                self.app_run.write(self.home)

    @property
    def remembered_variable(self) -> str | None:
        """The variable of the notebook that held the app, from its folder."""
        return None if self.app_run.deployed is None else self.app_run.deployed.variable
