"""The operator of one query: its input, select, rate limit and output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plan import nodes
from ...plan.query_parts import expressions
from ...plan.window_declarations import DECLARATIONS
from ..columnar.column_data import Mask
from ..columnar.error_routing import may_fail
from ..columnar.frame import LazyRows, frame_of
from ..columnar.rows import CURRENT, ORDER_KEY_BITS, Clock, Rows, concat_rows
from ..columnar.timers import earliest
from ..joins.joins import JoinOp, Lookup
from ..patterns.op import StateOp
from ..patterns.watched_pattern import WatchedPattern
from ..ratelimit import Limiter, limiter, waits
from ..ratelimit.limiter_state import WaitingRows
from ..select.selector import Selected, SelectedGroups, Selector, SelectorSetup
from ..select.steps import InputSteps, WindowNeeds, begins_anew, can_number_groups, select_exprs, slot_attrs
from ..state.declared import DeclaredByInstance, part
from ..state.services import Services

if TYPE_CHECKING:
    from ..patterns.op import StateOp


def _slides(source: nodes.StreamInput | nodes.JoinInput | nodes.StateInput, wants_expired: bool) -> bool:
    """True if rows of a query with this input expire one by one for `min` and `max`: if not, these keep only the best.
    """
    if isinstance(source, nodes.StateInput):
        return False
    sides = (source,) if isinstance(source, nodes.StreamInput) else (source.left, source.right)
    windows = [s.function for side in sides for s in side.steps if isinstance(s, nodes.WindowStep)]
    return wants_expired or any(DECLARATIONS[w].processing_mode == "slide" for w in windows)


class QueryOp(DeclaredByInstance):
    """A query. `inputs` are the ids of the streams that it reads; `target` the stream, window or table it writes.

    `schedulers` is how many timer phases it has, starting with `scheduler`.
    """

    _steps: InputSteps | None = part()
    _pattern: StateOp | None = part()
    _join: JoinOp | None = part()
    selector: Selector = part()
    _limiter: Limiter | None = part()

    def __init__(
        self,
        query: nodes.Query,
        services: Services,
        scheduler: int,
        lookups: Callable[[nodes.JoinInput], Mapping[int, Lookup]],
    ) -> None:
        self.query = query
        self.name = query.name
        self.services = services
        output = query.output
        self.target = output.target
        self.event_type = output.event_type
        current, wants_expired = self.event_type != "expired", self.event_type != "current"
        self._create()
        self.schedulers = 0
        self._handled_deaths = 0
        """Number of `Services.deaths` already handled."""
        self.began: int | None = None
        """The clock (ms) at which it began, if later than the node."""
        source = query.input
        origin: nodes.Source | None = None
        if isinstance(source, nodes.StreamInput) and any(may_fail(e) for e in expressions(query)):
            origin = source.source  # a failing event must still have all its values
        in_window = isinstance(source, nodes.StreamInput) and can_number_groups(source)
        setup = SelectorSetup(
            self.name, current, wants_expired, sliding=_slides(source, wants_expired),
            batching=query.rate is None or query.rate.kind != "snapshot", has_rate_limit=query.rate is not None,
            source=origin, in_window=in_window, tells_cut=isinstance(source, nodes.JoinInput),
        )  # fmt: skip
        self.selector = Selector(query.select, services, setup)
        if isinstance(source, nodes.StreamInput):
            read_attrs = slot_attrs(iter(select_exprs(query.select)), 0)
            if origin is not None:
                read_attrs |= set(range(len(origin.schema)))
            resets_per_chunk = (
                self.selector.resets_per_chunk and begins_anew(source) and not services.keeps_all(self.name)
            )
            window = WindowNeeds(
                wants_expired=wants_expired,
                selected_attrs=[i.expr.attr if isinstance(i.expr, nodes.Ref) else None for i in query.select.items],
                ops_only=in_window and current and not wants_expired and self.selector.plain,
                resets_per_chunk=resets_per_chunk,
            )
            self._steps = InputSteps(
                source, read_attrs, services, query=self.name, scheduler=scheduler, window=window,
                group=self.selector.number if self.selector.numbers and not resets_per_chunk else None,
            )  # fmt: skip
            self.inputs: tuple[str, ...] = (source.source.id,)
            self.schedulers = self._steps.schedulers
        elif isinstance(source, nodes.StateInput):
            if services.watching is not None and services.watches(self.name):
                self._pattern = WatchedPattern(source, services, scheduler, query.select, self.name)
                services.watching.pattern = self._pattern
            else:
                self._pattern = StateOp(source, services, scheduler, query.select, self.name)
            self.inputs = tuple(self._pattern.inputs)
            self.schedulers = self._pattern.schedulers
        else:
            self._join = JoinOp(
                source, query.select, services, query=self.name, scheduler=scheduler,
                wants_expired=wants_expired, lookups=lookups(source),
                only_current=not wants_expired and query.rate is None and not any(
                    isinstance(e, nodes.Agg) for x in select_exprs(query.select) for e in nodes.walk(x)
                ),
            )  # fmt: skip
            self.inputs = self._join.inputs
            self.schedulers = self._join.schedulers
        self._limiter = limiter(query, services, scheduler + self.schedulers)
        self.schedulers += waits(query.rate)

    def begin_at(self, time: int) -> None:
        """Says that the query began when the node's clock was at `time` (ms), later than the node: states that wait for
        an absent event from the beginning on wait from then on. Not for a query in a partition, whose instances have
        beginnings of their own.
        """
        self.began = time
        if self._pattern is not None:
            clock = replace(self.services.clock, start=time)
            self._pattern.services = replace(self._pattern.services, clock=clock)

    @property
    def pattern(self) -> StateOp | None:
        """The pattern or sequence that it reads."""
        return self._pattern

    @property
    def join(self) -> JoinOp | None:
        """The join that it reads."""
        return self._join

    @property
    def run_parts(self) -> list[Any]:
        """The parts whose `run` does its work, in their order."""
        parts = (self._steps, self._join, self._pattern, self.selector, self._limiter)
        return [p for p in parts if p is not None]

    @property
    def input_steps(self) -> list[InputSteps]:
        """The steps of its input, or of both sides of a join that are streams."""
        sides = [] if self._join is None else self._join.steps
        return [s for s in (self._steps, *sides) if s is not None]

    @property
    def groups(self) -> SelectedGroups | None:
        """The groups of its select. It must keep all: see `Selector.groups`."""
        return self.selector.groups()

    @property
    def waiting_rows(self) -> WaitingRows | None:
        """The outputs that its rate limit holds back."""
        return None if self._limiter is None else self._limiter.waiting_rows

    @property
    def joins(self) -> bool:
        return self._join is not None

    @property
    def read_windows(self) -> tuple[str, ...]:
        """The named windows that the last run read."""
        return () if self._join is None else self._join.windows_read

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone can make the query emit; None if no time does."""
        sources = (self._steps, self._join, self._pattern, self._limiter)
        return earliest(s.next_due() for s in sources if s is not None)

    @property
    def has_timers(self) -> bool:
        """True if the query may emit events when only the clock moves."""
        return self.schedulers > 0

    def rank(self, rank: int) -> None:
        """The query's place among those that use a table."""
        for steps in (self._steps, *(() if self._join is None else self._join.steps)):
            if steps is not None:
                steps.rank = rank

    def tie(self, sources: Sequence[str]) -> None:
        """The inputs in the order in which rows of one order key are received."""
        if self._join is not None:
            self._join.right_first = len(sources) > 1 and sources[0] == self._join.inputs[1]
        elif self._pattern is not None:
            self._pattern.tie = sources

    def passing_rows(self, stream: str, rows: Rows, clock: Clock) -> Mask:
        """Mask of the rows of an input that can have an effect (`InputSteps.passing_rows`)."""
        if self._steps is not None:
            return self._steps.passing_rows(rows, clock)
        return np.ones(len(rows), np.bool_) if self._join is None else self._join.passing_rows(stream, rows, clock)

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Selected:
        """The query's output for these rows, and for the timers that `clock` lets fire."""
        rows = concat_rows([self._run_steps(part, time) for part, time in self._between_deaths(inputs, clock)])
        purge_keys = self.services.partition.purge_keys()
        if purge_keys is not None and rows.instance is not None:  # forgotten instances emit nothing more
            rows = rows.where(rows.order_key < purge_keys[rows.instance])
        return Selected(rows, None)

    def _between_deaths(
        self, inputs: Mapping[str, Rows], clock: Clock
    ) -> Iterator[tuple[Mapping[str, Rows], Clock]]:  # fmt: skip
        """The inputs, cut where partition instances are forgotten: their state is dropped in between, so that
        their timers no longer affect the others' from that moment on, regardless of micro-batches.
        """
        at = clock.first
        for order_key, instances in self.services.partition.deaths[self._handled_deaths :]:
            cut = {s: int(np.searchsorted(rows.order_key, order_key)) for s, rows in inputs.items()}
            until = max(at, min((order_key >> ORDER_KEY_BITS) - clock.base + 1, clock.last))
            if until == clock.last and all(cut[s] == len(rows) for s, rows in inputs.items()):
                break  # nothing comes after it
            if until > at or any(cut.values()):
                part = {s: rows.slice(0, cut[s]) for s, rows in inputs.items()}
                yield part, Clock(clock.base, clock.now, clock.may_fire, at, until)
            self.forget(instances)
            self._handled_deaths += 1
            inputs = {s: rows.slice(cut[s], len(rows)) for s, rows in inputs.items()}
            at = until
        yield inputs, Clock(clock.base, clock.now, clock.may_fire, at, clock.last)

    def _run_steps(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows:
        if self._join is not None and self._join.self_join:
            return concat_rows([self._apply_rate_limit(i, c).rows for i, c in self._join.event_by_event(inputs, clock)])
        return self._apply_rate_limit(inputs, clock).rows

    def release(self) -> None:
        """Drop the remaining state of the partition instances that were forgotten (`Services.deaths`)."""
        for _, instances in self.services.partition.deaths[self._handled_deaths :]:
            self.forget(instances)
        self._handled_deaths = 0

    @property
    def forgets_all(self) -> bool:
        """True if nothing is held for an instance after `forget`, so that its number may be given to another one."""
        source = self._join if self._steps is None else self._steps
        return source is not None and source.forgets_all and self._limiter is None

    def _apply_rate_limit(self, inputs: Mapping[str, Rows], clock: Clock) -> Selected:
        frame: LazyRows
        if self._steps is not None:
            rows = self._steps.run(inputs[self.inputs[0]], clock)
            frame = frame_of(rows, self._steps.places)
        elif self._join is not None:
            frame = self._join.run(inputs, clock)
        else:
            assert self._pattern is not None
            matches = self._pattern.run([(s, inputs[s]) for s in self.inputs], clock)
            frame = matches.frame()
        selection = self.selector.run(frame, clock)
        if self._pattern is not None:
            selection.rows = matches.send(selection.rows)
        if self._join is not None:
            selection = self._join.regroup(selection)
        return selection if self._limiter is None else Selected(self._limiter.run(selection, clock), None)

    @property
    def bytes(self) -> int:
        """Bytes that the query's steps, join or pattern hold."""
        if self._steps is not None:
            return self._steps.bytes
        if self._join is not None:
            return self._join.bytes
        return 0 if self._pattern is None else int(self._pattern.bytes)

    @property
    def rows(self) -> int | None:
        """Events that the query's window or join holds, or partial matches of its pattern; None if it has none."""
        if self._steps is not None:
            return self._steps.rows
        if self._join is not None:
            return self._join.rows
        return None if self._pattern is None else self._pattern.rows


def split_kinds(rows: Rows) -> tuple[Rows, Rows]:
    """(current, expired) rows, as a query callback sees them."""
    if rows.kind is None:
        return rows, rows.take(np.empty(0, np.int64))
    return rows.where(rows.kind == CURRENT), rows.where(rows.kind != CURRENT)
