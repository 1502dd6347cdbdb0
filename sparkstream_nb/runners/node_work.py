"""A node's work on the entries of a micro-batch: its steps, answers and outputs, as rows, and its new state."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..engine.node import NodeEngine
from ..engine.state.node_batch import InputBatch, Outputs
from ..journal import journal, result_rows, segments
from ..journal.checkpoints import LocalFiles
from ..journal.division import JOINED_STEPS, files_of, pieces_of
from ..journal.entries import Ask, Entry, EventsEntry, FaultEntry, Reject, SourceEntry
from ..journal.leading import only
from ..journal.marks import mark_node
from ..journal.result_codec import QueryFailed
from ..journal.result_rows import Row
from ..nodes.distributed import Distributed
from ..nodes.distributed_member import DistributedMember, NodesOutputs
from ..nodes.member import PairMember
from ..outputs.spill import Spill
from ..plan.nodes import BatchClock
from ..recovery.batch_care import DIED, BatchCare, alone, steps_of, with_care
from ..simulation.faults import fault_of
from .app_node import AppNode, parse_note
from .node_spec import NodeSpec, NodeState, NodeWork
from .node_state import ITS_CHECKPOINT, MemoryState, read_piece
from .trial_process import blame_culprits

if TYPE_CHECKING:
    from .database_tables import NodeTables


def process_entries(work: NodeWork, state: NodeState, key: int, rows: Iterable[Row]) -> list[Row]:
    """The results of the entries of node `key`, and of rows that only pass through, in the rows that its runner brings;
    writes the node's state.

    Raises EventsBlamed if trials have found events that end processes.
    """
    try:
        return _NodeBatch(work, state, key, NodeInput.of(rows)).process()
    except Exception as error:
        if not work.isolate:
            raise
        return [result_rows.NodeFailure.of(work.specs[key].node, error)]


def try_entries(work: NodeWork, state: NodeState, key: int, node_input: NodeInput) -> None:
    """Work on a node's entries for a trial: nothing is changed but `state`."""
    _NodeBatch(work, state, key, node_input).run()


@dataclass
class NodeInput:
    """Input of a node in a micro-batch: entries in order, its parts of them by their first entry, rows that pass
    through, the number of their events, and when it began to take them.
    """

    entries: list[Entry] = field(default_factory=list)
    parts: dict[int, result_rows.NodePart] = field(default_factory=dict)
    passing: list[Row] = field(default_factory=list)
    events: int = 0
    began: float = field(default_factory=time.perf_counter)

    @staticmethod
    def of(rows: Iterable[Row]) -> NodeInput:
        """The input in the rows of a node that a runner brings."""
        node_input = NodeInput()
        for row in rows:
            if isinstance(row, result_rows.Entries):
                node_input.entries += row.entries()
                node_input.events += row.events
            elif isinstance(row, result_rows.NodePart):
                node_input.parts[row.seq] = row
            else:
                node_input.passing.append(row)
        node_input.entries.sort(key=lambda e: e.seq)
        return node_input

    @property
    def files(self) -> list[str]:
        """The files of the inbox that it needs."""
        is_divided = bool(self.parts)
        of_entries = [n for e in self.entries if not (is_divided and isinstance(e, EventsEntry)) for n in e.files]
        return [*of_entries, *files_of(self.parts.values())]


@dataclass
class _NodeBatch:
    """The work of node `key` on its input of a micro-batch."""

    work: NodeWork
    state: NodeState
    key: int
    input: NodeInput

    @property
    def spec(self) -> NodeSpec:
        return self.work.specs[self.key]

    @property
    def instructions(self) -> BatchCare:
        return self.work.instructions or BatchCare()

    @property
    def is_trial(self) -> bool:
        return self.instructions.trial is not None

    @property
    def place_of_state(self) -> str:
        """For messages: with a shared address, the workers do not see the folder."""
        if self.work.shared is not None:
            return ITS_CHECKPOINT
        return f"the checkpoint {self.work.folder.parent / 'checkpoint'}"

    def process(self) -> list[Row]:
        """The results, with the files at hand, after trials if there are suspects."""
        shared = self.work.shared
        if shared is None:
            return self._try_suspects_and_run()
        with shared.at_hand(self.input.files) as folder:
            self.work = self.work.within(folder)
            rows = self._try_suspects_and_run()
            for row in rows[len(self.input.passing) :]:
                if isinstance(row, result_rows.TableRow) and row.file:
                    shared.put_file(f"spill/{Path(row.file).name}", Path(row.file))
        return rows

    def _try_suspects_and_run(self) -> list[Row]:
        """The results, after trials in child processes if the entries are suspected of ending processes."""
        if not self.instructions.concerns(self.input.entries):
            return self.run()
        with alone(self.work.folder):
            version = self.state.version()
            work = replace(self.work, check=None, outputs=None, keep=False)
            events = NodeInput(self.input.entries, self.input.parts)
            trial = NodeTrial(work, self.key, events, version, self._read_pieces(version))
            blame_culprits(trial, self.instructions, steps_of(self.input.entries), self.work.check)
            return self.run()

    def _read_pieces(self, version: tuple[str, str] | None) -> dict[str, bytes]:
        """The pieces of the stored state, by digest."""
        if version is None:
            return {}
        digests, _ = parse_note(version[1], self.place_of_state)
        return {digest: read_piece(self.state, digest, self.place_of_state) for digest in digests}

    def run(self) -> list[Row]:
        """The results, within a transaction of each database that has tables of the node."""
        node = self._open_node()
        if not self.spec.tables:
            return self._run_with(node)
        from .database_tables import BatchOf, with_tables  # it loads DuckDB, which most nodes do not need

        entries = self.input.entries
        batch = BatchOf(self.work.run, self.spec.index, f"{entries[0].seq if entries else -1}.{node.engine.steps}")
        unused_nodes = [node]

        def work(tables: NodeTables) -> list[Row]:
            if self.is_trial and tables.is_committed():
                return []  # it went well
            # An attempt that failed half-way leaves an engine that cannot be used again.
            return self._run_with(unused_nodes.pop() if unused_nodes else self._open_node(), tables)

        reads = LocalFiles(self.work.folder.parent) if self.work.shared is None else self.work.shared
        return with_tables(self.spec.tables, batch, reads, work)

    def _open_node(self) -> AppNode:
        """The node as the micro-batch finds it. An app that is deployed again continues with its state, also under
        other limits, or with other queries."""
        key = self.work.run, self.key
        node = AppNode.from_memory(key, self.spec, self.state.version())
        if node is None or not self.work.keep:
            node = AppNode(key, self.spec, self.place_of_state)
            node.restore(self.state)
        return node

    def _run_with(self, node: AppNode, tables: NodeTables | None = None) -> list[Row]:
        """Processes the entries; if that fails, once more from the stored state, setting aside events that cannot be
        processed. A database may be the cause; then it is not known which event is; nor is it if memory is short.
        """
        try:
            return _Attempt(self, node, tables).run()
        except MemoryError:
            raise
        except Exception:
            if tables is not None or self.work.isolate:
                raise
        return _Attempt(self, self._open_node(), careful=True).run()


class _Attempt:
    """One attempt at a micro-batch. `careful`: events that fail are set aside."""

    def __init__(
        self, batch: _NodeBatch, node: AppNode, tables: NodeTables | None = None, *, careful: bool = False
    ) -> None:
        self._batch, self._node, self._tables, self._careful = batch, node, tables, careful
        self._work, self._spec = batch.work, batch.spec
        self._rows: list[Row] = [*batch.input.passing]
        self._steps = 0
        self._events = batch.input.events if node.is_idle else 0  # else the node counts them itself

    def run(self) -> list[Row]:
        """The rows of results; commits changes in tables of databases, and saves the node."""
        node, entries, engine = self._node, self._batch.input.entries, self._node.engine
        if self._tables is not None and isinstance(engine, NodeEngine):
            engine.read_tables_from(self._tables)
        was_restored, node.was_restored, before = node.was_restored, False, engine.now
        if node.last is not None and entries and entries[0].seq > node.last + 1:
            self._catch_up(entries[0])
        for run in _runs_of_events(entries):
            if isinstance(run, list):
                self._take_events(run)
            else:
                self._rows += self._answer(run)
        if self._tables is not None and isinstance(node.engine, NodeEngine) and not self._batch.is_trial:
            self._tables.end(node.engine.take_table_changes())
        if entries:
            node.last = entries[-1].seq
        size = self._save()
        self._rows.append(self._report(entries, size, before, was_restored=was_restored))
        return self._rows

    def _save(self) -> int:
        return self._node.save(self._batch.state, in_memory=self._work.keep)

    def _report(self, entries: list[Entry], size: int, before: int, *, was_restored: bool) -> Row:
        """The row that says that the node is done; `size` of its state, and its clock `before`."""
        spec, engine = self._spec, self._node.engine
        ms = round(1000 * (time.perf_counter() - self._batch.input.began), 1)
        first = engine.first_clock
        clock = None if first is None else BatchClock(first, max(first, before), engine.now)
        due, rests = None, False
        if isinstance(engine, NodeEngine):
            due, rests = engine.next_due(), engine.may_rest and not (spec.takes_all or spec.tables)
        report = result_rows.NodeReport(
            spec.shard, ms, was_restored, size, engine.stats(), clock, self._events, due, rests
        )
        low, high = (entries[0].seq, entries[-1].seq) if entries else (0, -1)
        return result_rows.NodeDone(spec.node, low, high, self._steps, report)

    def _catch_up(self, entry: Entry) -> None:
        """Moves the clock of a node that was left out to where it was before `entry` (`resting`)."""
        engine = self._node.engine
        if entry.before is None or entry.before <= engine.now:
            return
        if self._node.is_idle:
            assert isinstance(engine, NodeEngine)
            engine.skip(1, entry.before, entry.before)
            return
        batch = InputBatch(np.array([entry.before], np.int64))
        self._take_pieces([segments.StepsOfNode(entry.seq, entry.seq - 1, entry.step - 1, engine.now, batch)])

    def _take_events(self, entries: list[EventsEntry]) -> None:
        """Lets the engine take the node's events of consecutive entries."""
        spec, engine = self._spec, self._node.engine
        if not spec.takes_all:
            entries = [e for e in entries if not e.over or spec.index in e.over]
        if not entries:
            return
        if self._node.is_idle:
            assert isinstance(engine, NodeEngine)
            engine.skip(sum(e.steps for e in entries), entries[0].clock, max(e.clock for e in entries))
            return
        many = JOINED_STEPS if self._batch.input.parts else journal.STEPS_PER_PIECE
        pieces = self._pieces(entries)
        read_ahead = segments.ahead(pieces) if sum(e.steps for e in entries) > many else pieces
        steps, events = self._take_pieces(read_ahead)
        self._steps, self._events = self._steps + steps, self._events + events

    def _pieces(self, entries: list[EventsEntry]) -> Iterator[segments.StepsOfNode]:
        """The node's events of consecutive entries, in pieces."""
        folder, spec, parts = self._work.folder, self._spec, self._batch.input.parts
        schemas = {s: d.source.schema for s, d in self._node.engine.plan.streams.items()}
        # Errors contain all values of events that are set aside.
        all_attributes = self._careful or self._work.isolate or self._batch.instructions.shows(entries)
        attributes = None if all_attributes else self._node.needed_attributes
        if parts:

            def read(run: Sequence[EventsEntry]) -> InputBatch:
                return segments.pieces(folder, run, schemas, [spec.index], spec.count)[0].batch

            return pieces_of(folder, entries, parts, None if attributes is not None else read)
        if spec.takes_all:
            return (segments.whole(folder, run, schemas) for run in journal.runs(entries))
        return (
            segments.pieces(folder, run, schemas, [spec.index], spec.count, attributes)[0]
            for run in journal.runs(entries)
        )

    def _take_pieces(self, pieces: Iterable[segments.StepsOfNode]) -> tuple[int, int]:
        """Lets the engine take pieces, without steps that are set aside; returns the numbers of steps and events."""
        self._spill = Spill(self._work.outputs)
        steps = events = 0
        for piece in pieces:
            if self._work.check is not None:
                self._work.check()
            with_care(self._batch.instructions, piece, self._take_piece, self._put)
            steps += len(piece.batch.clock)
            events += segments.events_of(piece.batch)
            mark_node(self._work.folder, self._spec.index, piece.last)
        self._rows += self._spill.close()
        return steps, events

    def _take_piece(self, piece: segments.StepsOfNode) -> None:
        node = self._node
        parts = node.step_carefully(piece) if self._careful else [(piece, node.step(piece))]
        for part, outputs in parts:
            self._put(part, outputs)
        if self._batch.is_trial:
            self._save()  # that may fail because of an event too
            self._rows.clear()  # the outputs of other events must not add up to what one of them is blamed for

    def _put(self, piece: segments.StepsOfNode, outputs: Outputs) -> None:
        if isinstance(outputs, NodesOutputs):
            for node, of_node in outputs.by_node.items():
                self._rows.extend(self._spill.encode(of_node, node, piece))
        else:
            duty = self._spec.duty
            outputs = outputs if duty is None else only(outputs, duty)
            self._rows.extend(self._spill.encode(outputs, self._spec.node, piece))

    def _answer(self, entry: Entry) -> list[Row]:
        """The rows for an entry without events. On-demand queries and faults go to every node; rejected rows pass
        through the first one to the commit."""
        spec, batch_care = self._spec, self._batch.instructions
        where = (spec.node, entry.seq, entry.seq)
        match entry:
            case Ask() if isinstance(spec.groups, Distributed) and spec.index:
                return []  # the first node answers for all
            case Ask() if entry.seq in batch_care.asks:
                failure = QueryFailed("SiddhiRuntimeError", f"The query was set aside: {DIED}.")
                return [result_rows.Answered(*where, failure)]
            case Ask():
                with batch_care.record(ask=entry.seq):
                    answers = self._node.answer(entry)
                return [result_rows.Answered(node, *where[1:], answer) for node, answer in answers.items()]
            case Reject():
                if spec.index:
                    return []
                segments.check_files(self._work.folder, entry)
                lines = (self._work.folder / entry.file).read_bytes()
                return [result_rows.Errors(*where, lines.count(b"\n"), lines)]
            case SourceEntry():
                return []
            case FaultEntry():
                if isinstance(self._node.engine, PairMember | DistributedMember):
                    self._node.engine.happen(fault_of(entry.fault))
                return []
        raise TypeError(f"a node cannot process an entry of kind '{entry.kind}'")


def _runs_of_events(entries: Iterable[Entry]) -> Iterator[list[EventsEntry] | Entry]:
    """Consecutive entries of events as a list; the other entries one by one."""
    for events, run in groupby(entries, key=lambda e: isinstance(e, EventsEntry)):
        if events:
            yield [e for e in run if isinstance(e, EventsEntry)]
        else:
            yield from run


@dataclass(frozen=True)
class NodeTrial:
    """A node's work on its entries: the node's `key` in `work`, and its state before it."""

    work: NodeWork
    key: int
    input: NodeInput
    version: tuple[str, str] | None
    pieces: Mapping[str, bytes]

    def run(self, instructions: BatchCare) -> None:
        """Do the work. Raises what fails."""
        state = MemoryState(self.version, dict(self.pieces))
        try_entries(replace(self.work, instructions=instructions), state, self.key, self.input)
