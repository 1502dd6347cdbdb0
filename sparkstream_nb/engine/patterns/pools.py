"""The machine's memory as numpy arrays: growing pools, the header with their addresses, and state as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import grown
from ..columnar.blocks import Blocks, Tracked
from ..columnar.column_data import Array
from . import machine_memory as m
from .between_runs import begin_instances, forget_instances, mark_events, reindex, renumber_events
from .check import interpret_filter
from .dump import dump_machine, measure, restore_machine
from .filter_program import Filters
from .index import enter_index, index_key, leave_index, look
from .log import PatternLog
from .machine import notify_at
from .machine_layout import PatternLayout, end_list, receivers, selecting_streams
from .partial_matches import FAR, drop_chain, in_chain, remove_last_event
from .pattern_loop import birth, proceed, timers_wait, write_chains
from .pointers import Unit
from .process import after_absent_logical, process
from .processors import (
    add_any,
    add_every,
    came,
    count,
    expire_events,
    logical,
    partition_created,
    reset_state,
    update_state,
)

_FREE = (
    (m.XE, m.E_FREE, m.E_LEFT, m.E_TIME),
    (m.XN, m.N_FREE, m.N_LEFT, m.N_NEXT),
    (m.XC, m.C_FREE, m.C_LEFT, m.C_NEXT),
    (m.XT, m.T_FREE, m.T_LEFT, 1),
)
"""Per pool: its address, free list and number of free records in the header, and the word that links free records."""
LEAST_SAVED = 1 << 20
"""Bytes of pools that are worth saving by change."""

_SAVED = sorted((*(f for _, f, _, _ in _FREE), *(left for _, _, left, _ in _FREE), m.NEXT_DUE))
"""The registers that mean something between two batches, and do not follow from the pools."""


def functions(layout: PatternLayout, filters: Filters) -> dict[int, Unit]:
    """The compiled functions that the machine of a pattern can call, by their places in the header."""
    kinds, table = {p.kind for p in layout.processors}, filters.table
    passed_over = any(p.is_counted and p.least == 0 for p in layout.processors)
    again = any(p.every >= 0 or p.within_every >= 0 for p in layout.processors)
    has = {
        m.F_ROWS: (proceed, True),
        m.F_BIRTH: (birth, True),
        m.F_PROCESS: (process, True),
        m.F_UPDATE: (update_state, True),
        m.F_PASSES: (interpret_filter, filters.general or bool((table[:, m.SLOW] != 0).any())),
        m.F_ENTER: (enter_index, bool((table[:, m.KEYS] >= 0).any())),
        m.F_LOOK: (look, bool((table[:, m.KEYS] >= 0).any())),
        m.F_KEY: (index_key, bool((table[:, m.KEY_COUNT] > 0).any())),
        m.F_LEAVE: (leave_index, bool((table[:, m.KEY_COUNT] > 0).any())),
        m.F_WAIT: (timers_wait, bool(layout.timers)),
        m.F_WRITE: (write_chains, m.COUNT in kinds),
        m.F_CHAIN: (in_chain, m.COUNT in kinds),
        m.F_DROP: (drop_chain, m.COUNT in kinds),
        m.F_SHORTEN: (remove_last_event, m.COUNT in kinds),
        m.F_ADD: (add_any, passed_over or not kinds <= {m.STREAM, m.COUNT}),
        m.F_CREATED: (partition_created, bool(layout.startup)),
        m.F_NOTIFY: (notify_at, bool(layout.timers)),
        m.F_EVERY: (add_every, again or m.ABSENT in kinds),
        m.F_COUNT: (count, m.COUNT in kinds),
        m.F_LOGICAL: (logical, m.LOGICAL in kinds),
        m.F_CAME: (came, m.ABSENT in kinds or m.ABSENT_LOGICAL in kinds),
        m.F_AFTER: (after_absent_logical, m.ABSENT_LOGICAL in kinds),
        m.F_EXPIRE: (expire_events, layout.input.within is not None),
        m.F_RESET: (reset_state, layout.sequence),
    }
    return {at: function for at, (function, needed) in has.items() if needed}


class Pools:
    """All arrays of one pattern's machine. `header` is the argument of the compiled loop."""

    def __init__(self, layout: PatternLayout, filters: Filters, log: PatternLog) -> None:
        self.layout, self.log = layout, log
        self.n = len(layout.processors)
        self.header = np.zeros(m.X_SIZE, np.int64)
        self._table = filters.table
        self._held: dict[int, Array] = {}
        self._sizes = {m.XE: m.E_SLOTS * (2 + self.n // m.E_SLOTS), m.XN: m.N_SIZE, m.XC: m.C_SIZE, m.XT: 2}
        # Constants of filters are words, as the log's are.
        self._fixed = {
            m.XP: filters.table, m.XQ: np.array([*filters.codes, 0], np.int64),
            m.XK: np.array([*filters.constants, 0], np.int64), m.XS: np.zeros(128, np.int64),
            m.XM: np.zeros(128, np.uint8),
            m.M_INIT: end_list(layout.inits), m.M_RESET: end_list(layout.resets), m.M_UPDATE: end_list(layout.updates),
            m.M_STARTUP: end_list(layout.startup), m.M_TIMERS: end_list(layout.timers),
            m.M_STARTS: end_list(layout.starts),
            m.M_STREAM: receivers(layout), m.M_SELECTS: selecting_streams(layout),
        }  # fmt: skip
        self._blocks = {at: Blocks(8) for at in sorted(m.TOLD)}
        """Saved blocks of pools."""
        self._functions = {at: f.address for at, f in functions(layout, filters).items()}
        self.clear()

    def clear(self) -> None:
        """The state of a pattern that has seen nothing."""
        x = self.header
        x[:] = 0
        for blocks in self._blocks.values():
            blocks.forget()
        for at, array in self._fixed.items():
            self.hold(at, array)
        for at, address in self._functions.items():
            x[at] = address
        x[m.NP], x[m.E_SIZE] = self.n, self._sizes[m.XE]
        x[m.WITHIN] = -1 if self.layout.input.within is None else self.layout.input.within
        x[m.SEQUENCE] = self.layout.sequence
        x[m.START_N], x[m.TIMERS] = len(self.layout.starts), len(self.layout.timers)
        x[m.CHAINS] = sum(p.is_counted for p in self.layout.processors)
        x[m.NEXT_DUE] = FAR
        x[m.O_SIZE] = m.O_SLOTS + self.n * (2 if x[m.CHAINS] else 1)
        self.hold(m.XV, np.zeros(self.n, np.int64))
        for at, *_ in _FREE:
            self.hold(at, zeros(self._sizes[at]))
        self.instances = 0
        self.hold(m.XL, zeros(0))
        self.hold(m.XH, np.zeros(0, np.int64))
        for at, _, left, _ in _FREE:
            self.more(at, left, 1024)
        self.hold(m.XR, np.zeros(1024, np.int64))
        x[m.R_CAP] = 1024
        self.index(64)
        self.need_instances(1)

    def hold(self, at: int, array: Array) -> None:
        """Make `array` the pool whose address is at `at` of the header. One that is `TOLD` is allocated by `zeros`."""
        if at in m.TOLD and len(array) and len(self._held.get(at, ())):
            flags_of(array)[:] |= flags_of(self._held[at])
        self._held[at] = array
        self.header[at] = array.ctypes.data

    def array(self, at: int) -> Array:
        """The pool whose address is at `at` of the header."""
        return self._held[at]

    # -------------------------------------------------------------------------------------------------------- room

    def more(self, at: int, left: int, records: int) -> None:
        """Adds at least `records` free records to a pool."""
        free, link = next((f, w) for a, f, _, w in _FREE if a == at)
        size, old = self._sizes[at], self._held[at]
        have = len(old) // size
        total = max(have + records, 2 * have)
        pool = zeros(total * size)
        pool[: len(old)] = old
        added = np.arange(have, total, dtype=np.int64) * size
        pool[added[:-1] + link] = added[1:]
        pool[added[-1] + link] = self.header[free]
        self.header[free] = added[0]
        self.header[left] += len(added)
        self.hold(at, pool)

    def reserve_records(self, records: int) -> None:
        """Makes every pool have more than `records` free records, and `R` as much room."""
        x = self.header
        for at, _, left, _ in _FREE:
            if x[left] <= records:
                self.more(at, left, records + 1)
        if x[m.R_CAP] - x[m.R_N] <= 2 * records:
            self.hold(m.XR, grown(self._held[m.XR], int(x[m.R_N]) + 2 * records + 2))
            x[m.R_CAP] = len(self._held[m.XR])

    def need_instances(self, instances: int) -> None:
        """Makes room for `instances` partition instances."""
        if instances <= self.instances:
            return
        have = self.instances
        instances = max(instances, 2 * have if have > 1 else instances)
        rows = zeros(instances * self.n * m.L_SIZE)
        rows[:] = fresh_lists(instances * self.n).ravel()
        rows[: have * self.n * m.L_SIZE] = self._held[m.XL]
        self.hold(m.XL, rows)
        timers = len(self.layout.timers)
        if timers:
            size = m.H_HEAP + 2 * instances
            heaps = np.zeros((timers, size), np.int64)
            heaps[:, m.H_BUCKETS] = 16
            if have:
                heaps[:, : m.H_HEAP + 2 * have] = self.schedulers
            self.hold(m.XH, heaps.ravel())
            self.header[m.HEAP_N] = size
            self.hold(m.XDUE, np.zeros(2 * instances + 2, np.int64))
            self.hold(m.XHASH, np.zeros(instances, np.int64))
        self.instances = instances

    @property
    def schedulers(self) -> Array:
        """The records of `H`: int64[schedulers, words]."""
        return self._held[m.XH].reshape(len(self.layout.timers), -1)

    def hashes(self, hashes: Array | None) -> None:
        """Sets the hashes of the instances' keys (`Instances.hashes`)."""
        if hashes is not None:
            held = self._held[m.XHASH]
            held[: len(hashes)] = hashes[: len(held)]

    def index(self, buckets: int) -> None:
        """A new index with a power of two of buckets."""
        table = np.zeros((buckets, m.B_SIZE), np.int64)
        table[:, m.B_BOUND] = np.float64(np.inf).view(np.int64)
        self.hold(m.XB, table.ravel())
        self.header[m.BUCKETS] = buckets
        if self.instances:
            reindex(self.header.ctypes.data, self.instances)

    def fit_index(self) -> None:
        """Keeps about two buckets per indexed partial."""
        held, buckets = int(self.header[m.INDEXED]), int(self.header[m.BUCKETS])
        if held > buckets or (buckets > 1024 and held * 16 < buckets):
            size = 64
            while size < 2 * held:
                size *= 2
            if size != buckets:
                self.index(size)

    def bind_log(self) -> None:
        """Updates the log's addresses in the header."""
        self.hold(m.XW, self.log.words)
        self.hold(m.XZ, self.log.null)
        self.hold(m.XET, self.log.times)
        self.header[m.WORDS] = self.log.words.shape[1]

    def begin(self, instances: Array, times: Array) -> None:
        """Starts the instances that have not started, in order; `times` int64: when each was made (ms)."""
        if len(instances):
            self.reserve_records((4 * self.n + 8) * len(instances))
            begin_instances(self.header.ctypes.data, np.ascontiguousarray(instances, np.int64), times[instances])

    def forget(self, instances: Array) -> None:
        """Empties the lists of partition instances, as if they had never existed."""
        forget_instances(self.header.ctypes.data, np.ascontiguousarray(instances, np.int64))
        rows = self._held[m.XL].reshape(-1, m.L_SIZE)
        lists = (instances[:, None] * self.n + np.arange(self.n)).ravel()
        rows[lists] = fresh_lists(len(lists))

    # -------------------------------------------------------------------------------------------------------- state

    def trim(self) -> None:
        """Trims the log to the events that partials refer to."""
        used = np.zeros(self.log.n, np.uint8)
        address, capacity = self.header.ctypes.data, len(self._held[m.XE])
        mark_events(address, capacity, used)
        new = self.log.trim(used != 0)
        renumber_events(address, capacity, new)
        self.bind_log()

    def state(self) -> dict[str, Any]:
        """The whole state, in an order that depends on the lists alone and not on the layout in memory."""
        self.trim()
        found, _ = self.dump()
        return {"log": self.log.state(), **found}

    def dump(self) -> tuple[dict[str, Any], Array]:
        """The state without the events: lists, partials and timers, by the events' present numbers; and the records of
        the partials. Changes nothing."""
        sizes = np.zeros(4, np.int64)
        address = self.header.ctypes.data
        measure(address, self.instances, sizes)
        cells, partials, links, times = sizes.tolist()
        lists = np.zeros((self.instances * self.n, 13), np.int64)
        out_cells = np.zeros(cells, np.int64)
        out_partials = np.zeros((partials + 1, m.E_SLOTS + self.n), np.int64)
        chains = np.zeros(links + 1, np.int64)
        events = np.zeros(links, np.int64)
        out_times = np.zeros(times, np.int64)
        seen = np.zeros(len(self._held[m.XE]) // self._sizes[m.XE] + 1, np.int64)
        seen_chains = np.zeros(len(self._held[m.XC]) // m.C_SIZE + 1, np.int64)
        n, k = dump_machine(
            address, self.instances, lists, out_cells, out_partials, chains, events, out_times, seen, seen_chains
        )
        born = lists[:, 7].reshape(-1, self.n)[:, 0]
        instances = int(np.flatnonzero(born)[-1]) + 1 if born.any() else 0
        found = {
            "lists": lists[: instances * self.n],
            "cells": out_cells,
            "partials": out_partials[:n],
            "chains": chains[:k],
            "events": events[: int(chains[k - 1]) if k else 0],
            "times": out_times,
            "returned": self._held[m.XV].copy(),
            "maps": self.schedulers[:, m.H_BUCKETS : m.H_HEAP].copy() if self.layout.timers else None,
        }
        records = np.flatnonzero(seen)
        return found, records[np.argsort(seen[records])]

    def touch(self, at: int, words: Array) -> None:
        """These words of a pool were written otherwise than by compiled code."""
        self._blocks[at].touch(words)

    def save_state(self) -> dict[str, Any]:
        """All pools as they are, saved by change; as `state` where they are small, as there is free room in them."""
        if sum(self._held[at].nbytes for at in m.KEPT) < LEAST_SAVED:
            return self.state()
        pools: dict[int, Array | Tracked] = {at: self._held[at] for at in m.KEPT}
        for at, blocks in self._blocks.items():
            marks = flags_of(self._held[at])
            written = np.flatnonzero(marks)
            if len(written):
                if (1 << m.TOLD_SHIFT) % self._sizes[at]:  # a record may go on in the next block
                    written = np.union1d(written, (written + 1) % m.TOLD_SIZE)
                blocks.touch_each(m.TOLD_SIZE, written, 1 << m.TOLD_SHIFT)
                marks[:] = 0
            pools[at] = Tracked.of(blocks, 0, self._held[at])
        return {
            "log": self.log.save_state(),
            "pools": list(pools.values()),
            "parts": self.instances,
            "registers": self.header[_SAVED].copy(),
            "buckets": int(self.header[m.BUCKETS]),
            "returned": self._held[m.XV].copy(),
            "heaps": self._held[m.XH].copy(),
        }

    def _load_pools(self, state: dict[str, Any]) -> None:
        """The inverse of `save_state`."""
        self.clear()
        self.log.load_saved(state["log"])
        self.bind_log()
        self.need_instances(state["parts"])
        for at, words in zip(m.KEPT, state["pools"], strict=True):
            pool = zeros(len(words))
            pool[:] = words
            self.hold(at, pool)
        self.header[_SAVED] = state["registers"]
        self._held[m.XV][:] = state["returned"]
        self._held[m.XH][:] = state["heaps"]
        self.index(state["buckets"])

    def load(self, state: dict[str, Any]) -> None:
        """Restores what `state` or `save_state` returned."""
        if "pools" in state:
            self._load_pools(state)
            return
        self.clear()
        self.log.load(state["log"])
        self.bind_log()
        lists = np.ascontiguousarray(state["lists"])
        self.need_instances(max(1, len(lists) // self.n))
        self.reserve_records(max(len(state[pool]) for pool in ("cells", "partials", "events", "times")) + 16)
        address = self.header.ctypes.data
        restore_machine(
            address, len(lists) // self.n, lists, state["cells"].copy(), np.ascontiguousarray(state["partials"]),
            state["chains"].copy(), state["events"].copy(), state["times"].copy(),
        )  # fmt: skip
        self._held[m.XV][:] = state["returned"]
        if self.layout.timers:
            self.schedulers[:, m.H_BUCKETS : m.H_HEAP] = state["maps"]
        self.fit_index()

    @property
    def waiting_matches(self) -> int:
        """Partial matches in the lists of states, with the empty ones that wait for a first event."""
        # The first entry stands for none.
        return len(self._held[m.XN]) // self._sizes[m.XN] - int(self.header[m.N_LEFT]) - 1

    @property
    def bytes(self) -> int:
        """Bytes of living partials, their list entries and events."""
        x = self.header
        total = self.log.bytes
        for at, _, left, _ in _FREE:
            total += (len(self._held[at]) // self._sizes[at] - int(x[left])) * self._sizes[at] * 8
        return total + self._held[m.XL].nbytes


def zeros(words: int) -> Array:
    """int64 zeros, aligned to a cache line. Before them is room for the bytes that record writes (`flags_of`)."""
    before = m.TOLD_SIZE // 8
    out = np.zeros(before + words + 8, np.int64)
    start = before + -out.ctypes.data % 64 // 8
    return out[start : start + words]


def flags_of(pool: Array) -> Array:
    """uint8[TOLD_SIZE]: which blocks of a pool by `zeros` compiled code has written."""
    whole = pool.base
    assert whole is not None
    start = pool.ctypes.data - whole.ctypes.data - m.TOLD_SIZE
    out: Array = whole.view(np.uint8)[start : start + m.TOLD_SIZE]
    return out


def fresh_lists(n: int) -> Array:
    """`n` new records of `L`."""
    rows = np.zeros((n, m.L_SIZE), np.int64)
    rows[:, m.ACTIVE] = 1
    rows[:, m.LOW] = rows[:, m.LAST_START] = -FAR
    rows[:, m.HIGH] = FAR
    rows[:, m.RISING] = 1
    return rows
