"""The machine's memory as numpy arrays: growing pools, the header with their addresses, and state as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import grown
from ..columnar.blocks import Blocks, Tracked
from ..columnar.column_data import Array
from . import check, index, machine, partial_matches, pattern_loop, process, processors
from . import machine_memory as memory
from .between_runs import begin_instances, forget_instances, mark_events, reindex, renumber_events
from .dump import LISTS, Dump, dump_machine, measure, restore_machine
from .filter_program import Filters
from .log import PatternLog
from .machine_layout import PatternLayout, end_list, receivers, selecting_streams
from .machine_memory import LINK_WORDS, Machine, Scheduler, StateLists
from .partial_matches import FAR
from .pointers import Unit
from .records import dtype_of, offset_of, view_of, words_of

_FREE = (
    ("partials", "free_partial", "partials_left", memory.Partial.time),
    ("cells", "free_cell", "cells_left", memory.Cell.next),
    ("links", "free_link", "links_left", memory.Link.next),
    ("times", "free_time", "times_left", memory.ScheduledTime.next),
)
"""Per pool: its name; in the header, the names of its first free record and of the number of free records; and the word
that links free records."""
_HEAP = offset_of(Scheduler, "heap")
LEAST_SAVED = 1 << 20
"""Bytes of pools that are worth saving by change."""

_SAVED = [offset_of(Machine, name) for _, free, left, _ in _FREE for name in (free, left)]
_SAVED.append(offset_of(Machine, "next_due"))
"""The registers that mean something between two batches, and do not follow from the pools."""


def functions(layout: PatternLayout, filters: Filters) -> dict[str, Unit]:
    """The compiled functions that the machine of a pattern can call, by their names in the header."""
    kinds, table = {p.kind for p in layout.processors}, filters.table
    passed_over = any(p.is_counted and p.least == 0 for p in layout.processors)
    again = any(p.every >= 0 or p.within_every >= 0 for p in layout.processors)
    has = {
        "process_rows": (pattern_loop.process_rows, True),
        "begin_instance": (pattern_loop.begin_instance, True),
        "process": (process.process, True),
        "update_state": (processors.update_state, True),
        "interpret_filter": (check.interpret_filter, filters.general or bool((table["slow"] != 0).any())),
        "enter_index": (index.enter_index, bool((table["keys"] >= 0).any())),
        "first_candidate": (index.first_candidate, bool((table["keys"] >= 0).any())),
        "index_key": (index.index_key, bool((table["key_count"] > 0).any())),
        "leave_index": (index.leave_index, bool((table["key_count"] > 0).any())),
        "timers_wait": (pattern_loop.timers_wait, bool(layout.timers)),
        "write_chains": (pattern_loop.write_chains, memory.COUNT in kinds),
        "event_in_chain": (partial_matches.event_in_chain, memory.COUNT in kinds),
        "drop_chain": (partial_matches.drop_chain, memory.COUNT in kinds),
        "remove_last_event": (partial_matches.remove_last_event, memory.COUNT in kinds),
        "add_any": (processors.add_any, passed_over or not kinds <= {memory.STREAM, memory.COUNT}),
        "partition_created": (processors.partition_created, bool(layout.startup)),
        "notify_at": (machine.notify_at, bool(layout.timers)),
        "add_every": (processors.add_every, again or memory.ABSENT in kinds),
        "reach_count": (processors.reach_count, memory.COUNT in kinds),
        "reach_logical": (processors.reach_logical, memory.LOGICAL in kinds),
        "reach_absent": (processors.reach_absent, memory.ABSENT in kinds or memory.ABSENT_LOGICAL in kinds),
        "after_absent_logical": (process.after_absent_logical, memory.ABSENT_LOGICAL in kinds),
        "expire_events": (processors.expire_events, layout.input.within is not None),
        "reset_state": (processors.reset_state, layout.sequence),
    }
    return {name: function for name, (function, is_needed) in has.items() if is_needed}


class Pools:
    """All arrays of one pattern's machine. `header` is the argument of the compiled loop."""

    def __init__(self, layout: PatternLayout, filters: Filters, log: PatternLog) -> None:
        self.layout, self.log = layout, log
        self.n = len(layout.processors)
        self.header = np.zeros(2 * memory.LENGTHS, np.int64)
        self.machine: Machine = view_of(Machine, self.header)
        self._table = filters.table
        self._arrays: dict[str, Array] = {}
        self._sizes = {
            "partials": memory.EVENTS * (2 + self.n // memory.EVENTS),
            "cells": words_of(memory.Cell),
            "links": LINK_WORDS,
            "times": words_of(memory.ScheduledTime),
        }
        # Constants of filters are words, as the log's are.
        self._constants = {
            "states": filters.table, "codes": np.array([*filters.codes, 0], np.int64),
            "constants": np.array([*filters.constants, 0], np.int64), "stack": np.zeros(128, np.int64),
            "stack_nulls": np.zeros(128, np.uint8), "inits": end_list(layout.inits), "resets": end_list(layout.resets),
            "updates": end_list(layout.updates), "startup": end_list(layout.startup),
            "timer_states": end_list(layout.timers), "start_states": end_list(layout.starts),
            "receivers": receivers(layout), "selecting": selecting_streams(layout),
        }  # fmt: skip
        self._blocks = {pool: Blocks(8) for pool in memory.RECORDED_POOLS}
        """Saved blocks of pools."""
        self._functions = {name: f.address for name, f in functions(layout, filters).items()}
        self.clear()

    def clear(self) -> None:
        """The state of a pattern that has seen nothing."""
        x = self.machine
        self.header[:] = 0
        for blocks in self._blocks.values():
            blocks.forget()
        for at, array in self._constants.items():
            self.hold(at, array)
        for name, address in self._functions.items():
            setattr(x, name, address)
        x.state_count, x.partial_words = self.n, self._sizes["partials"]
        x.within = -1 if self.layout.input.within is None else self.layout.input.within
        x.is_sequence = self.layout.sequence
        x.start_count, x.timer_count = len(self.layout.starts), len(self.layout.timers)
        x.counted_states = sum(p.is_counted for p in self.layout.processors)
        x.next_due = FAR
        x.match_columns = memory.SETTLED_COLUMNS + self.n * (2 if x.counted_states else 1)
        self.hold("has_returned", np.zeros(self.n, np.int64))
        for at, *_ in _FREE:
            self.hold(at, zeros(self._sizes[at]))
        self.instances = 0
        self.hold("lists", zeros(0))
        self.hold("schedulers", np.zeros(0, np.int64))
        for at, _, left, _ in _FREE:
            self.more(at, left, 1024)
        self.hold("selection", np.zeros(1024, np.int64))
        x.selected_capacity = 1024
        self.index(64)
        self.need_instances(1)

    def hold(self, at: str, array: Array) -> None:
        """Make field `at` of the header point to `array`. A recorded pool is allocated by `zeros`."""
        if at in memory.RECORDED_POOLS and len(array) and len(self._arrays.get(at, ())):
            flags_of(array)[:] |= flags_of(self._arrays[at])
        self._arrays[at] = array
        setattr(self.machine, at, array.ctypes.data)
        self.header[memory.LENGTHS + offset_of(Machine, at)] = array.nbytes // min(8, array.itemsize)

    def array(self, at: str) -> Array:
        """The memory that field `at` of the header points to."""
        return self._arrays[at]

    # -------------------------------------------------------------------------------------------------------- room

    def more(self, at: str, left: str, records: int) -> None:
        """Adds at least `records` free records to a pool."""
        free, link = next((f, w) for a, f, _, w in _FREE if a == at)
        size, current = self._sizes[at], self._arrays[at]
        have = len(current) // size
        total = max(have + records, 2 * have)
        pool = zeros(total * size)
        pool[: len(current)] = current
        new_records = np.arange(have, total, dtype=np.int64) * size
        pool[new_records[:-1] + link] = new_records[1:]
        x = self.machine
        pool[new_records[-1] + link] = getattr(x, free)
        setattr(x, free, new_records[0])
        setattr(x, left, getattr(x, left) + len(new_records))
        self.hold(at, pool)

    def reserve_records(self, records: int) -> None:
        """Makes every pool have more than `records` free records, and room for as many selected partials."""
        x = self.machine
        for at, _, left, _ in _FREE:
            if getattr(x, left) <= records:
                self.more(at, left, records + 1)
        if x.selected_capacity - x.selected_count <= 2 * records:
            self.hold("selection", grown(self._arrays["selection"], x.selected_count + 2 * records + 2))
            x.selected_capacity = len(self._arrays["selection"])

    def need_instances(self, instances: int) -> None:
        """Makes room for `instances` partition instances."""
        if instances <= self.instances:
            return
        have = self.instances
        instances = max(instances, 2 * have if have > 1 else instances)
        rows = zeros(instances * self.n * words_of(StateLists))
        rows[:] = fresh_lists(instances * self.n).view(np.int64)
        rows[: len(self._arrays["lists"])] = self._arrays["lists"]
        self.hold("lists", rows)
        timers = len(self.layout.timers)
        if timers:
            size = _HEAP + 2 * instances
            heaps = np.zeros((timers, size), np.int64)
            heaps[:, Scheduler.buckets] = 16
            if have:
                heaps[:, : _HEAP + 2 * have] = self.schedulers
            self.hold("schedulers", heaps.ravel())
            self.machine.scheduler_words = size
            self.hold("due", np.zeros(2 * instances + 2, np.int64))
            self.hold("hashes", np.zeros(instances, np.int64))
        self.instances = instances

    @property
    def schedulers(self) -> Array:
        """The records of the schedulers: int64[schedulers, words]."""
        return self._arrays["schedulers"].reshape(len(self.layout.timers), -1)

    def hashes(self, hashes: Array | None) -> None:
        """Sets the hashes of the instances' keys (`Instances.hashes`)."""
        if hashes is not None:
            array = self._arrays["hashes"]
            array[: len(hashes)] = hashes[: len(array)]

    def index(self, buckets: int) -> None:
        """A new index with a power of two of buckets."""
        table = np.zeros(buckets, dtype_of(memory.Bucket))
        table["bound"] = np.inf
        self.hold("buckets", table)
        self.machine.bucket_count = buckets
        if self.instances:
            reindex(self.header.ctypes.data, self.instances)

    def fit_index(self) -> None:
        """Keeps about two buckets per indexed partial."""
        indexed_count, buckets = self.machine.indexed_count, self.machine.bucket_count
        if indexed_count > buckets or (buckets > 1024 and indexed_count * 16 < buckets):
            size = 64
            while size < 2 * indexed_count:
                size *= 2
            if size != buckets:
                self.index(size)

    def bind_log(self) -> None:
        """Updates the log's addresses in the header."""
        self.hold("words", self.log.words)
        self.hold("nulls", self.log.null)
        self.hold("event_times", self.log.times)
        self.machine.log_capacity = self.log.words.shape[1]

    def begin(self, instances: Array, times: Array) -> None:
        """Starts the instances that have not started, in order; `times` int64: when each was made (ms)."""
        if len(instances):
            self.reserve_records((4 * self.n + 8) * len(instances))
            begin_instances(self.header.ctypes.data, np.ascontiguousarray(instances, np.int64), times[instances])

    def forget(self, instances: Array) -> None:
        """Empties the lists of partition instances, as if they had never existed."""
        forget_instances(self.header.ctypes.data, np.ascontiguousarray(instances, np.int64))
        rows = self._arrays["lists"].view(dtype_of(StateLists))
        lists = (instances[:, None] * self.n + np.arange(self.n)).ravel()
        rows[lists] = fresh_lists(len(lists))

    # -------------------------------------------------------------------------------------------------------- state

    def trim(self) -> None:
        """Trims the log to the events that partials refer to."""
        is_used = np.zeros(self.log.n, np.uint8)
        address, capacity = self.header.ctypes.data, len(self._arrays["partials"])
        mark_events(address, capacity, is_used)
        new = self.log.trim(is_used != 0)
        renumber_events(address, capacity, new)
        self.bind_log()

    def state(self) -> dict[str, Any]:
        """The whole state, in an order that depends on the lists alone and not on the layout in memory."""
        self.trim()
        contents, _ = self.dump()
        return {"log": self.log.state(), **contents}

    def dump(self) -> tuple[dict[str, Any], Array]:
        """The state without the events: lists, partials and timers, by the events' present numbers; and the records of
        the partials. Changes nothing."""
        sizes = np.zeros(4, np.int64)
        address = self.header.ctypes.data
        measure(address, self.instances, sizes)
        cells, partials, links, times = sizes.tolist()
        dump = Dump(
            lists=np.zeros(self.instances * self.n, LISTS),
            cells=np.zeros(cells, np.int64),
            partials=np.zeros((partials + 1, memory.EVENTS + self.n), np.int64),
            chains=np.zeros(links + 1, np.int64),
            events=np.zeros(links, np.int64),
            times=np.zeros(times, np.int64),
        )
        numbers = np.zeros(len(self._arrays["partials"]) // self._sizes["partials"] + 1, np.int64)
        chain_numbers = np.zeros(len(self._arrays["links"]) // LINK_WORDS + 1, np.int64)
        n, k = dump_machine(address, self.instances, dump, numbers, chain_numbers)
        born = dump.lists["born"][:: self.n]
        instances = int(np.flatnonzero(born)[-1]) + 1 if born.any() else 0
        contents = {
            "lists": dump.lists[: instances * self.n].view(np.int64).reshape(-1, LISTS.itemsize // 8),
            "cells": dump.cells,
            "partials": dump.partials[:n],
            "chains": dump.chains[:k],
            "events": dump.events[: int(dump.chains[k - 1]) if k else 0],
            "times": dump.times,
            "returned": self._arrays["has_returned"].copy(),
            "maps": self.schedulers[:, Scheduler.buckets : _HEAP].copy() if self.layout.timers else None,
        }
        records = np.flatnonzero(numbers)
        return contents, records[np.argsort(numbers[records])]

    def touch(self, at: str, words: Array) -> None:
        """These words of a pool were written otherwise than by compiled code."""
        self._blocks[at].touch(words)

    def save_state(self) -> dict[str, Any]:
        """All pools as they are, saved by change; as `state` where they are small, as there is free room in them."""
        if sum(self._arrays[at].nbytes for at in memory.STATE_POOLS) < LEAST_SAVED:
            return self.state()
        pools: dict[str, Array | Tracked] = {at: self._arrays[at] for at in memory.STATE_POOLS}
        for at, blocks in self._blocks.items():
            marks = flags_of(self._arrays[at])
            dirty_blocks = np.flatnonzero(marks)
            if len(dirty_blocks):
                if (1 << memory.BLOCK_SHIFT) % self._sizes[at]:  # a record may go on in the next block
                    dirty_blocks = np.union1d(dirty_blocks, (dirty_blocks + 1) % memory.BLOCK_MARKS)
                blocks.touch_each(memory.BLOCK_MARKS, dirty_blocks, 1 << memory.BLOCK_SHIFT)
                marks[:] = 0
            pools[at] = Tracked.of(blocks, 0, self._arrays[at])
        return {
            "log": self.log.save_state(),
            "pools": list(pools.values()),
            "parts": self.instances,
            "registers": self.header[_SAVED].copy(),
            "buckets": self.machine.bucket_count,
            "returned": self._arrays["has_returned"].copy(),
            "heaps": self._arrays["schedulers"].copy(),
        }

    def _load_pools(self, state: dict[str, Any]) -> None:
        """The inverse of `save_state`."""
        self.clear()
        self.log.load_saved(state["log"])
        self.bind_log()
        self.need_instances(state["parts"])
        for at, words in zip(memory.STATE_POOLS, state["pools"], strict=True):
            pool = zeros(len(words))
            pool[:] = words
            self.hold(at, pool)
        self.header[_SAVED] = state["registers"]
        self._arrays["has_returned"][:] = state["returned"]
        self._arrays["schedulers"][:] = state["heaps"]
        self.index(state["buckets"])

    def load(self, state: dict[str, Any]) -> None:
        """Restores what `state` or `save_state` returned."""
        if "pools" in state:
            self._load_pools(state)
            return
        self.clear()
        self.log.load(state["log"])
        self.bind_log()
        lists = np.ascontiguousarray(state["lists"]).view(LISTS).ravel()
        self.need_instances(max(1, len(lists) // self.n))
        self.reserve_records(max(len(state[pool]) for pool in ("cells", "partials", "events", "times")) + 16)
        dump = Dump(
            lists, state["cells"].copy(), np.ascontiguousarray(state["partials"]),
            state["chains"].copy(), state["events"].copy(), state["times"].copy(),
        )  # fmt: skip
        restore_machine(self.header.ctypes.data, len(lists) // self.n, dump)
        self._arrays["has_returned"][:] = state["returned"]
        if self.layout.timers:
            self.schedulers[:, Scheduler.buckets : _HEAP] = state["maps"]
        self.fit_index()

    @property
    def waiting_matches(self) -> int:
        """Partial matches in the lists of states, with the empty ones that wait for a first event."""
        # The first entry stands for none.
        return len(self._arrays["cells"]) // self._sizes["cells"] - self.machine.cells_left - 1

    @property
    def bytes(self) -> int:
        """Bytes of living partials, their list entries and events."""
        total = self.log.bytes
        for at, _, left, _ in _FREE:
            total += (len(self._arrays[at]) // self._sizes[at] - getattr(self.machine, left)) * self._sizes[at] * 8
        return total + self._arrays["lists"].nbytes


def zeros(words: int) -> Array:
    """int64 zeros, aligned to a cache line. Before them is room for the bytes that record writes (`flags_of`)."""
    before = memory.BLOCK_MARKS // 8
    out = np.zeros(before + words + 8, np.int64)
    start = before + -out.ctypes.data % 64 // 8
    return out[start : start + words]


def flags_of(pool: Array) -> Array:
    """uint8[BLOCK_MARKS]: which blocks of a pool by `zeros` compiled code has written."""
    base = pool.base
    assert base is not None
    start = pool.ctypes.data - base.ctypes.data - memory.BLOCK_MARKS
    out: Array = base.view(np.uint8)[start : start + memory.BLOCK_MARKS]
    return out


def fresh_lists(n: int) -> Array:
    """`StateLists`[n] of states that have seen nothing."""
    rows = np.zeros(n, dtype_of(StateLists))
    rows["active"] = 1
    rows["low"] = rows["last_start"] = -FAR
    rows["high"] = FAR
    rows["rising"] = 1
    return rows
