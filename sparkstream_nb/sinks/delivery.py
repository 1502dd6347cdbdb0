"""The delivery of a stream's committed outputs to one target, on a thread of its own.

A delivery reads the outputs that the commit of a micro-batch left in the app's folder, and keeps its position there. So
a slow or unavailable target never stops the app, and after a crash the delivery continues from its position.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import Array
from ..errors import DamagedFile, log_line, shown
from ..journal.result_codec import column_values
from ..mapping import Message
from ..outputs.commit import Progress
from ..outputs.output_files import OutputFiles, OutputsMoved
from ..pauses import Pauses
from .position import SinkPosition, read_position, write_position
from .sink_messages import CHUNK, Made, MessageWriter, UnwrittenEvents
from .target import OutputPlace, OutputPlaces, Target, TargetUnavailable, Undeliverable

_log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds between two tries of a target that is away: they grow from the first to the longest."""
_LOGGED = 10
"""Events of one message that are logged with their values."""
_BUSY = 0.05
"""Seconds between two tries to send an event to the fault stream of an app that does something else."""
GRACE = 1.0
"""Seconds in which a running call may end on its own when the app stops."""


@dataclass(frozen=True)
class SinkSetup:
    """A sink as it was deployed. `name` is unique in the app, `target_name` its target without secrets, `promise` how
    often it delivers an output. `on_error`: LOG, STORE, STREAM or WAIT. `share` picks the rows of a table of outputs
    that are this target's; None: all are."""

    name: str
    stream: str
    type: str
    target_name: str
    promise: str
    on_error: str
    writer: MessageWriter
    target: Target
    share: Callable[[pa.Table], Array] | None = None


class FaultSender(Protocol):
    """Sends events that could not be delivered to their stream's fault stream, once for each `place` of a sink."""

    def __call__(self, setup: SinkSetup, place: OutputPlace, events: pa.Table, reason: str) -> bool:
        """`events`: rows of outputs, of one node, the last of which is at `place`. False if the app is busy: to be
        tried again soon."""
        ...


class ErrorKeeper(Protocol):
    """Keeps events that could not be delivered as errors of the app, once for each `place` of a sink."""

    def __call__(self, sink: str, place: OutputPlace, errors: Sequence[Sequence[Any]]) -> None:
        """`errors`: stream, timestamp (ms), values, reason of each event, the last of which is at `place`."""
        ...


@dataclass(frozen=True)
class DeliverySource:
    """Source of a delivery: an app's outputs, how far they are committed, and where its errors go. `folder` has the
    positions of all sinks.
    """

    outputs: OutputFiles
    progress: Progress
    keep: ErrorKeeper
    fault: FaultSender
    folder: Path


@dataclass(frozen=True)
class SinkFigures:
    """Progress of a sink: events `sent`, `failed` and `dropped` since the app's run began, and `pending` ones that are
    committed and not looked at yet. `last_error`: the reason for waiting, the last failure, or what others did to its
    file; None for none of these.
    """

    name: str
    stream: str
    type: str
    target: str
    promise: str
    sent: int
    pending: int
    failed: int
    dropped: int
    last_error: str | None


class Delivery:
    """Delivers the outputs of `setup.stream` to `setup.target`, from where an earlier one of that name was.

    A new one begins with micro-batch `begin`. `wait(seconds)` pauses between two tries; by default it ends when the
    delivery is stopped. Raises SparkStreamError if its position cannot be read.
    """

    def __init__(
        self, setup: SinkSetup, source: DeliverySource, begin: int, wait: Callable[[float], object] | None = None
    ) -> None:
        self.setup, self.stream, self._source, self._wait = setup, setup.stream, source, wait
        self._path = source.folder / f"{setup.name}.json"
        self._lock = threading.Lock()
        self._position_change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._is_open, self._pauses = False, Pauses(FIRST_PAUSE, LONGEST_PAUSE)
        self._trouble: str | None = None
        self._last_error: str | None = None
        position = read_position(self._path)
        self.position = position or SinkPosition(begin, stream=setup.stream)
        if position is None:
            write_position(self._path, self.position)

    # --------------------------------------------------------------------------------------------- begin and end

    def start(self) -> None:
        """Starts the thread, if it does not run."""
        if self._thread is not None and self._ending.is_set():
            self.join()
        if self._thread is None or not self._thread.is_alive():
            self._ending = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._ending,), name=f"sparkstream-sink-{self.setup.name}", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Signal the thread to end, without waiting for it."""
        self._ending.set()
        with self._source.progress.changed:
            self._source.progress.changed.notify_all()
        with self._position_change:
            self._position_change.notify_all()

    def stop(self) -> bool:
        """Ends the thread; whether it ended at once. A call that is under way has a second, and is then cut off: what
        it was sending is sent again after the next start."""
        self.end()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(GRACE)
        if thread.is_alive():
            self.setup.target.cancel()
            thread.join(GRACE)
        return not thread.is_alive()

    def join(self) -> None:
        """End the thread, and wait until it has closed its target."""
        while not self.stop():
            pass

    def drain(self, batch: int, deadline: float) -> bool:
        """Waits until all outputs up to micro-batch `batch` are delivered or failed, until `deadline` by the monotonic
        clock; whether they are."""
        with self._position_change:
            while self.position.batch <= batch and not self._ending.is_set():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._position_change.wait(left)
        return self.position.batch > batch

    def figures(self) -> SinkFigures:
        """Figures of the sink."""
        s, source = self.setup, self._source
        with source.outputs.tidying:
            with self._lock:
                p = self.position
            pending = source.outputs.count_after(s.stream, p.batch, p.row, source.progress.batch)
        return SinkFigures(
            s.name, s.stream, s.type, s.target_name, s.promise, p.sent, pending, p.failed, p.dropped,
            self._trouble or self._last_error,
        )  # fmt: skip

    def lose(self, last: int) -> None:
        """Counts the outputs up to micro-batch `last`, which are about to be dropped, and goes past them."""
        with self._lock:
            p = self.position
            if p.batch > last:
                return
            count = self._source.outputs.count_after(self.stream, p.batch, p.row, last)
            self.position = replace(p, batch=last + 1, row=0, dropped=p.dropped + count)
            write_position(self._path, self.position)
        if count:
            self._say(f"{count:,} outputs were dropped before they were sent: raise 'retention', or mend its target")

    # -------------------------------------------------------------------------------------------------- the thread

    def _run(self, ending: threading.Event) -> None:
        while not ending.is_set():
            try:
                if self.setup.target.at_start:
                    self._open_target()
                if self._next_commit(ending):
                    self._open_target()
                    self._pass(ending)
            except OutputsMoved:
                continue
            except (TargetUnavailable, DamagedFile, OSError) as error:
                self._away(str(error), ending)
            except Exception as error:  # a fault of ours, or a database that is away: neither stops the app
                _log.exception("Sink %s failed", self.setup.name)
                self._away(f"{type(error).__name__}: {error}", ending)
        self._close()

    def _next_commit(self, ending: threading.Event) -> bool:
        """Waits until there is something to look at; False if the delivery ends."""
        progress = self._source.progress
        with progress.changed:
            while progress.batch < self.position.batch and not ending.is_set():
                progress.changed.wait()
        return not ending.is_set()

    def _open_target(self) -> None:
        if not self._is_open:
            state = dict(self.setup.target.open(self.position.state))
            self._is_open = True
            self._pass_warnings_on()
            if state != self.position.state:
                self._save(replace(self.position, state=state))

    def _close(self) -> None:
        self._is_open = False
        self.setup.target.close()

    def _pass(self, ending: threading.Event) -> None:
        """Delivers all that is committed by now."""
        last_batch, at = self._source.progress.batch, self.position
        # A micro-batch is read from its first row: a message's place is found among all events of its group.
        for portion in self._source.outputs.after(self.stream, at.batch, 0, last_batch):
            self._portion(portion.batch, portion.table, at.row if portion.batch == at.batch else 0, ending)
            if ending.is_set():
                return
        self._move(SinkPosition(last_batch + 1))
        self._well()

    def _portion(self, batch: int, table: pa.Table, first_row: int, ending: threading.Event) -> None:
        """Delivers a micro-batch, of which the events before `first_row` are dealt with."""
        target, before = self.setup.target, self.position
        try:
            for start, end in windows(self.setup.writer.cuts(table)):
                if ending.is_set():
                    return
                if end > first_row:
                    self._window(OutputPlace(batch, start), table.slice(start, end - start), first_row)
            if target.by_batch:
                target.finish(batch)
                self._save(replace(self.position, batch=batch + 1, row=0, state=dict(target.state())))
        except Exception:
            if target.by_batch:
                self._counts(before)  # all of it is sent again
            raise
        # The place after a micro-batch's last row is that before the next one's first: nothing to write down.
        self._move(SinkPosition(batch + 1))
        self._well()

    def _window(self, place: OutputPlace, table: pa.Table, first_row: int) -> None:
        """Deliver the events of a table, whole groups, except those before the `first_row` of the micro-batch.

        Events are numbered in the order of their messages, so that a message of events that are not side by side has
        a place as any other.
        """
        setup = self.setup
        rows: Array = np.arange(table.num_rows)
        if setup.share is not None:
            rows = np.flatnonzero(setup.share(table))
            table = table.take(pa.array(rows))
        if not len(rows):
            return
        rows = rows + place.row
        messages = setup.writer.write(table)
        firsts = np.append(0, np.cumsum([m.count for m in messages]))
        i = int(np.searchsorted(firsts, np.searchsorted(rows, first_row), side="right")) - 1
        while i < len(messages):
            one, at = messages[i], int(firsts[i])
            if isinstance(one, UnwrittenEvents):
                count, refusal = self._unwritten(one)
            else:
                run = _run_of(messages, i, setup.target.at_once)
                count, refusal = self._send(run, OutputPlaces(place.batch, rows[firsts[i : i + len(run)]]))
            if count == 0:
                self._save(replace(self.position, state=dict(setup.target.state())))
                continue
            if refusal is not None:
                places = OutputPlaces(place.batch, rows[at : at + one.count])
                self._fail(places, table.take(pa.array(one.events)), refusal)
            i += count
            events = int(firsts[i]) - at
            self._count(
                OutputPlace(place.batch, int(rows[firsts[i] - 1]) + 1),
                0 if refusal else events,
                events if refusal else 0,
            )

    def _send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> tuple[int, str | None]:
        """(how many messages are dealt with, why the first of them was refused). Raises TargetUnavailable."""
        try:
            count = self.setup.target.send(messages, places)
        except Undeliverable as error:
            if self.setup.on_error == "WAIT":
                raise TargetUnavailable(str(error)) from None
            return 1, str(error)
        self._well()
        self._pass_warnings_on()
        return count, None

    def _unwritten(self, events: UnwrittenEvents) -> tuple[int, str | None]:
        """`_send` for events that cannot be written as messages."""
        if self.setup.on_error == "WAIT":
            raise TargetUnavailable(events.reason)
        return 1, events.reason

    # --------------------------------------------------------------------------------------------------- kept state

    def _count(self, after: OutputPlace, sent_events: int, failed_events: int) -> None:
        """Events before `after` are dealt with. A target that takes micro-batches whole gets further at their ends."""
        p = self.position
        p = replace(p, sent=p.sent + sent_events, failed=p.failed + failed_events)
        if self.setup.target.by_batch:
            self._counts(p)
        else:
            self._save(replace(p, batch=after.batch, row=after.row, state=dict(self.setup.target.state())))

    def _counts(self, p: SinkPosition) -> None:
        """Takes the counts of `p` alone."""
        with self._lock:
            self.position = replace(self.position, sent=p.sent, failed=p.failed)

    def _save(self, p: SinkPosition) -> None:
        """Takes a position, unless outputs further on were dropped meanwhile, and writes it down."""
        with self._lock:
            self.position = _further(self.position, p)
            write_position(self._path, self.position)
        with self._position_change:
            self._position_change.notify_all()

    def _move(self, to: SinkPosition) -> None:
        """Goes past micro-batches of which nothing is left, without writing that down."""
        with self._lock:
            p = self.position
            if (to.batch, to.row) > (p.batch, p.row):
                self.position = replace(p, batch=to.batch, row=to.row)
        with self._position_change:
            self._position_change.notify_all()

    def _fail(self, places: Sequence[OutputPlace], events: pa.Table, reason: str) -> None:
        """Events cannot be delivered: keeps each as an error, sends them to the fault stream, or says so."""
        setup = self.setup
        self._last_error = log_line(reason)
        if setup.on_error == "STREAM":
            while not self._source.fault(setup, places[-1], events, f"sink {setup.name}: {reason}"):
                if self._ending.wait(_BUSY):
                    raise TargetUnavailable("the app stops")
            return
        columns = [column_values(c, f) for c, f in zip(events.columns[3:], list(events.schema)[3:], strict=True)]
        rows = [list(values) for values in zip(*columns, strict=True)]
        times = events.column(2).to_pylist()
        if setup.on_error == "STORE":
            why = f"sink {setup.name}: {reason}"
            errors = [[setup.stream, ts, values, why] for ts, values in zip(times, rows, strict=True)]
            self._source.keep(setup.name, places[-1], errors)
            return
        for ts, values in list(zip(times, rows, strict=True))[:_LOGGED]:
            self._say(f"{setup.stream} at {ts}, {shown(values)}, was not delivered: {reason}")
        if len(rows) > _LOGGED:
            self._say(f"{len(rows) - _LOGGED:,} more events of that message were not delivered: {reason}")

    def _away(self, reason: str, ending: threading.Event) -> None:
        """The target is away: says so once, and waits, longer each time."""
        self._close()
        if self._trouble is None:
            self._say(f"{reason}. It is tried again; nothing is lost meanwhile")
        self._trouble = log_line(reason)
        (self._wait or ending.wait)(self._pauses.next())

    def _well(self) -> None:
        self._pauses.reset()
        self._trouble = None

    def _pass_warnings_on(self) -> None:
        target = self.setup.target
        for warning in target.warnings:
            self._say(warning)
            self._last_error = log_line(warning)
        target.warnings = ()

    def _say(self, sentence: str) -> None:
        self._source.progress.say(log_line(f"sink {self.setup.name} ({self.setup.target_name}): {sentence}"))


def windows(cuts: Array) -> Iterator[tuple[int, int]]:
    """Parts of a table that may be cut at `cuts`: `CHUNK` rows at most, or one group that has more."""
    start, count = 0, int(cuts[-1]) if len(cuts) else 0
    while start < count:
        cut = int(np.searchsorted(cuts, start + CHUNK, side="right")) - 1
        end = int(cuts[cut]) if cut >= 0 else 0
        if end <= start:
            end = int(cuts[cut + 1])
        yield start, end
        start = end


def _run_of(messages: Sequence[Made], i: int, most: int) -> list[Message]:
    """The messages from number `i` up to one that could not be made, `most` of them at most."""
    out: list[Message] = []
    for m in messages[i : i + most]:
        if not isinstance(m, Message):
            break
        out.append(m)
    return out


def _further(now: SinkPosition, new: SinkPosition) -> SinkPosition:
    """`new`, with the place of `now` if that is further: its outputs were dropped."""
    if (now.batch, now.row) <= (new.batch, new.row):
        return replace(new, dropped=max(now.dropped, new.dropped))
    return replace(now, sent=new.sent, failed=new.failed, state=new.state)
