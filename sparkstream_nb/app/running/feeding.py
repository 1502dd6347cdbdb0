"""Feeds: reads a source, puts its entries into the app's inbox, and follows them until they are committed.

A feed in the foreground goes into the inbox all at once. One in the background goes in slices, the next when the
last one is committed: so it can be paused and stopped, other events and queries come in between, and several feeds
share the app.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ...engine.columnar.columns import Array
from ...errors import Misuse, SparkStreamError
from ...ingest.time_formats import looks_wrong
from ...journal.entries import Entry
from ...journal.inbox import Inbox
from ...journal.marks import Marks
from ...plan.arrival_time import NOTHING, ByArrival
from ...runners.protocol import Session
from ...runners.stream import Stream
from ...sources import feeds
from ..deployment.deployment import utc
from ..results.answers import FeedReport
from ..results.frontend import Displayed
from ..results.progress import FeedProgress, OnProgress

SLICE_SECONDS = 0.8
"""Seconds for a slice of a background feed: a pause takes effect after it."""
WATCH_SECONDS = 0.25
"""The shortest interval between two reports of a feed (s)."""
_JOIN_SECONDS = 2.0
_MOST_NAMED = 3
"""Elements of an app that a note names."""

FeedState = Literal["reading", "running", "paused", "stopping", "done", "stopped", "failed"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FeedTarget:
    """The interface of an app, as a feed uses it. `start` starts the app if it does not run, `append` puts entries into
    the inbox, and `now` is the time (ms) of the next event without one; these three are called with `lock` held. Such
    events of a feed are `spacing_ms` ms apart. `by_arrival`: the elements of the app for which the time of arrival
    matters."""

    name: str
    nodes: int
    inbox: Inbox
    stream: Stream
    session: Session
    lock: threading.RLock
    start: Callable[[], None]
    append: Callable[[Sequence[Entry]], None]
    now: Callable[[], int]
    marks: Marks
    spacing_ms: int = 1
    by_arrival: ByArrival = NOTHING

    def after(self, now: int, events: int) -> int | None:
        """The time (ms) that follows a number of events without one, the first at `now`; None: the time of the clock
        then."""
        return now + self.spacing_ms * events if self.spacing_ms else None

    def tag_tasks(self) -> contextlib.AbstractContextManager[None]:
        """Marks the tasks started inside, for `App.interrupt`. Raises SparkStreamError if Spark has ended."""
        return self.session.tag_tasks(self.tag)

    @property
    def tag(self) -> str:
        return f"sparkstream-feed-{self.stream.job.run}"


@dataclass(frozen=True)
class FeedRequest:
    """A request for a feed: `limit` is the number of rows, `route` overrides the app's routing. `followed`: it is
    committed in slices, as someone watches the app's commits. `stopped`: the app was, and runs again by this.
    """

    source: Any
    shape: feeds.Shape
    route: str
    limit: int | None = None
    followed: bool = False
    stopped: bool = False


@dataclass
class Loaded:
    """A feed that was read: its chunks in the inbox's folder, the highest time of each, and reasons of rejections, of
    those rows that are `kept` at most. `notes` are warnings for the user, and `expected` is an example of a time.
    """

    typed: feeds.FeedOnDisk
    highest: Array
    reasons: dict[str, int]
    notes: Sequence[str] = ()
    expected: str | None = None
    kept: int | None = None

    def part(self, at: int, most: int) -> Loaded:
        """`most` chunks from number `at` on; the rejected rows go with the first."""
        typed = replace(self.typed, chunks=self.typed.chunks[at : at + most])
        if at:
            typed = replace(typed, rejects=[], rejected=0)
        return replace(self, typed=typed, highest=self.highest[at:])


def load(target: FeedTarget, request: FeedRequest) -> Loaded:
    """Reads a feed and puts it in order of event time. Raises SparkStreamError for a source that is no feed."""
    folder, shape, mirror = target.inbox.folder, request.shape, target.stream.job.mirror
    with target.tag_tasks():
        typed = feeds.read_feed(
            request.source, shape, folder, target.session, request.limit, nodes=target.nodes,
            shared=None if mirror is None else mirror.shared,
        )  # fmt: skip
    highest = np.empty(0, np.int64)
    try:
        if shape.time is not None:
            typed, highest = feeds.in_order(typed, folder, shape.chunk_rows)
        odd = looks_wrong(highest) if shape.time is not None else None
        notes = [odd] if odd is not None else _of_times(target, shape, typed, highest)
        notes = [*notes, *typed.doubts.words(shape.written.zone)]
        if request.stopped:
            notes.append(f"{target.name} was stopped, and runs again.")
        return Loaded(typed, highest, feeds.reasons(typed, folder), notes, shape.written.example(), shape.kept)
    except SparkStreamError:
        feeds.discard(typed, folder)
        raise


def _of_times(target: FeedTarget, shape: feeds.Shape, typed: feeds.FeedOnDisk, highest: Array) -> list[str]:
    """Notes on the times of a feed's events, where the time of their arrival matters and is another one."""
    concerned, reached = target.by_arrival, target.inbox.position.clock
    if not concerned or not target.spacing_ms or not typed.rows:
        return []
    if shape.time is None:
        came = f"the events are {target.spacing_ms} ms apart, from {utc(target.now())} on"
        return [f"No column of times was given (--time, time=): {came}. That matters to {_list_names(concerned.all)}."]
    late = 0 if reached is None else feeds.rows_before(typed, target.inbox.folder, highest, reached)
    if reached is None or not late:
        return []
    what = "1 event is" if late == 1 else f"{late:,} events are"
    note = f"{what} earlier than the app's clock, which is at {utc(reached)}."
    if concerned.aggregations:
        return [
            f"{note} {_list_names(concerned.aggregations)} counts them at the clock's time; an aggregation with "
            "`aggregate by` counts them where they belong."
        ]
    return [f"{note} {_list_names(concerned.queries)} takes them after the events received before."]


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


class Account:
    """Figures of one feed: its entries in the inbox, and their progress."""

    def __init__(self, target: FeedTarget, stream: str) -> None:
        self.target, self.stream = target, stream
        self.began = clock.perf_counter()
        self.reading = 0.0
        self.loaded: Loaded | None = None
        self.entries: list[Entry] = []
        self.before = dict(target.stream.progress.rows)

    def read(self, loaded: Loaded) -> None:
        """The feed is read."""
        self.loaded, self.reading = loaded, clock.perf_counter() - self.began

    def append(self, entries: Sequence[Entry]) -> int:
        """Puts entries into the inbox, with the app's lock held; the number of the last of them."""
        inbox = self.target.inbox
        first = inbox.position.seq
        self.target.append(entries)
        self.entries += [replace(e, seq=first + i) for i, e in enumerate(entries)]
        return inbox.position.seq - 1

    def withdraw(self, seq: int) -> None:
        """The entries from number `seq` on were taken back."""
        self.entries = [e for e in self.entries if e.seq < seq]

    def progress(self) -> FeedProgress:
        """The feed's progress now."""
        p, took = self.target.stream.progress, clock.perf_counter() - self.began
        if self.loaded is None:
            return FeedProgress(self.stream, 0, None, 0, p.batch + 1, took)
        typed = self.loaded.typed
        done = self.target.marks.steps(self.entries, p.last)
        return FeedProgress(self.stream, done, typed.rows, typed.rejected, p.batch + 1, took, self.reading)

    def report(self) -> FeedReport:
        """The feed's report, when it is over."""
        assert self.loaded is not None
        typed, after = self.loaded.typed, self.target.stream.progress.rows
        outputs = {s: n - self.before.get(s, 0) for s, n in after.items() if n > self.before.get(s, 0)}
        return FeedReport(
            self.target.name,
            self.stream,
            typed.rows + typed.rejected,
            typed.rejected,
            clock.perf_counter() - self.began,
            outputs,
            self.loaded.reasons,
            not_fed=typed.rows - sum(e.steps for e in self.entries),
            notes=self.loaded.notes,
            time=self.loaded.expected,
            kept=self.loaded.kept,
        )


def feed(
    target: FeedTarget, request: FeedRequest, settle: Callable[[Callable[[], None]], None], progress: OnProgress
) -> FeedReport:
    """Feed all of a source at once, or chunk by chunk if it is followed. `settle(tell)` waits until the app is
    through, and calls `tell` meanwhile.
    """
    account = Account(target, request.shape.stream)
    progress(account.progress())
    with target.lock:
        target.start()
    loaded = load(target, request)
    if request.followed:
        loaded.typed = feeds.with_own_files(loaded.typed, target.inbox.folder)
    account.read(loaded)
    most = 1 if request.followed else max(1, len(loaded.typed.chunks))
    start, at = None, 0
    while at == 0 or at < len(loaded.typed.chunks):
        part = loaded.part(at, most)
        with target.lock:
            now = target.now() if start is None else start
            entries = feeds.entries(
                part.typed, request.shape, target.inbox, request.route, part.highest, now, target.spacing_ms
            )
            if entries:
                try:
                    account.append(entries)
                except SparkStreamError:
                    feeds.discard(loaded.part(at, len(loaded.typed.chunks)).typed, target.inbox.folder)
                    raise
        settle(lambda: progress(account.progress()))
        progress(account.progress())
        start, at = target.after(now, part.typed.rows), at + most
    return account.report()


# ------------------------------------------------------------------------------------------------- in the background


class Feed(Displayed):
    """A feed in the background. Made by `App.feed(..., background=True)`; a notebook shows it as a line that moves.

    `id` numbers the feeds of this process from 1. `state` is "reading", "running", "paused", "stopping", "done",
    "stopped" or "failed"; `error` is the error of a failed one.
    """

    def __init__(self, target: FeedTarget, request: FeedRequest) -> None:
        self.id = 0
        self.error: SparkStreamError | None = None
        self._target, self._request = target, request
        self._account = Account(target, request.shape.stream)
        self._changed = threading.Condition()
        self._state: FeedState = "reading"
        self._pausing = self._stopping = self._leaving = False
        self._report: FeedReport | None = None
        self._final: FeedProgress | None = None
        self._watching: dict[object, Callable[[], None]] = {}
        self._told = 0.0
        self._thread = threading.Thread(target=self._run, name=f"sparkstream-feed-{target.name}", daemon=True)

    @property
    def app(self) -> str:
        """The app's name."""
        return self._target.name

    @property
    def stream(self) -> str:
        """The stream that is fed."""
        return self._request.shape.stream

    @property
    def state(self) -> FeedState:
        """The feed's state: see the class."""
        if self._state == "running":
            return "stopping" if self._stopping else "paused" if self._pausing else "running"
        return self._state

    @property
    def under_way(self) -> int:
        """Events that are in the app and not committed: a feed that was paused or asked to stop finishes these first.
        """
        last = self._target.stream.progress.last
        return sum(entry.steps for entry in list(self._account.entries) if entry.seq > last)

    @property
    def active(self) -> bool:
        """True if it may still put events into its app."""
        return self._state in ("reading", "running")

    @property
    def progress(self) -> FeedProgress:
        """The progress, also after the end."""
        return self._final or self._account.progress()

    @property
    def report(self) -> FeedReport | None:
        """The report; None while it runs, and if it failed."""
        return self._report

    def summary(self) -> str:
        return f"<Feed {self.id} of {self.app}: {self.state}, {self.progress}>"

    def pause(self) -> None:
        """Begins no further micro-batch of this feed until `resume`. The one under way is carried through."""
        self._order(pausing=True)

    def resume(self) -> None:
        """Continue after `pause`."""
        self._order(pausing=False)

    def stop(self) -> None:
        """Stop feeding. Events that are in the app stay, and the micro-batch under way is carried through: see `wait`.
        """
        self._order(stopping=True)

    def wait(self, timeout: float | None = None) -> FeedReport:
        """The report, when the feed is done or stopped. Raises SparkStreamError if it failed, and TimeoutError after
        `timeout` seconds. Ctrl-C ends the waiting alone."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self.active, timeout):
                raise TimeoutError(f"Feed {self.id} of {self.app} is not over after {timeout:g} s.")
        if self._report is None:
            raise self.error or SparkStreamError(f"Feed {self.id} of {self.app} has no report.")
        return self._report

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` about four times a second while the feed runs, and once when it is over; returns a function
        that ends that. Exceptions of the callback are logged, and end it too.
        """
        key = object()
        with self._changed:
            over = not self.active
            if not over:
                self._watching[key] = callback
        if over:
            callback()
        return lambda: self._unwatch(key)

    # The app's side ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts to feed."""
        self._thread.start()

    def end(self) -> None:
        """The app is being stopped, and its lock is held: nothing more of this feed enters it."""
        with self._changed:
            self._leaving = self._stopping = True
            self._changed.notify_all()

    def withdraw(self, seq: int) -> None:
        """The inbox's entries from number `seq` on were taken back."""
        self._account.withdraw(seq)

    def join(self) -> None:
        """Waits a little for the feed's thread."""
        self._thread.join(_JOIN_SECONDS)

    # The thread --------------------------------------------------------------------------------------------------

    def _order(self, *, pausing: bool | None = None, stopping: bool | None = None) -> None:
        with self._changed:
            self._pausing = self._pausing if pausing is None else pausing
            self._stopping = self._stopping if stopping is None else stopping
            self._changed.notify_all()
        self._tell(now=True)

    def _run(self) -> None:
        state: FeedState = "failed"
        try:
            state = "done" if self._run_slices() else "stopped"
        except SparkStreamError as error:
            if self._stopping:
                state = "stopped"
            else:
                self.error = error
        except Exception as error:
            if self._leaving:
                state = "stopped"
            else:
                _log.exception("Feed %d of %s failed", self.id, self.app)
                self.error = SparkStreamError(f"{type(error).__name__}: {error}")
        if state != "done":
            self._drop_rest()
        final = self._account.progress()
        with self._changed:
            self._final = final
            if state != "failed":
                self._report = self._account.report() if self._account.loaded else self._empty_report(final)
            self._state = state
            self._changed.notify_all()
        self._tell(now=True)
        self._watching.clear()

    def _empty_report(self, final: FeedProgress) -> FeedReport:
        return FeedReport(self.app, self.stream, 0, 0, final.seconds)

    def _run_slices(self) -> bool:
        """Puts slice after slice into the app; False if it was stopped before the last one."""
        loaded = load(self._target, self._request)
        loaded.typed = feeds.with_own_files(loaded.typed, self._target.inbox.folder)
        with self._changed:
            self._account.read(loaded)
            self._state = "running"
        chunks, at, most = loaded.typed.chunks, 0, 1
        start = None
        while at < len(chunks) or at == 0:
            if not self._may_go_on():
                return False
            part = loaded.part(at, most)
            began = clock.perf_counter()
            with self._target.lock:
                if self._leaving:
                    continue
                now = self._target.now() if start is None else start
                entries = feeds.entries(
                    part.typed, self._request.shape, self._target.inbox, self._request.route, part.highest, now,
                    self._target.spacing_ms,
                )  # fmt: skip
                if not entries:
                    return True
                self._target.start()
                last = self._account.append(entries)
            start = self._target.after(now, part.typed.rows)
            self._target.stream.wait(last, tell=self._tell_running)
            at += most
            took = clock.perf_counter() - began
            most = max(1, min(2 * most, int(most * SLICE_SECONDS / took)))
        return True

    def _may_go_on(self) -> bool:
        """Wait as long as the feed is paused; False if it is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or not self._pausing)
            return not self._stopping

    def _drop_rest(self) -> None:
        """Remove the files of rows that are not fed."""
        typed = self._account.loaded.typed if self._account.loaded else feeds.FeedOnDisk()
        for name in {c.file for c in typed.chunks} - {e.file for e in self._account.entries}:
            (self._target.inbox.folder / name).unlink(missing_ok=True)

    def _tell_running(self) -> None:
        if self._leaving:
            raise SparkStreamError("stopped")
        self._tell()

    def _tell(self, *, now: bool = False) -> None:
        moment = clock.monotonic()
        if not now and moment - self._told < WATCH_SECONDS:
            return
        self._told = moment
        for key, callback in list(self._watching.items()):
            try:
                callback()
            except Exception:
                _log.exception("What watches feed %d of %s failed", self.id, self.app)
                self._unwatch(key)

    def _unwatch(self, key: object) -> None:
        self._watching.pop(key, None)


@dataclass(frozen=True, repr=False, eq=False)
class Feeds(Displayed, Mapping[int, Feed]):
    """The feeds in the background of this process, by their numbers; those that are over too."""

    feeds: dict[int, Feed] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Feed:
        return self.feeds[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self.feeds)

    def __len__(self) -> int:
        return len(self.feeds)

    def summary(self) -> str:
        return f"<Feeds: {', '.join(f.summary() for f in self.feeds.values()) or 'none'}>"


_feeds: dict[int, Feed] = {}
_numbers = itertools.count(1)


def start_feed(target: FeedTarget, request: FeedRequest) -> Feed:
    """A feed that runs in the background."""
    if not _feeds:
        atexit.register(_end_feeds)
    made = Feed(target, replace(request, shape=replace(request.shape, fine=True)))
    made.id = next(_numbers)
    _feeds[made.id] = made
    made.begin()
    return made


def feeds_of(target: FeedTarget) -> Feeds:
    """The feeds of one app."""
    return Feeds({n: f for n, f in _feeds.items() if f._target is target})


def all_feeds() -> Feeds:
    """The feeds in the background of this process, by their numbers; those that are over too."""
    return Feeds(dict(_feeds))


def feed_of(number: int) -> Feed:
    """The feed of this number. Raises `Misuse` if there is none."""
    if number not in _feeds:
        known = ", ".join(map(str, _feeds)) or "none"
        raise Misuse(f"there is no feed {number}. Feeds: {known}")
    return _feeds[number]


def _end_feeds() -> None:
    """End the feeds when the process ends: their threads, and those that commit their events, must be over before
    Python is.
    """
    running = [f for f in _feeds.values() if f.active]
    for f in running:
        f.end()
    for stream in {f._target.stream for f in running}:
        stream.stop()
    for f in running:
        f.join()
