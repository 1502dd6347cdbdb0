"""The write log of a table, while a whole micro-batch runs operator by operator.

Writers run before readers, and buffer their writes with key, order key and rank. A reader then sees, for each of its
rows, the table as of that time: the writes with an earlier order key, or the same order key and a lower rank. Every
write is a new version of the row of its key, at a position of its own; attributes that an update does not set come
from the version before. `TableStore.settle` brings the table up to date at the end of the batch.

This is possible if every access is by one key (`find_buffered`): the primary key, or the attributes by which all
writers of a table without one find their row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...plan import nodes
from ...plan.nodes import OUTPUT, TABLE, Expr, InTable, Ref
from ...plan.query_parts import expressions
from ...types import Type
from ..columnar.column_data import Array
from ..columnar.error_routing import may_fail
from ..columnar.eventlog import EventLog
from ..notation.kernels import kernel
from .row_lifetimes import has_history
from .table_sets import SetInputs, SetPrograms, makeable, reads_table
from .write_order import ADD, DELETE, INSERT, KEEP, NOTHING, SET, TAKE, UPDATE, UPSERT, Versions, WriteOrder


@kernel
def _accumulate(after: Array, what: Array, prior: Array, base: int, values: Array, null: Array) -> None:
    """Values of an attribute that is added to (`what[j]` of write j), one version after the other."""
    for j in range(len(after)):
        v = after[j]
        if v >= base and prior[v - base] >= 0:
            p = prior[v - base]
            null[v] = null[v] or null[p]
            if what[j] == ADD:
                values[v] = values[p] + values[v]
            else:
                values[v] = values[p] - values[v]


@kernel
def _carry(line: Array, source: Array, base: int, values: Array) -> None:
    """Copy the values that versions leave unchanged from the versions that they come from."""
    for i in range(len(line)):
        if line[i] >= 0 and source[i] != base + i:
            values[base + i] = values[source[i]]


@kernel
def _as_of(order: WriteOrder, at: Array, reader: int, keys: Array, by_key: Array, out: Array) -> None:
    """Positions that readers with order keys `at` find under `keys`; -1 for none. `by_key` is overwritten."""
    j = 0
    for i in range(len(at)):
        while j < len(order.order_key) and (
            order.order_key[j] < at[i]
            or (order.order_key[j] == at[i] and order.ranks[order.writer[j] if len(order.writer) else 0] < reader)
        ):
            if order.key[j] >= 0 and order.after[j] != NOTHING:
                by_key[order.key[j]] = order.after[j]
            j += 1
        out[i] = by_key[keys[i]] if keys[i] >= 0 else -1


@dataclass(slots=True)
class Writes:
    """Writes of one operator: `kind`, int64 order keys, key ids, log positions where the rows begin that are added if
    no row exists (-1: none are), and the rows that replace an old one; `mask` is the action on each attribute (`SET`
    ...), `set_inputs` the values that programs compute.
    """

    kind: int
    rank: int
    order_key: Array
    key: Array
    added_at: int
    changed_at: int
    mask: Array
    set_inputs: SetInputs | None


@dataclass
class TableLog:
    """The writes of one micro-batch to one table, in the order of the operators that made them until `close` sorts
    them. `base` is the first position after those that the table held before. Keys below 0 are never found.
    """

    attrs: int
    base: int
    programs: SetPrograms
    _writes: list[Writes] = field(default_factory=list)
    refused_count: int = 0

    is_closed = False

    def add_writes(self, writes: Writes) -> None:
        """Buffers the writes of an operator."""
        if len(writes.order_key):
            self._writes.append(writes)

    def mark(self) -> int:
        """Mark for `rewind`."""
        return len(self._writes)

    def rewind(self, mark: int) -> None:
        """Undoes all that was buffered since the mark. Only valid if all writes before it are of whole rows, as others
        change values in the log when they are ordered."""
        del self._writes[mark:]
        self.is_closed = False

    def close(self, by_key: Array, log: EventLog) -> None:
        """Sorts the writes into Siddhi's order and completes the new versions in `log`. `by_key` are the positions by
        key before the batch.
        """
        end, none = log.end, np.empty(0, np.int64)
        writes = sorted(self._writes, key=lambda w: w.rank)
        order_key, key, writer, row = none, none, none, none
        if len(writes) == 1:
            order_key, key = writes[0].order_key, writes[0].key
        elif writes:
            sizes = [len(w.order_key) for w in writes]
            order_key = np.concatenate([w.order_key for w in writes])
            order = np.argsort(order_key, kind="stable")  # of one order key, by rank
            order_key, key = order_key[order], np.concatenate([w.key for w in writes])[order]
            writer = np.repeat(np.arange(len(writes)), sizes)[order]
            row = order - np.cumsum([0, *sizes])[writer]
        kinds, ranks, added_at, changed_at = (
            np.array([getattr(w, f) for w in writes], np.int64) for f in ("kind", "rank", "added_at", "changed_at")
        )
        every = np.array([w.mask for w in writes], np.int8).reshape(len(writes), self.attrs)
        partly = np.flatnonzero((every != SET).any(axis=0))
        masks = np.ascontiguousarray(every[:, partly])
        n = end - self.base
        prior = np.full((n, len(partly) if (masks >= ADD).any() else 0), -1, np.int64)
        source = np.empty((n, len(partly)), np.int64)
        after = np.empty(len(order_key), np.int64)
        self.line, self.turn, self.by_key = np.full(n, -1, np.int64), np.empty(n, np.int64), by_key.copy()
        versions = Versions(self.base, self.line, self.turn, source, prior)
        self._order = WriteOrder(writer, row, order_key, key, after, kinds, ranks, added_at, changed_at, masks)
        self.refused_count, loose = self._order.chain(versions, self.by_key)
        self.loose = after[(key < 0) & (after >= 0)] if loose else none
        self.is_closed = True
        if any(w.set_inputs for w in writes):
            self.programs.run([w.set_inputs for w in writes], every, self._order, self.base, by_key, log)
        for i, a in enumerate(partly.tolist()):
            if prior.shape[1] and (prior[:, i] >= 0).any():
                what = np.broadcast_to(masks[0, i], len(key)) if len(masks) == 1 else masks[writer, i]
                _accumulate(after, np.ascontiguousarray(what), prior[:, i], self.base, log.values(a), log.nulls(a))
            if (masks[:, i] != KEEP).all():
                continue
            values, null = log.values(a), log.null_mask(a)
            if values.dtype == object:
                carried_versions = np.flatnonzero((self.line >= 0) & (source[:, i] != np.arange(self.base, end)))
                log.assign(a, self.base + carried_versions, log.column(a, source[carried_versions, i]))
                continue
            _carry(self.line, source[:, i], self.base, values.view(f"i{values.itemsize}"))
            if null is not None:
                _carry(self.line, source[:, i], self.base, null.view(np.int8))

    def as_of(self, order_keys: Array, rank: int, keys: Array, by_key: Array) -> Array:
        """The position under each of `keys` at each of `order_keys` for a reader of `rank`; `by_key` is the state
        before the batch.
        """
        out = np.empty(len(order_keys), np.int64)
        _as_of(self._order, order_keys, rank, keys, by_key.copy(), out)
        return out


# ------------------------------------------------------------------------------------- which tables can buffer writes


_UNORDERED = nodes.Const(Type.BOOL, False)


def key_equalities(on: Expr | None, table_slot: int) -> dict[int, Expr] | None:
    """Attribute → value, where `on` is nothing but equalities between attributes of the table and other values."""
    if isinstance(on, nodes.Logic) and on.op == "and":
        left, right = key_equalities(on.left, table_slot), key_equalities(on.right, table_slot)
        return None if left is None or right is None else {**left, **right}
    if isinstance(on, nodes.Compare) and on.op == "==":
        for mine, other in ((on.left, on.right), (on.right, on.left)):
            if isinstance(mine, Ref) and mine.slot == table_slot and mine.type == other.type:
                if not any(isinstance(e, Ref) and e.slot == table_slot for e in nodes.walk(other)):
                    return {mine.attr: other}
    return None


@dataclass(frozen=True)
class Buffering:
    """Buffering of a table's writes: by `key`, or as row lifetimes (`row_lifetimes`); `has_programs`: `set` expressions
    over the table's own attributes are programs (`table_sets`).
    """

    key: tuple[int, ...] = ()
    lifetimes: bool = False
    has_programs: bool = False


NOT_BUFFERED = Buffering()


def find_buffered(plan: nodes.Plan) -> dict[str, Buffering]:
    """The tables whose writes can be buffered, and how. Not those with an `@Index` other than the key, which would find
    several rows in the order of their last changes.
    """
    reads = [r for q in plan.queries for r in _reads(q)]
    timestamped_tables = {t for q in plan.queries for t in _timestamped_tables(q)}
    out = {}
    for t, d in plan.tables.items():
        if d.is_stored:
            continue
        key = d.primary_key or _common_key(t, plan)
        if any(key != (a,) for a in d.indexes):
            key = ()
        conditions = [(condition, slot) for table, condition, slot in reads if table == t]
        writers = [q for q in plan.queries if q.output.target.kind == "table" and q.output.target.id == t]
        has_programs = any(_makes(q, d) for q in writers)
        if t in timestamped_tables:  # a version of a row knows no time but its own
            key = ()
        if key and all(write_kind(q.output, q.select, d, key) is not None for q in writers):
            programs = not has_programs or all(_makeable(q, d, key) for q in writers)
            if programs and all(c is not None and set(key) <= _equal_attrs(c, slot) for c, slot in conditions):
                out[t] = Buffering(key, has_programs=has_programs)
                continue
        if has_history(d, [q.output for q in writers]) and all(c is not _UNORDERED for c, _ in conditions):
            out[t] = Buffering(lifetimes=True)
    return out


def _common_key(table: str, plan: nodes.Plan) -> tuple[int, ...]:
    """The attributes by which the first writer finds its row, where they can be a key; empty if not."""
    types = plan.tables[table].source.schema.types
    for q in plan.queries:
        if q.output.target.id == table and q.output.target.kind == "table" and not isinstance(q.output, nodes.Insert):
            equal = key_equalities(q.output.on, TABLE) or {}
            # A float may be no number, which equals nothing.
            exact = all(types[a] not in (Type.OBJECT, Type.FLOAT, Type.DOUBLE) for a in equal)
            return tuple(sorted(equal)) if exact else ()
    return ()


def _reads(query: nodes.Query) -> Iterator[tuple[str, Expr | None, int]]:
    """The tables that a query looks into, with the condition (None: none, `_UNORDERED`: in a way that cannot be put in
    order) and the table's slot in it.
    """
    inputs: tuple[nodes.StreamInput, ...] = ()
    if isinstance(query.input, nodes.StreamInput):
        inputs = (query.input,)
    elif isinstance(query.input, nodes.JoinInput):
        inputs = (query.input.left, query.input.right)
        for s, side in enumerate(inputs):
            if side.source.kind == "table":
                yield side.source.id, query.input.on, s
    filters = [x for i in inputs for s in i.steps if isinstance(s, nodes.FilterStep) for x in nodes.walk(s.condition)]
    in_filters = [e for e in filters if isinstance(e, InTable)]
    for e in in_filters:
        yield e.table, e.condition, TABLE
    everywhere = [e for x in expressions(query) for e in nodes.walk(x) if isinstance(e, InTable)]
    if len(everywhere) > len(in_filters):
        yield from ((e.table, _UNORDERED, TABLE) for e in everywhere)


def _timestamped_tables(query: nodes.Query) -> Iterator[str]:
    """The tables of whose rows a join asks the timestamp, by `eventTimestamp(e)`."""
    if isinstance(query.input, nodes.JoinInput):
        sides = (query.input.left, query.input.right)
        slots = {
            e.args[0].slot
            for x in expressions(query)
            for e in nodes.walk(x)
            if isinstance(e, nodes.Call) and e.function == "eventTimestamp" and e.args
            if isinstance(e.args[0], nodes.EventRef)
        }
        yield from (side.source.id for s, side in enumerate(sides) if s in slots and side.source.kind == "table")


def _equal_attrs(on: Expr | None, slot: int) -> set[int]:
    """Attributes of the table that `on` asks to equal something; there may be further conditions."""
    if isinstance(on, nodes.Logic) and on.op == "and":
        return _equal_attrs(on.left, slot) | _equal_attrs(on.right, slot)
    return set(key_equalities(on, slot) or ())


def write_kind(
    output: nodes.Output, select: nodes.Select, table: nodes.TableDef, key: tuple[int, ...]
) -> int | None:
    """The kind of write if it is by the whole key and depends on its own row alone; else None."""
    if isinstance(output, nodes.Insert):
        return INSERT if table.primary_key else None
    equal = key_equalities(output.on, TABLE)
    if equal is None or set(equal) != set(key):
        return None
    if isinstance(output, nodes.Delete):
        return DELETE
    changes = set_values(output, select, table)
    # The key that is looked up must be the key that the new row will have.
    if any(a in changes and changes[a] != equal[a] for a in key):
        return None
    if any(may_fail(e) or (reads_table(e) and a in key) for a, e in changes.items()):
        return None
    if isinstance(output, nodes.Update):
        return UPDATE
    places = inserted_places(table.source.schema.names, select.schema.names)
    for a in key:
        e = equal[a]
        if not (isinstance(e, Ref) and e.slot == OUTPUT and e.attr == places[a]):
            return None
    return UPSERT


def set_values(output: nodes.Update | nodes.Upsert, select: nodes.Select, table: nodes.TableDef) -> Mapping[int, Expr]:
    """Attribute of the table → its new value: what `set` says, else the attributes of the select by name."""
    if output.set is not None:
        return {i.attr: i.value for i in output.set}
    names, schema = select.schema.names, table.source.schema
    return {
        a: Ref(t, OUTPUT, names.index(n), n)
        for a, (n, t) in enumerate(zip(schema.names, schema.types, strict=True))
        if n in names
    }


def _makes(query: nodes.Query, table: nodes.TableDef) -> bool:
    """True if a `set` expression of the query does more than add to an attribute or subtract from it."""
    types = table.source.schema.types
    steps = ((e, step(e, a, types[a])) for a, e in _changes(query, table).items())
    return any(reads_table(e if by is None else by[1]) for e, by in steps)


def _makeable(query: nodes.Query, table: nodes.TableDef, key: tuple[int, ...]) -> bool:
    """True if programs can make all that the query sets, if it reads the table for any of it; but the key."""
    changes, types = _changes(query, table), table.source.schema.types
    reads = any(map(reads_table, changes.values()))
    return not reads or all(makeable(e, types[a]) for a, e in changes.items() if a not in key)


def _changes(query: nodes.Query, table: nodes.TableDef) -> Mapping[int, Expr]:
    """`set_values`; empty if the query inserts or deletes."""
    o = query.output
    return set_values(o, query.select, table) if isinstance(o, nodes.Update | nodes.Upsert) else {}


def step(e: Expr, attr: int, type: Type) -> tuple[int, Expr] | None:
    """(`ADD` or `TAKE`, what) where `e` is the table's attribute plus or minus something, in the attribute's type."""
    if isinstance(e, nodes.Arith) and e.op in "+-" and e.type is type and type.numeric:
        for ref, other in ((e.left, e.right), (e.right, e.left)):
            if isinstance(ref, Ref) and ref.slot == TABLE and ref.attr == attr and (e.op == "+" or ref is e.left):
                return (ADD if e.op == "+" else TAKE), other
    return None


def inserted_places(table: tuple[str, ...], select: tuple[str, ...]) -> list[int]:
    """For each attribute of the table its place in the select: by name where all names are there, else by place."""
    return [select.index(n) for n in table] if set(table) <= set(select) else list(range(len(table)))
