"""Keys of the `unique:` windows: their ids, Java's hashes of them, and the log of a window that looks events up by key.

The key of most windows is the text of a value; some take the value itself (`Object.equals`, null among them).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Expr, Ref
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.frame import frame_of
from ..columnar.key_ids import Keys
from ..columnar.rows import Clock, Rows
from ..expressions import Env, compile_expr
from ..notation.kernels import struct
from ..state.declared import DeclaredState
from ..state.key_hash import TextKeys
from ..state.saving import Form
from .declared_state import ChainedWindow
from .window_protocol import WindowSetup

_WORD = np.int64(0xFFFFFFFF)
_FEW_IDS = 4096


def java_hashes(column: Column, strings: StringPool, *, as_text: bool) -> Array:
    """int64[n] of Java's `hashCode` of the values, unsigned, 0 for null; of their texts with `as_text`."""
    t, v = column.type, column.values
    if as_text or t is Type.STRING:
        hashes = TextKeys(strings).numbers([column], len(column))[1]
    elif t is Type.BOOL:
        hashes = np.where(v, 1231, 1237)
    elif t is Type.FLOAT:
        hashes = np.where(np.isnan(v), 0x7FC00000, v.astype(np.float32).view(np.int32)).astype(np.int64) & _WORD
    elif t is Type.INT:
        hashes = v.astype(np.int64) & _WORD
    else:
        nan = np.float64(np.nan).view(np.int64)
        bits = v.astype(np.int64) if t is Type.LONG else np.where(np.isnan(v), nan, v.astype(np.float64).view(np.int64))
        hashes = (bits ^ (bits >> 32)) & _WORD
    return hashes if column.null is None or as_text else np.where(column.null, np.int64(0), hashes)


class UniqueKey:
    """The key of events: an expression over their attributes. Rows whose key fails, or is null and not `nullable`, are
    refused. Ids are of each partition instance's own if `apart`; they are of values, not of texts, `by_value`."""

    def __init__(self, expr: Expr, setup: WindowSetup, *, apart: bool, by_value: bool, nullable: bool) -> None:
        self.setup, self.apart, self.by_value, self._nullable = setup, apart, by_value, nullable
        self._attribute = expr.attr if isinstance(expr, Ref) else None
        self._evaluate = compile_expr(expr, setup.context)
        self._type = expr.type
        self.clear()

    def clear(self) -> None:
        """Forgets all ids."""
        types = (Type.INT, self._type) if self.apart else (self._type,)
        self._keys = Keys(types, self.setup.strings, instances=self.apart, null_is_text=not self.by_value)

    @property
    def size(self) -> int:
        """The number of ids."""
        return self._keys.size

    def take(self, rows: Rows, clock: Clock) -> tuple[Rows, Array]:
        """(the rows that have a key, int32 ids of their keys)."""
        if self._attribute is not None:
            key, missing = rows.columns[self._attribute], None
        else:
            env = Env(len(rows), self.setup.strings, rows.ts, lambda: clock.at(rows.order_key), frame_of(rows).resolve)
            key = self._evaluate(env)
            missing = env.failed_rows
        if not self._nullable and key.null is not None:
            missing = key.null if missing is None else missing | key.null
        if missing is not None and missing.any():
            self.setup.refuse(rows, missing, "its unique key is null, or failed")
            rows, key = rows.where(~missing), key.take(np.flatnonzero(~missing))
        columns = [Column(Type.INT, rows.instances()), key] if self.apart else [key]
        return rows, self._keys.ids(columns)

    def spreads(self, first: int) -> Array:
        """The hashes of the keys with ids from `first` on, as Java's maps spread them."""
        key = self._keys.columns()[-1]
        h = java_hashes(key.slice(first, len(key)), self.setup.strings, as_text=not self.by_value)
        spread: Array = h ^ (h >> 16)
        return spread

    def instances(self) -> Array:
        """The partition instance of each id; they have to be `apart`."""
        return self._keys.columns()[0].values

    def keep(self, ids: Array) -> None:
        """Only these ids stay; they become 0, 1, 2 ..."""
        columns = [c.take(ids) for c in self._keys.columns()]
        self.clear()
        if len(ids):
            self._keys.ids(columns)

    def state(self) -> dict[str, Any]:
        return self._keys.state()

    def load(self, state: dict[str, Any]) -> None:
        self._keys.load(state)


@struct
class KeyedWindow(ChainedWindow):
    """A window that looks its events up by key. Its log has the id of each event's key as a last column, `by_key` the
    numbers of each id: row `LAST` and those up to `positions` are positions in the log (-1: none). `places` are the
    declared numbers of instances that are positions; such an event is alive.
    """

    key: UniqueKey
    by_key: Array
    positions = 1
    places: tuple[str, ...] = ()
    shows = "events"
    """The chain of the events that have been emitted and have not left."""
    keeps_ids = True
    """True if an id stays when nothing is held for it."""

    def _begin(self, setup: WindowSetup, numbers: int) -> None:
        """Begins with no events; `numbers` are the rows of `by_key`."""
        self.types = setup.types
        self._declare((*setup.types, Type.INT))
        self.by_key = np.full((numbers, 0), -1, np.int64)

    def _add(self, rows: Rows, ids: Array, instances: int) -> int:
        """The rows come into the log, in no chain; returns the first position."""
        at = self.log.add(rows.with_columns([*rows.columns, Column(Type.INT, ids)]), instances)
        self.by_key = grown(self.by_key, self.key.size, -1)
        self._widen(instances)
        return at

    @property
    def ids(self) -> Array:
        """By position, the id of each event's key."""
        return self.log.values(len(self.types))

    def _strip(self, rows: Rows) -> Rows:
        """Rows without the ids."""
        return rows.pick(range(len(self.types)))

    def _compact(self) -> None:
        """Drops dead events and, where they need not stay, ids without events."""
        self.log.tidy(*self.by_key[: self.positions], *(getattr(self, name) for name in self.places))
        if not self.keeps_ids and self.key.size > _FEW_IDS:
            used_ids = np.flatnonzero((self.by_key[: self.positions, : self.key.size] >= 0).any(axis=0))
            if 4 * len(used_ids) < self.key.size:
                self._renumber(used_ids)

    def _renumber(self, stay: Array) -> None:
        """Only these ids stay."""
        new_places = np.full(self.key.size + 1, -1, np.int32)  # the last place is for -1
        new_places[stay] = np.arange(len(stay))
        self.ids[: self.log.end] = new_places[self.ids[: self.log.end]]
        self.by_key = self.by_key[:, stay].copy()
        self.key.keep(stay)

    def forget(self, instances: Array) -> None:
        super().forget(instances)
        if self.key.apart:
            self._renumber(np.flatnonzero(~np.isin(self.key.instances(), instances)))

    def _state(self, form: Form) -> dict[str, Any]:
        log = self.log
        live = np.flatnonzero(log.alive[: log.end])
        new_places = np.full(log.end + 1, -1, np.int64)
        new_places[live] = np.arange(len(live))
        by_key = self.by_key[:, : self.key.size].copy()
        by_key[: self.positions] = new_places[by_key[: self.positions]]
        chains = []
        for c in range(len(self.chains)):
            positions, lengths = log.positions_of(c)
            chains.append({"events": new_places[positions], "lengths": lengths})
        numbers = DeclaredState._state(self, form)
        numbers |= {name: new_places[numbers[name]] for name in self.places}
        return {"events": log.state(live), "keys": self.key.state(), "by_key": by_key, "chains": chains, **numbers}

    def load(self, state: dict[str, Any]) -> None:
        log, events = self.log, state["events"]
        log.__init__(log.types, log.chains)  # type: ignore[misc]
        zeros = np.zeros(len(events["ts"]), np.int64)
        instances = len(state["chains"][0]["lengths"])
        log.add(Rows(events["columns"], events["ts"], zeros, zeros, None, events["part"]), instances)
        log.alive[: log.end] = True
        self.key.load(state["keys"])
        self.by_key = state["by_key"].copy()
        for c, chain in enumerate(state["chains"]):
            log.link(c, chain["events"], chain["lengths"])
        DeclaredState.load(self, state)

    @property
    def bytes(self) -> int:
        return self.log.bytes + self.by_key.nbytes
