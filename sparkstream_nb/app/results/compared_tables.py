"""The rows that the tables of an app have after its events under one text, compared with those under another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...engine.runtime.descriptions import DescribedRows
from ...plan.nodes import Plan
from .compared_attributes import NewAttributes, old_names_of
from .output_matching import frozen

NodeTables = Sequence[Mapping[str, DescribedRows]]
"""The tables of each node, by name."""
NodeRow = tuple[int, tuple[Any, ...]]
"""The node (from 0) and the values of a row."""


@dataclass(frozen=True)
class RowPair:
    """A row of a node (from 0) that differs: its values under both texts, None where it is not there."""

    node: int
    before: tuple[Any, ...] | None
    after: tuple[Any, ...] | None

    @property
    def outcome(self) -> str:
        """`gone`, `new` or `other values`."""
        return "new" if self.before is None else "gone" if self.after is None else "other values"


@dataclass(frozen=True)
class ComparedTable:
    """A table under two texts: the `names` of the attributes that both have, the number of `rows` under the old text on
    all nodes, and the rows that differ. Rows with one primary key are one row.
    """

    names: Sequence[str]
    rows: int
    pairs: Sequence[RowPair]

    @property
    def counts(self) -> Counter[str]:
        """The number of rows that differ, by outcome."""
        return Counter(pair.outcome for pair in self.pairs)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each one that differs: node, outcome, its attributes under the old text (under the new one where it
        is new), and its new values as `new NAME`."""
        rows = []
        for pair in self.pairs:
            values, new_values = pair.before or pair.after or (), pair.after if pair.outcome == "other values" else None
            rows.append([f"node-{pair.node + 1}", pair.outcome, *values, *(new_values or [None] * len(self.names))])
        columns = ["node", "outcome", *self.names, *(f"new {name}" for name in self.names)]
        return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class TableComparison:
    """Two texts whose tables are compared by attributes, without those in `without`; `new_attributes` as in
    `OutputAttributes`."""

    plans: tuple[Plan, Plan]
    new_attributes: NewAttributes
    without: Collection[str]

    def of(self, before: NodeTables, after: NodeTables) -> dict[str, ComparedTable]:
        """The tables that both texts have in memory."""
        both = [id for id in before[0] if id in after[0]] if before and after else []
        return {id: self._table(id, before, after) for id in both}

    def _table(self, id: str, before: NodeTables, after: NodeTables) -> ComparedTable:
        old_names = list(before[0][id].names)
        new_names = old_names_of(after[0][id].names, self.new_attributes.get(id, {}))
        names = [n for n in old_names if n in new_names and n not in self.without]
        old_rows = _node_rows(before, id, [old_names.index(name) for name in names])
        new_rows = _node_rows(after, id, [new_names.index(name) for name in names])
        definition = self.plans[0].tables[id]
        key = [definition.source.schema.names[place] for place in definition.primary_key]
        key_places = [names.index(name) for name in key] if key and set(key) <= set(names) else None
        return ComparedTable(names, len(old_rows), _pair_rows(old_rows, new_rows, key_places))


def _node_rows(node_tables: NodeTables, id: str, places: Sequence[int]) -> list[NodeRow]:
    """The rows of a table on all nodes, with the attributes in some places."""
    return [
        (node, tuple(row[p] for p in places)) for node, tables in enumerate(node_tables) for row in tables[id].rows
    ]


def _pair_rows(
    before: Sequence[NodeRow], after: Sequence[NodeRow], key_places: Sequence[int] | None
) -> list[RowPair]:
    """The rows that differ, paired where they have one key."""
    surplus = Counter(frozen(row) for row in after)
    rest = []
    for row in before:
        if surplus[identity := frozen(row)]:
            surplus[identity] -= 1
        else:
            rest.append(row)
    new: dict[Any, list[NodeRow]] = defaultdict(list)
    for row in reversed(after):
        if surplus[identity := frozen(row)]:
            surplus[identity] -= 1
            new[_key(row, key_places)].append(row)
    pairs = []
    for node, values in rest:
        same_key = new.get(_key((node, values), key_places), []) if key_places is not None else []
        pairs.append(RowPair(node, values, same_key.pop()[1] if same_key else None))
    return [*pairs, *(RowPair(node, None, values) for rows in new.values() for node, values in reversed(rows))]


def _key(row: NodeRow, key_places: Sequence[int] | None) -> Any:
    node, values = row
    return None if key_places is None else (node, *(frozen(values[p]) for p in key_places))
