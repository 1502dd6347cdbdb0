"""Feeds in the background.

Their rows go into the app in slices, the next when the last one is committed: so a feed can be paused, stepped and
stopped, other events and queries come in between, and several feeds share the app.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import threading
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ... import argument_checks
from ...durations import describe_time
from ...errors import Misuse, SparkStreamError
from ...sources import feeds
from ..deployment.deployment import milliseconds
from ..results.answers import FeedReport
from ..results.feed_progress import FeedProgress
from ..results.frontend import Displayed
from ..results.listings import Directory
from .feeding import Account, FeedRequest, FeedSource, FeedTarget
from .pace import DueRows, Pace, Pacer

SLICE_SECONDS = 0.8
"""Seconds for a slice of a feed that goes as fast as it can: a pause takes effect after it."""
FIRST_SLICE = 50_000
"""Rows of the first slice; a later one has no fewer, as a micro-batch takes its time whatever it has."""
WATCH_SECONDS = 0.25
"""The shortest interval between two reports of a feed (s)."""
_JOIN_SECONDS = 2.0
_LONGEST_WAIT = 1.0
"""The longest time (s) after which a feed that waits for its pace looks again."""

FeedState = Literal["reading", "running", "paused", "stopping", "done", "stopped", "failed"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FeedPosition:
    """The place in a feed: `events` were fed and `remaining` were not; `time` is the event time (ms) of the last one,
    if it has any.
    """

    events: int
    remaining: int
    time: int | None

    def __str__(self) -> str:
        at = "" if self.time is None else f", at {describe_time(self.time)}"
        return f"{self.events:,} {'event' if self.events == 1 else 'events'} fed{at}, {self.remaining:,} remaining"


class Feed(Displayed):
    """A feed in the background. Made by `App.feed(..., background=True)`; a notebook shows it as a line that moves.

    `id` numbers the feeds of this process from 1; `app` is the name of the app. `state` is "reading", "running",
    "paused", "stopping", "done", "stopped" or "failed"; `error` is the error of a failed one. `seconds`
    gives the time for its pace.
    """

    def __init__(
        self, target: FeedTarget, request: FeedRequest, seconds: Callable[[], float] = clock.monotonic
    ) -> None:
        self.id, self.app = 0, target.name
        self.error: SparkStreamError | None = None
        self._target, self._request, self._seconds = target, request, seconds
        self._condition = threading.Condition()
        self._watching: dict[object, Callable[[], None]] = {}
        self._told_at = 0.0
        self._leaving = False
        self._reset()

    def _reset(self) -> None:
        """Prepares for the beginning."""
        self._account = Account(self._target, self._request)
        self._pacer = Pacer(self._request.pace, self._seconds)
        self._state: FeedState = "reading"
        self._pausing, self._stopping = self._request.paused, False
        self._steps = 0
        self._until: int | None = None
        self._again = self._idle = False
        self._joining: list[FeedSource] = []
        self._over = False
        self._report: FeedReport | None = None
        self._final: FeedProgress | None = None
        self._thread = threading.Thread(target=self._run, name=f"sparkstream-feed-{self._target.name}", daemon=True)

    @property
    def stream(self) -> str:
        """The stream that is fed, or the streams."""
        return self._account.streams

    @property
    def state(self) -> FeedState:
        """The feed's state: see the class."""
        if self._state == "running":
            return "stopping" if self._stopping else "paused" if self._pausing else "running"
        return self._state

    @property
    def pace(self) -> Pace:
        """The pace: `speed`, `rate`, or neither."""
        return self._pacer.pace

    @property
    def has_times(self) -> bool:
        """True if events have event times, so that `speed` and `step_until` can be used."""
        return self._request.recording is not None or all(s.shape.time for s in self._request.sources)

    @property
    def position(self) -> FeedPosition:
        """The place in the feed. Raises SparkStreamError while the feed is still being read."""
        if self._state == "reading":
            raise SparkStreamError(f"Feed {self.id} of {self.app} is being read: it has no position yet.")
        cursor = self._account.cursor
        return FeedPosition(cursor.rows_done, cursor.left, cursor.last_time)

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
        state = self.state
        return f"<Feed {self.id} of {self.app}: {state}, {self.progress.describe(state)}>"

    def pause(self) -> None:
        """Begins no further micro-batch of this feed until `resume`. The one under way is carried through."""
        self._order(pausing=True)

    def resume(self) -> None:
        """Continues after `pause`."""
        with self._condition:
            self._steps, self._until = 0, None
        self._order(pausing=False)

    def stop(self) -> None:
        """Stops feeding. Events that are in the app stay, and the micro-batch under way is carried through: see
        `wait`."""
        self._order(stopping=True)

    def step(self, events: int = 1, *, wait: bool = True) -> None:
        """Feeds the next `events`, and pauses; returns when they are committed, or with `wait=False` at once. Raises
        SparkStreamError if the feed failed."""
        argument_checks.optional_int("events", events, 1)
        with self._condition:
            self._steps += events
            self._idle = False
        self._step(wait)

    def step_until(self, time: int | str | datetime, *, wait: bool = True) -> None:
        """Feeds the events up to an event time (ms since 1970, a datetime or an ISO text), inclusive, and pauses;
        returns as `step` does. Raises `Misuse` if the feed has no event times."""
        until = milliseconds(time, "time")
        self._require_times("step_until")
        with self._condition:
            self._until = until
            self._idle = False
        self._step(wait)

    def _step(self, wait: bool) -> None:
        self._order(pausing=True)
        if wait:
            with self._condition:
                self._condition.wait_for(lambda: self._idle or not self.active)
            if self.error is not None:
                raise self.error

    def set_pace(self, speed: float | None = None, rate: float | None = None) -> None:
        """Changes the pace from now on: `speed` or `rate`, or neither for as fast as possible. Raises `Misuse` as
        `App.feed` does."""
        pace = Pace.of(speed, rate)
        if pace.speed is not None:
            self._require_times("speed")
        with self._condition:
            self._pacer = Pacer(pace, self._seconds)
            self._condition.notify_all()
        self._tell(now=True)

    def restart(self) -> None:
        """Feeds the sources again from their beginning, also after the end. The app keeps what it has: its clock does
        not go back, so their events are behind it until the feed reaches the same time again."""
        with self._condition:
            if not self._over:
                self._again = True
                self._condition.notify_all()
                return
        self.join()
        self._reset()
        self.begin()

    def wait(self, timeout: float | None = None) -> FeedReport:
        """The report, when the feed is done or stopped. Raises SparkStreamError if it failed, and TimeoutError after
        `timeout` seconds. Ctrl-C ends the waiting alone."""
        with self._condition:
            if not self._condition.wait_for(lambda: not self.active, timeout):
                raise TimeoutError(f"Feed {self.id} of {self.app} is not over after {timeout:g} s.")
        if self._report is None:
            raise self.error or SparkStreamError(f"Feed {self.id} of {self.app} has no report.")
        return self._report

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` about four times a second while the feed runs, and when it is over, also after `restart`;
        returns a function that ends that. Exceptions of the callback are logged, and end it too.
        """
        key = object()
        with self._condition:
            over = not self.active
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
        with self._condition:
            self._leaving = self._stopping = True
            self._condition.notify_all()

    def withdraw(self, seq: int) -> None:
        """The inbox's entries from number `seq` on were taken back."""
        self._account.withdraw(seq)

    def join(self) -> None:
        """Waits a little for the feed's thread."""
        self._thread.join(_JOIN_SECONDS)

    def merge(self, sources: Sequence[FeedSource]) -> bool:
        """Merges further sources, which are read before the next slice; False if the feed is over, or its events have
        no times or come in disorder."""
        with self._condition:
            have_times = all(s.shape.time for s in self._request.sources)
            if self._over or not have_times or self._request.disorder is not None:
                return False
            self._joining += sources
            self._condition.notify_all()
            return True

    # The thread --------------------------------------------------------------------------------------------------

    def _require_times(self, what: str) -> None:
        if not self.has_times:
            raise Misuse(f"{what} goes by event time, and this feed has none: name its column with time=")

    def _order(self, *, pausing: bool | None = None, stopping: bool | None = None) -> None:
        with self._condition:
            self._pausing = self._pausing if pausing is None else pausing
            self._stopping = self._stopping if stopping is None else stopping
            self._condition.notify_all()
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
        self._account.close()
        final = self._account.progress()
        with self._condition:
            self._over = True
            self._final = final
            if state != "failed":
                self._report = self._account.report()
            self._state = state
            self._condition.notify_all()
        self._tell(now=True)

    def _run_slices(self) -> bool:
        """Puts slice after slice into the app; False if it was stopped before the last one."""
        account, target = self._account, self._target
        account.read(self._request.sources)
        with self._condition:
            self._state = "running"
        least = most = min(FIRST_SLICE, feeds.CHUNK_ROWS)
        start, first = None, True
        while (due := self._next_due(first=first)) is not None:
            began = clock.perf_counter()
            with target.lock:
                if self._leaving:
                    continue
                now = target.now() if start is None else start
                target.start()
                rows = account.put(now, most if due.rows is None else min(most, due.rows), due.until)
            with self._condition:
                self._steps = max(0, self._steps - rows)
            start, first = target.after(now, rows), False
            target.stream.wait(account.last, tell=self._tell_running)
            self._tell(now=self._pausing)
            took = clock.perf_counter() - began
            if rows == most:
                most = max(least, min(2 * most, int(most * SLICE_SECONDS / took)))
        return not self._stopping

    def _next_due(self, *, first: bool) -> DueRows | None:
        """Waits until rows are due; None if the feed is over, or is to stop. `first`: nothing was put in yet."""
        cursor = self._account.cursor
        while True:
            with self._condition:
                joining, self._joining = self._joining, []
                again, self._again = self._again, False
            if joining:
                self._account.read(joining)
            if again:
                self._account.rewind()
                self._pacer.rest()
            with self._condition:
                if self._stopping:
                    return None
                if self._joining or self._again:
                    continue
                if not cursor.left:
                    if first:
                        return DueRows()
                    self._over = True
                    return None
                due = self._pacer.due(cursor.rows_done, cursor.next_time()) if not self._pausing else self._due_step()
                if due is not None and due.rows != 0 and not due.wait:
                    self._idle = False
                    return due
                if due is None:
                    self._idle = True
                    self._condition.notify_all()
                self._condition.wait(_LONGEST_WAIT if due is None else min(due.wait, _LONGEST_WAIT))

    def _due_step(self) -> DueRows | None:
        """The rows that a paused feed was asked for."""
        self._pacer.rest()
        if self._steps:
            return DueRows(rows=self._steps)
        if self._until is not None:
            time = self._account.cursor.next_time()
            if time is not None and time <= self._until:
                return DueRows(until=self._until)
            self._until = None
        return None

    def _tell_running(self) -> None:
        if self._leaving:
            raise SparkStreamError("stopped")
        self._tell()

    def _tell(self, *, now: bool = False) -> None:
        moment = clock.monotonic()
        if not now and moment - self._told_at < WATCH_SECONDS:
            return
        self._told_at = moment
        for key, callback in list(self._watching.items()):
            try:
                callback()
            except Exception:
                _log.exception("What watches feed %d of %s failed", self.id, self.app)
                self._unwatch(key)

    def _unwatch(self, key: object) -> None:
        self._watching.pop(key, None)


@dataclass(frozen=True, repr=False, eq=False)
class Feeds(Directory[int, Feed]):
    """The feeds in the background of this process, by their numbers; those that are over too."""

    def summary(self) -> str:
        return f"<Feeds: {', '.join(f.summary() for f in self.values()) or 'none'}>"


_feeds: dict[int, Feed] = {}
_numbers = itertools.count(1)


def start_feed(target: FeedTarget, request: FeedRequest, *, together: bool = False) -> Feed:
    """A feed that runs in the background; `together`, the one of the app that is under way, which merges it."""
    if together:
        for running in reversed([*feeds_of(target).values()]):
            if running.merge(request.sources):
                return running
    if not _feeds:
        atexit.register(_end_feeds)
    feed = Feed(target, request)
    feed.id = next(_numbers)
    _feeds[feed.id] = feed
    feed.begin()
    return feed


def feeds_of(target: FeedTarget) -> Feeds:
    """The feeds of one app."""
    return Feeds({n: f for n, f in _feeds.items() if f._target is target})


def all_feeds() -> Feeds:
    """The feeds in the background of this process, by their numbers; those that are over too."""
    return Feeds(dict(_feeds))


def feed_of(number: int) -> Feed:
    """The feed of this number. Raises `Misuse` if there is none."""
    if number not in _feeds:
        feed_numbers = ", ".join(map(str, _feeds)) or "none"
        raise Misuse(f"there is no feed {number}. Feeds: {feed_numbers}")
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
