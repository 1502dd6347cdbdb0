"""The rule for the queries that reach a table: rule 8 of `plan.shard_safety.safety`."""

from __future__ import annotations

from collections.abc import Sequence

from .. import nodes as n
from ..dataflow import Dataflow
from ..query_parts import conjuncts, expressions, only_adds
from .own_safety import Own, attribute_of, dependent, have_equal_texts, merged_keys


def _keys_of_column(users: Sequence[n.Query], table: str, column: int) -> tuple[dict[str, str] | None, list[n.Query]]:
    """The keys by which queries access a table in a column, by stream, None where they do not fit together; and the
    queries that access it without."""
    keys_by_query = [(u, _table_key(u, table, column)) for u in users]
    keys: dict[str, str] | None = {}
    for _, key in keys_by_query:
        if keys is not None and key is not None:
            keys = merged_keys(keys, dict([key]))
    return keys, [u for u, key in keys_by_query if key is None]


def rule_of_table(flow: Dataflow, table: str) -> Own:
    """Rule 8 of all that reach a table."""
    if not flow.writers(table):
        return Own("stateless", f"no query writes table '{table}'")
    definition = flow.plan.tables[table]
    users = flow.users(table)
    if definition.is_stored and not definition.primary_key and all(only_adds(q, table) for q in users):
        return Own("stateless", f"all that its queries do to table '{table}' is to add rows")
    best: tuple[list[n.Query], bool] | None = None
    for column in definition.primary_key or range(len(definition.source.schema)):
        keys, without = _keys_of_column(users, table, column)
        if keys is not None and not without:
            name = definition.source.schema[column].name
            return Own("keyed", f"every query accesses table '{table}' by its '{name}'", (keys,))
        if best is None or len(without) < len(best[0]):
            best = without, keys is None
    without = [] if best is None else best[0]
    why = f"query '{without[0].name}' names no key of it" if without else "its queries name different keys of it"
    if definition.is_stored:
        return dependent(f"nodes write to table '{table}' in an order of their own, and {why}")
    return dependent(f"table '{table}' of a node holds what that node received, and {why}")


def _table_key(q: n.Query, table: str, column: int) -> tuple[str, str] | None:
    """The input attribute that the query equates with `column` wherever it touches `table`, None if it does not."""
    keys: set[tuple[str, str] | None] = set()
    if q.output.target.id == table:
        match q.output:
            case n.Insert():
                keys.add(attribute_of(q.select.items[column].expr, q.input))
            case n.Delete() | n.Update():
                keys.add(_find_equality(q.output.on, column, q))
            case n.Upsert():
                keys.add(_find_equality(q.output.on, column, q))
                keys.add(attribute_of(q.select.items[column].expr, q.input))
    for top in expressions(q):
        for e in n.walk(top):
            if isinstance(e, n.InTable) and e.table == table:
                keys.add(_find_equality(e.condition, column, q))
    if isinstance(q.input, n.JoinInput):
        for slot, side in enumerate((q.input.left, q.input.right)):
            if side.source.id == table:
                keys.add(_find_equality(q.input.on, column, q, slot))
    return keys.pop() if len(keys) == 1 else None


def _find_equality(condition: n.Expr | None, column: int, q: n.Query, slot: int = n.TABLE) -> tuple[str, str] | None:
    for c in conjuncts(condition):
        if not isinstance(c, n.Compare) or c.op != "==":
            continue
        for table_side, other in ((c.left, c.right), (c.right, c.left)):
            if isinstance(table_side, n.Ref) and table_side.slot == slot and table_side.attr == column:
                if isinstance(other, n.Ref) and other.slot == n.OUTPUT:
                    other = q.select.items[other.attr].expr
                if (
                    isinstance(other, n.Ref)
                    and other.slot != slot
                    and have_equal_texts(table_side, other)
                    and (key := attribute_of(other, q.input)) is not None
                ):
                    return key
    return None
