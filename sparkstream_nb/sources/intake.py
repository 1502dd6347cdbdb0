"""The intake of a source: a thread in the process that owns the app, which enters the reader's messages into the inbox.

Events and the source's position are one line of the journal, so a crash loses nothing and repeats nothing.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine.state.node_batch import InputBatch, StreamRows, take_rows
from ..errors import SparkStreamError, log_line, shown
from ..ingest import ingest
from ..journal.entries import Entry, Reject, SourceEntry
from ..journal.inbox import Inbox
from ..journal.result_codec import error_lines
from ..mapping.decoding import Decoded, RejectedMessage
from ..outputs.commit import Progress
from ..pauses import Pauses
from ..types import Schema
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two tries of a source that is away: they grow from the first to the longest."""
MOST_WAITING = 1_000_000
"""Events of a source in the inbox that are not committed yet; with more, it is not read."""
_WAIT = 0.2
"""Seconds until a thread that waits looks whether it is to end."""
_GRACE = 1.0
_LOGGED = 10
"""Lines of the log about messages that could not be read at once; more are counted in one line."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IntakeSetup:
    """A source as it was deployed. `name` is unique in the app, `origin` is where it reads, without secrets, `time` the
    position of the attribute with an event's time; None: the time at which it is received. `together`: the events of
    one message are one chunk. `keeps_errors`: unreadable messages become errors of the app; else a line of its log.
    """

    name: str
    stream: str
    type: str
    origin: str
    schema: Schema
    reader: SourceReader
    time: int | None = None
    together: bool = False
    keeps_errors: bool = True


@dataclass(frozen=True)
class Entrance:
    """The way into an app. `append` puts entries into its inbox, `now` is the time (ms) of events without one, `latest`
    the last time that is taken (None: all are); these are called with `lock` held, and only while `open` says so."""

    inbox: Inbox
    progress: Progress
    lock: threading.RLock
    route: str
    open: Callable[[], bool]
    append: Callable[[Sequence[Entry]], None]
    now: Callable[[], int]
    latest: Callable[[], int | None]


@dataclass(frozen=True)
class SourceFigures:
    """Progress of a source: messages `received`, `events` taken and messages or events `rejected` since this process
    began; `behind`: unread messages by partition, or unread bytes by file; None: not known yet.
    `last_error`: why it waits; None for nothing.
    """

    name: str
    stream: str
    type: str
    origin: str
    received: int
    events: int
    rejected: int
    behind: Mapping[str, int] | None
    last_error: str | None

    @property
    def lag(self) -> int | None:
        """All that is there and not read; None: not known yet."""
        return None if self.behind is None else sum(self.behind.values())


@dataclass
class _Counts:
    messages: int = 0
    events: int = 0
    rejects: int = 0


@dataclass(frozen=True)
class Entered:
    """Entries of the messages read at once, the number of their events, and the rejected ones: stream, time (ms),
    values and reason of each. `refused`: by message, the reason for which events were refused because of their time.
    """

    entries: list[Entry]
    events: int
    rejected: list[list[Any]]
    refused: Mapping[int, str] = field(default_factory=dict)


class SourceThread:
    """Enters what `setup.reader` reads, from where the inbox says that it was.

    `wait(seconds)` pauses between two tries; by default it ends when the intake is stopped.
    """

    def __init__(self, setup: IntakeSetup, entrance: Entrance, wait: Callable[[float], object] | None = None) -> None:
        self.setup, self._entrance, self._wait = setup, entrance, wait
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._pauses = Pauses(FIRST_PAUSE, LONGEST_PAUSE)
        self._trouble: str | None = None
        self.paused = False
        """True if the source stays away until it is resumed, also if the app starts."""
        self.first_attempt = threading.Event()
        """Set when the source was opened, or was found to be away."""
        self._counts = _Counts()
        self._nothing: tuple[float, Behind | None] = float("-inf"), None
        """Start of the last reading (s of the monotonic clock) that found nothing, and the backlog then: everything
        read before is in the inbox.
        """
        self._waiting: deque[tuple[int, int]] = deque()
        self._position_changes: dict[str, Any] = {}
        """Changes of the position without an event."""

    # ---------------------------------------------------------------------------------------------- begin and end

    def start(self) -> None:
        """Starts the thread, if it does not run. One that is still ending is waited for by the new one."""
        previous_thread = self._thread if self._thread is not None and self._thread.is_alive() else None
        if previous_thread is None or self._ending.is_set():
            self._ending = threading.Event()
            self._thread = threading.Thread(
                target=self._run,
                args=(self._ending, previous_thread),
                name=f"sparkstream-source-{self.setup.name}",
                daemon=True,
            )
            self._thread.start()

    def end(self) -> None:
        """Signal the thread to end, without waiting for it."""
        self._ending.set()
        self.setup.reader.cancel()
        with self._entrance.progress.changed:
            self._entrance.progress.changed.notify_all()

    def join(self) -> None:
        """End the thread, and wait a little until it has closed its source. Nothing more is entered."""
        self.end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_GRACE)
            if thread.is_alive():
                self.setup.reader.cancel()
                thread.join(_GRACE)

    def figures(self) -> SourceFigures:
        """Figures of the source."""
        s, c, backlog = self.setup, self._counts, self.setup.reader.behind()
        parts = None if backlog is None else backlog.parts
        return SourceFigures(s.name, s.stream, s.type, s.origin, c.messages, c.events, c.rejects, parts, self._trouble)

    def caught_up(self, since: float) -> bool:
        """True if all was in the inbox that was there at a time (s of the monotonic clock), or later."""
        began, backlog = self._nothing
        return began >= since and backlog is not None and backlog.at >= since and not any(backlog.parts.values())

    # -------------------------------------------------------------------------------------------------- the thread

    def _run(self, ending: threading.Event, previous_thread: threading.Thread | None) -> None:
        if previous_thread is not None:
            previous_thread.join()
        while not ending.is_set():
            try:
                self._follow(ending)
            except (SourceUnavailable, OSError) as error:
                self._away(str(error), ending)
            except SparkStreamError as error:  # the journal cannot be written
                self._away(str(error), ending)
            except Exception as error:  # a fault of ours: it does not stop the app
                _log.exception("Source %s failed", self.setup.name)
                self._away(f"{type(error).__name__}: {error}", ending)
        self.setup.reader.close()

    def _follow(self, ending: threading.Event) -> None:
        """Read and enter messages until the intake ends. Raises the reader's errors."""
        reader, self._position_changes = self.setup.reader, {}
        if not self._take_lock(ending):
            return
        try:
            positions = dict(self._entrance.inbox.position.sources.get(self.setup.name, {}))
            self._waiting.clear()  # an interrupt gives other numbers to what waits
        finally:
            self._entrance.lock.release()
        note = reader.open(positions)
        self.first_attempt.set()
        if note is not None:
            self._say(note)
        while not ending.is_set():
            if self._full():
                reader.busy(full=True)
                self._wait_for_commit()
                continue
            reader.busy(full=False)
            began = time.monotonic()
            messages = reader.read(_WAIT)
            if messages is None:
                self._nothing = began, reader.behind()
            elif (new := self._enter(messages, ending)) is not None:
                reader.confirm(messages, new.refused)
            else:
                return
            self._pauses.reset()
            self._trouble = None

    def _full(self) -> bool:
        """True if the app has enough before it."""
        last = self._entrance.progress.last
        while self._waiting and self._waiting[0][0] <= last:
            self._waiting.popleft()
        return sum(n for _, n in self._waiting) > MOST_WAITING

    def _wait_for_commit(self) -> None:
        condition = self._entrance.progress.changed
        with condition:
            condition.wait(_WAIT)

    def _enter(self, messages: ReadMessages, ending: threading.Event) -> Entered | None:
        """Put the messages read into the inbox; None if the intake ends before it could."""
        entrance, name = self._entrance, self.setup.name
        self._position_changes.update(messages.reached)
        if not self._take_lock(ending):
            return None
        try:
            if ending.is_set() or not entrance.open():
                return None
            new = make_entries(self.setup, messages.events, entrance)
            lasting = messages.lasting or new.rejected
            entries = new.entries or ([SourceEntry()] if lasting and self._position_changes else [])
            if entries:
                entries = [replace(e, source=name) for e in entries]
                entries[-1] = replace(entries[-1], reached=self._position_changes or None)
                self._append(entries)
                self._position_changes = {}
                self._waiting.append((entrance.inbox.position.seq - 1, new.events))
        finally:
            entrance.lock.release()
        c = self._counts
        c.messages, c.events, c.rejects = (
            c.messages + messages.received, c.events + new.events, c.rejects + len(new.rejected)
        )  # fmt: skip
        if not self.setup.keeps_errors:
            self._log_errors(new.rejected)
        return new

    def _log_errors(self, errors: Sequence[Sequence[Any]]) -> None:
        for _, _, values, reason in errors[:_LOGGED]:
            what = values["message"] if isinstance(values, dict) else values
            self._say(log_line(f"not taken: {reason}: {shown(what)}"))
        if len(errors) > _LOGGED:
            self._say(f"{len(errors) - _LOGGED:,} more events that were read with it were not taken")

    def _take_lock(self, ending: threading.Event) -> bool:
        """Takes the app's lock; False if the intake ends before it could: who ends it may hold the lock."""
        while not ending.is_set():
            if self._entrance.lock.acquire(timeout=_WAIT):
                return True
        return False

    def _append(self, entries: list[Entry]) -> None:
        """Puts entries into the inbox. Where that fails, as on a full disk, their files go as well."""
        try:
            self._entrance.append(entries)
        except SparkStreamError:
            for entry in entries:
                if entry.file is not None:
                    (self._entrance.inbox.folder / entry.file).unlink(missing_ok=True)
            raise

    def _away(self, reason: str, ending: threading.Event) -> None:
        """The source is away: says so once, and waits, longer each time."""
        self.setup.reader.close()
        line = log_line(reason)
        if ending.is_set():
            return
        if self._trouble is None:
            self._say(f"{line}. It is tried again")
        self._trouble = line
        self.first_attempt.set()
        (self._wait or ending.wait)(self._pauses.next())

    def _say(self, sentence: str) -> None:
        self._entrance.progress.say(f"source {self.setup.name} ({self.setup.origin}): {sentence}")


def make_entries(setup: IntakeSetup, messages: Decoded, entrance: Entrance) -> Entered:
    """The entries of decoded messages: rejected ones, then the events, in their order. With the app's lock held."""
    now, latest = entrance.now(), entrance.latest()
    errors: list[list[Any]] = [[setup.stream, now, _message(setup, r), r.reason] for r in messages.rejected]
    errors += [[setup.stream, at, values, reason] for at, values, reason in messages.refused]
    reasons: dict[int, str] = {}
    columns, message = messages.columns, messages.message
    ts = np.full(len(messages), now, np.int64) if messages.ts is None else messages.ts
    if setup.time is not None:
        ts, bad = ingest.event_times(columns[setup.time], latest)
        if bad:
            for i, reason in bad.items():
                values = [_value(c, i) for c in columns]
                errors.append([setup.stream, None, values, reason])
                reasons.setdefault(int(message[i]), reason)
            left = np.setdiff1d(np.arange(len(ts)), np.fromiter(bad, np.int64))
            columns, message, ts = [take_rows(c, left) for c in columns], message[left], ts[left]
    entries: list[Entry] = []
    inbox = entrance.inbox
    if errors and setup.keeps_errors:
        entries.append(Reject(file=inbox.write(f"rejected-{uuid.uuid4().hex[:12]}", error_lines(errors))))
    if len(ts):
        if setup.together:
            begins = np.concatenate([[True], np.diff(message) != 0])
            step = np.cumsum(begins) - 1
            ends = np.append(np.flatnonzero(begins)[1:], len(ts)) - 1
            clock = ts[ends]
        else:
            step, clock = np.arange(len(ts), dtype=np.int64), ts
        batch = InputBatch(clock, {setup.stream: StreamRows(step.astype(np.int64), ts, list(columns))})
        entries.append(inbox.batch(batch, entrance.route))
    return Entered(entries, len(ts), errors, reasons)


def _message(setup: IntakeSetup, message: RejectedMessage) -> dict[str, Any]:
    """A message as the values of an error, from which it can be read again (`app.results.rejected`)."""
    properties = {"properties": dict(message.properties)} if message.properties else {}
    return {"source": setup.name, "message": message.text, **properties}


def _value(column: Any, i: int) -> Any:
    return column[i] if isinstance(column, list) else column[i].as_py()


class Intakes:
    """The running sources of an app."""

    def __init__(self, setups: Sequence[IntakeSetup], entrance: Entrance) -> None:
        self._entrance = entrance
        self._all = [SourceThread(setup, entrance) for setup in setups]

    def start(self) -> None:
        """Starts those that do not run and are not paused."""
        for intake in self._all:
            if not intake.paused:
                intake.start()

    def add(self, setup: IntakeSetup) -> SourceThread:
        """Adds a source, in place of one of its name, which ends first."""
        self.remove(setup.name)
        thread = SourceThread(setup, self._entrance)
        self._all.append(thread)
        return thread

    def remove(self, name: str) -> None:
        """Ends a source, and forgets it."""
        for intake in [i for i in self._all if i.setup.name == name]:
            intake.join()
            self._all.remove(intake)

    def stop(self) -> None:
        """Ends all, and waits until nothing of them is entered any more."""
        for intake in self._all:
            intake.end()
        for intake in self._all:
            intake.join()

    def wait_tried(self, seconds: float) -> None:
        """Wait for `seconds` at most until it is known of each whether it is unavailable."""
        end = time.monotonic() + seconds
        for intake in self._all:
            intake.first_attempt.wait(max(0.0, end - time.monotonic()))

    def caught_up(self, since: float) -> bool:
        """True if all was in the inbox that was there at a time (s of the monotonic clock), or later."""
        return all(intake.caught_up(since) for intake in self._all)

    def figures(self) -> tuple[SourceFigures, ...]:
        """Figures of each source."""
        return tuple(i.figures() for i in self._all)
