"""The inbox of an app: everything that enters it, in one order, on disk before it is worked on.

The journal is JSON lines, each a list of entries that enter together: a line is there whole or not at all. It is kept
in segments (`journal.py`), of which the oldest go when Spark is done with them (`kept.py`). An entry is a run of steps
(events sent, a feed's chunk), an on-demand query, or rows that were rejected (`entries.py`). Entries are numbered
(`seq`); so are steps and requests, and an entry knows the clock of its app `before` it. That makes its meaning
independent of how entries are later cut into micro-batches. One process writes; Spark's reader follows the file by its
size.
"""

from __future__ import annotations

import base64
import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import checksums
from ..checksums import sums_of
from ..engine.state.node_batch import InputBatch
from ..errors import SparkStreamError
from ..interrupts import deferred
from ..system import put_in_place, sync, to_disk
from .entries import Entry, StepsEntry
from .journal import JOURNAL, check_order, damaged_error, entries_of, line_of, lines, lines_of, segment, segments
from .marks import MARKS
from .private import private_file, private_folder, write_private
from .segments import requests_of
from .throughput import ArrivalCounts

INLINE_BYTES = 16_384
"""Batches up to this size are in the journal itself; larger ones in a file of their own."""


SEGMENT_BYTES = 1 << 23
"""A segment of the journal that is longer is followed by another."""


@dataclass
class InboxPosition:
    """Fill level of the inbox: numbers of the next entry, step and request, the highest clock so far (ms), of all
    and by app, the number of events that came in from outside by stream, the position of each outside source by its
    name (`Entry.reached`), and by sink the place (micro-batch, row) of the last event that it could not deliver and
    that came in again.
    """

    seq: int = 0
    step: int = 0
    request: int = 0
    clock: int | None = None
    clocks: dict[int, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    sinks: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def line(self) -> bytes:
        """The first line of a segment that begins here."""
        return checksums.to_json({"position": asdict(self)}).encode() + b"\n"

    def copy(self) -> InboxPosition:
        """A position of its own."""
        sources = {name: dict(positions) for name, positions in self.sources.items()}
        return replace(
            self, clocks=dict(self.clocks), events=dict(self.events), sinks=dict(self.sinks), sources=sources
        )

    @staticmethod
    def of(file: Path) -> InboxPosition:
        """Position of the journal at the beginning of a segment. Raises SparkStreamError if the segment is damaged."""
        with file.open("rb") as segment:
            line = segment.readline()
        if not line.startswith(b"{") and int(file.name) == 0:
            return InboxPosition()
        try:
            position = checksums.from_json(line)["position"]
            clocks = {int(app): ms for app, ms in position["clocks"].items()}
            sinks = {sink: tuple(place) for sink, place in position.get("sinks", {}).items()}
            return InboxPosition(**{**position, "clocks": clocks, "sinks": sinks})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise damaged_error(file, "its beginning is damaged") from None


class _CommitGroup:
    """Lines that one wait for the disk is for. `done` when that is over; `error` where it failed."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: OSError | None = None


@dataclass(frozen=True)
class Ticket:
    """Entries `put` into an inbox that need not be on the disk yet: the last one is number `seq`."""

    seq: int
    group: _CommitGroup = field(repr=False)


@dataclass
class Inbox:
    """The writing end. `folder` is made if need be; a line that a crash cut short is dropped. Raises SparkStreamError
    if a whole line is damaged.

    One thread at a time puts entries in, takes them back or closes it; any number may `settle` meanwhile.
    """

    folder: Path
    position: InboxPosition = field(default_factory=InboxPosition)
    over: tuple[int, ...] = ()
    """The nodes for entries that are appended from now on; empty: the nodes that the app began with."""
    arrivals: ArrivalCounts = field(default_factory=ArrivalCounts)
    """Number of events that came in with each entry."""
    tell: Callable[[], None] | None = None
    """Is called when more has come in."""

    def __post_init__(self) -> None:
        private_folder(self.folder / JOURNAL)
        private_folder(self.folder / MARKS)
        self._change = threading.Condition()
        self._group = _CommitGroup()
        self._settling = False
        self._sums: dict[str, str] = {}
        self._first = self._end = 0
        all_segments = segments(self.folder)
        for _, file in all_segments:
            self.position = InboxPosition.of(file)
            self._count(self.position)
        for first, file in all_segments[-1:]:
            self._first, self._end = first, first + _head(file)
            for at, line in lines_of(first, file, first):
                self._end = at + len(line)
                for entry in entries_of(self.folder, at, line):
                    check_order(self.folder, at, entry, self.position.seq)
                    _pass(self.position, entry)
                    self._count(self.position)
        self._open()

    def _count(self, position: InboxPosition) -> None:
        self.arrivals.add(position.seq - 1, sum(position.events.values()))

    def _open(self) -> None:
        """Open the last segment, cutting off an unfinished line that a crash left."""
        file = segment(self.folder, self._first)
        self._file = private_file(file).open("ab", buffering=0)
        self._file.truncate(self._end - self._first)
        to_disk(file, file.parent, self.folder)
        self._on_disk = self._end, self.position

    def _roll(self) -> None:
        """Begins a new segment."""
        self._settle_all()
        head = self.position.line()
        file = segment(self.folder, self._end)
        new = file.with_suffix(".new")
        try:
            write_private(new, head)
            to_disk(new)
            put_in_place(new, file)
            to_disk(file.parent)
        except OSError:
            new.unlink(missing_ok=True)
            raise
        self._file.close()
        with self._change:
            self._first, self._end = self._end, self._end + len(head)
            self._file = file.open("ab", buffering=0)
            self._on_disk = self._end, self.position

    def close(self) -> None:
        with contextlib.suppress(SparkStreamError):  # who waits for it is told
            self._settle_all()
        self._file.close()

    @deferred()
    def append(self, entries: Sequence[Entry]) -> int:
        """Numbers the entries and writes them as one line; returns the number of the last.

        They and their files are on the disk when this returns. Raises SparkStreamError if they cannot be written;
        none of them is in then.
        """
        ticket = self.put(entries)
        self.settle(ticket)
        return ticket.seq

    @deferred()
    def settle(self, ticket: Ticket) -> None:
        """Wait until the entries that were put in are on the disk. One thread waits for all entries present by then;
        others that come meanwhile wait for it, and one of them for all of theirs. Raises SparkStreamError if they
        cannot be written; neither they nor any later entries are in the journal then.
        """
        group = ticket.group
        with self._change:
            while not group.is_done:
                if self._settling:
                    self._change.wait()
                else:
                    self._sync()
        if group.error is not None:
            raise unwritten(self.folder, group.error) from group.error

    def _sync(self) -> None:
        """Wait for all that was put in so far, for its group. The caller holds `_changed`, which is released meanwhile.
        """
        group, self._group, self._settling = self._group, _CommitGroup(), True
        end, position = self._end, self.position
        file = os.dup(self._file.fileno())  # the journal may go on in another file meanwhile
        self._change.release()
        try:
            sync(file)
        except OSError as error:
            group.error = error
        finally:
            os.close(file)
            self._change.acquire()
            self._settling = False
            if group.error is not None:
                self._back(group.error)
            elif end > self._on_disk[0]:
                self._on_disk = end, position
            group.is_done = True
            self._change.notify_all()
        if self.tell is not None and group.error is None:
            self.tell()

    def _back(self, error: OSError) -> None:
        """Remove entries that are not on the disk and cannot be written."""
        self._group.error, self._group.is_done = error, True
        self._group = _CommitGroup()
        self._end, self.position = self._on_disk
        self.arrivals.truncate(self.position.seq)
        with contextlib.suppress(OSError):
            self._file.truncate(self._end - self._first)

    def _settle_all(self) -> None:
        if self._on_disk[0] < self._end:
            self.settle(Ticket(self.position.seq - 1, self._group))

    @deferred()
    def put(self, entries: Sequence[Entry]) -> Ticket:
        """`append`, except that the entries need not be on the disk before they are `settled`. Files are."""
        names = dict.fromkeys(name for e in entries for name in e.files)
        with self._undo_failed_write():
            if names:
                to_disk(*(self.folder / name for name in names), self.folder)
                entries = self._with_sums(entries, names)
            if self._end - self._first > SEGMENT_BYTES:
                self._roll()
        with self._change:
            p = self.position.copy()
            new_entries, counts = [], []
            for entry in entries:
                new_entries.append(_number_entry(p, replace(entry, over=self.over) if self.over else entry))
                counts.append((p.seq - 1, sum(p.events.values())))
            line = line_of(new_entries)
            with self._undo_failed_write():
                if os.fstat(self._file.fileno()).st_size != self._end - self._first:  # a line could not be taken back
                    self._file.truncate(self._end - self._first)
                count = 0
                while count < len(line):
                    count += self._file.write(line[count:])
            self._end += len(line)
            for seq, total in counts:
                self.arrivals.add(seq, total)
            self.position = p
            return Ticket(p.seq - 1, self._group)

    def _with_sums(self, entries: Sequence[Entry], names: Iterable[str]) -> list[Entry]:
        """The entries with the checksums of their files. The entries of a large file come in one after the other: the
        sums of the last files are kept.
        """
        self._sums = {name: self._sums.get(name) or sums_of(self.folder / name) for name in names}
        return [replace(e, sums={n: self._sums[n] for n in e.files}) if e.files else e for e in entries]

    @contextlib.contextmanager
    def _undo_failed_write(self) -> Iterator[None]:
        """Restore the journal if a write fails, as on a full disk."""
        try:
            yield
        except OSError as e:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end - self._first)
            raise unwritten(self.folder, e) from e

    def batch(self, batch: InputBatch, route: str, app: int = 0) -> StepsEntry:
        """An entry that holds `batch`."""
        blob = batch.to_bytes()
        inline = len(blob) <= INLINE_BYTES
        return StepsEntry(
            app=app,
            steps=len(batch.clock),
            requests=requests_of(batch),
            clock=int(batch.clock.max()),
            route=route,
            events={stream: len(rows.ts) for stream, rows in batch.rows.items()} or None,
            data=base64.b64encode(blob).decode() if inline else None,
            file=None if inline else self.write(f"batch-{os.urandom(8).hex()}", blob),
        )

    def write(self, name: str, blob: bytes) -> str:
        """Writes a file of the inbox; returns its name. Raises SparkStreamError if it cannot be written."""
        with self._undo_failed_write():
            try:
                write_private(self.folder / name, blob)
            except OSError:
                (self.folder / name).unlink(missing_ok=True)
                raise
        return name

    @deferred()
    def take_back(self, seq: int) -> dict[str, int]:
        """Take back the feeds' rows and the queries from entry `seq` on, which must not have been read; returns the
        number of events by stream.

        All else stays, with new numbers: senders of events already know that they are in, and a source, or a sink whose
        events come in again, is past them.
        """
        self._settle_all()
        remaining_segments = segments(self.folder)
        while len(remaining_segments) > 1 and InboxPosition.of(remaining_segments[-1][1]).seq > seq:
            remaining_segments.pop()
        first, file = remaining_segments[-1]
        position = InboxPosition.of(file)
        place: int | None = None
        events_by_stream: dict[str, int] = {}
        later_entries: list[Entry] = []
        for at, line in lines(self.folder, first):
            entries = entries_of(self.folder, at, line)
            taken_back = [e for e in entries if e.seq >= seq and e.retractable]
            if taken_back and place is None:
                place = at
            for e in taken_back:
                for stream, events in e.events_by_stream.items():
                    events_by_stream[stream] = events_by_stream.get(stream, 0) + events
            stay = [e for e in entries if e.seq < seq or not e.retractable]
            if place is None:
                for e in stay:
                    _pass(position, e)
            else:
                later_entries += [_number_entry(position, e) for e in stay]
        if place is not None:
            self.position = position
            self.arrivals.truncate(seq)
            self._cut(place, line_of(later_entries) if later_entries else b"")
            self.arrivals.add(position.seq - 1, sum(position.events.values()))
        return events_by_stream

    def _cut(self, place: int, rest: bytes) -> None:
        """Ends the journal at byte `place`, with `rest` after it."""
        self._file.close()
        for first, file in reversed(segments(self.folder)):
            self._first = first
            if first <= place:
                break
            file.unlink()
        new = file.with_suffix(".new")
        write_private(new, file.read_bytes()[: place - self._first] + rest)
        to_disk(new)
        put_in_place(new, file)
        self._end = place + len(rest)
        self._open()


def unwritten(folder: Path, error: OSError) -> SparkStreamError:
    """The error where an inbox cannot be written to, as on a full disk."""
    return SparkStreamError(
        f"{folder} cannot be written to: {error.strerror or error}. The events were not taken; make room and send "
        "them again."
    )


def entries_in(folder: Path) -> int:
    """Number of entries that the inbox in `folder` ever had; only reads. Raises as `Inbox` does."""
    all_segments = segments(folder) if (folder / JOURNAL).is_dir() else []
    if not all_segments:
        return 0
    first, file = all_segments[-1]
    position = InboxPosition.of(file)
    for at, line in lines_of(first, file, first):
        for entry in entries_of(folder, at, line):
            _pass(position, entry)
    return position.seq


def _head(file: Path) -> int:
    """The bytes of a segment's first line, if that has the journal's position."""
    with file.open("rb") as f:
        line = f.readline()
    return len(line) if line.startswith(b"{") and line.endswith(b"\n") else 0


def _number_entry(p: InboxPosition, entry: Entry) -> Entry:
    """The entry at a position, which is moved behind it."""
    numbered_entry = entry.with_numbers(p.seq, p.step, p.request, p.clocks.get(entry.app))
    _pass(p, numbered_entry)
    return numbered_entry


def _pass(p: InboxPosition, entry: Entry) -> None:
    """Moves a position behind an entry."""
    p.seq = entry.seq + 1
    p.step = entry.step + entry.steps
    p.request = entry.request + entry.requests
    for stream, count in entry.events_by_stream.items():
        p.events[stream] = p.events.get(stream, 0) + count
    if entry.source is not None and entry.reached:
        positions = p.sources.setdefault(entry.source, {})
        positions.update(entry.reached)
        for part in [part for part, value in entry.reached.items() if value is None]:
            del positions[part]
    if isinstance(entry, StepsEntry) and entry.sink is not None:
        p.sinks[entry.sink] = entry.place
    if entry.clock is not None:
        p.clock = entry.clock if p.clock is None else max(p.clock, entry.clock)
        p.clocks[entry.app] = max(p.clocks.get(entry.app, entry.clock), entry.clock)
