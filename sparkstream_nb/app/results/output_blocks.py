"""Outputs of replayed nodes by column, and the counts of equal ones without a Python object for each.

Rows are told apart by 128 bits of hash of their contents: equal values have equal ones, a NaN too, and numbers of
different types (1 and 1.0) as in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ...engine.state.node_batch import Emitted, take_rows
from ...plan.nodes import Plan
from ...plan.output_labels import is_inner, query_of, stream_of
from ...replay.replay import ONE, NodeReplay, Way
from .output_matching import Alert, frozen

Hashes = npt.NDArray[np.uint64]
"""Two columns of hashes."""
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_SEEDS = ("sparkstream-0001", "sparkstream-0002")
_NULL, _NAN, _TEXT = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7


@dataclass(frozen=True, slots=True)
class Place:
    """The place of outputs in a replay: the number of the item that brought them, the node (from 0), and the label."""

    item: int
    node: int
    label: str


@dataclass(frozen=True, eq=False)
class OutputBlock:
    """Outputs of a query (""; none wrote them) on a node (None: the one of the truth): `index` numbers them among all
    that stand in the block's `place`, which are `size`. Times are in ms, `clock` is the app's when they were emitted.
    """

    query: str
    node: int | None
    place: Place
    size: int
    index: Numbers
    clock: Numbers
    ts: Numbers
    columns: Sequence[Any]

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def value_hashes(self) -> Hashes:
        """The hashes of the outputs by time and values."""
        return value_hashes([self.ts, *self.columns], len(self))

    def take(self, index: Numbers) -> OutputBlock:
        """The outputs at some positions."""
        columns = [take_rows(c, index) for c in self.columns]
        return replace(
            self, index=self.index[index], clock=self.clock[index], ts=self.ts[index], columns=columns
        )  # fmt: skip

    def with_columns(self, places: Sequence[int | None] | None) -> OutputBlock:
        """The outputs with the values in some places (None: all of them); without a place, null."""
        if places is None:
            return self
        return replace(self, columns=[pa.nulls(len(self)) if p is None else self.columns[p] for p in places])

    def alerts(self, lineages: Sequence[Any] | None = None) -> Iterator[Alert]:
        """The outputs one by one, with the lineage of each if there is one."""
        names = tuple(map(str, range(len(self.columns))))
        rows = Emitted(names, self.index, self.ts, list(self.columns)).rows()
        all_lineages = [None] * len(self) if lineages is None else lineages
        for clock, (ts, values), made_of in zip(self.clock.tolist(), rows, all_lineages, strict=True):
            yield Alert(clock, ts, tuple(values), self.node, made_of, self.query)


Blocks = dict[str, list[OutputBlock]]
"""Outputs by derived stream."""


def blocks_of(replays: Iterable[NodeReplay], plan: Plan, way: Way, item: int) -> Blocks:
    """The outputs of one item of a recording, by derived stream."""
    out: Blocks = {}
    for replay in replays:
        for label, parts in replay.streams.items():
            if is_inner(label):
                continue
            for rows, clock in parts:
                if n := len(rows):
                    place, node = Place(item, replay.node, label), None if way == ONE else replay.node
                    block = OutputBlock(
                        query_of(label, plan), node, place, n, np.arange(n), clock[rows.step], rows.ts, rows.columns,
                    )  # fmt: skip
                    out.setdefault(stream_of(label), []).append(block)
    return out


def row_hashes(block: OutputBlock, *, clock: bool = False, query: bool = False) -> Hashes:
    """The hashes of outputs by time and values; of their clock and query as well, if wanted."""
    hashes = _mix(block.value_hashes, _number_hashes(block.clock)) if clock else block.value_hashes
    return _mix(hashes, _text_hashes(np.array([block.query], object))) if query else hashes


def value_hashes(columns: Sequence[Any], size: int) -> Hashes:
    """The hashes of rows by the values in some columns of length `size`."""
    hashes = np.zeros((size, 2), np.uint64)
    for column in columns:
        hashes = _mix(hashes, _column_hashes(column))
    return hashes


def _column_hashes(column: Any) -> Hashes:
    if isinstance(column, list):
        frozen_texts = [None if v is None else repr(frozen(v)) for v in column]
        return _column_hashes(pa.array(frozen_texts, pa.large_string()))
    if isinstance(column, np.ndarray):
        return _number_hashes(column)
    if column.null_count == len(column):
        return np.full((len(column), 2), _NULL, np.uint64)
    if pa.types.is_dictionary(column.type):
        hashes = _column_hashes(column.dictionary)
        places = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        hashes = hashes[places]
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        hashes = _text_hashes(column.fill_null("").to_numpy(zero_copy_only=False))
    else:
        zero = pa.scalar(0, pa.int8()).cast(column.type)
        hashes = _number_hashes(column.fill_null(zero).to_numpy(zero_copy_only=False))
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _text_hashes(texts: npt.NDArray[np.object_]) -> Hashes:
    hashes = [pd.util.hash_array(texts, hash_key=seed, categorize=False) for seed in _SEEDS]
    return np.column_stack(hashes) ^ np.uint64(_TEXT)


def _number_hashes(numbers: npt.NDArray[Any]) -> Hashes:
    """A whole number, as 1.0 is, is its own hash; a fraction has its bits."""
    if numbers.dtype.kind == "f":
        doubles = numbers.astype(np.float64)
        with np.errstate(invalid="ignore"):
            whole_numbers = doubles.astype(np.int64)
            is_whole = (np.abs(doubles) < 2.0**63) & (whole_numbers == doubles)
        bits = np.where(np.isnan(doubles), np.uint64(_NAN), ~doubles.view(np.uint64))
        one = np.where(is_whole, whole_numbers.view(np.uint64), bits)
    else:
        one = numbers.astype(np.int64).view(np.uint64)
    return np.column_stack([one, one])


NO_HASHES: Hashes = np.zeros((0, 2), np.uint64)
_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_STEPS = np.array([0x632BE59BD9B4E019, 0xE2D0D5A1F7C3A9B5], np.uint64)


def _mix(state: Hashes, hashes: Hashes) -> Hashes:
    """Adds the hashes of a column to the hashes of the columns before it; the two columns of hashes are independent."""
    with np.errstate(over="ignore"):
        sums: Hashes = (state * _FACTORS + _STEPS) ^ hashes
        sums = (sums ^ (sums >> np.uint64(31))) * _FACTORS[::-1]
        return sums ^ (sums >> np.uint64(29))


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Rows of two sides, grouped by equality: the group of each row, and how many rows of each side a group has."""

    groups: tuple[Numbers, Numbers]
    counts: tuple[Numbers, Numbers]

    @staticmethod
    def of(ones: Hashes, others: Hashes) -> EqualRows:
        """Groups rows by their hashes."""
        both = np.concatenate([ones, others])
        first, _ = pd.factorize(both[:, 0])
        pairs = np.column_stack([first, pd.factorize(both[:, 1])[0]])
        if len(both) and (pairs[:, 0] != pairs[:, 1]).any():  # one of the hashes is of two rows
            first = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        size = int(first.max()) + 1 if len(first) else 0
        groups = first[: len(ones)], first[len(ones) :]
        return EqualRows(groups, (np.bincount(groups[0], minlength=size), np.bincount(groups[1], minlength=size)))

    def is_even(self) -> tuple[Mask, Mask]:
        """For each row of both sides: true if as many of the other side are equal."""
        is_even = self.counts[0] == self.counts[1]
        return is_even[self.groups[0]], is_even[self.groups[1]]


class SameCount:
    """The number of rows that have an equal one on the other side, each with one partner."""

    def __init__(self) -> None:
        self._same = 0
        self._rest: tuple[list[Hashes], list[Hashes]] = ([], [])

    def add(self, ones: Hashes, others: Hashes) -> None:
        """Rows of both sides."""
        rows = EqualRows.of(ones, others)
        self._same += int(np.minimum(*rows.counts).sum())
        more = rows.counts[0] - rows.counts[1]
        for rest, hashes, groups, excess in zip(self._rest, (ones, others), rows.groups, (more, -more), strict=True):
            numbers, first = np.unique(groups, return_index=True)
            rest.append(np.repeat(hashes[first], np.maximum(excess[numbers], 0), axis=0))

    def total(self) -> int:
        """The number over all rows."""
        rows = EqualRows.of(*(np.concatenate([NO_HASHES, *rest]) for rest in self._rest))
        return self._same + int(np.minimum(*rows.counts).sum())


def all_hashes(blocks: Sequence[OutputBlock], **parts: bool) -> Hashes:
    """`row_hashes` of blocks, one after the other."""
    return np.concatenate([NO_HASHES, *(row_hashes(b, **parts) for b in blocks)])


def split_blocks(blocks: Sequence[OutputBlock], mask: Mask) -> tuple[list[OutputBlock], list[OutputBlock]]:
    """The rows of blocks for which a mask over all of them is true, and the others; no block is without rows."""
    hits, rest, at = [], [], 0
    for block in blocks:
        part = mask[at : at + len(block)]
        at += len(block)
        if part.all():
            hits.append(block)
        elif not part.any():
            rest.append(block)
        else:
            hits.append(block.take(np.flatnonzero(part)))
            rest.append(block.take(np.flatnonzero(~part)))
    return hits, rest


def split_by_clock(
    blocks: Sequence[OutputBlock], start: int | None
) -> tuple[Sequence[OutputBlock], Sequence[OutputBlock]]:
    """The outputs that were emitted from `start` (ms; None: any time) on, and earlier ones."""
    if start is None:
        return blocks, []
    return split_blocks(blocks, np.concatenate([np.zeros(0, np.int64), *(b.clock for b in blocks)]) >= start)
