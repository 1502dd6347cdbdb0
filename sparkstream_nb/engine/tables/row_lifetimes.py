"""Row lifetimes of a table without a primary key, while a whole micro-batch runs operator by operator.

If queries only insert rows and delete them by conditions, each row has one lifetime: from its insert to the first later
delete whose condition matches. A point in time is (order key, rank of the operator). Writers buffer their operations;
when all of them have run, the lifetimes are computed; a reader then sees, for each of its rows, the table rows that are
alive at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...plan import nodes
from ..columnar.column_data import Array
from ..columnar.error_routing import may_fail

Visible = Callable[[Array, Array], Array]
"""True if row `at[i]` of those who ask may see number `index[i]` of the rows asked about."""

_FIRST, _LAST = np.int64(-(2**63)), np.int64(2**63 - 1)


def _before(order_key: Array, rank: Array, other_order_key: Array, other_rank: Array | int) -> Array:
    out: Array = (order_key < other_order_key) | ((order_key == other_order_key) & (rank < other_rank))
    return out


class RowLifetimes:
    """The writes of one micro-batch. After `close`, `order` are the positions of all rows that were alive at any time
    in the batch, in the table's order.
    """

    def __init__(self) -> None:
        self._births: list[tuple[Array, Array, Array]] = []
        self._deletes: list[tuple[int, Array, Callable[[Array, Visible], tuple[Array, Array]]]] = []
        self.is_closed = False

    def insert(self, rank: int, order_key: Array, positions: Array) -> None:
        """Records the insert of the rows at `positions` at these order keys."""
        self._births.append((order_key, np.full(len(order_key), rank, np.int64), positions))

    def delete(self, rank: int, order_key: Array, find: Callable[[Array, Visible], tuple[Array, Array]]) -> None:
        """`find(order, visible)` answers which rows of a delete, whose moments are `order_key`, hit which numbers of
        `order`."""
        self._deletes.append((rank, order_key, find))

    def mark(self) -> tuple[int, int]:
        """Mark for `rewind`."""
        return len(self._births), len(self._deletes)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Undoes all that was recorded since the mark."""
        del self._births[mark[0] :], self._deletes[mark[1] :]
        self.is_closed = False

    def close(self, alive: Array) -> None:
        """Computes the lifetimes; `alive` are the positions that the table held before, in order."""
        none = np.empty(0, np.int64)
        order_key, rank, positions = (np.concatenate(c) for c in zip((none, none, none), *self._births, strict=True))
        by = np.lexsort((rank, order_key))
        count = len(alive)
        self.order = np.append(alive, positions[by])
        self._born = (np.append(np.full(count, _FIRST), order_key[by]), np.append(np.zeros(count, np.int64), rank[by]))
        hits = [(none, none, none)]
        for r, at_order_key, find in self._deletes:

            def born_before(at: Array, index: Array, at_order_key: Array = at_order_key, r: int = r) -> Array:
                return _before(self._born[0][index], self._born[1][index], at_order_key[at], r)

            at, index = find(self.order, born_before)
            hits.append((at_order_key[at], np.full(len(at), r, np.int64), index))
        order_key, rank, index = (np.concatenate(c) for c in zip(*hits, strict=True))
        by = np.lexsort((rank, order_key))
        dead, first = np.unique(index[by], return_index=True)
        self._deaths = np.full(len(self.order), _LAST), np.zeros(len(self.order), np.int64)
        self._deaths[0][dead], self._deaths[1][dead] = order_key[by][first], rank[by][first]
        self.is_closed = True

    def seen_by(self, order_keys: Array, rank: int) -> Visible:
        """Rows visible to a reader of `rank` with these order keys."""

        def visible(at: Array, index: Array) -> Array:
            (born, by), (death, of) = self._born, self._deaths
            order_key = order_keys[at]
            return _before(born[index], by[index], order_key, rank) & ~_before(death[index], of[index], order_key, rank)

        return visible

    def sees(self, lookup_keys: Array, order_keys: Array, rank: int, row_keys: Array, keys: int) -> Array:
        """True if a reader of `rank` with these order keys sees any row of the key that it asks for. `row_keys` are the
        keys of the rows of `order`, below `keys`; -1: a key that no row has."""
        born, death = (np.where((by < rank) | (order_key == _LAST), order_key, order_key + 1) for order_key,
            by in (self._born, self._deaths))
        some = np.flatnonzero(row_keys >= 0)
        row_keys, born, death = row_keys[some], born[some], death[some]
        # From the order key `born` on a row is seen, from `death` on no more.
        if not len(death) or death.min() == _LAST:
            first = np.full(keys + 1, _LAST)  # the last place is for -1
            first[row_keys[::-1]] = born[::-1]  # `order` is by birth: the earliest stays
            early: Array = first[lookup_keys] <= order_keys
            return early
        moments = np.unique(np.append(born, death))
        width = len(moments) + 1
        at = lookup_keys * width + np.searchsorted(moments, order_keys, "right")
        births, deaths = (np.sort(row_keys * width + np.searchsorted(moments, m)) for m in (born, death))
        alive: Array = np.searchsorted(births, at) - np.searchsorted(deaths, at)
        return alive > 0

    @property
    def survivors(self) -> Array:
        """Positions of the rows that are alive after the batch, in the table's order."""
        out: Array = self.order[self._deaths[0] == _LAST]
        return out


def has_history(table: nodes.TableDef, outputs: Sequence[nodes.Output]) -> bool:
    """True if these outputs to the table only insert and delete, and none of them can fail, except for nulls that
    cannot be looked up in an index.
    """
    if table.primary_key or not outputs:
        return False
    return all(
        isinstance(o, nodes.Insert) or (isinstance(o, nodes.Delete) and o.on is not None and not may_fail(o.on))
        for o in outputs
    )
