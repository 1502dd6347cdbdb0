"""Frames, the input of a select: rows of a stream, matches of a pattern or pairs of a join, with lazy columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...plan.nodes import EventRef, Ref
from .column_data import Array, Column
from .rows import Rows, WindowOps, order_at

Resolver = Callable[[Ref | EventRef], Column]
EventTime = Callable[[EventRef], Column]


@dataclass(slots=True)
class LazyRows:
    """Rows without their columns (see `Rows`), and `resolve`, which gives the column that a reference names.

    `event_time` gives the timestamps of whole events, if there are several in a row. `window_ops` and
    `resets_per_chunk` are as in the rows, `places` the position of each attribute among their columns (None: they are
    the same).
    """

    ts: Array
    order_key: Array
    chunk: Array
    kind: Array | None
    instance: Array | None
    resolve: Resolver
    event_time: EventTime | None = None
    window_ops: WindowOps | None = None
    places: dict[int, int] | None = None
    resets_per_chunk: bool = False

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, index: Array) -> LazyRows:
        """The rows at `index`; columns are gathered lazily."""
        resolve, time = self.resolve, self.event_time
        return LazyRows(
            self.ts[index],
            *order_at(self.order_key, self.chunk, index),
            None if self.kind is None else self.kind[index],
            None if self.instance is None else self.instance[index],
            cache_columns(lambda ref: resolve(ref).take(index)),
            None if time is None else lambda ref: time(ref).take(index),
            resets_per_chunk=self.resets_per_chunk,
        )

    def event(self, attr: int) -> Column:
        """An attribute of the events that pass the window, by position."""
        assert self.window_ops is not None
        return self.window_ops.columns.events[attr if self.places is None else self.places[attr]]


def cache_columns(resolve: Resolver) -> Resolver:
    """`resolve` that computes each column once."""
    columns: dict[Ref | EventRef, Column] = {}

    def get(ref: Ref | EventRef) -> Column:
        if ref not in columns:
            columns[ref] = resolve(ref)
        return columns[ref]

    return get


def frame_of(rows: Rows, places: dict[int, int] | None = None) -> LazyRows:
    """A frame over stream rows (slot 0). `places` maps attribute numbers to column positions; None: they are the same.
    """

    def resolve(ref: Ref | EventRef) -> Column:
        assert isinstance(ref, Ref), "a stream query has no event references"
        return rows.columns[ref.attr if places is None else places[ref.attr]]

    return LazyRows(
        rows.ts, rows.order_key, rows.chunk, rows.kind, rows.instance, resolve, None, rows.window_ops, places,
        rows.resets_per_chunk,
    )  # fmt: skip
