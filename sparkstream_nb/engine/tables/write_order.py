"""The writes of a micro-batch to a table in Siddhi's order, and the versions of rows that they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columnar.column_data import Array
from ..notation.kernels import compiled, inlined, struct

INSERT, UPSERT, UPDATE, DELETE = 0, 1, 2, 3
"""Kinds of writes."""

KEEP, SET, MADE, ADD, TAKE = range(5)
"""Actions of an update on an attribute: nothing; set a value; compute one by a program; add a value to the old one, or
subtract one.
"""

NOTHING, GONE = -2, -1
"""Contents of a key after a write that changes nothing (an update that finds no row, a row that the primary key
refuses), and after a delete.
"""


@struct
@dataclass(slots=True)
class Versions:
    """The versions of rows that a micro-batch makes, from position `base` of the log on: `line[v - base]` is the
    position at which the row of version v began, `turn` when; `source[v - base, a]` is the version that attribute a
    comes from (no columns: every write is of whole rows), `prior[v - base, a]` the one that a value is added to or
    taken away from.
    """

    base: int
    line: Array
    turn: Array
    source: Array
    prior: Array

    @inlined
    def begin(self, v: int, j: int) -> None:
        """Version `v`, of write `j`, is a new row."""
        self.line[v - self.base] = v
        self.turn[v - self.base] = j
        for a in range(self.source.shape[1]):
            self.source[v - self.base, a] = v

    @inlined
    def follow(self, v: int, before: int, masks: Array, w: int) -> None:
        """Version `v`, by the writer `w`, takes the place of the row at `before`."""
        self.line[v - self.base] = self.line[before - self.base] if before >= self.base else before
        for a in range(self.source.shape[1]):
            origin = self.source[before - self.base, a] if before >= self.base else before
            self.source[v - self.base, a] = origin if masks[w, a] == KEEP else v
            if masks[w, a] >= ADD:
                self.prior[v - self.base, a] = origin


@struct
@dataclass(slots=True)
class WriteOrder:
    """All writes of a micro-batch to a table in order: write j is row `row[j]` of the writer `writer[j]` (both empty:
    row j of the only one), under `key[j]` with an order key; `after[j]` is the version that it leaves under its key.

    By writer: `kinds`; `ranks`; `added_at` and `changed_at` are where its rows begin in the log, -1 for none; `masks`
    its action on each attribute that some write changes partly.
    """

    writer: Array
    row: Array
    order_key: Array
    key: Array
    after: Array
    kinds: Array
    ranks: Array
    added_at: Array
    changed_at: Array
    masks: Array

    @compiled
    def chain(self, versions: Versions, by_key: Array) -> tuple[int, int]:
        """Finds the versions. Returns the number of inserts that a primary key rejected, and the number of new rows
        without a findable key. `by_key`, the positions by key, is overwritten.
        """
        refused_count = 0
        loose = 0
        for j in range(len(self.key)):
            w = self.writer[j] if len(self.writer) else 0
            r = self.row[j] if len(self.row) else j
            kind = self.kinds[w]
            k = self.key[j]
            before = by_key[k] if k >= 0 else -1
            version = np.int64(NOTHING)
            if kind == DELETE:
                if before >= 0:
                    version = np.int64(GONE)
            elif before < 0 and kind != UPDATE:
                version = self.added_at[w] + r
                versions.begin(version, j)
                loose += k < 0
            elif before >= 0 and kind == INSERT:
                refused_count += 1
            elif before >= 0:
                version = self.changed_at[w] + r
                versions.follow(version, before, self.masks, w)
            self.after[j] = version
            if k >= 0 and version != NOTHING:
                by_key[k] = version
        return refused_count, loose
