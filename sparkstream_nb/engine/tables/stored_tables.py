"""Tables in a database that nodes share (`@store`): read on demand within a micro-batch, written at its end.

A node's `StoredTable` holds the rows that its conditions have asked for since the batch began, as the node has changed
them meanwhile. So a row is fetched once in a batch, and all rules of `TableStore` hold over it; only which rows to
fetch is derived from the conditions. At the end of the batch, `changes` are the writes for the database. The caller
that provides the `RowSource` ensures that no other node changes the table meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import SparkStreamError
from ...plan import nodes
from ...plan.nodes import EventRef, Expr, Ref
from ...plan.query_parts import conjuncts
from ...plan.table_requests import Comparison, RowSource, TableChanges, Term, Terms, Values
from ...types import Type
from ..columnar.column_data import Array, Column
from ..columnar.error_routing import ErrorObject
from ..expressions import Env, Evaluator, compile_expr
from ..state.services import Services
from .table_conditions import TableCondition, names_slot
from .table_store import TableStore


class StoredTable(TableStore):
    """One stored table as one node sees it during a micro-batch."""

    def __init__(self, definition: nodes.TableDef, services: Services) -> None:
        super().__init__(definition, services)
        self.source: RowSource | None = None
        self.forget()

    def forget(self) -> None:
        """Holds no rows any more: the database has them."""
        self._clear()
        self._fetched_terms: set[Terms] = set()
        self._all = False
        # As the database had them: by key, None for a key that it did not have; without a primary key, all rows.
        self._were: dict[Values, Values | None] = {}
        self._bag: Counter[Values] | None = None

    @property
    def rows(self) -> int | None:
        """None: the database has them."""
        return None

    @property
    def _key(self) -> tuple[int, ...]:
        return self.definition.primary_key

    @property
    def _database(self) -> RowSource:
        if self.source is None:
            raise SparkStreamError(f"Table '{self.id}' is in a database: a deployment alone can open it.")
        return self.source

    def _fetch(self, terms: Sequence[Terms] | None) -> None:
        """Fetches rows, and puts those into the log that are not there yet."""
        rows = self._database.fetch(self.id, terms)
        if self._key:
            fresh = {self._key_of(r): r for r in rows}
            rows = [r for k, r in fresh.items() if k not in self._were]
            self._were.update((k, r) for k, r in fresh.items() if k not in self._were)
        elif self._bag is None:
            self._bag = Counter(rows)
        if rows:
            values = zip(*rows, strict=True)
            columns = [Column.of(t, list(v), self.services.strings) for t, v in zip(self.types, values, strict=True)]
            super().insert(columns, np.full(len(rows), -1, np.int64))

    def _key_of(self, row: Values) -> Values:
        return tuple(row[a] for a in self._key)

    def ask(self, terms: Sequence[Terms] | None) -> None:
        """Sees to it that all rows which fulfil any of `terms` are held; for None all rows there are."""
        if self._all:
            return
        if terms is None or not self._key:  # rows without a key are told apart where all are there
            self._fetch(None)
            self._all = True
            return
        terms = [w for w in dict.fromkeys(terms) if w not in self._fetched_terms]
        if terms:
            self._fetch(terms)
            self._fetched_terms.update(terms)

    def look(self, condition: TableCondition, env: Env, n: int) -> None:
        """Sees to it that what `condition` finds for the rows of `env` is held."""
        if self._all:
            return
        terms = condition.pushed_comparisons
        if not terms:
            self.ask(None)
            return
        columns = [e(env).to_list(self.services.strings) for _, _, e in terms]
        rows = [v for v in zip(*columns, strict=True) if None not in v] if n else []
        self.ask([tuple(Term(a, op, v) for (a, op, _), v in zip(terms, row, strict=True)) for row in rows])

    def look_for(self, on: Expr | None, now: int) -> None:
        """`look`, for the `on` of an on-demand query, whose rows are in slot 0."""
        at = np.array([now], np.int64)
        env = Env(1, self.services.strings, at, at, _empty_column, tables=self.services.in_table)
        self.look(TableCondition(on, self, 0), env, 1)

    def pushed_conditions(self, on: Expr | None, slot: int) -> list[tuple[int, Comparison, Evaluator]]:
        """The parts of a condition that a database can check: (attribute, comparison, value)."""
        comparisons = (_comparison(e, slot, self.types) for e in conjuncts(on))
        return [(a, op, compile_expr(e, self.services.context)) for a, op, e in filter(None, comparisons)]

    # ------------------------------------------------------------------------------------------------------ changing

    def insert(self, columns: Sequence[Column], ts: Array) -> None:
        """Add rows. One whose primary key exists is an error, as in a database; so is one that it cannot hold."""
        rows = self._rows_of(columns)
        keys = [self._key_of(r) for r in rows]
        is_taken = self._taken(columns, keys) if self._key else [False] * len(rows)
        reasons = [self._unfit(row, key) for row, key in zip(rows, keys, strict=True)]
        seen: set[Values] = set()
        for i, key in enumerate(keys):
            if self._key and reasons[i] is None and (is_taken[i] or key in seen):
                reasons[i] = f"table {self.id} has a row with this primary key already"
            elif reasons[i] is None:
                seen.add(key)
        keep = self._without_refused(columns, ts, reasons)
        super().insert([c.take(keep) for c in columns], ts[keep])

    def _taken(self, columns: Sequence[Column], keys: Sequence[Values]) -> list[bool]:
        """Mask of the rows whose primary key the table already has."""
        self._ask_for(keys)
        assert self.primary is not None
        ids = self.primary.ids(columns)
        is_taken: list[bool] = (self.primary.room()[ids] >= 0).tolist()
        return is_taken

    def _ask_for(self, keys: Sequence[Values]) -> None:
        """Sees to it that the rows under some keys are held."""
        full_keys = [k for k in keys if None not in k]
        self.ask([tuple(Term(a, "==", v) for a, v in zip(self._key, k, strict=True)) for k in full_keys])
        for k in full_keys:
            self._were.setdefault(k, None)

    def replace(self, positions: Array, changes: Mapping[int, Column], ts: Array | None = None) -> None:
        """`replace` of the table in memory. Rows that the database could not hold stay unchanged, and are errors."""
        columns = self.log.columns(positions)
        new = [changes.get(a, c) for a, c in enumerate(columns)]
        rows = self._rows_of(new)
        keys = [self._key_of(r) for r in rows]
        if any(a in changes for a in self._key):
            self._ask_for(keys)
        reasons = [self._unfit(row, key) for row, key in zip(rows, keys, strict=True)]
        keep = self._without_refused(new, self.log.ts[positions], reasons)
        at = None if ts is None else np.broadcast_to(ts, len(rows))[keep]
        super().replace(positions[keep], {a: c.take(keep) for a, c in changes.items()}, at)

    def _without_refused(self, columns: Sequence[Column], ts: Array, reasons: Sequence[str | None]) -> Array:
        """The numbers of the rows that no reason refuses; the others are errors."""
        refused_rows = np.array([i for i, r in enumerate(reasons) if r is not None], np.int64)
        if len(refused_rows):
            errors = [ErrorObject(r) for r in reasons if r is not None]
            self.services.keep(
                f"table {self.id}", self.id, [c.take(refused_rows) for c in columns], ts[refused_rows], errors
            )
        return np.setdiff1d(np.arange(len(reasons)), refused_rows)

    def _unfit(self, row: Values, key: Values) -> str | None:
        if None in key:
            return f"the primary key of table {self.id} is null"
        return self._database.unfit(self.id, row)

    def _rows_of(self, columns: Sequence[Column]) -> list[Values]:
        return list(zip(*(c.to_list(self.services.strings) for c in columns), strict=True))

    def _held(self) -> list[Values]:
        """All rows that are held, in the order of the log."""
        return self._rows_of(self.log.columns(np.flatnonzero(self.alive[: self.log.end])))

    def changes(self) -> TableChanges | None:
        """Differences to the database's rows; None if there are none."""
        rows = self._held()
        if self._key:
            now = {self._key_of(r): r for r in rows}
            removals = [k for k, was in self._were.items() if was is not None and k not in now]
            new = [r for k, r in now.items() if self._were.get(k) != r]
        else:
            before, after = self._bag or Counter(), Counter(rows)
            removals = [r for r, n in before.items() if after[r] < n]
            left = dict.fromkeys(removals, 0)
            new = [r for r, n in after.items() for _ in range(n - left.get(r, before[r]))]
        return TableChanges(self.id, removals, new) if removals or new else None

    # --------------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        """Empty: the rows live in the database."""
        return {}

    def save_state(self) -> dict[str, Any]:
        return self.state()

    def load(self, state: dict[str, Any]) -> None:
        """Start empty."""
        self.forget()


_MIRRORED: dict[str, Comparison] = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE = (Type.INT, Type.LONG)
_REAL = (Type.FLOAT, Type.DOUBLE)


def _comparison(e: Expr, slot: int, types: Sequence[Type]) -> tuple[int, Comparison, Expr] | None:
    """(attribute, comparison, value) of a condition that a database answers as Siddhi does, or with more rows."""
    if not isinstance(e, nodes.Compare) or e.op not in _MIRRORED:
        return None
    for mine, other, op in ((e.left, e.right, e.op), (e.right, e.left, _MIRRORED[e.op])):
        if isinstance(mine, Ref) and mine.slot == slot and not names_slot(other, slot):
            attr_type = types[mine.attr]
            if op == "==":
                same = attr_type is other.type and attr_type in (Type.STRING, Type.BOOL)
                fits = same or (attr_type in _WHOLE and other.type in _WHOLE)
            else:
                fits = (attr_type in _WHOLE and other.type in _WHOLE) or (
                    attr_type in _REAL and other.type in (*_REAL, Type.INT)
                )
            return (mine.attr, _MIRRORED[_MIRRORED[op]], other) if fits else None
    return None


def _empty_column(ref: Ref | EventRef) -> Column:
    raise AssertionError(f"a value that is compared with a table's attribute names {ref}")
