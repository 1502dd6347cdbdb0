"""Tables in memory: columns with hash indexes, read and changed by queries and on-demand queries.

Rules of Siddhi's `InMemoryTable` and its event holders. Conditions see the table's row (slot TABLE) and the row of the
query. Equalities on the primary key or an index are looked up; the rest is evaluated over the candidates as columns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...plan import nodes
from ...plan.nodes import TABLE, EventRef, Expr, Ref
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import DTYPES, Array, Column
from ..columnar.eventlog import EventLog
from ..columnar.frame import Resolver, frame_of
from ..columnar.javamap import hash_code, string_hash, walk_order
from ..columnar.rows import Rows
from ..expressions import Env, Evaluator, compile_expr
from ..expressions.java_texts import text as to_text
from ..state.services import Services
from .row_lifetimes import RowLifetimes
from .table_conditions import TableCondition
from .table_indexes import Assumed, HashIndex, Primary, Secondary
from .table_log import (
    NOT_BUFFERED,
    Buffering,
    TableLog,
    Writes,
    inserted_places,
    key_equalities,
    set_values,
    step,
    write_kind,
)
from .table_sets import SetInputs, SetPrograms, reads_table
from .write_order import DELETE, INSERT, KEEP, MADE, SET, UPDATE, UPSERT

_LOOKS = 1000
"""Number of rows that a scan reads in the time in which one event goes alone through an app."""


class TableStore:
    """One table of one node."""

    def __init__(self, definition: nodes.TableDef, services: Services, buffering: Buffering = NOT_BUFFERED) -> None:
        self.definition, self.services, self.buffering = definition, services, buffering
        self.id = definition.source.id
        self.types = definition.source.schema.types
        self.names = definition.source.schema.names
        self.programs = SetPrograms(self.types, services)
        self._clear()

    write_buffer: TableLog | RowLifetimes | None = None
    """The writes of the batch that is going through operator by operator; None at all other times."""

    def _clear(self) -> None:
        self.log = EventLog(self.types)
        self.alive = np.zeros(0, np.bool_)
        self.size = 0
        self.most = 0
        d = self.definition
        numeric = len(d.primary_key) == 1 and self.types[d.primary_key[0]].numeric
        self.primary = Primary(d.primary_key, self.types, self.services, numeric) if d.primary_key else None
        self.indexes: list[HashIndex] = [self.primary] if self.primary else []
        self.indexes += [Secondary((a,), self.types, self.services, True) for a in d.indexes]
        self.key_index = self.primary
        self._all_indexes = list(self.indexes)
        self._order: Array | None = None
        """Cached `order`, until rows come, go or change their key."""
        if self.primary is None and self.buffering.key:
            self.key_index = Assumed(self.buffering.key, self.types, self.services, False)
            self._all_indexes.append(self.key_index)

    # ------------------------------------------------------------------------------------------------------ reading

    def order(self) -> Array:
        """Positions of all rows in Siddhi's iteration order.

        Without a primary key that is the order of insertion; a numeric key is a sorted map, any other a hash map
        of the key's text (`IndexEventHolder`).
        """
        if self._order is None:
            self._order = self._walk()
        return self._order

    def _walk(self) -> Array:
        live = np.flatnonzero(self.alive[: self.log.end])
        if self.primary is None or len(live) < 2:
            return live
        columns = [self.log.column(a, live) for a in self.primary.attrs]
        if len(columns) == 1 and columns[0].type.numeric:
            out: Array = live[np.argsort(columns[0].values, kind="stable")]
            return out
        lists = [c.to_list(self.services.strings) for c in columns]
        if len(lists) == 1:
            hashes = [hash_code(columns[0].type, v) for v in lists[0]]
        else:
            types = [c.type for c in columns]
            keys = (zip(types, key, strict=True) for key in zip(*lists, strict=True))
            texts = ["".join("null:-:" if v is None else f"{to_text(t, v)}:-:" for t, v in key) for key in keys]
            hashes = [string_hash(text) for text in texts]
        return live[walk_order(hashes, self.most)]

    def columns(self, positions: Array) -> list[Column]:
        return self.log.columns(positions)

    def pushed_conditions(self, on: Expr | None, slot: int) -> list[tuple[int, Any, Evaluator]]:
        """The parts of a condition by which rows are fetched from elsewhere: (attribute, comparison, value)."""
        return []

    def look(self, condition: TableCondition, env: Env, n: int) -> None:
        """Called before `condition` is asked for the rows of `env`."""

    def look_for(self, on: Expr | None, now: int) -> None:
        """Called before an on-demand query with this condition reads the table."""

    # ----------------------------------------------------------------------------------------------------- changing

    def can_buffer(self, steps: int) -> bool:
        """True if writes can be buffered in a batch of `steps` steps. An assumed key must not have occurred twice; and
        if rows are found by a scan, only a larger batch repays the cost of an index.
        """
        if isinstance(self.key_index, Assumed) and self.key_index.doubtful:
            return False
        return not (self.buffering.lifetimes and self.indexes and _LOOKS * steps < self.size)

    def begin(self) -> None:
        """Starts buffering writes."""
        lifetimes = self.buffering.lifetimes
        self.write_buffer = RowLifetimes() if lifetimes else TableLog(len(self.types), self.log.end, self.programs)

    def mark(self) -> tuple[int, Any]:
        """Mark for `rewind`."""
        assert self.write_buffer is not None
        return self.log.end, self.write_buffer.mark()

    def rewind(self, mark: tuple[int, Any]) -> None:
        """Undoes all that was buffered since the mark."""
        assert self.write_buffer is not None
        self.log.end = mark[0]
        self.write_buffer.rewind(mark[1])

    def buffer_writes(
        self, writer: TableWriter, rows: Rows, keys: Array, new_columns: Sequence[Column] | None,
        changes: Mapping[int, tuple[int, Column]] | None, set_inputs: SetInputs | None,
    ) -> None:  # fmt: skip
        """Notes rows to be written (`table_log`): `new_columns` where the key is free, else `changes`, with their
        actions (`SET` ...), and the values that programs compute (`set_inputs`). Their values lie in the log from now
        on.
        """
        assert isinstance(self.write_buffer, TableLog)
        assert writer.kind is not None
        n, ts = len(rows), rows.ts
        mask = np.full(len(self.types), SET, np.int8)
        at = -1 if new_columns is None else self._unborn(new_columns, ts)
        changed_at = at
        is_whole = new_columns is not None and changes is not None and all(
            a in changes and changes[a][0] == SET and changes[a][1] is c for a, c in enumerate(new_columns)
        )
        if changes is not None and not is_whole:
            mask = np.array([changes[a][0] if a in changes else KEEP for a in range(len(self.types))], np.int8)
            values = [changes[a][1] if a in changes else _unknown(t, n) for a, t in enumerate(self.types)]
            changed_at = self._unborn(values, ts)
        keys = keys.astype(np.int64)
        self.write_buffer.add_writes(
            Writes(writer.kind, writer.rank, rows.order_key, keys, at, changed_at, mask, set_inputs)
        )

    def _unborn(self, columns: Sequence[Column], ts: Array) -> int:
        """Puts rows into the log that are not in the table; answers the position of the first."""
        at = self.log.append(Rows(columns, ts, ts, ts))
        self.alive = grown(self.alive, self.log.capacity, False)
        self.alive[at : at + len(ts)] = False
        return at

    def _close_log(self) -> TableLog:
        """The buffered writes in order; from now on none is added."""
        write_log = self.write_buffer
        assert isinstance(write_log, TableLog)
        assert self.key_index is not None
        if not write_log.is_closed:
            write_log.close(self.key_index.room(), self.log)
        return write_log

    def as_of(self, order_keys: Array, rank: int, keys: Array) -> Array:
        """Positions under `keys` at the moments `order_keys` of a reader of `rank`, -1 for none (`TableLog.as_of`)."""
        assert self.key_index is not None
        write_log = self._close_log()
        return write_log.as_of(order_keys, rank, keys, self.key_index.room())

    def settle(self) -> None:
        """Applies the buffered writes."""
        if isinstance(self.write_buffer, RowLifetimes):
            self._take_over(self.history())
            return
        write_log = self._close_log()
        self.write_buffer = None
        assert self.key_index is not None
        if write_log.refused_count:
            self._forget_writes(write_log.refused_count)
        before = self.key_index.room()
        after = np.full(len(before), -1, np.int64)
        after[: len(write_log.by_key)] = write_log.by_key
        at = np.flatnonzero(before != after)
        self._carry_out(write_log, before[at], after[at])
        if self.log.end > 2048 and self.size * 2 < self.log.end:
            self._compact()

    def note_insert(self, rank: int, order_key: Array, columns: Sequence[Column], ts: Array) -> None:
        """Buffers inserts into a table with row lifetimes."""
        assert isinstance(self.write_buffer, RowLifetimes)
        at = self._unborn(columns, ts)
        self.write_buffer.insert(rank, order_key, np.arange(at, at + len(ts)))

    def history(self) -> RowLifetimes:
        """The row lifetimes of the batch; ends the buffering."""
        assert isinstance(self.write_buffer, RowLifetimes)
        if not self.write_buffer.is_closed:
            self.write_buffer.close(np.flatnonzero(self.alive[: self.log.end]))
        return self.write_buffer

    def _take_over(self, history: RowLifetimes) -> None:
        self.write_buffer = self._order = None
        left = history.survivors
        before = np.flatnonzero(self.alive[: self.log.end])
        self.alive[history.order] = False
        if len(left) and (np.diff(left) < 0).any():  # several queries inserted
            left = self._unborn(self.log.columns(left), self.log.ts[left]) + np.arange(len(left))
        self.alive[left] = True
        if self._all_indexes:
            removals, new = before[~self.alive[before]], np.setdiff1d(left, before, assume_unique=True)
            for index in self._all_indexes:
                index.remove(self.log.columns(removals), removals)
                index.add(self.log.columns(new), new)
        self.size = len(left)
        self.most = max(self.most, self.size)
        if self.log.end > 2048 and self.size * 2 < self.log.end:
            self._compact()

    def _carry_out(self, write_log: TableLog, before: Array, after: Array) -> None:
        """The rows at positions `before` (-1: none) give way to those at `after`, key by key: one that was updated
        keeps its place, new ones are appended in the order in which they began.
        """
        self._order = None
        there = after >= 0
        line = np.full(len(after), -1, np.int64)
        line[there] = write_log.line[after[there] - write_log.base]
        stay = there & (line < write_log.base)
        for a, c in enumerate(self.log.columns(after[stay])):
            self.log.assign(a, line[stay], c)
        fresh = np.append(after[there & ~stay], write_log.loose)
        origins = np.append(line[there & ~stay], write_log.loose)
        order = np.argsort(write_log.turn[origins - write_log.base], kind="stable")
        new = self._unborn(self.log.columns(fresh[order]), self.log.ts[origins[order]]) + np.arange(len(order))
        removals = before[(before >= 0) & (before != line)]
        for index in self._all_indexes:
            index.remove(self.log.columns(removals), removals)
            index.add(self.log.columns(new), new)
        self.alive[removals] = False
        self.alive[new] = True
        self.size += len(new) - len(removals)
        self.most = max(self.most, self.size)

    def insert(self, columns: Sequence[Column], ts: Array) -> None:
        """Adds rows; one whose primary key exists is dropped, with a line in the log."""
        n = len(ts)
        if self.primary is not None and n:
            keys = self.primary.ids(columns)
            first = np.zeros(n, np.bool_)
            first[np.unique(keys, return_index=True)[1]] = True
            index = np.flatnonzero(first & (self.primary.room()[keys] < 0))
            if len(index) < n:
                self._forget_writes(n - len(index))
                columns, ts, n = [c.take(index) for c in columns], ts[index], len(index)
        if n == 0:
            return
        self._order = None
        zeros = np.zeros(n, np.int64)
        at = self.log.append(Rows(columns, ts, zeros, zeros))
        self.alive = grown(self.alive, self.log.capacity, False)
        self.alive[at : at + n] = True
        self.size += n
        self.most = max(self.most, self.size)
        positions = np.arange(at, at + n)
        for index_ in self._all_indexes:
            index_.add(columns, positions)

    def _forget_writes(self, n: int) -> None:
        self.services.logs.append(f"table {self.id}: {n} row(s) dropped, as their primary key is there already")

    def delete(self, positions: Array) -> None:
        """Removes rows."""
        positions = np.unique(positions)
        positions = positions[self.alive[positions]]
        if len(positions) == 0:
            return
        self._order = None
        columns = self.log.columns(positions)
        for index in self._all_indexes:
            index.remove(columns, positions)
        self.alive[positions] = False
        self.size -= len(positions)
        if self.log.end > 2048 and self.size * 2 < self.log.end:
            self._compact()

    def _compact(self) -> None:
        self._order = None
        keep = np.flatnonzero(self.alive[: self.log.end])
        self.log.compact(keep)
        self.alive = np.ones(len(keep), np.bool_)
        columns, positions = self.log.columns(np.arange(len(keep))), np.arange(len(keep))
        for index in self._all_indexes:
            index.clear()
            index.add(columns, positions)

    def replace(self, positions: Array, changes: Mapping[int, Column], ts: Array | None = None) -> None:
        """Sets new values (one per position) of some attributes, and the rows' timestamps where `ts` gives new ones;
        skipped as a whole if two rows would get the same key."""
        if len(positions) == 0:
            return
        changed_indexes = [i for i in self._all_indexes if any(a in changes for a in i.attrs)]
        old_columns = self.log.columns(positions)
        new = [changes.get(a, c) for a, c in enumerate(old_columns)]
        if self.primary in changed_indexes and self.primary is not None:
            after = self.primary.ids(new)
            occupants = self.primary.room()[after]
            if len(np.unique(after)) < len(after) or not np.isin(occupants[occupants >= 0], positions).all():
                self.services.logs.append(f"table {self.id}: an update onto an existing primary key is left out")
                return
        if self.primary in changed_indexes:
            self._order = None
        for index in changed_indexes:
            index.remove(old_columns, positions)
        for a, c in changes.items():
            self.log.assign(a, positions, c)
        if ts is not None:
            self.log.ts[positions] = ts
            self.log.touch_ts(positions)
        for index in changed_indexes:
            index.add(new, positions)

    # -------------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        return {"rows": self.log.state(np.flatnonzero(self.alive[: self.log.end])), "most": self.most}

    def save_state(self) -> dict[str, Any]:
        """All of the log, with the rows that are gone."""
        end = self.log.end
        alive = None if self.size == end else np.packbits(self.alive[:end])
        return {"rows": self.log.save_state(0, end), "most": self.most, "alive": alive}

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        rows = state["rows"]
        if "n" not in rows:
            self.insert(rows["columns"], rows["ts"])
        elif rows["n"]:
            self.log.load(rows)
            end = self.log.end
            self.alive = np.zeros(self.log.capacity, np.bool_)
            self.alive[:end] = True if state["alive"] is None else np.unpackbits(state["alive"], count=end)
            live = np.flatnonzero(self.alive[:end])
            self.size = len(live)
            columns = self.log.columns(live)
            for index in self._all_indexes:
                index.add(columns, live)
        self.most = state["most"]

    @property
    def bytes(self) -> int:
        return self.log.bytes

    @property
    def rows(self) -> int | None:
        """Number of rows."""
        return int(np.count_nonzero(self.alive[: self.log.end]))


_EXACT = (Type.STRING, Type.INT, Type.LONG, Type.BOOL)
"""Types of which values that are equal are the same."""


class TableLookup:
    """A table as a side of a join. `rank` is the reader's place among the operators that use the table."""

    def __init__(self, table: TableStore, on: Expr | None, slot: int) -> None:
        self.table = table
        self.condition = TableCondition(on, table, slot)
        self.rank = 0

    def find(self, env: Env, order_keys: Array) -> tuple[Array, Array]:
        if self.table.write_buffer is not None:
            return self.condition.find_as_of(env, len(order_keys), order_keys, self.rank)
        return self.condition.find(env, len(order_keys))

    def column(self, attr: int, positions: Array) -> Column:
        return self.table.log.column(attr, positions)

    def times(self, positions: Array) -> Array:
        """The times of the events that inserted the rows. Updates do not change them; an upsert by the primary key
        inserts the row again.
        """
        times: Array = self.table.log.ts[positions]
        return times


class TableWriter:
    """Writes a query's output rows to a table."""

    def __init__(
        self, output: nodes.Output, select: nodes.Select, table: TableStore, services: Services, query: str
    ) -> None:
        self.output, self.table, self.services, self.query = output, table, services, query
        self.names: tuple[str, ...] = select.schema.names
        on = None if isinstance(output, nodes.Insert) else output.on
        self.condition = TableCondition(on, table)
        self.set: list[tuple[int, Evaluator]] = []
        if isinstance(output, nodes.Update | nodes.Upsert):
            changes = set_values(output, select, table.definition)
            evaluators = {a: compile_expr(e, services.context) for a, e in changes.items()}
            order = walk_order(list(evaluators), len(evaluators))
            self.set = [(a, evaluators[a]) for a in (list(evaluators)[i] for i in order)]
        self._places = inserted_places(table.names, self.names)
        self.kind: int | None = None
        if table.key_index is not None and table.buffering.key:
            self.kind = write_kind(output, select, table.definition, table.buffering.key)
            equal = {} if self.kind in (None, INSERT) else key_equalities(on, TABLE) or {}
            self._key = [compile_expr(equal[a], services.context) for a in table.buffering.key if a in equal]
        self._steps: dict[int, tuple[int, Evaluator]] = {}
        self._programs: tuple[int, list[Evaluator]] | None = None
        self._makes: list[int] = []
        if self.kind in (UPDATE, UPSERT):
            if table.buffering.has_programs and any(map(reads_table, changes.values())):
                self._makes = [a for a, _ in self.set if a not in table.buffering.key]
                self._programs = table.programs.add([(a, changes[a]) for a in self._makes])
            for a, e in changes.items():
                if a not in self._makes:
                    how, value = step(e, a, table.types[a]) or (SET, e)
                    self._steps[a] = how, compile_expr(value, services.context)
        self.writes_whole_rows = self.kind in (INSERT, DELETE) or (
            len(self._steps) == len(table.types) and all(how == SET for how, _ in self._steps.values())
        )
        """True if it writes whole rows."""
        self.rank = 0
        # Rows that a chunk has found no place for: an upsert adds them when the chunk is through.
        self._waiting: tuple[TableStore, TableCondition] | None = None
        if isinstance(output, nodes.Upsert) and not self.condition.by_key:
            plain = TableStore(replace(table.definition, primary_key=(), indexes=()), services)
            self._waiting = plain, TableCondition(on, plain)

    def write(self, rows: Rows, now: Array) -> None:
        """Applies the output rows, one after the other if one may depend on another.

        While the table buffers its writes (`TableStore.write_buffer`), they are only buffered.
        """
        buffering = self.table.write_buffer is not None
        if buffering and not isinstance(self.output, nodes.Insert):
            rows, now = self._without_failed(rows, now, self._refused_by_index)
        if isinstance(self.output, nodes.Insert) or (buffering and self.kind == UPSERT):
            rows, now = self._without_failed(rows, now, self._refused_by_table)
        if buffering:
            self._buffer_rows(rows, now)
            return
        if isinstance(self.output, nodes.Insert):
            self.table.insert(rows.columns, rows.ts)
            return
        for i in range(len(rows)):
            self._one(rows.slice(i, i + 1), now[i : i + 1])
            if self._waiting is not None and (i + 1 == len(rows) or rows.chunk[i + 1] != rows.chunk[i]):
                waiting, _ = self._waiting
                order = waiting.order()
                self.table.insert(waiting.columns(order), waiting.log.ts[order])
                waiting.delete(order)

    def _one(self, row: Rows, now: Array) -> None:
        """One row: the rows of the table that it finds, else those that wait, are updated; else it waits itself."""
        env = Env(1, self.services.strings, row.ts, now, self._of(row), tables=self.services.in_table)
        table, condition = self.table, self.condition
        _, positions = condition.find(env, 1)
        if self._waiting is not None and len(positions) == 0 and env.failed_rows is None:
            table, condition = self._waiting
            _, positions = condition.find(env, 1)
        if env.failed_rows is not None:
            self.services.route_failed(self.query, self.table.id, env, list(row.columns))
            return
        if isinstance(self.output, nodes.Delete):
            self.table.delete(positions)
            return
        if len(positions):
            self._update(table, row, positions, now)
        elif isinstance(self.output, nodes.Upsert) and len(self._without_failed(row, now, self._refused_by_table)[0]):
            table.insert(self._row_to_insert(row), row.ts)

    def _without_failed(
        self, rows: Rows, now: Array, refuse: Callable[[Rows, Env], None]
    ) -> tuple[Rows, Array]:  # fmt: skip
        """The rows, and the clock at each, without those that `refuse` lets fail: these are errors."""
        env = Env(len(rows), self.services.strings, rows.ts, now, frame_of(rows).resolve)
        refuse(rows, env)
        if env.failed_rows is None:
            return rows, now
        self.services.route_failed(self.query, self.table.id, env, list(rows.columns))
        keep = np.flatnonzero(~env.failed_rows)
        return rows.take(keep), now[keep]

    def _refused_by_table(self, rows: Rows, env: Env) -> None:
        """A sorted map of Siddhi's holds no null."""
        attrs = {a for i in self.table.indexes if i.is_sorted for a in i.attrs}
        columns = self._row_to_insert(rows) if attrs else []
        for a in attrs:
            null = columns[a].null
            if null is not None:
                env.fail(null, f"null cannot be put in an index of table {self.table.id}")

    def _refused_by_index(self, rows: Rows, env: Env) -> None:
        self.condition.refuse_null(env)

    def _buffer_rows(self, rows: Rows, now: Array) -> None:
        """Buffer the rows' writes in the table (`table_log`)."""
        table, n = self.table, len(rows)
        if isinstance(table.write_buffer, RowLifetimes):
            if isinstance(self.output, nodes.Insert):
                table.note_insert(self.rank, rows.order_key, rows.columns, rows.ts)
            else:
                env = Env(n, self.services.strings, rows.ts, now, frame_of(rows).resolve)
                table.write_buffer.delete(self.rank, rows.order_key, partial(self.condition.scan, env, n))
            return
        assert self.kind is not None
        assert table.key_index is not None
        env = Env(n, self.services.strings, rows.ts, now, lambda ref: rows.columns[ref.attr])  # type: ignore[union-attr]
        columns = None if self.kind in (UPDATE, DELETE) else self._row_to_insert(rows)
        changes = None
        if self.kind in (UPDATE, UPSERT):
            changes = {a: (how, _cast(e(env), table.types[a])) for a, (how, e) in self._steps.items()}
            changes |= {a: (MADE, _unknown(table.types[a], n)) for a in self._makes}
        key = [columns[a] for a in table.key_index.attrs] if columns is not None else [e(env) for e in self._key]
        if changes is not None:  # the row under a key has that key; it need not be looked up
            for a, column in zip(table.key_index.attrs, key, strict=True):
                if table.types[a] in _EXACT:
                    changes.setdefault(a, (SET, column))
        ids = table.key_index.keys.ids(key)
        if table.primary is None:  # null equals nothing; a primary key finds it
            ids = np.where(functools.reduce(np.logical_or, [c.nulls() for c in key]), -1, ids)
        set_inputs = None if self._programs is None else SetInputs.over(env, *self._programs)
        table.buffer_writes(self, rows, ids, columns, changes, set_inputs)

    def _row_to_insert(self, row: Rows) -> list[Column]:
        """The output row as a row of the table."""
        return [row.columns[i] for i in self._places]

    def _of(self, row: Rows, times: int = 1) -> Resolver:
        at = np.zeros(times, np.int64)

        def resolve(ref: Ref | EventRef) -> Column:
            assert isinstance(ref, Ref)
            return row.columns[ref.attr].take(at)

        return resolve

    def _update(self, table: TableStore, row: Rows, positions: Array, now: Array) -> None:
        """Set one attribute after another: a later expression reads the new value of an earlier attribute."""
        n = len(positions)
        of_row = self._of(row, n)
        changes: dict[int, Column] = {}

        def resolve(ref: Ref | EventRef) -> Column:
            if ref.slot == TABLE:
                assert isinstance(ref, Ref)
                return changes[ref.attr] if ref.attr in changes else table.log.column(ref.attr, positions)
            return of_row(ref)

        env = Env(
            n, self.services.strings, np.repeat(row.ts, n), np.repeat(now, n), resolve, tables=self.services.in_table
        )
        for a, e in self.set:
            changes[a] = _cast(e(env), table.types[a])
        if env.failed_rows is not None:
            columns = [c.take(np.zeros(n, np.int64)) for c in row.columns]
            self.services.route_failed(self.query, self.table.id, env, columns)
            keep = np.flatnonzero(~env.failed_rows)
            positions, changes = positions[keep], {a: c.take(keep) for a, c in changes.items()}
        # Where the primary key alone decides, the new event takes the row's place (`IndexEventHolder.overwrite`).
        is_overwrite = isinstance(self.output, nodes.Upsert) and self.condition.by_key
        table.replace(positions, changes, row.ts if is_overwrite else None)


def _unknown(type: Type, n: int) -> Column:
    """Placeholder values, replaced before they are read."""
    return Column.all_null(type, n) if type is Type.OBJECT else Column(type, np.zeros(n, DTYPES[type]))


def _cast(column: Column, type: Type) -> Column:
    if column.type is type or not (column.type.numeric and type.numeric):
        return column
    return Column(type, column.values.astype(DTYPES[type]), column.null)


__all__ = ["TableCondition", "TableLookup", "TableStore", "TableWriter"]
