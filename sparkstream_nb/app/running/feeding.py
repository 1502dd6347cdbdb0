"""Feeds: reads sources, puts their entries into the app's inbox, and follows them until they are committed.

A feed of several sources is merged by event time. It goes into the inbox all at once, or where commits are watched
chunk by chunk; feeds in the background are in `background.py`.
"""

from __future__ import annotations

import contextlib
import threading
import time as clock
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...durations import describe_time
from ...engine.columnar.column_data import Array
from ...errors import Misuse, SparkStreamError, nearest
from ...ingest.time_formats import looks_wrong
from ...journal.entries import Entry
from ...journal.inbox import Inbox
from ...journal.marks import Marks
from ...plan.arrival_time import NOTHING, ByArrival
from ...runners.runner_protocol import Session
from ...runners.stream import Stream
from ...sources import feeds
from ...sources.disorder import Disorder, DisorderCounts, disarrange
from ...sources.feed_cursor import FeedCursor, Skew, Spacing, rejects_of, times_of
from ...sources.feed_order import in_order, rows_before
from ...sources.recordings import RecordingFile
from ...types import Schema
from ..results.answers import FeedReport
from ..results.feed_progress import FeedProgress, OnProgress
from .pace import Pace

_MOST_NAMED = 3
"""Elements of an app that a note names."""


@dataclass(frozen=True, eq=False)
class AppStreams:
    """The streams of an app: their schemas, the `inputs` that no query writes, and the elements of the app for which
    the time of arrival matters."""

    schemas: Mapping[str, Schema] = field(default_factory=dict)
    inputs: Sequence[str] = ()
    by_arrival: ByArrival = NOTHING


@dataclass(frozen=True, eq=False)
class FeedTarget:
    """The interface of an app, as a feed uses it. `start` starts the app if it does not run, `append` puts entries into
    the inbox, and `now` is the time (ms) of the next event without one; these three are called with `lock` held. Such
    events of a feed are `spacing_ms` ms apart. `shards`: the ids of its nodes."""

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
    shards: Sequence[str] = ()
    app_streams: AppStreams = field(default_factory=AppStreams)

    def skew(self, disorder: Disorder | None) -> Skew | None:
        """The clocks that are off. Raises `Misuse` for a node that the app does not have."""
        if disorder is None or not disorder.skew:
            return None
        for name in disorder.skew:
            if name not in self.shards:
                raise Misuse(nearest(f"skew: {self.name} has no node '{name}'", name, self.shards))
        return Skew({self.shards.index(n): ms for n, ms in disorder.skew.items()}, len(self.shards))

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
class FeedSource:
    """A source of a feed, and how it is read."""

    source: Any
    shape: feeds.Shape


@dataclass(frozen=True)
class FeedRequest:
    """A request for a feed of one or several sources: `limit` is the number of rows of each, `route` overrides the
    app's routing. `followed`: it is committed in slices, as someone watches the app's commits. `stopped`: the app was,
    and runs again by this. A feed in the background has a `pace`, and may begin `paused`. `beside` names feeds of the
    app that are under way and not merged with it.
    """

    sources: Sequence[FeedSource]
    route: str
    limit: int | None = None
    followed: bool = False
    stopped: bool = False
    pace: Pace = field(default_factory=Pace)
    paused: bool = False
    beside: Sequence[int] = ()
    disorder: Disorder | None = None
    recording: RecordingFile | None = None
    """A recording in place of sources."""

    @property
    def streams(self) -> str:
        """The names of the streams that are fed."""
        if self.recording is not None:
            return ", ".join(self.recording.schemas)
        return ", ".join(dict.fromkeys(s.shape.stream for s in self.sources))


@dataclass
class Loaded:
    """A source that was read: its chunks in the inbox's folder in order of event time, and reasons of rejections, of
    those rows that are `kept` at most. `notes` are warnings for the user, and `time_example` is an example of a time.
    """

    feed: feeds.FeedOnDisk
    shape: feeds.Shape
    reasons: dict[str, int]
    notes: Sequence[str] = ()

    @property
    def time_example(self) -> str | None:
        return self.shape.time_format.example()


def load(target: FeedTarget, request: FeedRequest, feed_source: FeedSource) -> Loaded:
    """Reads a source and puts it in order of event time. Raises SparkStreamError for a source that is no feed."""
    folder, shape, mirror = target.inbox.folder, feed_source.shape, target.stream.job.mirror
    with target.tag_tasks():
        place = feeds.ChunkPlace(folder, target.session, None if mirror is None else mirror.shared)
        # Every node reads all chunks, and parquet is slower to read than what Spark would make of it.
        as_it_is = target.nodes == 1 and request.disorder is None
        feed_on_disk = feeds.read_feed(feed_source.source, shape, place, request.limit, as_it_is=as_it_is)
    highest = np.empty(0, np.int64)
    try:
        if shape.time is not None:
            feed_on_disk, highest = in_order(feed_on_disk, folder)
        odd = looks_wrong(highest) if shape.time is not None else None
        notes = [odd] if odd is not None else _of_times(target, shape, feed_on_disk, highest)
        notes = [*shape.describe_guesses(), *notes, *feed_on_disk.doubts.words(shape.time_format.zone)]
        return Loaded(feed_on_disk, shape, feeds.reasons(feed_on_disk, folder), notes)
    except SparkStreamError:
        feeds.discard(feed_on_disk, folder)
        raise


def fill(cursor: FeedCursor, loaded_feeds: Sequence[Loaded], disorder: Disorder | None) -> DisorderCounts | None:
    """Adds sources to a cursor, in order or in a disorder; the numbers of events that it changed."""
    if disorder is None:
        for x in loaded_feeds:
            cursor.add(x.feed, x.shape)
        return None
    times = [times_of(x.feed, x.shape, cursor.folder) for x in loaded_feeds]
    ranked_feeds, counts = disarrange([(x.feed, x.shape) for x in loaded_feeds], times, cursor.folder, disorder)
    for ranks in ranked_feeds:
        cursor.add_ranked(ranks)
    return counts


def _of_times(target: FeedTarget, shape: feeds.Shape, feed_on_disk: feeds.FeedOnDisk, highest: Array) -> list[str]:
    """Notes on the times of a feed's events, where the time of their arrival matters and is another one."""
    by_arrival, clock = target.app_streams.by_arrival, target.inbox.position.clock
    if not by_arrival or not target.spacing_ms or not feed_on_disk.rows:
        return []
    if shape.time is None:
        spacing = f"the events are {target.spacing_ms:,} ms apart, from {describe_time(target.now())} on"
        return [
            f"No column of times was given (--time, time=): {spacing}. That matters to {_list_names(by_arrival.all)}."
        ]
    late = 0 if clock is None else rows_before(feed_on_disk, target.inbox.folder, highest, clock)
    if clock is None or not late:
        return []
    what = "1 event is" if late == 1 else f"{late:,} events are"
    note = f"{what} earlier than the app's clock, which is at {describe_time(clock)}."
    if by_arrival.aggregations:
        return [
            f"{note} {_list_names(by_arrival.aggregations)} counts them at the clock's time; an aggregation with "
            "`aggregate by` counts them where they belong."
        ]
    return [f"{note} {_list_names(by_arrival.queries)} takes them after the events received before."]


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


class Account:
    """Figures of one feed: its rows on disk, its entries in the inbox, and their progress."""

    def __init__(self, target: FeedTarget, request: FeedRequest) -> None:
        self.target, self.request = target, request
        self.streams = request.streams
        self.cursor = FeedCursor(target.inbox.folder, target.skew(request.disorder))
        self.disorder_counts: DisorderCounts | None = None
        self.began = clock.perf_counter()
        self.reading = 0.0
        self.loaded_feeds: list[Loaded] = []
        self.before = dict(target.stream.progress.rows)
        self.entries: list[Entry] = []
        """Entries that are not committed."""
        self._committed_steps = 0
        """Steps of committed entries."""
        self._fed_events = 0
        """Events of committed entries."""
        self._rejects: list[Entry] = []

    def read(self, sources: Sequence[FeedSource]) -> None:
        """Reads sources to feed. Raises SparkStreamError if one is no feed; its files are removed then."""
        began = clock.perf_counter()
        if self.request.recording is not None and not self.loaded_feeds:
            self._read_recording(self.request.recording)
        loaded_feeds = [load(self.target, self.request, source) for source in sources]
        self.disorder_counts = fill(self.cursor, loaded_feeds, self.request.disorder)
        self._rejects += [reject for x in loaded_feeds for reject in rejects_of(x.feed)]
        self.loaded_feeds += loaded_feeds
        self.streams = ", ".join(dict.fromkeys(x.shape.stream for x in self.loaded_feeds))
        self.reading += clock.perf_counter() - began

    def _read_recording(self, recording: RecordingFile) -> None:
        streams = self.target.app_streams
        recorded_feeds = recording.add_to(self.cursor, streams.schemas)
        notes = recording.notes(streams.schemas, streams.inputs)
        self.loaded_feeds += [Loaded(recorded.feed, recorded.shape, {}, notes) for recorded in recorded_feeds]

    def put(self, now: int, most: int | None = None, until: int | None = None) -> int:
        """Puts the next rows into the inbox, with the app's lock held: `most` of them, up to event time `until` (ms),
        those without a time from `now` (ms) on. Returns how many there were.
        """
        inbox, steps_before = self.target.inbox, self.cursor.rows_done
        rows = self.cursor.take(inbox, self.request.route, Spacing(now, self.target.spacing_ms), most, until)
        entries = [*rows, *self._rejects]
        if entries:
            first = inbox.position.seq
            try:
                self.target.append(entries)
            except SparkStreamError:
                for name in (n for e in rows for n in e.files):
                    (inbox.folder / name).unlink(missing_ok=True)
                raise
            self._rejects = []
            self._settle()
            self.entries += [replace(e, seq=first + i) for i, e in enumerate(entries)]
        return self.cursor.rows_done - steps_before

    def rewind(self) -> None:
        """Restarts the feed."""
        self.cursor.rewind()
        self.entries, self._committed_steps, self._fed_events = [], 0, 0

    @property
    def last(self) -> int:
        """The number of the last entry."""
        return self.entries[-1].seq if self.entries else -1

    def _settle(self) -> None:
        """Counts committed entries, and forgets them."""
        last = self.target.stream.progress.last
        finished_entries = [e for e in self.entries if e.seq <= last]
        self._committed_steps += sum(e.steps for e in finished_entries)
        self._fed_events += _events_of(finished_entries)
        self.entries = [e for e in self.entries if e.seq > last]

    def withdraw(self, seq: int) -> None:
        """The entries from number `seq` on were taken back."""
        self.entries = [e for e in self.entries if e.seq < seq]

    def close(self) -> None:
        """Removes the files of rows, which entries have under names of their own, and rejects that are not in."""
        self.cursor.discard()
        for reject in self._rejects:
            for name in reject.files:
                (self.target.inbox.folder / name).unlink(missing_ok=True)

    @property
    def rejected_rows(self) -> int:
        return sum(x.feed.rejected for x in self.loaded_feeds)

    def progress(self) -> FeedProgress:
        """The feed's progress now."""
        p, took = self.target.stream.progress, clock.perf_counter() - self.began
        if not self.loaded_feeds:
            return FeedProgress(self.streams, 0, None, 0, p.batch + 1, took)
        finished_steps = self._committed_steps + self.target.marks.steps(self.entries, p.last)
        total, input_clock = self.cursor.rows, self.cursor.last_time
        return FeedProgress(
            self.streams, finished_steps, total, self.rejected_rows, p.batch + 1, took, self.reading, input_clock
        )

    def report(self) -> FeedReport:
        """The feed's report, when it is over."""
        after = self.target.stream.progress.rows
        reasons: Counter[str] = Counter()
        for loaded_feed in self.loaded_feeds:
            reasons.update(loaded_feed.reasons)
        rows, rejected_rows = self.cursor.rows, self.rejected_rows
        shapes = [x.shape for x in self.loaded_feeds]
        return FeedReport(
            self.target.name,
            self.streams,
            rows + rejected_rows,
            rejected_rows,
            clock.perf_counter() - self.began,
            {s: n - self.before.get(s, 0) for s, n in after.items() if n > self.before.get(s, 0)},
            dict(sorted(reasons.items(), key=lambda kv: (-kv[1], kv[0]))),
            not_fed=rows - self._fed_events - _events_of(self.entries),
            notes=[*dict.fromkeys([n for x in self.loaded_feeds for n in x.notes] + self._notes())],
            time=self.loaded_feeds[0].time_example if self.loaded_feeds else None,
            kept=shapes[0].most_rejects if shapes else None,
            unfit_streams=self._list_unfit_streams(),
        )

    def _list_unfit_streams(self) -> list[str]:
        """The streams whose rows were all rejected."""
        fitting: Counter[str] = Counter()
        rejected_rows: Counter[str] = Counter()
        for x in self.loaded_feeds:
            fitting[x.shape.stream] += x.feed.rows
            rejected_rows[x.shape.stream] += x.feed.rejected
        return [s for s, n in rejected_rows.items() if n and not fitting[s]]

    def _notes(self) -> list[str]:
        notes = []
        if self.disorder_counts is not None and self.request.disorder is not None:
            notes.append(f"Disorder of seed {self.request.disorder.seed}: {self.disorder_counts}.")
        if self.request.beside:
            others = " and ".join(f"feed {n}" for n in self.request.beside)
            notes.append(
                f"Events of {others} come in besides, and are not merged with these by time: together=True "
                "(--together) merges a feed with one that is under way."
            )
        if self.request.stopped:
            notes.append(f"{self.target.name} was stopped, and runs again.")
        return notes


def _events_of(entries: Sequence[Entry]) -> int:
    return sum(n for e in entries for n in e.events_by_stream.values())


def feed(
    target: FeedTarget, request: FeedRequest, settle: Callable[[Callable[[], None]], None], progress: OnProgress
) -> FeedReport:
    """Feeds all of the sources at once, or chunk by chunk if commits are followed. `settle(tell)` waits until the app
    is through, and calls `tell` meanwhile.
    """
    account = Account(target, request)
    progress(account.progress())
    with target.lock:
        target.start()
    try:
        account.read(request.sources)
        most = feeds.CHUNK_ROWS if request.followed else None
        start: int | None = None
        while True:
            with target.lock:
                now = target.now() if start is None else start
                start = target.after(now, account.put(now, most))
            settle(lambda: progress(account.progress()))
            progress(account.progress())
            if not account.cursor.left:
                break
    finally:
        account.close()
    return account.report()
