"""A deployed app at work: its files, its stream of micro-batches, its clock, and waiting for committed effects."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ... import argument_checks
from ...errors import Misuse, SparkStreamError, nearest, shown
from ...interrupts import deferred, interruptible
from ...journal.entries import Entry
from ...journal.inbox import Ticket
from ...journal.kept import clear_unnamed
from ...journal.marks import Marks
from ...journal.result_codec import error_lines, errors_of
from ...journal.routing import Route
from ...nodes.distributed import Distributed
from ...outputs.commit import Progress
from ...plan.arrival_time import ByArrival
from ...plan.distributed import placement
from ...plan.distributed.leader import LEADER
from ...plan.nodes import Plan
from ...runners.runner_protocol import Session
from ...sinks.delivery import DeliverySource
from ...sinks.target import OutputPlace
from ...sources.intake import Entrance, Intakes, IntakeSetup, SourceThread
from ...stores.store_protocol import ErrorRow
from ...types import Schema
from ..config.conf import node_files
from ..connectors.sinks import Deliveries
from ..deployment.app_folder import AppRun
from ..deployment.deployment import Deployment, milliseconds
from ..deployment.owner import Ownership
from ..deployment.scaling import scale_deployment, wanted_ids
from ..results.listeners import CommitListeners, OnCommit
from .app_clock import AppClock
from .app_files import AppDefinition, AppFiles
from .background import Feed, Feeds, feeds_of
from .feeding import FeedTarget
from .undelivered import FaultStreams

_LOOK_SECONDS = 0.1
_TRIED_SECONDS = 0.5
"""The longest wait of a deployment for its sources (s)."""
_DRAIN_SECONDS = 5.0
"""The time that sinks get to send their backlog when an app ends (s)."""
_SETTLE_SECONDS = 10.0
"""The longest wait of a view for events that were sent (s)."""


class AppRuntime:
    """A deployed app at work: its open files, its stream of micro-batches, its sources and sinks, and its clock."""

    owner: Ownership | None = None
    """The ownership of the app's folder, which `close` gives up."""
    emptied: Sequence[str] = ()
    """Removals of `fresh` from stores outside the app's folder, a sentence for each."""
    sinks: Deliveries | None = None
    intakes: Intakes | None = None

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
        self._closed = False
        self.progress = Progress()
        self.listeners = CommitListeners(deployment.name, self.progress)
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
        self.sinks = self._deliveries()
        self.target = FeedTarget(
            self.name, self.nodes, self.inbox, self.stream, self.session, self.lock,
            self.start, self.append, self.clock.now,
            self._marks(), spacing_ms=1 if self.clock.wall is None else 0, by_arrival=ByArrival.of(self.plan),
            shards=self.shard_ids, schemas=self.schemas, inputs=self.plan.input_streams,
        )  # fmt: skip
        self.intakes = self._sources()

    def _deliveries(self) -> Deliveries | None:
        """The sinks of the app, which continue where they were. New ones begin with the next micro-batch."""
        if not self.deployment.connections.sinks:
            return None
        run = self.app_run.run
        begin = max(self.progress.batch, self.store.last_committed(self.name, run)) + 1
        fault = FaultStreams(self.lock, self.inbox, self.app_run, self.routing)
        source = DeliverySource(self.outputs, self.progress, self._keep_errors, fault, self.definition.folder / "sinks")
        try:
            return Deliveries(self.deployment.connections.sinks.setups(run), source, begin)
        except SparkStreamError:
            self._close_files()
            raise

    def _sources(self) -> Intakes | None:
        """The sources of the app, which continue from their positions in the inbox."""
        if not self.deployment.connections.sources:
            return None
        return Intakes(self.deployment.connections.sources.setups(self.clock.latest_time), self._entrance(self.routing))

    def _entrance(self, route: str) -> Entrance:
        return Entrance(
            self.inbox, self.progress, self.lock, route,
            lambda: not (self.stopped or self._closed), self.append, self.clock.now, self.clock.latest_time,
        )  # fmt: skip

    def add_source(self, setup: IntakeSetup) -> SourceThread:
        """Adds a source to the running app, in place of one of its name. It starts with the app."""
        with self.lock:
            if self.intakes is None:
                self.intakes = Intakes([], self._entrance(self.routing))
            return self.intakes.add(setup)

    def remove_source(self, name: str) -> None:
        """Ends a source that was added."""
        with self.lock:
            if self.intakes is not None:
                self.intakes.remove(name)

    def _keep_errors(self, sink: str, place: OutputPlace, errors: Sequence[Sequence[Any]]) -> None:
        """Keep the events that a sink could not deliver. The ledger names those that were kept before a crash."""
        rows = [ErrorRow(*fields) for fields in errors_of(error_lines(errors))]
        if self.store.commit(self.name, f"{self.app_run.run}/{sink}", place.batch << 32 | place.row, {}, rows):
            with self.progress.changed:
                self.progress.errors += len(rows)
                self.progress.faulty.update(r.stream for r in rows)
            self.files.error_limit.count_added(len(rows))

    def _marks(self) -> Marks:
        """The progress of nodes and tasks within a micro-batch."""
        if self.deployment.groups is not None:  # its nodes do all of it themselves
            working = 1 if isinstance(self.deployment.groups, Distributed) else self.nodes
            return Marks(self.inbox.folder, working, tasks=False)
        tasks, rest = placement.split(self.parts.part_of(self.plan, leads=False))
        return Marks(self.inbox.folder, 0 if placement.idle(rest) else self.nodes, tasks=tasks is not None)

    @property
    def name(self) -> str:
        """The name under which it was deployed."""
        return self.deployment.name

    @property
    def mode(self) -> str:
        """ "single", "active-active", "ha", "scalable" or "distributed"."""
        return self.deployment.mode

    @property
    def routing(self) -> str:
        """The rule that gives an event its node: "round_robin", "hash:ATTRIBUTE", "node:K", "random:SEED" or
        "sticky"."""
        return self.deployment.routing

    @property
    def shard_ids(self) -> tuple[str, ...]:
        """The shard id of each node, in order."""
        return self.deployment.shard_ids

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.deployment.nodes

    @property
    def home(self) -> Path:
        """The app's folder."""
        return self.deployment.home

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
            if self.sinks is not None:
                self.sinks.start()
            self.stopped = False
            if self.intakes is not None:
                self.intakes.start()
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
            self._stop_sources()
            self.stream.stop()
            if self.sinks is not None:
                self.sinks.stop()

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
            self._stop_sources()
            if self.sinks is not None:
                self.sinks.stop()
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

    def _stop_sources(self) -> None:
        if self.intakes is not None:
            self.intakes.stop()

    def _end_feeds(self) -> list[Feed]:
        """Stops the feeds in the background; those that were running."""
        running = [f for f in self.feeds.values() if f.active]
        for feed in running:
            feed.end()
        return running

    def wait_tried(self) -> None:
        """Waits a little until it is known which sources are away."""
        if self.intakes is not None:
            self.intakes.wait_tried(_TRIED_SECONDS)

    @property
    def away(self) -> list[str]:
        """The sources that cannot be read and the sinks that could not deliver last, each with the reason."""
        sources = () if self.intakes is None else self.intakes.figures()
        sinks = () if self.sinks is None else self.sinks.figures()
        sentences = [f"Source {s.name} ({s.origin}) is away: {s.last_error}." for s in sources if s.last_error]
        return sentences + [f"Sink {s.name} ({s.target}): {s.last_error}." for s in sinks if s.last_error]

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
        self._stop_sources()
        if self.sinks is not None:
            self.sinks.close()
        self.files.close()

    def scale(
        self,
        nodes: int | None = None,
        *,
        shard_ids: Sequence[str] | None = None,
        conf: str | Path | Sequence[str | Path] | None = None,
    ) -> Self:
        """Changes the number of nodes of a running active-active deployment, and returns the app.

        `nodes`: the number from now on; the last ones go, new ones get the next shard ids. Or `shard_ids`, or the
        deployment files `conf` of all nodes. Events that were sent before are committed with the former nodes. Nodes
        that stay keep their state; rows that removed nodes stored are kept, and a node that comes back under its shard
        id continues where it left off. Raises `Misuse` for an app on a single node, or ids that do not differ.
        """
        if self.mode != "active-active":
            raise Misuse(f"{self.name} has mode {self.mode}; deploy it with mode='active-active' to scale it")
        argument_checks.optional_str_list("shard_ids", shard_ids)
        files = () if conf is None else tuple(node_files(conf, references=self.deployment.connections.references))
        ids = [f.shard_id for f in files] if files else shard_ids
        new_ids = wanted_ids(self.shard_ids, self.app_run.shards, nodes, ids)
        if self.app_run.leader is not None and LEADER in new_ids:
            raise Misuse(f"'{LEADER}' is the shard id of the leader: give the shard another")
        if new_ids == self.shard_ids:
            return self
        if any(feed.active for feed in self.feeds.values()):
            raise Misuse(f"{self.name} has feeds in the background: stop them, or wait for them, before it is scaled")
        deployment, plans = scale_deployment(self.deployment, self.definition.plans, new_ids, files)
        Route.parse(deployment.routing, len(new_ids))
        with self.lock, deferred():
            with interruptible():
                self.flush()
            self.stop()
            self.stream.wait_for_end()
            self._close_files()
            new_run = self.app_run.with_nodes(new_ids)
            if new_run.deployed is not None:
                new_run = replace(new_run, deployed=new_run.deployed.with_nodes(new_ids, conf))
            new_run.write(self.home)
            self._open(AppDefinition(deployment.with_arguments(fresh=False), plans, new_run))
            self.start()
        return self

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

    def flush(self) -> None:
        """Waits until everything sent is committed. Raises SparkStreamError if the app failed."""
        with self.cancel_on_interrupt():
            self.settle(None)

    def drain(self, seconds: float = 30.0) -> int:
        """Waits as `flush` does, and then until the sinks have delivered all outputs, for `seconds` at most; returns
        the number still to be sent. They are sent later, also after the app was stopped and started again.
        """
        argument_checks.check_number("seconds", seconds)
        self.flush()
        with self.cancel_on_interrupt():
            return 0 if self.sinks is None else self.sinks.drain(seconds)

    def catch_up(self, seconds: float = 60.0) -> bool:
        """Wait until the sources have read everything available, and all of it is committed, for `seconds` at most;
        returns whether they have. Raises SparkStreamError if the app failed.
        """
        argument_checks.check_number("seconds", seconds)
        self.start()
        began = time.monotonic()
        while not (self.intakes is None or self.intakes.caught_up(began)):
            remaining_seconds = began + seconds - time.monotonic()
            if remaining_seconds <= 0:
                return False
            with self.progress.changed:
                self.progress.changed.wait(min(remaining_seconds, _LOOK_SECONDS))
        with self.cancel_on_interrupt():
            last, remaining_seconds = self.inbox.position.seq - 1, began + seconds - time.monotonic()
            return self.stream.wait(last, timeout=max(remaining_seconds, 0.0))

    def settle(self, tell: Callable[[], None] | None) -> None:
        last = self.inbox.position.seq - 1
        if self.progress.last < last:
            self.start()
            self.stream.wait(last, tell=tell)

    def settle_briefly(self) -> None:
        """Wait until sent events are committed. A feed is not waited for: it continues after a micro-batch."""
        last, batch = self.inbox.position.seq - 1, self.progress.batch
        if self.progress.last >= last:
            return
        self.start()
        end = time.monotonic() + _SETTLE_SECONDS
        with self.cancel_on_interrupt():
            while not self.stream.wait(last, timeout=1.0):
                if self.progress.batch > batch or time.monotonic() > end:
                    return

    @contextlib.contextmanager
    def cancel_on_interrupt(self) -> Iterator[None]:
        """Ctrl-C and a notebook's Stop button inside cancel the app's work; events that were sent stay.

        If feeds run in the background, only the waiting ends.
        """
        try:
            yield
        except KeyboardInterrupt as stop:
            if not any(f.active for f in self.feeds.values()):
                self.stop_and_report(stop)
            raise

    def stop_and_report(self, stop: KeyboardInterrupt) -> None:
        """Stop the app, and name the events that were taken back in the interrupt."""
        retracted_events = self.interrupt()
        if retracted_events:
            stop.add_note(retraction(retracted_events))

    def finish(self, seconds: float = 60.0) -> None:
        """Takes nothing more in, and waits until all that came in is committed and Spark is done with it, and a while
        for the sinks; then stops.

        Raises SparkStreamError if that fails, or takes Spark longer than `seconds` after the last commit."""
        with self.lock:
            self.clock.stop()
            self._end_feeds()
            self._stop_sources()
            if not self._is_finished() and not self.stream.active:
                self.stream.wait_for_end()
                self.stream.start()
        self._commit_all()
        if self.sinks is not None:  # outputs of a stream whose attributes change are not sent later
            self.sinks.start()
            self.sinks.drain(_DRAIN_SECONDS)
            self._commit_all()  # events that a sink could not deliver may come in again
        end = time.monotonic() + seconds
        while not self._is_finished():  # Spark notes a batch as done after its commit
            if time.monotonic() > end or not self.stream.active:
                raise SparkStreamError(f"{self.name}: Spark did not finish its last micro-batch")
            time.sleep(0.02)
        self.stop()

    def _is_finished(self) -> bool:
        """True if Spark is done with all that came in."""
        spark = self.stream.checkpoint.read_progress()
        return spark.planned == spark.done and spark.reached == self.inbox.position.seq

    def _commit_all(self) -> None:
        last = self.inbox.position.seq - 1
        if self.progress.last < last:
            with self.cancel_on_interrupt():
                self.stream.wait(last)

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


def retraction(events: Mapping[str, int]) -> str:
    """The line that says which events, counted by stream, an interrupt took back."""
    counts = ", ".join(f"{n:,} of {stream}" for stream, n in events.items())
    return f"Interrupted: events of feeds that were not begun with were taken back: {counts}. Feed them again."
