"""The steps that events go through between a query's input and its select: filters, stream functions, a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...plan import nodes as n
from ...plan.window_declarations import DECLARATIONS, streams_current_events
from ...types import Type
from ..aggregators import Aggregator, make_aggregator
from ..columnar.column_data import Array, Column, Mask
from ..columnar.frame import LazyRows, frame_of
from ..columnar.rows import CURRENT, Clock, Rows, one_by_one
from ..columnar.timers import earliest
from ..expressions import Env, Evaluator, compile_expr
from ..reorder import ReorderStep
from ..state.declared import DeclaredState, part, parts
from ..state.saving import plain
from ..state.services import Services
from ..windows import WINDOWS, Window, WindowSetup, for_joins, rows_held
from ..windows.deduplicate import Deduplicate
from .streamfunctions import STREAM_FUNCTIONS

if TYPE_CHECKING:
    from ..windows.deduplicate import Deduplicate

_RANK, _SERIAL = 1 << 30, (1 << 30) + 1
"""Attribute numbers of the columns of ranks and of serial numbers."""

GROUP = _RANK - 1
"""Attribute number of the column of group ids."""


def slot_attrs(exprs: Iterator[n.Expr], slot: int) -> set[int]:
    """The attributes of `slot` that the expressions name."""
    return {e.attr for x in exprs for e in n.walk(x) if isinstance(e, n.Ref) and e.slot == slot}


def can_number_groups(source: n.StreamInput) -> bool:
    """True if events can be given their group ids before they enter the window, which is the last step."""
    last = source.steps[-1] if source.steps else None
    return isinstance(last, n.WindowStep) and DECLARATIONS[last.function].carries_group_id


def begins_anew(source: n.StreamInput) -> bool:
    """True if each chunk that the last step, a window, emits for a query that wants only the CURRENT events begins with
    a RESET, and there is no other.
    """
    last = source.steps[-1] if source.steps else None
    if not isinstance(last, n.WindowStep):
        return False
    return DECLARATIONS[last.function].resets_per_chunk and not streams_current_events(last)


def step_exprs(step: n.Step) -> tuple[n.Expr, ...]:
    """The expressions of a step."""
    return (step.condition,) if isinstance(step, n.FilterStep) else step.args


def select_exprs(select: n.Select) -> list[n.Expr]:
    """All expressions of a select."""
    out = [i.expr for i in select.items] + list(select.group_by) + list(select.unselected)
    return out if select.having is None else [*out, select.having]


def window_attrs(step: n.WindowStep, width: int, has_selection: bool) -> set[int]:
    """Attributes that a window reads besides its arguments (`WindowDeclaration.reads`), of the `width` attributes.
    `has_selection`: the query names its selected attributes.
    """
    if step.condition is not None:
        return {e.attr for e in n.walk(step.condition) if isinstance(e, n.Ref)}
    match DECLARATIONS[step.function].reads:
        case "arguments":
            every = False
        case "expression":
            every = True
        case "selection":
            every = not has_selection and not any(isinstance(a, n.Ref) for a in step.args)
    return set(range(width)) if every else set()


_UNSTEADY = ("UUID", "math:rand", "time:")


def _steady(condition: n.Expr) -> bool:
    """True if a condition on one event says the same whenever it is asked."""
    return not any(
        isinstance(e, n.Agg | n.InTable | n.ScriptCall) or (isinstance(e, n.Call) and e.function.startswith(_UNSTEADY))
        for e in n.walk(condition)
    )


@dataclass(slots=True)
class _FilterOp:
    """`aggregates` are the running aggregates that the condition names: node, aggregator, its arguments. `steady`: see
    `InputSteps.passing_rows`."""

    condition: Evaluator
    aggregates: list[tuple[n.Agg, Aggregator, list[Evaluator]]]
    steady: bool


@dataclass(slots=True)
class _FunctionOp:
    key: str
    args: list[Evaluator]


@dataclass(slots=True)
class _ReorderOp:
    args: list[Evaluator]
    processor: ReorderStep


@dataclass(frozen=True)
class WindowNeeds:
    """A query's needs of its window: expired rows, contents that a condition can look for (`findable`), the attributes
    that it selects as they are (`selected_attrs`; None for computed ones), serial numbers of the events, which are
    given beside them and go through it (`serials`), and for a window that is the last step `ops_only` and
    `resets_per_chunk` of `WindowSetup`."""

    wants_expired: bool = False
    findable: bool = False
    selected_attrs: Sequence[int | None] | None = None
    serials: bool = False
    ops_only: bool = False
    resets_per_chunk: bool = False


class InputSteps(DeclaredState):
    """The steps of one input. `read_attrs` are the attributes (after the last step) that are read later.

    Columns that nothing downstream needs are dropped as early as possible: `places` maps the attributes that are left
    after the last step to their column positions.
    """

    window: Window | None = part()
    _running: list[Aggregator] = parts(form=plain)
    """Aggregators in filters."""
    _reorders: list[ReorderStep | Deduplicate] = parts(saved_as="reorder", form=plain)

    def __init__(
        self,
        input: n.StreamInput,
        read_attrs: set[int],
        services: Services,
        *,
        query: str,
        slot: int = 0,
        scheduler: int = 0,
        window: WindowNeeds | None = None,
        group: Callable[[LazyRows], Array] | None = None,
    ) -> None:
        """With `window.serials`, `run` takes a column of serial numbers, which becomes the last column and goes through
        the window; so do the results of `group` for the events that enter it (`GROUP` among `places`).
        """
        needs = window or WindowNeeds()
        self.query, self.source, self.services, self.slot = query, input.source.id, services, slot
        self.rank = 0  # the query's place among those that use a table
        self.window, self._running, self._reorders = None, [], []
        self.window_names: tuple[str, ...] = ()
        """The attributes that the window's events have, in the order of their columns."""
        self.window_function = ""
        self._leaves_unseen = False  # whether the window's timers emit only expired rows, which are not wanted
        self._group = group
        self._steps: list[_FilterOp | _FunctionOp | _ReorderOp | Deduplicate | Window] = []
        self.schedulers = 0
        self._needs, self._query_input, self._scheduler = needs, input, scheduler
        self._widths, self._types, self._keep = self._find_attributes(read_attrs)
        self._schema = input.source.schema
        for i, step in enumerate(input.steps):
            if isinstance(step, n.FilterStep):
                aggregates = dict.fromkeys(e for e in n.walk(step.condition) if isinstance(e, n.Agg))
                running = [self._add_running(a) for a in aggregates]
                condition = compile_expr(step.condition, services.context)
                self._steps.append(_FilterOp(condition, running, _steady(step.condition)))
            elif isinstance(step, n.FunctionStep) and step.function in ("reorder:kslack", "reorder:akslack"):
                self._add_reordering(step, i)
            elif isinstance(step, n.FunctionStep) and step.function == "unique:deduplicate":
                self._add_deduplication(step, i)
            elif isinstance(step, n.FunctionStep):
                args = [compile_expr(a, services.context) for a in step.args]
                self._steps.append(_FunctionOp(step.function, args))
            else:
                self._add_window(step, i)
        self.places = {a: i for i, a in enumerate(self._keep[-1])}
        if group is not None:
            self.places[GROUP] = len(self.places)

    def _find_attributes(self, read_attrs: set[int]) -> tuple[list[int], list[Type], list[list[int]]]:
        """(the number of attributes before each step, the types of all attributes, the attributes to carry on before
        each step and after all)."""
        steps = self._query_input.steps
        types = list(self._query_input.source.schema.types)
        widths = [len(types)]
        for step in steps:
            if isinstance(step, n.FunctionStep):
                types += step.appends.types
            widths.append(len(types))
        later = set(read_attrs)
        keeps: list[set[int]] = [later]
        for step in reversed(steps):
            later = later | slot_attrs(iter(step_exprs(step)), self.slot)
            width = widths[len(steps) - len(keeps)]
            if isinstance(step, n.WindowStep):
                later |= window_attrs(step, width, self._needs.selected_attrs is not None)
                if self.services.keeps_all(self.query):
                    later |= set(range(width))
            if isinstance(step, n.FunctionStep):
                later = {a for a in later if a < width}
                if step.function == "log":  # it may show the whole event
                    later.update(range(width))
            keeps.append(later)
        keeps.reverse()
        # A filter runs before its columns are thinned out, so a step's own needs count for the columns before it.
        return widths, types, [sorted(k) for k in keeps]

    def _next_phase(self) -> int:
        """The number of the timer phase of the next step with timers."""
        self.schedulers += 1
        return self._scheduler + self.schedulers - 1

    def _add_reordering(self, step: n.FunctionStep, i: int) -> None:
        is_adaptive = step.function == "reorder:akslack"
        constants = [a.value for a in step.args if isinstance(a, n.Const)]
        types = tuple(self._types[a] for a in self._keep[i])
        args = [compile_expr(a, self.services.context) for a in step.args[: 2 if is_adaptive else 1]]
        reorder = ReorderStep(types, constants, self._next_phase(), is_adaptive, self.services.is_partitioned)
        self._reorders.append(reorder)
        self._steps.append(_ReorderOp(args, reorder))

    def _add_deduplication(self, step: n.FunctionStep, i: int) -> None:
        services, places = self.services, {a: p for p, a in enumerate(self._keep[i])}
        arguments = tuple(_replace_places(a, places) for a in step.args)
        setup = WindowSetup(
            arguments, (), self._next_phase(), False, strings=services.strings, context=services.context,
            is_partitioned=services.is_partitioned, refuse=_refuse(services, self.query, self.source),
        )  # fmt: skip
        deduplicate = Deduplicate(setup)
        self._reorders.append(deduplicate)
        self._steps.append(deduplicate)

    def _add_window(self, step: n.WindowStep, i: int) -> None:
        types = tuple(self._types[a] for a in self._keep[i])
        if self._needs.serials:
            types = (*types, Type.LONG)
        if self._group is not None:
            types = (*types, Type.INT)
        needs = self._needs
        if step is not self._query_input.steps[-1]:
            needs = replace(needs, ops_only=False, resets_per_chunk=False)
        names = self._query_input.schema.names
        self.window_names = tuple(names[a] for a in self._keep[i])
        self.window_function = step.function
        self.window = make_window(
            step, types, self._next_phase(), needs, {a: names[a] for a in self._keep[i]},
            services=self.services, query=self.query, stream=self.source,
        )  # fmt: skip
        self._steps.append(self.window)
        self._leaves_unseen = not needs.wants_expired and DECLARATIONS[step.function].timers_emit == "expired"

    def _add_running(self, node: n.Agg) -> tuple[n.Agg, Aggregator, list[Evaluator]]:
        args = [compile_expr(a, self.services.context) for a in node.args]
        self._running.append(make_aggregator(node, False, self.services.strings))
        return node, self._running[-1], args

    def run(self, rows: Rows, clock: Clock, serial: Column | None = None) -> Rows:
        """Rows after the last step; the columns follow `places`, with `serial` last if it is given."""
        attrs = list(range(len(rows.columns)))  # attribute number of each column
        if serial is not None:
            rows = rows.with_columns([*rows.columns, serial])
            attrs.append(_SERIAL)
        for i, step in enumerate(self._steps):
            keep = self._keep[i]
            if self.window is not None and step is self.window:
                if self._group is not None:
                    ids = self._group(frame_of(rows, {a: p for p, a in enumerate(attrs)}))
                    rows, attrs = rows.with_columns([*rows.columns, Column(Type.INT, ids)]), [*attrs, GROUP]
                rows, attrs = self._thin(rows, attrs, keep)
                rows = self.window.run(rows, clock, self.services.instances, self.services.partition.hashes())
                if serial is not None:
                    rows = for_joins(rows, self.window)
                    if self.window.is_ordered:
                        attrs = [*attrs[:-1], _RANK, _SERIAL]
                continue
            if isinstance(step, _ReorderOp):
                rows, attrs = self._thin(rows, attrs, keep)
                args = [a(self._env(rows, attrs, clock)) for a in step.args]
                rows = step.processor.run(rows, args, clock, self.services.instances)
                continue
            if not isinstance(step, _FilterOp | _FunctionOp):
                rows, attrs = self._thin(rows, attrs, keep)
                rows = step.run(rows, clock, self.services.instances, self.services.partition.hashes())
                continue
            if len(rows) == 0:
                if isinstance(step, _FunctionOp):
                    width, end = self._widths[i], self._widths[i + 1]
                    rows = rows.with_columns([*rows.columns, *(Column.empty(t) for t in self._types[width:end])])
                    attrs = [*attrs, *range(width, end)]
                continue
            env = self._env(rows, attrs, clock)
            if isinstance(step, _FilterOp):
                rows, attrs = self._filter(step, rows, attrs, env, self._keep[i + 1])
            else:
                rows, attrs = self._function(step, rows, attrs, env, self._widths[i])
        return self._thin(rows, attrs, self._keep[-1])[0]

    def passing_rows(self, rows: Rows, clock: Clock) -> Mask:
        """Mask of the rows that pass the leading filters whose result is the same whenever they are evaluated, or that
        fail there: other rows have no effect.
        """
        out, fails = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        for step in self._steps:
            if not isinstance(step, _FilterOp) or not step.steady:
                break
            env = self._env(rows, list(range(len(rows.columns))), clock)
            result = step.condition(env)
            out &= result.values if result.null is None else result.values & ~result.null
            if env.failed_rows is not None:
                fails |= env.failed_rows
        return out | fails

    def _env(self, rows: Rows, attrs: list[int], clock: Clock) -> Env:
        resolve = frame_of(rows, {a: p for p, a in enumerate(attrs)}).resolve
        now = partial(clock.at, rows.order_key)
        find = self.services.in_table
        tables = None if find is None else partial(find, order_keys=rows.order_key, rank=self.rank)
        return Env(len(rows), self.services.strings, rows.ts, now, resolve, tables=tables)

    def _filter(
        self, step: _FilterOp, rows: Rows, attrs: list[int], env: Env, keep: list[int]
    ) -> tuple[Rows, list[int]]:
        if step.aggregates:
            group, groups = rows.instances(), 1 if rows.instance is None else self.services.instances
            env.aggs = {
                node: aggregator.run(tuple(a(env) for a in args), rows.kind, group, groups)
                for node, aggregator, args in step.aggregates
            }
        result = step.condition(env)
        mask: Mask = result.values if result.null is None else result.values & ~result.null
        if env.failed_rows is not None:
            mask = mask & ~env.failed_rows
            self._report_failed(rows, attrs, env)
        rows, attrs = self._thin(rows, attrs, keep)
        return rows.where(mask), attrs

    def _function(
        self, step: _FunctionOp, rows: Rows, attrs: list[int], env: Env, width: int
    ) -> tuple[Rows, list[int]]:
        args = [a(env) for a in step.args]
        index, new_columns, lines = STREAM_FUNCTIONS[step.key](rows, args, self.services.strings, env.fail)
        self.services.logs.extend(lines)
        if env.failed_rows is not None:
            self._report_failed(rows, attrs, env)
            at = np.arange(len(rows)) if index is None else index
            keep = np.flatnonzero(~env.failed_rows[at])
            index, new_columns = at[keep], [c.take(keep) for c in new_columns]
        if index is not None:
            rows = rows.take(index)
        if "tokenize" in step.key:  # a tokenizer hands on each of its events alone
            rows = one_by_one(rows)
        return rows.with_columns([*rows.columns, *new_columns]), [*attrs, *range(width, width + len(new_columns))]

    def _report_failed(self, rows: Rows, attrs: list[int], env: Env) -> None:
        """Reports the failing rows with the attributes of the stream: all of them where the query keeps all."""
        columns = [c for c, a in zip(rows.columns, attrs, strict=True) if a < self._widths[0]]
        only = None if rows.kind is None else rows.kind == CURRENT
        self.services.route_failed(self.query, self.source, env, columns, rows.order_key, only)

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone can emit a row that is wanted; None if no time does. Rows
        that only leave the window, and are not wanted, leave before the next event as well.
        """
        due = [r.next_due() for r in self._reorders]
        if self.window is not None and not self._leaves_unseen:
            due.append(self.window.next_due())
        return earliest(due)

    def forget(self, instances: Array) -> None:
        """Drop the state of the window and the filters for these partition instances."""
        if self.window is not None:
            self.window.forget(instances)
        for aggregator in self._running:
            aggregator.forget(instances, instances)
        for processor in self._reorders:
            if not isinstance(processor, ReorderStep):
                processor.forget(instances)

    @property
    def forgets_all(self) -> bool:
        """True if nothing is held for an instance after `forget`."""
        return not any(isinstance(r, ReorderStep) for r in self._reorders)

    def pick_columns(self, rows: Rows) -> Rows:
        """Rows of a named window, whose last column is the serial number, with the columns of `places` and that."""
        width = len(self._schema)
        tail = [_SERIAL] if len(rows.columns) == width + 1 else [_RANK, _SERIAL]
        return self._thin(rows, [*range(width), *tail], self._keep[-1])[0]

    @staticmethod
    def _thin(rows: Rows, attrs: list[int], keep: list[int]) -> tuple[Rows, list[int]]:
        keep = [*keep, *(h for h in attrs[-2:] if h >= GROUP)]
        if attrs == keep:
            return rows, attrs
        place = {a: p for p, a in enumerate(attrs)}
        return rows.pick([place[a] for a in keep]), keep

    @property
    def bytes(self) -> int:
        """Bytes of the window, and of the events that stream processors hold."""
        waiting = sum(r.bytes for r in self._reorders)
        return waiting if self.window is None else waiting + self.window.bytes

    @property
    def rows(self) -> int | None:
        """Events that the window and stream processors hold; None if there are none of them."""
        counts = [r.held for r in self._reorders]
        if self.window is not None and (count := rows_held(self.window)) is not None:
            counts.append(count)
        return sum(counts) if counts else None


def _replace_places(e: n.Expr, places: Mapping[int, int]) -> n.Expr:
    """`e` with references to column positions instead of attributes."""
    if isinstance(e, n.Ref):
        return replace(e, attr=places[e.attr])
    parts: dict[str, Any] = {}
    for f in fields(e):
        value = getattr(e, f.name)
        if isinstance(value, n.Expr):
            parts[f.name] = _replace_places(value, places)
        elif isinstance(value, tuple) and any(isinstance(x, n.Expr) for x in value):
            parts[f.name] = tuple(_replace_places(x, places) for x in value)
    return replace(e, **parts)


def _refuse(services: Services, query: str, stream: str) -> Callable[[Rows, Mask, str], None]:
    """`WindowSetup.refuse` for rows of a query's stream."""

    def refuse(rows: Rows, mask: Mask, why: str) -> None:
        env = Env(len(rows), services.strings, rows.ts, rows.ts, frame_of(rows).resolve)
        env.fail(mask, why)
        services.route_failed(query, stream, env, list(rows.columns))

    return refuse


def make_window(
    step: n.WindowStep,
    types: tuple[Any, ...],
    scheduler: int,
    needs: WindowNeeds,
    attrs: Mapping[int, str],
    *,
    services: Services,
    query: str,
    stream: str,
) -> Window:
    """The window of a step, over the attributes `attrs`: names by number, in the order of the columns.

    References among its arguments and in its condition are made to name column positions instead of attributes.
    """
    places = {a: i for i, a in enumerate(attrs)}
    args = tuple(_replace_places(a, places) for a in step.args)
    condition = None if step.condition is None else _replace_places(step.condition, places)

    if step.function not in WINDOWS:
        raise NotImplementedError(
            f"window '{step.function}' is declared and has no factory in engine/windows/__init__.py"
        )
    refuse, selected_columns = _refuse(services, query, stream), tuple[int | None, ...](range(len(attrs)))
    if needs.selected_attrs is not None:
        # An attribute that a function behind the window adds is none of the window's.
        selected_columns = tuple(None if a is None else places.get(a) for a in needs.selected_attrs)
    watching = services.watching if services.watches(query) else None
    if services.keeps_all(query):
        needs = replace(needs, ops_only=False, resets_per_chunk=False)
    if watching is not None:  # its number is a column behind the attributes
        types = (*types[: len(attrs)], Type.LONG, *types[len(attrs) :])
    window = WINDOWS[step.function](
        WindowSetup(
            args, types, scheduler, needs.wants_expired, needs.findable, condition,
            tuple(attrs.values()), selected_columns,
            services.strings, services.context, services.is_partitioned, needs.ops_only, needs.resets_per_chunk, refuse,
        )
    )  # fmt: skip
    if watching is None:
        return window
    from ..windows.watched_window import WatchedWindow  # for traces alone

    watching.windows.append(WatchedWindow(window, list(attrs.values()), stream, step))
    return cast(Window, watching.windows[-1])
