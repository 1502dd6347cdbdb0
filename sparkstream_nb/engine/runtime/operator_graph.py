"""The dataflow graph of an app, and whether whole batches may run through it operator by operator.

Siddhi pushes an event through everything it causes before it takes the next (depth first). So the rows of a stream with
several writers are ordered by the *paths* on which one event reaches the writers; at every fork the reader that comes
first in the text is first. `build` finds these paths. If they order any two writers of a stream, any two inputs of an
operator and any two users of a table, sorting by (order key, rank) gives Siddhi's order, and the operators may run on
whole batches. A fork gives no order if its stream can have several chunks with one order key, as the first chunk then
takes all paths before the second one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import combinations

_MANY = 64
"""Ways to one operator beyond which no order is looked for."""

Way = tuple[tuple[int, int], ...]
"""Path of an event: where it enters (a number below 0 for a stream, or the operator whose timer fires), then the
operators that it passes, each with 0 if it came by a fault stream, else 1.
"""


@dataclass(frozen=True)
class OpNode:
    """A node of the graph, one operator: the streams it reads, the stream it writes (None: none), and the tables and
    aggregations that it reads (`reads`) or changes (`writes`). `alone` is the reason why it must run one chunk at a
    time. `also` are fault streams that it may write. `has_timers`: it may emit events when only the clock moves;
    `single`: it emits at most one chunk per event. `logged_reads` and `logged_writes` are buffered table accesses,
    which are ordered afterwards (`table_log`). `repeatable`: it is stateless and may process the same rows again
    (`table_cycles`). `writes_whole_rows`: it writes whole rows into tables.
    """

    inputs: tuple[str, ...]
    target: str | None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    alone: str = ""
    logged_reads: tuple[str, ...] = ()
    logged_writes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    has_timers: bool = False
    single: bool = False
    repeatable: bool = False
    writes_whole_rows: bool = True


@dataclass(frozen=True)
class OperatorGraph:
    """`receivers` per stream: operator numbers in the order in which an event reaches them.

    `order` is a topological order of the operators, or None if events must be pushed one chunk at a time, for `reason`.
    It consists of stages: one operator, or the operators of a cycle through tables, which run in two passes (`cycles`
    are the operators of such stages) or are iterated to a fixpoint (`fixpoints` are those). `derived_streams` are the
    streams that operators write. `ranks` is each operator's place in the order in which one event reaches them, `ties`
    the inputs of an operator in the order in which it receives rows of one order key. `events_only`: the order is valid
    for batches with at most one event per step.
    """

    receivers: dict[str, list[int]]
    order: tuple[tuple[int, ...], ...] | None
    derived_streams: frozenset[str]
    reason: str = field(default="")
    ranks: tuple[int, ...] = ()
    ties: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    events_only: bool = False
    cycles: frozenset[int] = frozenset()
    fixpoints: frozenset[int] = frozenset()


def build(
    ops: Sequence[OpNode], settling: frozenset[str] = frozenset(), keyed_tables: frozenset[str] = frozenset()
) -> OperatorGraph:  # fmt: skip
    """The graph of operators given in the order of the app's text. `settling` are the tables whose cycles are correct
    after two passes, `keyed_tables` those accessed by one key only."""
    receivers: dict[str, list[int]] = {}
    writers: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        for s in op.inputs:
            receivers.setdefault(s, []).append(i)
        for s in (*op.also, *(() if op.target is None else (op.target,))):
            writers.setdefault(s, []).append(i)
    derived_streams = frozenset(writers)
    reason = _unshared_reason(ops)
    circles = _find_cycles(ops, receivers)
    repeats: set[int] = set()
    order = None if reason else _stages(ops, receivers, circles, settling, keyed_tables, repeats)
    if order is None:
        return OperatorGraph(receivers, None, derived_streams, reason or "streams form a cycle")
    ways = _EventPaths(ops, writers)
    try:
        ties = {
            i: ways.inputs(i) for i, op in enumerate(ops) if len(op.inputs) > 1 and derived_streams & set(op.inputs)
        }
        groups = [w for w in writers.values() if len(w) > 1]
        groups += [
            [i for i, op in enumerate(ops) if table in op.logged_writes or table in op.logged_reads]
            for table in {t for op in ops for t in op.logged_writes}
        ]
        ranks = ways.ranks(groups)
        ways.require_single_chunk(circles)
    except _Unordered as e:
        return OperatorGraph(receivers, None, derived_streams, str(e))
    return OperatorGraph(
        receivers, order, derived_streams, "", ranks, ties, ways.events_only, frozenset(circles), frozenset(repeats)
    )


def _unshared_reason(ops: Sequence[OpNode]) -> str:
    """Why the operators' accesses to tables need one chunk at a time; empty if they do not."""
    reason = ""
    writes = {w for op in ops for w in op.writes}
    for op in ops:
        shared = writes & set(op.reads)
        if shared:
            reason = "read and changed by queries: " + ", ".join(sorted(shared))
        if len(op.writes) and sum(w in other.writes for other in ops for w in op.writes) > 1:
            reason = "changed by several queries: " + ", ".join(op.writes)
        reason = op.alone or reason
    return reason


class _Unordered(Exception):
    """Says which streams or tables have no order that order keys and ranks tell."""


class _EventPaths:
    """All ways by which events and timers reach the operators."""

    def __init__(self, ops: Sequence[OpNode], writers: Mapping[str, list[int]]) -> None:
        self.ops, self.writers = ops, writers
        self.events_only = False
        self._sources: dict[str, int] = {}
        self._ways: dict[int, list[Way]] = {}
        self._single: dict[str, bool] = {}

    def to(self, i: int) -> list[Way]:
        """The paths to an operator, itself last."""
        if i not in self._ways:
            ways = [w for s in self.ops[i].inputs for w in self._by(s, i)]
            if self.ops[i].has_timers:
                ways.append(((i, 1),))
            if len(ways) > _MANY:
                raise _Unordered("there are too many paths through the app")
            self._ways[i] = ways
        return self._ways[i]

    def _by(self, s: str, i: int) -> list[Way]:
        source = self._sources.setdefault(s, -1 - len(self._sources))
        from_writers = [(*w, (i, int(s not in self.ops[k].also))) for k in self.writers.get(s, ()) for w in self.to(k)]
        return [((source, 1), (i, 1)), *from_writers]

    def ranks(self, groups: Iterable[Sequence[int]]) -> tuple[int, ...]:
        """The operators' ranks, such that one event reaches the operators of one group in this order."""
        after: dict[int, set[int]] = {i: set() for i in range(len(self.ops))}
        for group in groups:
            for i, k in combinations(dict.fromkeys(group), 2):
                before = self._compare(self.to(i), self.to(k))
                if before < 0:
                    after[k].add(i)
                elif before > 0:
                    after[i].add(k)
        try:
            by_rank = list(TopologicalSorter(after).static_order())
        except CycleError:
            raise _Unordered("no fixed order of the queries") from None
        out = [0] * len(by_rank)
        for rank, i in enumerate(by_rank):
            out[i] = rank
        return tuple(out)

    def inputs(self, i: int) -> tuple[str, ...]:
        """The inputs of an operator in the order in which one event reaches it by them."""
        streams = list(dict.fromkeys(self.ops[i].inputs))
        ways = {s: self._by(s, i) for s in streams}
        pairs = {(a, b): self._compare(ways[a], ways[b]) for a, b in combinations(streams, 2)}
        for (a, b), before in list(pairs.items()):
            pairs[b, a] = -before
        order: list[str] = []
        while streams:
            s = next((s for s in streams if all(pairs[s, o] <= 0 for o in streams if o != s)), None)
            if s is None:
                raise _Unordered("no fixed order of the inputs: " + ", ".join(streams))
            order.append(s)
            streams.remove(s)
        return tuple(order)

    def _compare(self, a: Sequence[Way], b: Sequence[Way]) -> int:
        """-1 or 1 as an event comes by `a` or by `b` first; 0 if no event comes by both."""
        signs = set()
        for x in a:
            for y in b:
                if x[0][0] == y[0][0]:
                    signs.add(self._fork(x, y))
        if len(signs) > 1:
            raise _Unordered(f"no fixed order of the paths to {self._name(a[0][-1][0])}")
        return signs.pop() if signs else 0

    def _fork(self, x: Way, y: Way) -> int:
        at = next((k for k, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))
        last = x[at - 1][0]
        if (at == 1 and last >= 0) or (at > 1 and not self._one_chunk(last)):
            raise _Unordered(f"the paths after {self._name(last)} fork and meet again")
        if at == len(x) or at == len(y):  # one is on the way to the other
            return -1 if len(x) < len(y) else 1
        p, q = (x[at][1], x[at][0]), (y[at][1], y[at][0])
        return -1 if p < q else 1

    def _one_chunk(self, i: int) -> bool:
        """True if operator i emits at most one chunk under one order key, when each step brings one event."""
        op = self.ops[i]
        self.events_only = True
        return op.single and not op.has_timers and all(self._is_single_chunk(s) for s in op.inputs)

    def require_single_chunk(self, circles: Iterable[int]) -> None:
        """Checks that operators of cycles receive at most one chunk per order key. The second chunk would not see the
        first chunk's writes."""
        for i in circles:
            self.events_only = True
            if not all(self._is_single_chunk(s) for s in self.ops[i].inputs):
                raise _Unordered(f"events of one chunk read and change tables: {self._name(i)}")

    def _is_single_chunk(self, s: str) -> bool:
        w = self.writers.get(s, [])
        return not w or (len(w) == 1 and self._one_chunk(w[0]))

    def _name(self, i: int) -> str:
        op = self.ops[i]
        return op.target or ", ".join((*op.inputs, *op.logged_writes)) or "an operator"


def _after(ops: Sequence[OpNode], receivers: Mapping[str, list[int]], i: int) -> tuple[list[int], list[int]]:
    """The operators that read the outputs of operator i: streams, and tables whose accesses are put in order."""
    op = ops[i]
    streams = [r for s in ((op.target,) if op.target is not None else ()) + op.also for r in receivers.get(s, [])]
    return streams, [r for t in op.logged_writes for r, other in enumerate(ops) if t in other.logged_reads]


def _find_cycles(ops: Sequence[OpNode], receivers: Mapping[str, list[int]]) -> dict[int, tuple[int, ...]]:
    """The operators that reach themselves, each with the operators of its cycle."""
    after = [[*streams, *tables] for streams, tables in (_after(ops, receivers, i) for i in range(len(ops)))]
    reachable: list[set[int]] = []
    for i in range(len(ops)):
        followers, todo = set[int](), list(after[i])
        while todo:
            k = todo.pop()
            if k not in followers:
                followers.add(k)
                todo += after[k]
        reachable.append(followers)
    return {
        i: tuple(k for k in range(len(ops)) if k in reachable[i] and i in reachable[k])
        for i in range(len(ops))
        if i in reachable[i]
    }


def _stages(
    ops: Sequence[OpNode], receivers: Mapping[str, list[int]], circles: Mapping[int, tuple[int, ...]],
    settling: frozenset[str], keyed_tables: frozenset[str], repeats: set[int],
) -> tuple[tuple[int, ...], ...] | None:  # fmt: skip
    """A stream's readers after its writer, in the order of the text; None for a circle of streams, or one through
    several tables or one that does not settle. `repeats` gets the operators of circles that take more than two passes.
    """
    stages: dict[int, tuple[int, ...]] = {}
    for i in range(len(ops)):
        members = circles.get(i, (i,))
        if i != members[0]:
            continue
        if i in circles:
            read = {t for k in members for t in ops[k].logged_reads}
            shared = {t for k in members for t in ops[k].logged_writes if t in read}
            if len(shared) > 1 or not all(ops[k].repeatable for k in members):
                return None
            if not shared <= settling:
                # Others' writes stay as they are noted, whatever passes there are.
                others = [k for k in range(len(ops)) if k not in members and shared & set(ops[k].logged_writes)]
                if not shared <= keyed_tables or not all(ops[k].writes_whole_rows for k in others):
                    return None
                repeats.update(members)
        inside = {k: [r for r in _after(ops, receivers, k)[0] if r in members] for k in members}
        stage = _sort_members(members, inside)
        if stage is None:
            return None
        stages[i] = stage
    first = {k: i for i, stage in stages.items() for k in stage}
    after = {}
    for i, stage in stages.items():
        followers = [r for k in stage for some in _after(ops, receivers, k) for r in some]
        after[i] = [first[r] for r in followers if first[r] != i]
    order = _sort_members(tuple(stages), after)
    assert order is not None, "stages of whole circles have none among them"
    return tuple(stages[i] for i in order)


def _sort_members(members: Sequence[int], after: Mapping[int, Sequence[int]]) -> tuple[int, ...] | None:
    """Depth first, so that those `after` one come after it in their order; None for a cycle."""
    state = dict.fromkeys(members, 0)
    order: list[int] = []

    def visit(i: int) -> bool:
        if state[i]:
            return state[i] == 2
        state[i] = 1
        if not all(visit(r) for r in reversed(after[i])):
            return False
        state[i] = 2
        order.append(i)
        return True

    return tuple(reversed(order)) if all(visit(i) for i in reversed(members)) else None
