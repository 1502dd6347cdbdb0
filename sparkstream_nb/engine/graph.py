"""Who feeds whom inside an app, and whether whole batches may go through it operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OpNode:
    """An operator as the graph sees it: the streams it reads, the stream it writes (None: none), and the tables and
    aggregations that it looks into (`reads`) or changes (`writes`). `alone` says why it must see one chunk at a time.
    `also` are fault streams that it may put something into.
    `logged_reads` and `logged_writes` are accesses to tables that can be put in order afterwards (`table_log`).
    """

    inputs: tuple[str, ...]
    target: str | None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    alone: str = ""
    logged_reads: tuple[str, ...] = ()
    logged_writes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """`receivers` per stream: operator numbers in the order in which an event reaches them.

    `order` is an order of the operators in which every stream is complete before it is read, or None where events
    must be pushed one chunk at a time: a stream reaches itself, several operators write one stream, or an operator
    merges a derived stream with another, so that their events interleave.
    `derived` are the streams that operators write. `ranks` is each operator's place in the order in which one event
    reaches them.
    """

    receivers: dict[str, list[int]]
    order: tuple[int, ...] | None
    derived: frozenset[str]
    reason: str = field(default="")
    ranks: tuple[int, ...] = ()


def build(ops: Sequence[OpNode]) -> Graph:
    """The graph of operators given in the order of the app's text."""
    receivers: dict[str, list[int]] = {}
    writers: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        for s in op.inputs:
            receivers.setdefault(s, []).append(i)
        if op.target is not None:
            writers.setdefault(op.target, []).append(i)
    faults = {s for op in ops for s in op.also}
    derived = frozenset(writers) | faults
    reason = ""
    if faults & receivers.keys() and any(op.logged_writes for op in ops):
        reason = "tables are changed beside the readers of " + ", ".join(sorted(faults))
    for s, w in writers.items():
        if len(w) > 1:
            reason = f"several queries insert into {s}"
    for op in ops:
        if len(op.inputs) > 1 and any(s in derived for s in op.inputs):
            reason = "a query merges derived streams: " + ", ".join(op.inputs)
    written = {w for op in ops for w in op.writes}
    for op in ops:
        shared = written & set(op.reads)
        if shared:
            reason = "read and changed by queries: " + ", ".join(sorted(shared))
        if len(op.writes) and sum(w in other.writes for other in ops for w in op.writes) > 1:
            reason = "changed by several queries: " + ", ".join(op.writes)
        reason = op.alone or reason
    paths = [] if reason else _paths(ops, {s: w[0] for s, w in writers.items()})
    if not reason:
        reason = _unordered(ops, paths)
    order = None if reason else _topological(ops, receivers)
    if order is None and not reason:
        reason = "a stream reaches itself"
    by_path = sorted(range(len(paths)), key=lambda i: paths[i])
    ranks = [0] * len(paths)
    for rank, i in enumerate(by_path):
        ranks[i] = rank
    return Graph(receivers, order, derived, reason, tuple(ranks))


def _paths(ops: Sequence[OpNode], writer: dict[str, int]) -> list[tuple[int, ...]]:
    """For each operator the operators that an event passes on its way to it, itself last. Cut off where it turns in
    circles.
    """

    def path(i: int, seen: frozenset[int]) -> tuple[int, ...]:
        up = [writer[s] for s in ops[i].inputs if s in writer and writer[s] not in seen]
        return (*path(up[0], seen | {i}), i) if up else (i,)

    return [path(i, frozenset({i})) for i in range(len(ops))]


def _unordered(ops: Sequence[OpNode], paths: list[tuple[int, ...]]) -> str:
    """Why logged accesses cannot be put in order by root and rank: two of them hang on one operator, which may cut
    an event's chunk into several."""
    for table in {t for op in ops for t in op.logged_writes}:
        users = [i for i, op in enumerate(ops) if table in op.logged_writes or table in op.logged_reads]
        roots = [paths[i][0] for i in users if len(paths[i]) > 1]
        if len(roots) != len(set(roots)) or any(r in users for r in roots):
            return f"{table} is used by several queries behind one"
    return ""


def _topological(ops: Sequence[OpNode], receivers: dict[str, list[int]]) -> tuple[int, ...] | None:
    """Depth first, so that a stream's readers come in text order after its writer; None for a cycle."""
    state = [0] * len(ops)
    done: list[int] = []

    readers: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        for t in op.logged_reads:
            readers.setdefault(t, []).append(i)

    def visit(i: int) -> bool:
        if state[i]:
            return state[i] == 2
        state[i] = 1
        target = ops[i].target
        after = list(receivers.get(target, [])) if target is not None else []
        after += [r for s in ops[i].also for r in receivers.get(s, [])]
        after += [r for t in ops[i].logged_writes for r in readers.get(t, [])]
        for r in reversed(after):
            if not visit(r):
                return False
        state[i] = 2
        done.append(i)
        return True

    for i in reversed(range(len(ops))):
        if not visit(i):
            return None
    return tuple(reversed(done))
