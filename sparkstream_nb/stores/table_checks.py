"""Checks that an existing table fits an aggregation; the errors name the ways out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import StoreError
from .layout import SHARD, TableLayout


@dataclass(frozen=True)
class FoundTable:
    """A table as its database describes it: the type by column, in the table's order, and the primary key."""

    name: str
    columns: Mapping[str, str]
    key: Sequence[str]


def _has_key(table: FoundTable, layout: TableLayout, *, is_ordered: bool) -> bool:
    key = [c.name for c in layout.key]
    return list(table.key) == key if is_ordered else set(table.key) == set(key)


def check_table(
    layout: TableLayout,
    table: FoundTable,
    expected_types: Mapping[str, str],
    fits: Callable[[str], bool],
    *,
    is_ordered: bool,
) -> None:
    """Raises StoreError if `table` was made for something else.

    `expected_types` is the type by column; `fits(column)` says whether a column that both have is of a type that holds
    its values. `is_ordered`: the columns must also be in the layout's order.
    """
    columns = table.columns
    extra = [n for n in columns if n not in expected_types]
    missing = [n for n in expected_types if n not in columns]
    wrong = [n for n in expected_types if n in columns and not fits(n)]
    same_order = not is_ordered or list(columns) == list(expected_types)
    if not (extra or missing or wrong) and same_order and _has_key(table, layout, is_ordered=is_ordered):
        return
    if not wrong and (missing, extra) == (([SHARD], []) if layout.partitioned else ([], [SHARD])):
        raise _unfit_shard(layout, table)
    differences = [f"no column '{n}'" for n in missing]
    differences += [f"a column '{n}' more" for n in extra]
    differences += [f"'{n}' is {columns[n]}, not {expected_types[n]}" for n in wrong]
    raise _unfit_table(layout, table, differences or ["its columns or its key stand in another order"])


def _unfit_shard(layout: TableLayout, table: FoundTable) -> StoreError:
    name = layout.aggregation
    if layout.partitioned:
        return StoreError(
            f"Table '{table.name}' was made before aggregation '{name}' was partitioned by id: it has no column "
            f"{SHARD}. Drop its tables: store.drop('{name}'), or add the column to them and to their keys: "
            f"store.add_shard_id('{name}', SHARD) (with dry_run=True it only shows how)."
        )
    return StoreError(
        f"Table '{table.name}' has the column {SHARD}, and aggregation '{name}' is not partitioned by id. "
        f"Partition it again (@PartitionById, or the property partitionById), or drop its tables: "
        f"store.drop('{name}')."
    )


def _unfit_table(layout: TableLayout, table: FoundTable, differences: Sequence[str]) -> StoreError:
    name = layout.aggregation
    return StoreError(
        f"Table '{table.name}' does not fit aggregation '{name}': {'; '.join(differences)}. It was made by another "
        f"definition. Give the aggregation another name, use another store, or drop its tables: store.drop('{name}')."
    )


def missing_table(store: str, table: str) -> StoreError:
    """The error of a store that is only read, and lacks a table."""
    return StoreError(f"The store {store} has no table {table}: the app has not run on it, or was another one then.")
