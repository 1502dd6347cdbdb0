"""The end of a micro-batch: all that it changes outside its runner, in one transaction, once.

The store's ledger holds a row (app, run, batch id) for every micro-batch that is in it. A runner repeats a micro-batch
after a crash with the same id and rows; one that is in the ledger is not written again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from ..engine.aggregation import storable
from ..engine.state.node_batch import ElementRows, RetrievalAnswer
from ..journal.private import private_folder
from ..journal.resting import write_resting
from ..journal.result_codec import QueryFailed, errors_of
from ..journal.result_rows import (
    Answered,
    Errors,
    Logs,
    NodeDone,
    NodeReport,
    Partial,
    Row,
    RowCounts,
    StreamEvents,
    TableRow,
    from_table,
)
from ..journal.shared import Shared
from ..journal.throughput import ArrivalCounts, BatchFigures, Throughput
from ..masking import mask_passwords
from ..plan.nodes import Plan
from ..stores.several import StoreSet
from ..stores.store_protocol import BatchKey, ErrorRow, Store
from .commit_gate import CommitGate
from .last_reports import LastReports
from .merging import Merging
from .output_files import OutputFiles
from .spill import UNTAKEN


class BatchFrame(Protocol):
    """A micro-batch in the form of Spark's `foreachBatch`: a data frame."""

    def toArrow(self) -> pa.Table:
        """All rows, for which Spark does the work of the micro-batch."""


@dataclass
class Progress:
    """Progress of an app, shared between the thread of the streaming query and those that wait for it.

    `batch` and `last` are the last micro-batch and entry that are committed. By node: `nodes` as of the last
    micro-batch, `events_by_node` and `ms_by_node`, the events and the time of all micro-batches. `errors` counts events
    that could not be processed, `faulty` the same by stream, aggregation or sink; `dropped_errors` those no longer
    kept, since the app began. `element_rows`: put out by queries and named windows since this process deployed the app.
    Commits pass through `gate`.
    """

    changed: threading.Condition = field(default_factory=threading.Condition)
    batch: int = -1
    last: int = -1
    rows: dict[str, int] = field(default_factory=dict)
    element_rows: ElementRows = field(default_factory=ElementRows)
    errors: int = 0
    faulty: Counter[str] = field(default_factory=Counter)
    dropped_errors: int = 0
    throughput: Throughput = field(default_factory=Throughput)
    nodes: dict[int, NodeReport] = field(default_factory=dict)
    events_by_node: dict[int, int] = field(default_factory=dict)
    ms_by_node: dict[int, float] = field(default_factory=dict)
    answers: dict[int, dict[int, RetrievalAnswer | QueryFailed]] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    gate: CommitGate = field(default_factory=CommitGate)

    def say(self, sentence: str) -> None:
        """Adds a line to the logs, its secrets masked, unless it is the last one already."""
        sentence = mask_passwords(sentence)
        with self.changed:
            if self.logs[-1:] != [sentence]:
                self.logs = [*self.logs, sentence][-LOG_LINES_KEPT:]


LOG_LINES_KEPT = 1000


class ErrorLimit:
    """Limits the number of errors of an app in a store to `most` (None: no limit), and counts the dropped ones."""

    def __init__(self, store: Store, app: str, most: int | None, progress: Progress) -> None:
        self._store, self._app, self._most, self._progress = store, app, most, progress
        self._fresh = 0
        progress.dropped_errors = store.trim_errors(app, most)

    def count_added(self, errors: int) -> None:
        """Note that `errors` more errors are in the store. Dropping costs as much as there is: it waits for a hundredth
        more.
        """
        self._fresh += errors
        if self._most is not None and errors and self._fresh > self._most // 100:
            self._fresh = 0
            self._progress.dropped_errors = self._store.trim_errors(self._app, self._most)


@dataclass(frozen=True)
class AfterCommit:
    """The parts of an app that a commit informs, each of which may be missing: `merging` of output files, the file of
    the nodes' last `reports`, the `limit` of errors, and the folder `inbox`, where resting nodes are noted. `arrivals`
    counts the events that came in; without it no rates are known."""

    merging: Merging | None = None
    reports: LastReports | None = None
    limit: ErrorLimit | None = None
    inbox: Path | None = None
    arrivals: ArrivalCounts | None = None


@dataclass(frozen=True)
class CommittedRun:
    """The run of an app whose micro-batches are committed: the names of app and run, the nodes' shard ids, and the
    plan. Workers leave large results at a `shared` address, if there is one."""

    app: str
    run: str
    shards: Sequence[str]
    plan: Plan
    shared: Shared | None = None


class Commit:
    """Commits micro-batches: the function for Spark's foreachBatch, and `commit` for rows that are at hand."""

    clock: Callable[[], float] = staticmethod(time.time)
    """Gives the seconds since 1970."""

    def __init__(
        self,
        run: CommittedRun,
        store: Store,
        outputs: OutputFiles,
        progress: Progress,
        after: AfterCommit | None = None,
    ) -> None:
        self.shared = run.shared
        self.app, self.run, self.shards = run.app, run.run, list(run.shards)
        self.store, self.outputs, self.progress = store, outputs, progress
        self.after = after or AfterCommit()
        self._aggregations, self._zone = run.plan.aggregations, run.plan.aggregation_zone

    def __call__(self, frame: BatchFrame, batch: int) -> None:
        began = self.clock()  # Spark does the work of the micro-batch when it is asked for the rows
        self.commit(from_table(frame.toArrow()), batch, began)

    def commit(self, rows: Iterable[Row], batch: int, began: float | None = None) -> None:
        """Commits the rows of a micro-batch and wakes waiting callers. Raises TypeError for a row of another kind.

        `began`: when its work began (seconds since 1970); None if that was elsewhere, and the nodes report how long it
        took.
        """
        taken_up = self.clock()
        gathered_rows, spill_files = self._gather(rows)
        with self.progress.gate.enter(lambda: self.progress.last):
            rows_by_stream, is_fresh = self._write(gathered_rows, batch)
            self._tidy(gathered_rows, spill_files)
            with self.progress.changed:
                self._advance(batch, gathered_rows, rows_by_stream if is_fresh else None)
                if self.after.arrivals is not None:
                    end, longest_ms = self.clock(), max((r.ms for r in gathered_rows.nodes.values()), default=0.0)
                    ms = 1000 * (end - taken_up) + longest_ms if began is None else 1000 * (end - began)
                    events_in, events_done = self.after.arrivals.total, self.after.arrivals.through(self.progress.last)
                    self.progress.throughput.add(
                        BatchFigures(batch, end, round(ms, 1), events_in, events_done, longest_ms)
                    )
                self.progress.changed.notify_all()
        if self.after.merging is not None:
            self.after.merging.note_commit(batch, rows_by_stream)

    def _write(self, gathered_rows: _Gathered, batch: int) -> tuple[dict[str, int], bool]:
        """Writes outputs, aggregations and errors; the number of outputs by stream, and False if the store had the
        micro-batch already."""
        self.outputs.write(batch, gathered_rows.streams)
        partials = {key: pa.concat_tables(tables) for key, tables in gathered_rows.partials.items()}
        for key, table in partials.items():
            partials[key] = self._without_unfit(key[0], table, gathered_rows.errors)
        # All nodes that take events see the same clock; one that came later began to see it later.
        clocks = [report.clock for report in gathered_rows.nodes.values() if report.clock is not None]
        clock = max(clocks, key=lambda c: (c.after, -c.first), default=None)
        is_fresh = self.store.commit(BatchKey(self.app, self.run, batch), partials, gathered_rows.errors, clock)
        rows_by_stream = {stream: sum(e.rows for e in events) for stream, events in gathered_rows.streams.items()}
        self.outputs.account(batch, rows_by_stream)
        if self.after.limit is not None:
            self.after.limit.count_added(len(gathered_rows.errors))
        return rows_by_stream, is_fresh

    def _tidy(self, gathered_rows: _Gathered, spill_files: Sequence[str]) -> None:
        """Removes the files that are committed, and notes the last reports of nodes and which of them rest."""
        for file in gathered_rows.files:
            Path(file).unlink()
        if self.shared is not None and spill_files:
            with contextlib.suppress(OSError):  # the rest is removed at the next start
                self.shared.remove(*spill_files)
        nodes = {**self.progress.nodes, **gathered_rows.nodes}
        if self.after.reports is not None:
            self.after.reports.write(nodes)
        if self.after.inbox is not None and len(self.shards) > 1:
            write_resting(self.after.inbox, gathered_rows.last + 1, nodes)

    def has_begun(self, batch: int) -> bool:
        """True if the results of a micro-batch are in a database: repeated, it has to give the same."""
        last = self.store.last_begun if isinstance(self.store, StoreSet) else self.store.last_committed
        return last(self.app, self.run) >= batch

    def _gather(self, rows: Iterable[Row]) -> tuple[_Gathered, list[str]]:
        """The rows grouped by their treatment, and the names of the files that were fetched for them."""
        gathered_rows, spill_files = _Gathered(self.shards), []
        for row in rows:
            if self.shared is not None and isinstance(row, TableRow) and row.file:
                spill_files.append(f"spill/{Path(row.file).name}")
                row = replace(row, file=str(self._fetch_file(self.shared, spill_files[-1])))
            gathered_rows.take(row)
        return gathered_rows, spill_files

    def _advance(self, batch: int, gathered_rows: _Gathered, fresh: Mapping[str, int] | None) -> None:
        """Moves the progress on by a micro-batch. `fresh`: its rows by stream; None if it was committed before."""
        p = self.progress
        p.batch, p.last = max(p.batch, batch), max(p.last, gathered_rows.last)
        p.nodes.update(gathered_rows.nodes)
        p.answers.update(gathered_rows.answers)
        if fresh is not None:
            for name, count in fresh.items():
                p.rows[name] = p.rows.get(name, 0) + count
            p.element_rows.add(gathered_rows.element_rows)
            p.errors += len(gathered_rows.errors)
            p.faulty.update(e.stream for e in gathered_rows.errors)
            for node, report in gathered_rows.nodes.items():
                p.events_by_node[node] = p.events_by_node.get(node, 0) + report.events
                p.ms_by_node[node] = p.ms_by_node.get(node, 0.0) + report.ms
        p.logs = (p.logs + gathered_rows.logs)[-LOG_LINES_KEPT:]

    def _fetch_file(self, shared: Shared, name: str) -> Path:
        """A file that a worker left at the address; it is not there where the commit was cut off after this."""
        file = private_folder(self.outputs.folder / UNTAKEN) / Path(name).name
        if not file.exists():
            with contextlib.suppress(FileNotFoundError):
                shared.get_file(name, file)
        return file

    def clear(self) -> None:
        """Remove files that workers wrote and no commit took. Only while nothing runs. Raises OSError if the address
        cannot be reached.
        """
        self.outputs.clear()
        if self.shared is not None:
            self.shared.remove(*(f"spill/{name}" for name in self.shared.names("spill")))

    def _without_unfit(self, aggregation: str, partials: pa.Table, errors: list[ErrorRow]) -> pa.Table:
        """`partials` without the rows that the database of an aggregation cannot hold, which become errors."""
        definition = self._aggregations[aggregation]
        storable_rows, unfit_rows = storable(
            definition, self._zone, partials, lambda t: self.store.unfit(aggregation, t)
        )
        errors += [ErrorRow(aggregation, row.bucket, row.values, row.reason) for row in unfit_rows]
        return storable_rows


@dataclass
class _Gathered:
    """The rows of a micro-batch, grouped by their treatment. `files` hold partials, and go when those are stored.
    `last` is the highest entry that the nodes have finished.
    """

    shards: Sequence[str]
    streams: dict[str, list[StreamEvents]] = field(default_factory=dict)
    partials: dict[tuple[str, str], list[pa.Table]] = field(default_factory=dict)
    element_rows: ElementRows = field(default_factory=ElementRows)
    errors: list[ErrorRow] = field(default_factory=list)
    nodes: dict[int, NodeReport] = field(default_factory=dict)
    answers: dict[int, dict[int, RetrievalAnswer | QueryFailed]] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    last: int = -1

    def take(self, row: Row) -> None:
        match row:
            case StreamEvents():
                self.streams.setdefault(row.name, []).append(row)
            case Partial():
                if row.file:
                    if not Path(row.file).exists():
                        return  # the commit was cut off after the store had it
                    self.files.append(row.file)
                self.partials.setdefault((row.name, self.shards[row.node]), []).append(row.table())
            case Errors():
                self.errors.extend(ErrorRow(*error) for error in errors_of(row.lines))
            case RowCounts():
                self.element_rows.add(row.rows)
            case Answered():
                self.answers.setdefault(row.seq, {})[row.node] = row.answer
            case Logs():
                self.logs.extend(row.lines)
            case NodeDone():
                self.nodes[row.node] = row.report
                self.last = max(self.last, row.last)
            case _:
                raise TypeError(f"a row of kind '{row.kind}' is nothing to commit")
