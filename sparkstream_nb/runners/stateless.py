"""Stateless work at the inbox, by as many tasks as there are pieces of input: events are divided by node, and the
stateless part of an app runs.

The results pass through the node to the commit, together with the journal's entries that the node itself works on.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from ..engine.node import NodeEngine
from ..engine.state.node_batch import OutputOptions, Outputs
from ..journal import journal, result_rows, segments
from ..journal.batch_planning import ROWS_PER_TRIGGER, TaskShare
from ..journal.division import divide_entries, files_of
from ..journal.entries import Entry, EventsEntry, StepsEntry, to_json
from ..journal.marks import mark_task
from ..journal.mirror import apps_at
from ..journal.private import check_private, write_private
from ..journal.result_rows import Row
from ..journal.shared import Shared
from ..limits import Limits
from ..outputs.spill import Spill
from ..plan.distributed.placement import idle, split
from ..plan.needed import needed_attributes
from ..plan.nodes import Plan
from ..recovery.batch_care import BatchCare, alone, steps_of, with_care
from ..recovery.quarantine import bisected_steps
from ..retention import Retention
from ..system import put_in_place
from ..types import Schema
from .node_spec import NodeSpec
from .trial_process import blame_culprits

_APPS = "apps.pickle"
_apps_seen: dict[str, list[SourceApp | None]] = {}
"""Apps that this process read from shared addresses, by digest."""


@dataclass(frozen=True)
class SourceNode:
    """A node as the source knows it: its key, its number, its shard id, and the part of its plan without state (None
    if it has none, or takes all events)."""

    key: int
    number: int
    shard: str = ""
    stateless: Plan | None = None


@dataclass(frozen=True)
class SourceApp:
    """The source's data on an app: its nodes, and the schemas of its streams. Large results go to the folder `outputs`.
    With `trace`, an error of the engine is a row of kind `failure`. `start` is the nodes' (`NodeSpec`). The app began
    with `began` nodes. Events set aside (`instructions`) become errors here if it `tells`, as no node works on events;
    else the nodes report them. `limits` are the nodes'. If it `divides`, events are divided by node here.
    `needed_attributes`: the attributes that are read here, or by a node to which its part goes; None: all.
    """

    nodes: tuple[SourceNode, ...]
    schemas: Mapping[str, Schema]
    trace: bool = False
    outputs: str | None = None
    start: int | None = None
    began: int = 1
    instructions: BatchCare = field(default_factory=BatchCare)
    tells: bool = False
    limits: Limits = field(default_factory=Limits)
    divides: bool = False
    needed_attributes: segments.Needed | None = None

    @property
    def is_stateless(self) -> bool:
        """True if a part of a node's plan is without state."""
        return any(node.stateless is not None for node in self.nodes)

    @property
    def works(self) -> bool:
        """True if there is work for tasks, beside passing entries on."""
        return self.is_stateless or self.divides


def app_of(
    keys: Sequence[int],
    specs: Sequence[NodeSpec],
    schemas: Mapping[str, Schema],
    *,
    outputs: str | None = None,
    instructions: BatchCare | None = None,
) -> SourceApp:
    """An app whose nodes are `specs`, by their keys."""
    halves = [(None, None) if s.takes_all else split(pickle.loads(s.plan)) for s in specs]
    trace = any(s.trace for s in specs)
    idles = all(rest is not None and idle(rest) for _, rest in halves)
    divides = len(specs) > 1 and not (trace or idles or any(s.takes_all for s in specs))
    attributes = None
    if not trace:
        work = [p for first_half, rest in halves for p in (first_half, rest if divides else None) if p is not None]
        attributes = _needed_attributes(work, schemas)
    return SourceApp(
        tuple(SourceNode(k, s.node, s.shard, part) for k, s, (part, _) in zip(keys, specs, halves, strict=True)),
        schemas,
        trace,
        outputs,
        specs[0].start,
        specs[0].count,
        instructions or BatchCare(),
        idles,
        specs[0].limits,
        divides=divides,
        needed_attributes=attributes,
    )


def _needed_attributes(plans: Sequence[Plan], streams: Iterable[str]) -> segments.Needed:
    """The attributes of each stream that one of the plans needs."""
    needs = [needed_attributes(p) for p in plans]
    return {s: frozenset[int]().union(*(need[s] for need in needs)) for s in streams}


def options_of(
    folder: Path,
    apps: Sequence[SourceApp | None],
    rows_per_trigger: int = ROWS_PER_TRIGGER,
    retention: Retention | None = None,
) -> dict[str, str]:
    """The source's options, for apps by their number in the journal. The apps are written into the folder. By
    default, no input is kept that is done with.
    """
    new = folder / ".apps.new"
    write_private(new, pickle.dumps(list(apps)))
    put_in_place(new, folder / _APPS)
    work = any(app is not None and app.works for app in apps)
    recording, days = (0, None) if retention is None else (retention.recording, retention.days)
    return {
        "folder": str(folder),
        "rows": str(rows_per_trigger),
        "work": str(int(work)),
        "recording": "" if recording is None else str(recording),
        "days": "" if days is None else str(days),
        "shared": "",
        "digest": "",
    }


def options_at(shared: Shared, digest: str) -> dict[str, str]:
    """The source's options besides, where the inbox is at a shared address, with apps of this digest (`mirror`)."""
    return {"shared": shared.address, "digest": digest}


def rows_of(folder: Path, share: TaskShare) -> Iterator[pa.RecordBatch]:
    """Rows of `source.SCHEMA`, a batch for each app: its entries for every node, and the results for a piece."""
    check_private(folder, folder.parent, folder.parent.parent)
    for app_rows in _rows(folder, pickle.loads((folder / _APPS).read_bytes()), share):
        yield _batch(app_rows)


def rows_at(shared: Shared, digest: str, share: TaskShare) -> Iterator[pa.RecordBatch]:
    """`rows_of` for an inbox at a shared address."""
    if digest not in _apps_seen:
        _apps_seen.clear()
        _apps_seen[digest] = pickle.loads(apps_at(shared, digest))
    apps = _apps_seen[digest]
    stateless_entries = [e for e in share.entries if (app := apps[e.app]) is not None and app.works]
    with shared.at_hand(name for e in stateless_entries for name in e.files) as folder:
        local_apps = [None if app is None else _elsewhere(app, folder) for app in apps]
        for app_rows in _rows(folder / "inbox", local_apps, share):
            for row in (row for _, row in app_rows):
                if isinstance(row, result_rows.TableRow) and row.file:
                    shared.put_file(f"spill/{Path(row.file).name}", Path(row.file))
            for name in files_of(row for _, row in app_rows if isinstance(row, result_rows.NodePart)):
                shared.put_file(f"inbox/{name}", folder / "inbox" / name)
            yield _batch(app_rows)


def _elsewhere(app: SourceApp, folder: Path) -> SourceApp:
    """The app with its files in another folder. Parts that it divides have all columns: nodes there have no file to
    read again.
    """
    return replace(
        app, outputs=str(folder / "outputs"), needed_attributes=None if app.divides else app.needed_attributes
    )


def _rows(folder: Path, apps: Sequence[SourceApp | None], share: TaskShare) -> Iterator[list[tuple[int, Row]]]:
    by_app: dict[int, list[Entry]] = {}
    for entry in share.entries:
        by_app.setdefault(entry.app, []).append(entry)
    for number, entries in by_app.items():
        app = apps[number]
        if app is None:
            continue
        yield work_off_share(folder, app, replace(share, entries=entries))


def work_off_share(
    folder: Path, app: SourceApp, share: TaskShare, check: Callable[[], None] | None = None
) -> list[tuple[int, Row]]:
    """An app's rows, each with its key: consecutive entries for every node that does not rest, its part of their
    events, and the results of stateless work, after trials in child processes where events are suspected of ending
    processes. `check` is called between two pieces of work, and raises the error that ends it.

    Raises EventsBlamed if trials have found some that do.
    """
    if not app.works or not app.instructions.concerns(share.entries):
        return try_share(folder, app, share, check)
    with alone(folder):
        trial = ShareTrial(folder, replace(app, outputs=None, divides=False), share)
        blame_culprits(trial, app.instructions, steps_of(share.entries), check)
        return try_share(folder, app, share, check)


@dataclass(frozen=True)
class ShareTrial:
    """A task's stateless work on its share of an app's entries."""

    folder: Path
    app: SourceApp
    share: TaskShare

    def run(self, instructions: BatchCare) -> None:
        """Do the work. Raises what fails."""
        try_share(self.folder, replace(self.app, instructions=instructions), self.share)


def try_share(
    folder: Path, app: SourceApp, share: TaskShare, check: Callable[[], None] | None = None
) -> list[tuple[int, Row]]:
    """`work_off_share` without trials."""
    may_rest = app.instructions == BatchCare()
    resting = {k for k, node in enumerate(app.nodes) if may_rest and node.number in share.resting}
    work = _TaskWork(folder, app, [0] * len(app.nodes), resting)
    for run in journal.runs(e for e in share.entries if isinstance(e, EventsEntry)) if app.works else ():
        if check is not None:
            check()
        work.take(run)
    return [*work.out, *work.list_entries(share.entries)]


@dataclass
class _TaskWork:
    """The work of a task of an app: `events` counts the events of each node, and `resting` has the nodes that none has
    reached so far.
    """

    folder: Path
    app: SourceApp
    events: list[int]
    resting: set[int]
    out: list[tuple[int, Row]] = field(default_factory=list)

    def take(self, run: Sequence[EventsEntry]) -> None:
        """Works on consecutive entries."""
        folder, app, count = self.folder, self.app, len(self.events)
        read_pieces = partial(segments.pieces, folder, run, app.schemas, began=app.began)
        lean = app.needed_attributes is not None and _may_leave_out(app, run)
        pieces = read_pieces(range(count), needed_attributes=app.needed_attributes if lean else None)
        for k, piece in enumerate(pieces):
            event_count = segments.events_of(piece.batch)
            self.events[k] += event_count
            if event_count or not len(piece.batch.clock):
                self.resting.discard(k)
            node = app.nodes[k]
            if event_count and node.stateless is not None:
                again = partial(read_pieces, [k]) if lean else None
                self.out += [(node.key, row) for row in _results(app, node, node.stateless, piece, again)]
        if len(self.resting) == count:
            self.resting.discard(0)  # one tells how far it is
        if app.divides:
            awake = [(node, pieces[k]) for k, node in enumerate(app.nodes) if k not in self.resting]
            parts = divide_entries(folder, [node.number for node, _ in awake], [piece for _, piece in awake])
            self.out += [(node.key, part) for (node, _), part in zip(awake, parts, strict=True) if part is not None]
        if app.is_stateless:
            mark_task(folder, run)

    def list_entries(self, entries: Sequence[Entry]) -> Iterator[tuple[int, Row]]:
        """The entries, for each node that does not rest."""
        app, low, high = self.app, entries[0].seq, entries[-1].seq
        text = to_json([_without_events(e) for e in entries] if app.divides else entries)
        counts = self.events if app.is_stateless else [0] * len(app.nodes)
        for k, (node, events) in enumerate(zip(app.nodes, counts, strict=True)):
            if k not in self.resting:
                yield node.key, result_rows.Entries(node.number, low, high, text, events)


def _may_leave_out(app: SourceApp, run: Sequence[EventsEntry]) -> bool:
    """True if columns of these entries may be left out: no error contains their values, and if a node needs all columns
    after all, it can read the files, as events in entries do not go to it.
    """
    return not app.instructions.shows(run) and not (app.divides and any(not e.files for e in run))


def _without_events(entry: Entry) -> Entry:
    """The entry without events that it carries itself."""
    return replace(entry, data=None) if isinstance(entry, StepsEntry) else entry


def _results(
    app: SourceApp,
    node: SourceNode,
    plan: Plan,
    piece: segments.StepsOfNode,
    read_whole: Callable[[], Sequence[segments.StepsOfNode]] | None,
) -> list[Row]:
    """Output of the stateless `plan` of a node of an app for a piece. `read_whole` gives the piece with the columns
    that are left out of it.
    """

    def step(part: segments.StepsOfNode) -> Outputs:
        clock = max((t for t in (app.start, part.before) if t is not None), default=None)
        outputs = OutputOptions(trace=app.trace, stored=True)
        engine = NodeEngine(plan, shard=node.shard, start=clock, limits=app.limits, outputs=outputs)
        return engine.step(part.batch)

    spill, out = Spill(app.outputs), []
    try:
        if app.trace:
            return [*spill.encode(step(piece), node.number, piece), *spill.close()]

        def put(part: segments.StepsOfNode, outputs: Outputs) -> None:
            out.extend(spill.encode(outputs, node.number, part))

        def take(part: segments.StepsOfNode) -> None:
            if read_whole is not None:
                try:
                    outputs = step(part)
                except Exception:  # what cannot be taken is an error, with all values
                    (part,) = read_whole()
                else:
                    put(part, outputs)
                    return
            for steps, outputs in bisected_steps(part, step):
                put(steps, outputs)

        with_care(app.instructions, piece, take, put if app.tells else None)
    except Exception as error:
        if not app.trace:
            raise
        return [result_rows.NodeFailure.of(node.number, error)]
    return out + spill.close()


def _batch(rows: Sequence[tuple[int, Row]]) -> pa.RecordBatch:
    """Rows under the keys of their nodes."""
    raw = [(key, *result_rows.encode(row)) for key, row in rows]
    columns = list(zip(*raw, strict=True)) or [()] * len(_SCHEMA)
    return pa.record_batch([pa.array(c, t) for c, t in zip(columns, _SCHEMA.types, strict=True)], schema=_SCHEMA)


_SCHEMA = pa.schema([("key", pa.int32()), *result_rows.ARROW_SCHEMA])
