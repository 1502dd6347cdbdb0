"""Conditions on a table: the choice of an index, and the evaluation of the rest over candidate columns."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...plan import nodes
from ...plan.nodes import TABLE, EventRef, Expr, Ref
from ...plan.query_parts import conjuncts
from ...types import Type
from ..columnar.column_data import DTYPES, Array, Column
from ..columnar.key_ids import Keys
from ..expressions import Env, Evaluator, compile_expr
from .row_lifetimes import RowLifetimes, Visible
from .table_indexes import HashIndex

if TYPE_CHECKING:
    from .table_store import TableStore

_BLOCK = 1 << 20
"""Candidate pairs evaluated at a time."""

_REAL = (Type.FLOAT, Type.DOUBLE)
"""Types with a value that does not equal itself, and one that equals another."""


class TableCondition:
    """An `on` condition against one table: which index answers it, and the check of the candidates."""

    def __init__(self, on: Expr | None, table: TableStore, slot: int = TABLE) -> None:
        self.table, self.slot = table, slot
        self.pushed_comparisons = table.pushed_conditions(on, slot)
        context = table.services.context
        equal = dict(_equal_attrs(on, slot))
        usable = (n for n, i in enumerate(table.indexes) if all(a in equal for a in i.attrs))
        self._index = next(usable, None)
        self.by_key = table.primary is not None and _by_key(on, slot, table.primary.attrs)
        # Under an index NaN is found, which a comparison never is.
        of_reals = not self.by_key and self._tells_zeros and self.index is not None and all(
            equal[a].type is table.types[a] for a in self.index.attrs
        ) and _by_key(on, slot, self.index.attrs)  # fmt: skip
        if self.by_key or of_reals:  # the index says it all, but for what does not name the table
            others = [e for e in conjuncts(on) if not names_slot(e, slot)]
            on = functools.reduce(lambda a, b: nodes.Logic(Type.BOOL, "and", a, b), others) if others else None
        self.on = None if on is None else compile_expr(on, context)
        self.values: list[Evaluator] = (
            [] if self.index is None else [compile_expr(equal[a], context) for a in self.index.attrs]
        )
        key = () if table.key_index is None else table.key_index.attrs
        key = () if any(a not in equal for a in key) else key
        self._key_values = [compile_expr(equal[a], context) for a in key]
        # Equalities between values of one type narrow a scan down.
        narrow = {a: e for a, e in equal.items() if e.type is table.types[a]}
        self._narrow = [(a, compile_expr(e, context)) for a, e in narrow.items()]
        self._narrow_keys = Keys([table.types[a] for a in narrow], table.services.strings, null_is_text=False)
        parts = list(conjuncts(on))
        self._only_equal = (
            bool(narrow) and len(parts) == len(narrow) and all(_equal_attrs(e, slot) for e in parts)
            and not any(table.types[a] in _REAL for a in narrow)
        )  # fmt: skip
        """True if the condition is nothing but those equalities, and holds wherever their keys are the same."""

    @property
    def index(self) -> HashIndex | None:
        """The index to use. Fetched from the table each time, because a restore creates new ones."""
        return None if self._index is None else self.table.indexes[self._index]

    def find(self, env: Env, n: int) -> tuple[Array, Array]:
        """(row of `env`, position) of all matches: by row, then in the table's order."""
        self.table.look(self, env, n)
        if self.index is None:
            order = self.table.order()
            at, index = self.scan(env, n, order)
            return at, order[index]
        keys, dead = self._keys(env, n, self.index, self.values)
        at, place = self.index.find(keys)
        if dead is not None:
            keep = np.flatnonzero(~dead[at])
            at, place = at[keep], place[keep]
        if self.on is None or len(at) == 0:
            return at, place
        keep = np.concatenate(
            [a + self._holds(env, at[a : a + _BLOCK], place[a : a + _BLOCK]) for a in range(0, len(at), _BLOCK)]
        )
        return at[keep], place[keep]

    def scan(self, env: Env, n: int, order: Array, visible: Visible | None = None) -> tuple[Array, Array]:
        """(row of `env`, number in `order`) of all matches among the rows at positions `order` that the row sees."""
        none = np.empty(0, np.int64)
        ats, indexes = [none], [none]
        if n and len(order):
            for at, index in self._pairs(env, n, order):
                if visible is not None:
                    keep = np.flatnonzero(visible(at, index))
                    at, index = at[keep], index[keep]
                if self.on is not None and len(at):
                    keep = self._holds(env, at, order[index])
                    at, index = at[keep], index[keep]
                ats.append(at)
                indexes.append(index)
        return np.concatenate(ats), np.concatenate(indexes)

    def _pairs(self, env: Env, n: int, order: Array) -> Iterator[tuple[Array, Array]]:
        """(row, number in `order`) of candidates, in blocks: by row, then in this order."""
        m = len(order)
        if not self._narrow or (n == 1 and not self._tells_zeros):
            rows = max(1, _BLOCK // m)
            for a in range(0, n, rows):
                b = min(a + rows, n)
                yield np.repeat(np.arange(a, b), m), np.tile(np.arange(m), b - a)
            return
        lookup_keys = self._narrow_keys.ids(self._lookup_keys(env))
        row_keys = self._narrow_keys.ids(self._held(order))
        by = np.argsort(row_keys, kind="stable")
        low, high = (np.searchsorted(row_keys[by], lookup_keys, side) for side in ("left", "right"))
        until = np.cumsum(high - low)
        a = 0
        while a < n:
            pairs_before = int(until[a - 1]) if a else 0
            b = max(a + 1, int(np.searchsorted(until, pairs_before + _BLOCK, "right")))
            counts = (high - low)[a:b]
            at = np.repeat(np.arange(a, b), counts)
            yield at, by[np.arange(len(at)) - np.repeat(until[a:b] - counts - pairs_before, counts) + low[at]]
            a = b

    def find_as_of(self, env: Env, n: int, order_keys: Array, rank: int) -> tuple[Array, Array]:
        """`find`, in a batch with buffered writes: each row sees the table as of its own order key."""
        table = self.table
        if isinstance(table.write_buffer, RowLifetimes):
            self.refuse_null(env)
            history = table.history()
            at, index = self.scan(env, n, history.order, history.seen_by(order_keys, rank))
            return at, history.order[index]
        place = self._under_key(env, n, order_keys, rank)
        at = np.flatnonzero(place >= 0)
        place = place if len(at) == n else place[at]
        if self.on is None or len(at) == 0:
            return at, place
        keep = self._holds(env, at, place)
        return at[keep], place[keep]

    def _under_key(self, env: Env, n: int, order_keys: Array, rank: int) -> Array:
        """Position found by key for each row of `env` at its own moment; -1 for none."""
        table = self.table
        assert table.key_index is not None
        if self.index is not table.key_index:
            self.refuse_null(env)
        keys, dead = self._keys(env, n, table.key_index, self._key_values)
        place = table.as_of(order_keys, rank, keys)
        if dead is not None:
            place[dead] = -1
        return place

    def any(self, env: Env, order_keys: Array | None, rank: int) -> Array:
        """bool[n]: whether any row of the table matches; as of the rows' order keys if writes are buffered."""
        write_buffer, table = self.table.write_buffer, self.table
        out = np.zeros(env.n, np.bool_)
        table.look(self, env, env.n)
        if write_buffer is None:
            if self._only_equal and self.index is None:
                row_keys = self._known(self._held(np.flatnonzero(table.alive[: table.log.end])))
                lookup_keys = self._known(self._lookup_keys(env))
                return np.isin(lookup_keys, row_keys[row_keys >= 0])
            out[self.find(env, env.n)[0]] = True
            return out
        assert order_keys is not None
        if isinstance(write_buffer, RowLifetimes) and self._only_equal:
            self.refuse_null(env)
            history = table.history()
            row_keys = self._known(self._held(history.order))
            lookup_keys = self._known(self._lookup_keys(env))
            return history.sees(lookup_keys, order_keys, rank, row_keys, self._narrow_keys.size)
        if not isinstance(write_buffer, RowLifetimes) and self.on is None:
            has_row: Array = self._under_key(env, env.n, order_keys, rank) >= 0
            return has_row
        out[self.find_as_of(env, env.n, order_keys, rank)[0]] = True
        return out

    def _held(self, positions: Array) -> list[Column]:
        """The attributes that a scan is narrowed down by, at positions."""
        return [self._one_zero(self.table.log.column(a, positions), a) for a, _ in self._narrow]

    def _lookup_keys(self, env: Env) -> list[Column]:
        """Values that those attributes must equal, by row of `env`."""
        return [self._one_zero(e(env), a) for a, e in self._narrow]

    @property
    def _tells_zeros(self) -> bool:
        """True if 0.0 and -0.0 are two keys of the index, which the condition itself would find equal."""
        return self.index is not None and any(self.table.types[a] in _REAL for a in self.index.attrs)

    def _one_zero(self, column: Column, attr: int) -> Column:
        """The column such that values that are equal have one key: -0.0 as 0.0, but not where Siddhi asks an index, in
        which they are two."""
        if column.type not in _REAL or (self.index is not None and attr in self.index.attrs):
            return column
        return Column(column.type, column.values + 0.0, column.null)

    def _known(self, columns: Sequence[Column]) -> Array:
        """Ids of the values of those attributes; -1 where one is null, which equals nothing."""
        ids: Array = self._narrow_keys.ids(columns)
        nulls = [c.null for c in columns if c.null is not None]
        return np.where(functools.reduce(np.logical_or, nulls), -1, ids) if nulls else ids

    def _keys(
        self, env: Env, n: int, index: HashIndex, values: Sequence[Evaluator]
    ) -> tuple[Array, Array | None]:
        """Key ids that the rows of `env` look up in an index, and which rows can match nothing (None: all can)."""
        columns, dead = [], None
        for e, a in zip(values, index.attrs, strict=True):
            column, exact = _fit(e(env), self.table.types[a])
            columns.append(column)
            if exact is not None:
                # In a map of Siddhi's null is a key like any other, which a comparison never holds for.
                never = ~exact & ~column.nulls() if self.by_key else ~exact
                dead = never if dead is None else dead | never
            self._refuse(env, index, column)
        return index.keys.ids(columns), dead

    def refuse_null(self, env: Env) -> None:
        """Fails the rows that would look up null in the index, if it is not read otherwise."""
        if self.index is not None and self.index.is_sorted:
            for e in self.values:
                self._refuse(env, self.index, e(env))

    def _refuse(self, env: Env, index: HashIndex, key_column: Column) -> None:
        """A sorted map of Siddhi's cannot be asked for null."""
        if index.is_sorted and key_column.null is not None:
            env.fail(key_column.null, f"null cannot be looked up in an index of table {self.table.id}")

    def _holds(self, env: Env, at: Array, place: Array) -> Array:
        table, slot = self.table, self.slot

        def resolve(ref: Ref | EventRef) -> Column:
            if ref.slot == slot:
                if isinstance(ref, EventRef):
                    return Column(Type.BOOL, np.ones(len(at), np.bool_))
                return table.log.column(ref.attr, place)
            return env.resolve(ref).take(at)

        def times(ref: EventRef) -> Column:
            if ref.slot == slot:
                return Column(Type.LONG, table.log.ts[place])
            assert env.event_time is not None, "the other side of a join has timestamps"
            return env.event_time(ref).take(at)

        sub = Env(
            len(at), env.strings, env.ts[at], env.clock()[at], resolve, tables=env.tables, event_time=times
        )
        assert self.on is not None
        result = self.on(sub)
        mask = result.values if result.null is None else result.values & ~result.null
        if sub.failed_rows is not None:
            bad = np.zeros(env.n, np.bool_)
            bad[at[sub.failed_rows]] = True
            env.fail(bad, sub.reason(int(np.flatnonzero(sub.failed_rows)[0])) or "the condition failed")
            mask = mask & ~sub.failed_rows
        return np.flatnonzero(mask)


def names_slot(expr: Expr, slot: int) -> bool:
    """True if the expression names what `slot` holds."""
    return any(isinstance(e, Ref | EventRef) and e.slot == slot for e in nodes.walk(expr))


def _by_key(on: Expr | None, slot: int, key: tuple[int, ...]) -> bool:
    """True if Siddhi answers the condition by the primary key alone, without a look at the row it finds.

    That is an equality for each attribute of the key, and conditions that do not name the table before or after it
    (`CollectionExpressionParser`).
    """
    if on is None:
        return False
    equal = [_equal_attrs(e, slot) for e in conjuncts(on)]
    if all(equal) and len(equal) == len(key):
        return {a for ((a, _),) in equal} == set(key)
    if isinstance(on, nodes.Logic) and on.op == "and":
        for one, other in ((on.left, on.right), (on.right, on.left)):
            if not names_slot(one, slot):
                return _by_key(other, slot, key)
    return False


def _equal_attrs(on: Expr | None, slot: int) -> list[tuple[int, Expr]]:
    """(attribute, value) of the equalities between an attribute of `slot` and an expression that does not depend on it.
    """
    if isinstance(on, nodes.Logic) and on.op == "and":
        return _equal_attrs(on.left, slot) + _equal_attrs(on.right, slot)
    if isinstance(on, nodes.Compare) and on.op == "==":
        for mine, other in ((on.left, on.right), (on.right, on.left)):
            is_comparable = Type.OBJECT not in (mine.type, other.type) and not names_slot(other, slot)
            if isinstance(mine, Ref) and mine.slot == slot and is_comparable:
                return [(mine.attr, other)]
    return []


def _fit(column: Column, type: Type) -> tuple[Column, Array | None]:
    """A probe in the type of the attribute it is compared with, and which rows can match at all (numbers by value);
    None: all."""
    if column.type is type:
        return column, None if column.null is None else ~column.null
    ok = ~column.nulls()
    with np.errstate(all="ignore"):
        values = column.values.astype(DTYPES[type])
        ok &= values.astype(np.float64) == column.values.astype(np.float64)
    return Column(type, values, column.null), ok
