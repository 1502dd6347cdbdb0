"""Replays of two texts of an app over the same events, side by side, and of each change alone.

Outputs are compared in columns (`output_blocks`), an item of the recording at a time, so that a long recording needs
no more memory than a short one. Only those that differ become Python objects; the events that they come from are then
read from a second replay, which carries lineage.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...engine.runtime.descriptions import DescribedRows, describe_tables
from ...engine.state.node_batch import take_rows
from ...errors import Misuse, SiddhiError, nearest
from ...lang.clause_changes import Change, TextComparison
from ...lang.printer import to_text
from ...plan.nodes import Agg, Plan, Query, walk
from ...plan.output_labels import stream_of
from ...plan.query_parts import unrepeatable_attributes, unrepeatable_functions
from ...plan.reports.lineage import LINEAGE
from ...plan.upstream import upstream_of
from ...replay.replay import ONE, NodeReplay, Nodes, Recording, ReplayedNodes, Way, merged_rows, replay_steps
from ...replay.replay_progress import current_progress
from ...types import Type
from .compared_attributes import OutputAttributes, Places, input_notes, input_places
from .compared_tables import ComparedTable, TableComparison
from .divergence import MergedCheck
from .output_blocks import (
    Blocks,
    EqualRows,
    OutputBlock,
    all_hashes,
    blocks_of,
    row_hashes,
    split_blocks,
    split_by_clock,
)
from .output_matching import Alert, place_of
from .rule_comparison import MOST_DIFFERENCES, MOST_SAME, ComparedStream, OutputPair, RuleComparison, match_outputs
from .topology_share import OutputKey, TopologyShare, key_of

MOST_TRIED = 24
"""Changes of a text up to which each is tried alone; of more, all of a query's are named."""
_KEYS = (Type.STRING, Type.INT, Type.LONG, Type.BOOL)
"""The types of attributes that can tell outputs apart."""


@dataclass(frozen=True)
class Judging:
    """The outputs that are judged, and by which values: not the first `warm_up` ms of a recording, and not by the
    attributes `without`."""

    warm_up: int = 0
    without: frozenset[str] = frozenset()

    def start(self, recording: Recording) -> int | None:
        """The time (ms) from which on outputs are judged; None: all of them."""
        return recording.start + self.warm_up if self.warm_up and recording.events else None


ALL_JUDGED = Judging()


@dataclass(frozen=True)
class RuleTrial:
    """Two texts of an app and how to run them: `nodes` have the old text's plan; `compile` makes a plan of a text, and
    raises SiddhiError."""

    app: str
    texts: TextComparison
    nodes: Nodes
    compile: Callable[[str], Plan]

    def over(self, recording: Recording, way: Way, judging: Judging = ALL_JUDGED) -> RuleComparison:
        """Compares the outputs over a recording, on one node or several. Raises `Misuse` where the new text gives an
        attribute of the recording another type, and for a name that is ignored and none of an output."""
        new_plan = self.compile(to_text(self.texts.with_changes(self.texts.changes)))
        own_plan, new_attributes = self.nodes.plan, self.texts.new_attributes
        attributes = OutputAttributes.of(own_plan, new_plan, new_attributes, judging.without)
        notes = (
            *_notes_of((own_plan, new_plan), judging.without),
            *input_notes(recording, new_plan, new_attributes), *attributes.notes,
        )  # fmt: skip

        def replay_of(plan: Plan, on: Way = way) -> TextReplay:
            inputs = input_places(recording, plan, new_attributes)
            return TextReplay(replace(self.nodes, plan=plan, inputs=inputs), recording, on, attributes.places(plan))

        def replays_on(on: Way) -> _TextReplays:
            replay = replay_of(own_plan, on)
            return _TextReplays(replay, replay_of(new_plan, on) if self.texts.changes else replay)

        judged_from = judging.start(recording)
        trials = _TextTrials(replays_on(way), judged_from)
        on_one = None if way == ONE else _OnOneNode(replays_on(ONE), judged_from)
        alone = {change: (replay_of(plan), _SurplusCount()) for change, plan in self._plans_alone()}
        for _ in recording.recorded_events:
            own_blocks, new_blocks = trials.take_item()
            for replay_alone, surplus in alone.values():
                surplus.add(replay_alone.next_blocks(), own_blocks)
            if on_one is not None:
                on_one.take_item(own_blocks, new_blocks)
        surpluses = {change: surplus.outputs() for change, (_, surplus) in alone.items()}
        return RuleComparison(
            self.app, way, self.texts, own_plan, recording, trials.outcomes(), trials.checks(), notes, surpluses,
            None if on_one is None else on_one.share(),
            trials.tables(TableComparison((own_plan, new_plan), new_attributes, judging.without)),
        )  # fmt: skip

    def _plans_alone(self) -> Iterator[tuple[Change, Plan]]:
        """The old text's plans with one change alone, if there are several; without those that do not compile."""
        changes = self.texts.changes
        for change in changes if 1 < len(changes) <= MOST_TRIED else ():
            try:
                yield change, self.compile(to_text(self.texts.with_changes([change])))
            except SiddhiError:
                continue


def _notes_of(plans: Sequence[Plan], without: Collection[str]) -> tuple[str, ...]:
    """Notes on the functions of two texts that give other values each time. Raises `Misuse` for an ignored name that is
    no attribute of an output."""
    outputs = {item.name for plan in plans for q in plan.queries for item in q.select.items}
    if unknown := sorted(set(without) - outputs):
        raise Misuse(nearest(f"no output has an attribute '{unknown[0]}'", unknown[0], outputs))
    attributes = {key: functions for plan in plans for key, functions in unrepeatable_attributes(plan).items()}
    scripts = {name for plan in plans for name in plan.functions}
    notes = [
        f"{stream}.{name} has other values each time, as {' and '.join(functions)} does: leave it out with "
        f"ignore=['{name}'] (--ignore {name})"
        + ("" if scripts & set(functions) else ", or give both texts equal values with freeze=True (--freeze)")
        for (stream, name), functions in attributes.items()
        if name not in without
    ]
    in_items = {f for functions in attributes.values() for f in functions}
    others = sorted({f for plan in plans for f in unrepeatable_functions(plan)} - in_items)
    return (*notes, *(f"{f} decides which outputs there are, and gives other values each time" for f in others))


class TextReplay:
    """A text's replay, an item of the recording at a time. `places`: the attributes of its outputs, as in
    `OutputAttributes.places`."""

    def __init__(
        self, nodes: Nodes, recording: Recording, way: Way, places: Mapping[str, Places] | None = None
    ) -> None:
        self.nodes, self.recording, self.way = nodes, recording, way
        self.places = places or {}
        current_progress().expect(recording.steps * way.nodes)
        self._group = ReplayedNodes(recording, way, nodes)
        self._steps = self._group.steps()
        self._items = 0
        self._partials: list[NodeReplay] = []

    def next_blocks(self) -> Blocks:
        """The outputs of the next item."""
        replays = next(self._steps)
        if any(r.partials for r in replays):
            self._partials += [NodeReplay(r.node, partials=r.partials) for r in replays]
        self._items += 1
        blocks = blocks_of(replays, self.nodes.plan, self.way, self._items - 1)
        return {s: [b.with_columns(self.places.get(s)) for b in of_stream] for s, of_stream in blocks.items()}

    def aggregations(self) -> dict[str, Any]:
        """The rows of aggregations, merged over the nodes."""
        return {a: merged_rows(self._partials, d, self.nodes) for a, d in self.nodes.plan.aggregations.items()}

    def tables(self) -> list[dict[str, DescribedRows]]:
        """By node, the rows of its tables after the last item."""
        next(self._steps, None)  # on-demand queries after the last events
        return [describe_tables(engine) for engine in self._group.engines]

    def lineages(self, blocks: Iterable[OutputBlock]) -> dict[OutputBlock, list[Any]]:
        """The lineage of each output of the blocks. Outputs that tracing changes (a window that counts equal events)
        have none."""
        by_item: dict[int, list[OutputBlock]] = defaultdict(list)
        for block in blocks:
            by_item[block.place.item].append(block)
        out: dict[OutputBlock, list[Any]] = {}
        if not by_item:
            return out
        streams = {stream_of(block.place.label) for of_item in by_item.values() for block in of_item}
        part = replace(self.nodes, plan=upstream_of(self.nodes.plan, streams))
        nodes = part.with_tracing(lazy=True)
        current_progress().expect(self.recording.steps * self.way.nodes)
        for item, replays in enumerate(replay_steps(self.recording, self.way, nodes)):
            for block in by_item.pop(item, ()):
                parts = replays[block.place.node].streams.get(block.place.label, [])
                if sum(len(rows) for rows, _ in parts) != block.size:
                    continue
                ((rows, clock),) = parts
                at = rows.names.index(LINEAGE)
                values = [take_rows(c, block.index) for c in (*rows.columns[:at], *rows.columns[at + 1 :])]
                with_values = replace(
                    block, clock=clock[rows.step][block.index], ts=rows.ts[block.index], columns=values
                )
                with_values = with_values.with_columns(self.places.get(stream_of(block.place.label)))
                if (row_hashes(with_values, clock=True) == row_hashes(block, clock=True)).all():
                    out[block] = rows.columns[at].take(block.index)
            if not by_item:
                break
        return out


class _TextReplays(NamedTuple):
    """The replays of the old and the new text; equal texts have one."""

    before: TextReplay
    after: TextReplay

    def next_blocks(self) -> tuple[Blocks, Blocks]:
        """The outputs of both for the next item."""
        blocks = self.before.next_blocks()
        return blocks, blocks if self.after is self.before else self.after.next_blocks()


class _TextTrials:
    """Both texts' replays, whose outputs are compared by stream, an item of the recording at a time."""

    def __init__(self, replays: _TextReplays, judged_from: int | None) -> None:
        self._replays = replays
        self._judged_from = judged_from
        self._streams: dict[str, _StreamTrial] = {}

    def take_item(self) -> tuple[Blocks, Blocks]:
        """Replays the next item; returns the outputs of both texts."""
        blocks, new_blocks = self._replays.next_blocks()
        for stream in dict.fromkeys([*blocks, *new_blocks]):
            if stream not in self._streams:
                self._streams[stream] = _StreamTrial(self._replays, stream, self._judged_from)
            self._streams[stream].add(blocks.get(stream, []), new_blocks.get(stream, []))
        return blocks, new_blocks

    def outcomes(self) -> dict[str, ComparedStream]:
        """The streams after the last item, in the order of the texts."""
        different = {stream: trial.unequal() for stream, trial in self._streams.items()}
        lineages = [
            replay.lineages(block for sides in different.values() for block in sides[side])
            for side, replay in enumerate(self._replays)
        ]
        out = {}
        order = [stream for replay in self._replays for stream in replay.nodes.plan.streams]
        for stream in sorted(self._streams, key=order.index):
            before, after = (
                [a for block in blocks for a in block.alerts(by_block.get(block))]
                for blocks, by_block in zip(different[stream], lineages, strict=True)
            )
            out[stream] = self._streams[stream].outcome(before, after)
        return out

    def tables(self, comparison: TableComparison) -> dict[str, ComparedTable]:
        """The comparisons of tables, after the last item."""
        one, other = (replay.tables() for replay in self._replays)
        return comparison.of(one, other)

    def checks(self) -> dict[str, MergedCheck]:
        """The comparisons of aggregations."""
        one, other = (replay.aggregations() for replay in self._replays)
        return {a: MergedCheck.of(one.get(a, {}), other.get(a, {})) for a in dict.fromkeys([*one, *other])}


class _OnOneNode:
    """Both texts' replays on one node, held against their outputs on several, an item of the recording at a time."""

    def __init__(self, replays: _TextReplays, judged_from: int | None) -> None:
        self._replays = replays
        self._judged_from = judged_from
        self._text_on_one, self._text_on_nodes = _SurplusCount(), _SurplusCount()
        self._nodes_before, self._nodes_after = _SurplusCount(), _SurplusCount()

    def take_item(self, before: Blocks, after: Blocks) -> None:
        """Replays the next item, for which the texts have these outputs on the nodes."""
        blocks = (before, after, *self._replays.next_blocks())
        before, after, one_before, one_after = map(self._after_warm_up, blocks)
        self._text_on_one.add(one_after, one_before)
        self._text_on_nodes.add(after, before)
        self._nodes_before.add(before, one_before)
        self._nodes_after.add(after, one_after)

    def _after_warm_up(self, blocks: Blocks) -> Blocks:
        return {stream: list(split_by_clock(of_stream, self._judged_from)[0]) for stream, of_stream in blocks.items()}

    def share(self) -> TopologyShare:
        """The result after the last item."""
        return TopologyShare(
            self._text_on_one.outputs(), self._text_on_nodes.outputs(),
            self._nodes_before.outputs(), self._nodes_after.outputs(),
        )  # fmt: skip


class _SurplusCount:
    """The outputs that one run has more often, or less, than another one."""

    def __init__(self) -> None:
        self._sides: dict[str, _Sides] = defaultdict(_Sides)

    def add(self, blocks: Blocks, other_blocks: Blocks) -> None:
        """The outputs of both runs for the next item."""
        for stream in dict.fromkeys([*blocks, *other_blocks]):
            sides = self._sides[stream]
            if not sides.is_full:
                sides.add(blocks.get(stream, []), other_blocks.get(stream, []))

    def outputs(self) -> dict[OutputKey, int]:
        """The surplus of each output, where there is one."""
        out: Counter[OutputKey] = Counter()
        for stream, sides in self._sides.items():
            for blocks, sign in zip(sides.settle().rest, (1, -1), strict=True):
                for block in blocks:
                    for alert in block.alerts():
                        out[key_of(stream, alert)] += sign
        return {key: n for key, n in out.items() if n}


@dataclass(frozen=True)
class _Split:
    """Outputs of two texts: `equal` are the first one's that have an equal one on the other side; `rest` is left of
    both."""

    equal: list[OutputBlock]
    rest: tuple[list[OutputBlock], list[OutputBlock]]


class _Sides:
    """Outputs of two texts for one stream that have no equal ones on the other side; `parts` as in `row_hashes`."""

    def __init__(self, **parts: bool) -> None:
        self._parts = parts
        self._rest: tuple[list[OutputBlock], list[OutputBlock]] = ([], [])
        self._size = 0

    @property
    def is_full(self) -> bool:
        """True if more than `MOST_DIFFERENCES` outputs differ: further ones are not looked at."""
        return self._size > MOST_DIFFERENCES

    def add(self, ones: Sequence[OutputBlock], others: Sequence[OutputBlock]) -> list[OutputBlock]:
        """Takes outputs of both texts; returns the first one's that have an equal one. The rest is kept."""
        split = self._split(ones, others)
        for rest, more in zip(self._rest, split.rest, strict=True):
            rest += more
            self._size += sum(map(len, more))
        return split.equal

    def settle(self) -> _Split:
        """The kept outputs, where outputs of different items are compared as well."""
        return self._split(*self._rest)

    def _split(self, ones: Sequence[OutputBlock], others: Sequence[OutputBlock]) -> _Split:
        masks = EqualRows.of(all_hashes(ones, **self._parts), all_hashes(others, **self._parts)).is_even()
        equal, rest = split_blocks(ones, masks[0])
        return _Split(equal, (rest, split_blocks(others, masks[1])[1]))


class _StreamTrial:
    """The outputs of a stream under both texts, an item of the recording at a time."""

    def __init__(self, replays: tuple[TextReplay, TextReplay], stream: str, judged_from: int | None) -> None:
        writers = [
            {q.name: subject_places(q, replay.places.get(stream)) for q in replay.nodes.plan.queries
             if q.output.target.id == stream}
            for replay in replays
        ]  # fmt: skip
        self._keys = {**writers[1], **writers[0]}
        """By query, the places of the attributes that identify the subject of an output."""
        self._judged_from = judged_from
        self._is_split = writers[0].keys() <= writers[1].keys() or writers[1].keys() <= writers[0].keys()
        """True if outputs are compared query by query: the same ones write the stream."""
        self._sides = _Sides(clock=True, query=self._is_split)
        self._same: Counter[str] = Counter()
        self._same_blocks: list[OutputBlock] = []
        self._not_judged: Counter[str] = Counter()

    def add(self, ones: Sequence[OutputBlock], others: Sequence[OutputBlock]) -> None:
        """The outputs of the next item."""
        (ones, early), (others, other_early) = (split_by_clock(b, self._judged_from) for b in (ones, others))
        self._leave_out(early, other_early)
        if self._sides.is_full:
            self._leave_out(ones, others)
        else:
            self._add_same(self._sides.add(ones, others))

    def _leave_out(self, ones: Sequence[OutputBlock], others: Sequence[OutputBlock]) -> None:
        self._not_judged += _count(ones) | _count(others)

    def _add_same(self, blocks: Iterable[OutputBlock]) -> None:
        for block in blocks:
            if self._same.total() < MOST_SAME:
                self._same_blocks.append(block)
            self._same[block.query] += len(block)

    def unequal(self) -> tuple[list[OutputBlock], list[OutputBlock]]:
        """The outputs of both texts that have no equal one, after the last item."""
        split = self._sides.settle()
        self._add_same(split.equal)
        return split.rest

    def outcome(self, before: Sequence[Alert], after: Sequence[Alert]) -> ComparedStream:
        """The stream, with its differing outputs."""
        pairs = self._pairs(before, after)
        return ComparedStream(pairs, self._same, self._same_blocks, self._not_judged)

    def _pairs(self, before: Sequence[Alert], after: Sequence[Alert]) -> list[OutputPair]:
        """`match_outputs`, for each query where the same ones write the stream."""
        if not self._is_split or len(self._keys) < 2:
            return match_outputs(before, after, next(iter(self._keys.values()), ()))
        of_query = [
            match_outputs([a for a in before if a.query == name], [a for a in after if a.query == name], keys)
            for name, keys in sorted(self._keys.items())
        ]
        return sorted((p for pairs in of_query for p in pairs), key=lambda p: place_of(p.alert))


def _count(blocks: Iterable[OutputBlock]) -> Counter[str]:
    """The number of outputs by query."""
    counts: Counter[str] = Counter()
    for block in blocks:
        counts[block.query] += len(block)
    return counts


def subject_places(query: Query, places: Places | None = None) -> tuple[int, ...]:
    """The places of a query's attributes, among those compared, that identify its subject: no aggregates, no
    fractions."""
    items = query.select.items
    return tuple(
        i for i, place in enumerate(range(len(items)) if places is None else places)
        if place is not None and items[place].expr.type in _KEYS
        and not any(isinstance(e, Agg) for e in walk(items[place].expr))
    )  # fmt: skip
