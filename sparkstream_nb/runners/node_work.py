"""A node's work on the entries of a micro-batch, and the storing of its state.

The engine saves its state in pieces; a piece that is there already is not written again, and mostly not even read
(`engine/columnar/blocks.py`). Engines that a process keeps in memory between micro-batches are only a cache: one is
used if its version equals the version in the runner's state (`NodeState`), else the engine is restored from that.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from .. import checksums
from ..engine.expressions.function_checks import reason_of
from ..engine.node import NodeEngine
from ..engine.state.node_batch import EventError, InputBatch, Outputs, RetrievalAnswer
from ..errors import SparkStreamError
from ..journal import journal, result_rows, segments
from ..journal.checkpoints import LocalFiles
from ..journal.division import JOINED_STEPS, files_of, pieces_of
from ..journal.entries import Ask, Entry, EventsEntry, FaultEntry, Reject, SourceEntry
from ..journal.leading import only
from ..journal.marks import mark_node
from ..journal.result_codec import QueryFailed
from ..journal.result_rows import Row
from ..lang.parser import parse_on_demand
from ..nodes.distributed import Distributed
from ..nodes.distributed_member import DistributedMember, NodesOutputs
from ..nodes.member import PairMember
from ..outputs.spill import Spill
from ..plan import bind_retrieval
from ..plan.distributed.placement import idle, idle_plan, split
from ..plan.needed import needed_attributes
from ..plan.nodes import BatchClock, Plan
from ..plan.state_units import bound_units, state_units
from ..recovery.batch_care import DIED, BatchCare, alone, steps_of, with_care
from ..recovery.quarantine import taken
from ..simulation.faults import fault_of
from .node_spec import NodeSpec, NodeState, NodeWork
from .node_state import ITS_CHECKPOINT, damaged_state, read_piece, save_pieces

if TYPE_CHECKING:
    from .database_tables import NodeTables

Engine = NodeEngine | PairMember | DistributedMember
ENGINES_KEPT = 64


@dataclass
class _LiveEngine:
    version: str
    engine: Engine
    pieces: list[str]
    spec: NodeSpec
    last: int | None = None
    """The last entry that it took note of; None: all before the next one."""
    restored: bool = False


_engines: OrderedDict[tuple[str, int], _LiveEngine] = OrderedDict()
_plans: OrderedDict[bytes, tuple[Plan, Plan, segments.Needed | None]] = OrderedDict()


def _plan(spec: NodeSpec) -> tuple[Plan, Plan, segments.Needed | None]:
    """The plan, its part for the node, and the attributes that this reads (None: all), unpickled once per worker: nodes
    with equal properties share it. One that takes all events does all of its plan itself."""
    key = hashlib.blake2b(spec.plan, digest_size=16).digest()
    if key not in _plans:
        plan = pickle.loads(spec.plan)
        own = plan if spec.takes_all else split(plan)[1]
        _plans[key] = plan, own, None if spec.takes_all or spec.trace else needed_attributes(own)
        while len(_plans) > ENGINES_KEPT:
            _plans.popitem(last=False)
    return _plans[key]


def _engine(spec: NodeSpec) -> Engine:
    """A node at its start. Aggregations that no query reads are kept by the store alone: the state stays small. Those
    of a pair are in the state of its nodes, which has to be whole in a revision."""
    plan = _plan(spec)[1]
    if isinstance(spec.groups, Distributed):
        return _make_distributed(spec, spec.groups, plan)
    new = partial(
        NodeEngine,
        plan,
        shard=spec.shard,
        allow_scripts=spec.scripts,
        start=spec.start,
        limits=spec.limits,
        publishes=True,
    )
    if spec.groups is not None:
        return PairMember(spec.groups, spec.shard, plan, new)
    return new(trace=spec.trace, stored=not spec.trace, tokens=spec.tokens)


def _make_distributed(spec: NodeSpec, app: Distributed, plan: Plan) -> Engine:
    """All nodes of a distributed app for the first of them; nothing to do for the others."""
    if spec.index:
        return NodeEngine(idle_plan(plan), start=spec.start)
    return DistributedMember(
        plan,
        app,
        lambda part: NodeEngine(
            part, allow_scripts=spec.scripts, start=spec.start, chunks=True, limits=spec.limits, publishes=True
        ),
    )


def work_off(p: NodeWork, state: NodeState, key: int, given: Iterable[Row]) -> list[Row]:
    """The results of a node's entries, and of rows that only pass through, in the rows that its runner brings."""
    try:
        return _take(p, state, key, given)
    except Exception as error:
        if not p.isolate:
            raise
        return [result_rows.NodeFailure.of(p.specs[key].node, error)]


def release(run: str) -> None:
    """Drop the engines that this process keeps for a run of an app."""
    for kept in [k for k in list(_engines) if k[0] == run]:
        _engines.pop(kept, None)


@dataclass
class _NodeInput:
    """Input of a node in a micro-batch: entries in order, its parts of them by their first entry, rows that pass
    through, the number of their events, and when it began to take them.
    """

    entries: list[Entry] = field(default_factory=list)
    parts: dict[int, result_rows.NodePart] = field(default_factory=dict)
    passing: list[Row] = field(default_factory=list)
    events: int = 0
    began: float = field(default_factory=time.perf_counter)

    @property
    def files(self) -> list[str]:
        """The files of the inbox that it needs."""
        divided = bool(self.parts)
        own = [n for e in self.entries if not (divided and isinstance(e, EventsEntry)) for n in e.files]
        return [*own, *files_of(self.parts.values())]


def _take(p: NodeWork, state: NodeState, key: int, brought: Iterable[Row]) -> list[Row]:
    given = _NodeInput()
    for row in brought:
        if isinstance(row, result_rows.Entries):
            given.entries += row.entries()
            given.events += row.events
        elif isinstance(row, result_rows.NodePart):
            given.parts[row.seq] = row
        else:
            given.passing.append(row)
    given.entries.sort(key=lambda e: e.seq)
    if p.shared is None:
        return _with_care(p, state, key, given)
    with p.shared.at_hand(given.files) as folder:
        out = _with_care(p.within(folder), state, key, given)
        for row in out[len(given.passing) :]:
            if isinstance(row, result_rows.TableRow) and row.file:
                p.shared.put_file(f"spill/{Path(row.file).name}", Path(row.file))
    return out


def _with_care(p: NodeWork, state: NodeState, key: int, given: _NodeInput) -> list[Row]:
    """The results of a node's entries, after trials in child processes where they are suspected of ending processes.

    Raises EventsBlamed if trials have found some that do.
    """
    if not _care(p).concerns(given.entries):
        return _work(p, state, key, given)
    from .trial_process import NodeTrial, blame_culprits

    with alone(p.folder):
        pieces, version = {}, state.version()
        if version is not None:
            pieces = dict(_read_state(p, state, version[1]))
        trial = NodeTrial(
            replace(p, check=None, outputs=None, keep=False), key, given.entries, given.parts, version, pieces
        )
        blame_culprits(trial, _care(p), steps_of(given.entries), p.check)
        return _work(p, state, key, given)


def try_work(
    p: NodeWork, state: NodeState, key: int, entries: list[Entry], parts: dict[int, result_rows.NodePart]
) -> None:
    """Work on a node's entries for a trial: nothing is changed but `state`."""
    _work(p, state, key, _NodeInput(entries, parts))


def _care(p: NodeWork) -> BatchCare:
    return p.care or BatchCare()


def _work(p: NodeWork, state: NodeState, key: int, given: _NodeInput) -> list[Row]:
    kept = _restore_engine(p, state, key)
    spec = p.specs[key]
    if not spec.tables:
        return _run(p, state, key, kept, given)
    from .database_tables import BatchOf, with_tables

    first = given.entries[0].seq if given.entries else -1
    batch = BatchOf(p.run, spec.index, f"{first}.{kept.engine.steps}")

    engines = [kept]

    def work(source: NodeTables) -> list[Row]:
        if _care(p).trial is not None and source.is_committed():
            return []  # it went well
        # An attempt that failed half-way leaves an engine that cannot be used again.
        return _run(p, state, key, engines.pop() if engines else _restore_engine(p, state, key), given, source)

    reads = LocalFiles(p.folder.parent) if p.shared is None else p.shared
    return with_tables(spec.tables, batch, reads, work)


def _restore_engine(p: NodeWork, state: NodeState, key: int) -> _LiveEngine:
    """The node's engine as the micro-batch finds it."""
    stored = state.version()
    # Taken out while it works: an engine that fails half-way must not be found again.
    kept = _engines.pop((p.run, key), None)
    spec = p.specs[key]
    # An app that is deployed again continues with its state, also under other limits, or with other queries.
    if kept is None or not p.keep or stored is None or (kept.version, kept.spec) != (stored[0], spec):
        kept = _LiveEngine("", _engine(spec), [], spec)
        if stored is not None:
            kept.restored = True
            kept.pieces, kept.last = parse_digests(stored[1], _place_of_state(p))
            kept.engine.restore(b"".join(piece for _, piece in _read_state(p, state, stored[1])))
    return kept


def _read_state(p: NodeWork, state: NodeState, note: str) -> Iterator[tuple[str, bytes]]:
    """(digest, piece) of a stored state's pieces, in order."""
    place = _place_of_state(p)
    for digest in parse_digests(note, place)[0]:
        yield digest, read_piece(state, digest, place)


def _place_of_state(p: NodeWork) -> str:
    """The place of the nodes' states, for messages: with a shared address, the workers do not see the folder."""
    return ITS_CHECKPOINT if p.shared is not None else f"the checkpoint {p.folder.parent / 'checkpoint'}"


def _run(
    p: NodeWork, state: NodeState, key: int, kept: _LiveEngine, given: _NodeInput, tables: NodeTables | None = None
) -> list[Row]:
    """Process the entries of a micro-batch, commit the changes in tables of a database, and store the state.

    If that fails, it restarts and sets aside events that cannot be processed. A database may be the cause; then it
    is not known which event is; nor is it if memory is short.
    """
    try:
        return _run_engine(p, state, key, kept, given, tables)
    except MemoryError:
        raise
    except Exception:
        if tables is not None or p.isolate:
            raise
    return _run_engine(p, state, key, _restore_engine(p, state, key), given, careful=True)


def _run_engine(
    p: NodeWork,
    state: NodeState,
    key: int,
    kept: _LiveEngine,
    given: _NodeInput,
    tables: NodeTables | None = None,
    *,
    careful: bool = False,
) -> list[Row]:
    if tables is not None and isinstance(kept.engine, NodeEngine):
        kept.engine.read_tables_from(tables)
    restored, kept.restored = kept.restored, False
    spec, entries, out = p.specs[key], given.entries, [*given.passing]
    steps, before = 0, kept.engine.now
    events = given.events if _idle(kept.engine) else 0  # else the node counts them itself
    if kept.last is not None and entries and entries[0].seq > kept.last + 1:
        _make_up(p, kept, entries[0], out, careful=careful)
    for run in _runs(entries):
        if isinstance(run, list):
            save = partial(_store, p, state, key, kept) if _care(p).trial is not None else None
            own_steps, own_events = _steps(p, kept, run, given.parts, out, save, careful=careful)
            steps, events = steps + own_steps, events + own_events
        else:
            out += _aside(p, kept.engine, spec, run)
    low, high = (entries[0].seq, entries[-1].seq) if entries else (0, -1)
    if tables is not None and isinstance(kept.engine, NodeEngine) and _care(p).trial is None:
        tables.end(kept.engine.take_table_changes())
    if entries:
        kept.last = entries[-1].seq
    size = _store(p, state, key, kept)
    ms = round(1000 * (time.perf_counter() - given.began), 1)
    first, now = kept.engine.first_clock, kept.engine.now
    clock = None if first is None else BatchClock(first, max(first, before), now)
    due, rests = None, False
    if isinstance(kept.engine, NodeEngine):
        due, rests = kept.engine.next_due(), kept.engine.may_rest and not (spec.takes_all or spec.tables)
    report = result_rows.NodeReport(spec.shard, ms, restored, size, kept.engine.stats(), clock, events, due, rests)
    out.append(result_rows.NodeDone(spec.node, low, high, steps, report))
    return out


def _runs(entries: Iterable[Entry]) -> Iterator[list[EventsEntry] | Entry]:
    """Consecutive entries of events as a list; the other entries one by one."""
    for events, run in groupby(entries, key=lambda e: isinstance(e, EventsEntry)):
        if events:
            yield [e for e in run if isinstance(e, EventsEntry)]
        else:
            yield from run


def _make_up(p: NodeWork, kept: _LiveEngine, entry: Entry, out: list[Row], *, careful: bool) -> None:
    """Moves the clock of a node that was left out to where it was before `entry` (`resting`)."""
    if entry.before is None or entry.before <= kept.engine.now:
        return
    if _idle(kept.engine):
        kept.engine.skip(1, entry.before, entry.before)
        return
    batch = InputBatch(np.array([entry.before], np.int64))
    piece = segments.StepsOfNode(entry.seq, entry.seq - 1, entry.step - 1, kept.engine.now, batch)
    _take_pieces(p, kept, [piece], out, None, careful=careful)


def _steps(
    p: NodeWork, kept: _LiveEngine, entries: list[EventsEntry], parts: Mapping[int, result_rows.NodePart],
    out: list[Row], save: Callable[[], int] | None, *, careful: bool,
) -> tuple[int, int]:  # fmt: skip
    """Run events through the engine; returns the numbers of steps and events. `careful`: sets aside events that fail.
    In a trial the state is saved after each part (`save`), as that may fail because of an event too.
    """
    engine, spec = kept.engine, kept.spec
    if not spec.takes_all:
        entries = [e for e in entries if not e.over or spec.index in e.over]
    if not entries:
        return 0, 0
    if _idle(engine):
        engine.skip(sum(e.steps for e in entries), entries[0].clock, max(e.clock for e in entries))
        return 0, 0
    schemas = {s: d.source.schema for s, d in engine.plan.streams.items()}
    several = sum(e.steps for e in entries) > (JOINED_STEPS if parts else journal.STEPS_PER_PIECE)
    # Errors contain all values of events that are set aside.
    read = None if careful or p.isolate or _care(p).shows(entries) else _plan(spec)[2]
    if parts:
        found = pieces_of(
            p.folder, entries, parts,
            None if read is not None else lambda run: segments.pieces(
                p.folder, run, schemas, [spec.index], spec.count
            )[0].batch,
        )  # fmt: skip
    elif spec.takes_all:
        found = (segments.whole(p.folder, r, schemas) for r in journal.runs(entries))
    else:
        found = (
            segments.pieces(p.folder, r, schemas, [spec.index], spec.count, read)[0] for r in journal.runs(entries)
        )
    return _take_pieces(p, kept, segments.ahead(found) if several else found, out, save, careful=careful)


def _take_pieces(
    p: NodeWork, kept: _LiveEngine, pieces: Iterable[segments.StepsOfNode], out: list[Row],
    save: Callable[[], int] | None, *, careful: bool,
) -> tuple[int, int]:  # fmt: skip
    """Lets the engine take pieces, as `_steps`."""
    spec, folder, steps, events = kept.spec, p.folder, 0, 0
    spill = Spill(p.outputs)

    def step(piece: segments.StepsOfNode) -> Outputs:
        before = kept.engine.snapshot() if careful else b""
        try:
            return kept.engine.step(piece.batch)
        except Exception:
            if careful:  # an engine that failed half-way cannot be used again
                kept.engine = _engine(spec)
                kept.engine.restore(before)
            raise

    def put(piece: segments.StepsOfNode, outputs: Outputs) -> None:
        if isinstance(outputs, NodesOutputs):
            for node, own in outputs.by_node.items():
                out.extend(spill.encode(own, node, piece))
        else:
            out.extend(spill.encode(outputs if spec.duty is None else only(outputs, spec.duty), spec.node, piece))

    def take(piece: segments.StepsOfNode) -> None:
        for part, outputs in taken(piece, step, partial(_without, kept, spec)) if careful else [(piece, step(piece))]:
            put(part, outputs)
        if save is not None:
            save()
            out.clear()  # the outputs of other events must not add up to what one of them is blamed for

    for piece in pieces:
        if p.check is not None:
            p.check()
        with_care(_care(p), piece, take, put)
        steps += len(piece.batch.clock)
        events += segments.events_of(piece.batch)
        mark_node(folder, spec.index, piece.last)
    out += spill.close()
    return steps, events


def _without(kept: _LiveEngine, spec: NodeSpec, piece: segments.StepsOfNode, why: str) -> EventError | None:
    """Drop the state of a query, partition, window or trigger if a node fails at a step's time because of it; returns
    an error for it, or None. `why`: how it failed.
    """
    engine, tokens = kept.engine, spec.tokens
    if not isinstance(engine, NodeEngine) or tokens is None:
        return None
    before, now = engine.snapshot(), InputBatch(piece.batch.clock, {})

    def restore_rest(without: Collection[str]) -> Engine | None:
        """The node without the states of these units; None if that fails as well."""
        tried, found = _engine(spec), _engine(spec)
        assert isinstance(tried, NodeEngine)
        assert isinstance(found, NodeEngine)
        own = [tokens[key] for key in without]
        dropped = {t for t in tokens.values() if any(t == o or t.startswith(f"{o} ") for o in own)}  # and a partition's
        try:
            tried.restore(before, dropped)
            tried.step(now)
            found.restore(before, dropped)
        except Exception:
            return None
        return found

    if restore_rest(()) is not None:
        return None  # it is the events
    for units in _droppable(_plan(spec)[0]):
        found = restore_rest(units)
        if found is not None:
            kept.engine = found
            said = f"its state is dropped, as it cannot continue: {why}"
            return EventError(", ".join(sorted(units)), "", int(piece.batch.clock[-1]), [], said)
    return None


def _droppable(plan: Plan) -> Iterator[frozenset[str]]:
    """Units of state that may be restarted, each with the units bound to it; then all of them."""
    bound = bound_units(plan)
    keys = [u.key for u in state_units(plan) if u.keeps and u.kind not in ("table", "aggregation")]
    for key in keys:
        yield frozenset({key}).union(*(group for group in bound if key in group))
    yield frozenset(keys)


def _idle(engine: Engine) -> TypeGuard[NodeEngine]:
    """True if a node does not use its events."""
    return isinstance(engine, NodeEngine) and idle(engine.plan)


def _aside(p: NodeWork, engine: Engine, spec: NodeSpec, entry: Entry) -> list[Row]:
    """On-demand queries and faults go to every node; rejected rows pass through the first one to the commit."""
    where = (spec.node, entry.seq, entry.seq)
    match entry:
        case Ask() if isinstance(spec.groups, Distributed) and spec.index:
            return []  # the first node answers for all
        case Ask() if entry.seq in _care(p).asks:
            failed = QueryFailed("SiddhiRuntimeError", f"The query was set aside: {DIED}.")
            return [result_rows.Answered(*where, failed)]
        case Ask():
            with _care(p).record(ask=entry.seq):
                return _answer_retrieval(engine, spec, entry)
        case Reject():
            if spec.index:
                return []
            segments.check_files(p.folder, entry)
            lines = (p.folder / entry.file).read_bytes()
            return [result_rows.Errors(*where, lines.count(b"\n"), lines)]
        case SourceEntry():
            return []
        case FaultEntry():
            if isinstance(engine, PairMember | DistributedMember):
                engine.happen(fault_of(entry.fault))
            return []
    raise TypeError(f"a node cannot process an entry of kind '{entry.kind}'")


def parse_digests(text: str, place: str = ITS_CHECKPOINT) -> tuple[list[str], int | None]:
    """The digests of a state's pieces, and the last entry that its node took note of: former versions wrote the digests
    alone, as no node was left out. `place`: of the state, in words."""
    try:
        note = checksums.from_json(text)
        return (note, None) if isinstance(note, list) else (note["pieces"], note["last"])
    except (ValueError, KeyError, TypeError) as error:
        what = error if isinstance(error, ValueError) else "not what was written"
        raise damaged_state(f"the list of its pieces: {what}", place) from None


def _answer_retrieval(engine: Engine, spec: NodeSpec, entry: Ask) -> list[Row]:
    """The node's answer; in a distributed app, the answer of each node that runs the queried source."""
    found = _answer(engine, spec, entry)
    if not isinstance(found, Mapping):
        found = {spec.node: found}
    return [result_rows.Answered(node, entry.seq, entry.seq, answer) for node, answer in found.items()]


def _answer(
    engine: Engine, spec: NodeSpec, entry: Ask
) -> RetrievalAnswer | QueryFailed | Mapping[int, RetrievalAnswer | QueryFailed]:
    plan, text = _plan(spec)[0], entry.text
    try:
        retrieval = bind_retrieval(parse_on_demand(text), plan, text)
        source = retrieval.source
        if retrieval.shared and spec.index != (entry.over[0] if entry.over else 0):
            return RetrievalAnswer([(a.name, str(a.type)) for a in retrieval.columns], [])
        if isinstance(engine, DistributedMember):
            return engine.answers(retrieval) or QueryFailed(
                "SiddhiRuntimeError", "no node runs the partial app that has it"
            )
        if source is not None and source.kind == "aggregation" and source.id not in engine.plan.aggregations:
            raise SparkStreamError(f"Aggregation '{source.id}' is kept by its store.")
        return engine.answer(retrieval)
    except SparkStreamError as error:
        return QueryFailed.of(error)
    except (RecursionError, MemoryError) as error:
        return QueryFailed("SiddhiRuntimeError", f"The query asks for too much: {type(error).__name__}.")
    except Exception as error:  # it would fail again whenever the app is started
        return QueryFailed("SiddhiRuntimeError", f"The query cannot be answered: {reason_of(error)}")


def _store(p: NodeWork, state: NodeState, key: int, kept: _LiveEngine) -> int:
    """Writes the engine's state; returns its size in bytes."""
    kept.pieces, size = save_pieces(state, kept.engine.saved_parts(), kept.pieces)
    kept.version = os.urandom(12).hex()
    state.set_version(kept.version, checksums.to_json({"pieces": kept.pieces, "last": kept.last}))
    if p.keep and not (isinstance(kept.engine, NodeEngine) and kept.engine.stale):
        _engines[p.run, key] = kept
        while len(_engines) > ENGINES_KEPT:
            _engines.popitem(last=False)
    return size
