"""Who feeds whom inside an app, and whether whole batches may go through it operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OpNode:
    """An operator as the graph sees it: the streams it reads, the stream it writes (None: none), and the tables and
    aggregations that it looks into (`reads`) or changes (`writes`). `alone` says why it must see one chunk at a time."""

    inputs: tuple[str, ...]
    target: str | None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    alone: str = ""


@dataclass(frozen=True)
class Graph:
    """`receivers` per stream: operator numbers in the order in which an event reaches them.

    `order` is an order of the operators in which every stream is complete before it is read, or None where events
    must be pushed one chunk at a time: a stream reaches itself, several operators write one stream, or an operator
    merges a derived stream with another, so that their events interleave.
    `derived` are the streams that operators write.
    """

    receivers: dict[str, list[int]]
    order: tuple[int, ...] | None
    derived: frozenset[str]
    reason: str = field(default="")


def build(ops: Sequence[OpNode]) -> Graph:
    """The graph of operators given in the order of the app's text."""
    receivers: dict[str, list[int]] = {}
    writers: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        for s in op.inputs:
            receivers.setdefault(s, []).append(i)
        if op.target is not None:
            writers.setdefault(op.target, []).append(i)
    derived = frozenset(writers)
    reason = ""
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
    order = None if reason else _topological(ops, receivers)
    if order is None and not reason:
        reason = "a stream reaches itself"
    return Graph(receivers, order, derived, reason)


def _topological(ops: Sequence[OpNode], receivers: dict[str, list[int]]) -> tuple[int, ...] | None:
    """Depth first, so that a stream's readers come in text order after its writer; None for a cycle."""
    state = [0] * len(ops)
    done: list[int] = []

    def visit(i: int) -> bool:
        if state[i]:
            return state[i] == 2
        state[i] = 1
        target = ops[i].target
        for r in reversed(receivers.get(target, []) if target is not None else []):
            if not visit(r):
                return False
        state[i] = 2
        done.append(i)
        return True

    for i in reversed(range(len(ops))):
        if not visit(i):
            return None
    return tuple(reversed(done))
