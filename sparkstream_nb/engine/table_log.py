"""A keyed table while a whole micro-batch goes through the app operator by operator.

Writers run before readers, and note what they do, to which key and when. A reader then sees, for each of its rows,
the table as of that row's moment: the writes with an earlier root, or the same root and an operator that Siddhi
reaches earlier. This is possible where every access goes by the whole primary key (`loggable_write`,
`loggable_read`); `settle` brings the table up to date at the end of the batch.
"""

from __future__ import annotations

import numpy as np

from ..plan import nodes
from ..plan.nodes import OUTPUT, TABLE, Expr, Ref
from .columns import Array
from .jit import kernel

INSERT, UPSERT, UPDATE, DELETE = 0, 1, 2, 3


@kernel
def _write(kind: int, key: int, pos: int, held: Array) -> bool:
    """One write; False where it changes nothing because of the primary key."""
    if kind == INSERT:
        if held[key] >= 0:
            return False
        held[key] = pos
    elif kind == UPSERT:
        held[key] = pos
    elif kind == UPDATE:
        if held[key] >= 0:
            held[key] = pos
    else:
        held[key] = -1
    return True


@kernel
def _as_of(
    root: Array, rank: Array, kind: Array, key: Array, pos: Array, at: Array, reader: int, wanted: Array, held: Array,
    out: Array,
) -> None:  # fmt: skip
    """Positions that readers with roots `at` find under keys `wanted`; -1 for none. `held` is overwritten."""
    j = 0
    for i in range(len(at)):
        while j < len(root) and (root[j] < at[i] or (root[j] == at[i] and rank[j] < reader)):
            _write(kind[j], key[j], pos[j], held)
            j += 1
        out[i] = held[wanted[i]]


@kernel
def _settle(kind: Array, key: Array, pos: Array, held: Array) -> int:
    """All writes in order; returns how many a primary key refused."""
    refused = 0
    for j in range(len(kind)):
        if not _write(kind[j], key[j], pos[j], held):
            refused += 1
    return refused


class TableLog:
    """The writes of one micro-batch to one table, in the order of the operators that made them until `sorted` sorts
    them.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Array, Array, Array, Array, Array]] = []
        self._whole: tuple[Array, Array, Array, Array, Array] | None = None

    def note(self, kind: int, rank: int, root: Array, key: Array, pos: Array) -> None:
        """`kind` for each of the rows: int64 roots, key ids, and positions of the new values (-1 for a delete)."""
        n = len(root)
        self._parts.append((root, np.full(n, rank, np.int64), np.full(n, kind, np.int8), key.astype(np.int64), pos))
        self._whole = None

    def sorted(self) -> tuple[Array, Array, Array, Array, Array]:
        """(root, rank, kind, key, position) of all writes, in Siddhi's order."""
        if self._whole is None:
            if not self._parts:
                none = np.empty(0, np.int64)
                self._whole = (none, none, np.empty(0, np.int8), none, none)
            elif len(self._parts) == 1:
                self._whole = self._parts[0]
            else:
                root, rank, kind, key, pos = (np.concatenate(c) for c in zip(*self._parts, strict=True))
                order = np.lexsort((rank, root))
                self._whole = (root[order], rank[order], kind[order], key[order], pos[order])
        return self._whole

    def as_of(self, roots: Array, rank: int, keys: Array, held: Array) -> Array:
        """The position under each of `keys` at each of `roots` for a reader of `rank`; `held` is the state before the
        batch.
        """
        out = np.empty(len(roots), np.int64)
        _as_of(*self.sorted(), roots, rank, keys.astype(np.int64), held.copy(), out)
        return out

    def settle(self, held: Array) -> tuple[Array, int]:
        """(positions by key after all writes, how many writes a primary key refused)."""
        after = held.copy()
        _, _, kind, key, pos = self.sorted()
        return after, _settle(kind, key, pos, after)


def _key_equalities(on: Expr | None, table_slot: int) -> dict[int, Expr] | None:
    """Attribute → value, where `on` is nothing but equalities between attributes of the table and other values."""
    if isinstance(on, nodes.Logic) and on.op == "and":
        left, right = _key_equalities(on.left, table_slot), _key_equalities(on.right, table_slot)
        return None if left is None or right is None else {**left, **right}
    if isinstance(on, nodes.Compare) and on.op == "==":
        for mine, other in ((on.left, on.right), (on.right, on.left)):
            if isinstance(mine, Ref) and mine.slot == table_slot and mine.type == other.type:
                if not any(isinstance(e, Ref) and e.slot == table_slot for e in nodes.walk(other)):
                    return {mine.attr: other}
    return None


def loggable_write(output: nodes.Output, select: nodes.Select, table: nodes.TableDef) -> int | None:
    """The kind of write where it goes by the whole primary key and replaces whole rows; None where it does not."""
    if not table.primary_key or table.indexes:
        return None
    if isinstance(output, nodes.Insert):
        return INSERT
    equal = _key_equalities(output.on, TABLE)
    if equal is None or set(equal) != set(table.primary_key):
        return None
    if isinstance(output, nodes.Delete):
        return DELETE
    names, schema = table.source.schema.names, select.schema
    whole = output.set is None and set(names) <= set(schema.names)
    # The key that is looked up must be the key that the new row will have.
    own = all(
        isinstance(e, Ref) and e.slot == OUTPUT and schema.names[e.attr] == names[a] for a, e in equal.items()
    )
    if not (whole and own):
        return None
    return UPSERT if isinstance(output, nodes.Upsert) else UPDATE


def loggable_read(join: nodes.JoinInput, slot: int, table: nodes.TableDef) -> bool:
    """Whether a join looks the table up by its whole primary key (there may be further conditions)."""

    def equal_attrs(on: Expr | None) -> set[int]:
        if isinstance(on, nodes.Logic) and on.op == "and":
            return equal_attrs(on.left) | equal_attrs(on.right)
        found = _key_equalities(on, slot)
        return set(found) if found else set()

    return bool(table.primary_key) and set(table.primary_key) <= equal_attrs(join.on)
