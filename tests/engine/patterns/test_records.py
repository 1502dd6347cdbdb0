"""Records by name: their layout, and compiled functions that read and write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core.errors import NumbaError

from sparkstream_nb.engine.patterns import machine_memory as memory
from sparkstream_nb.engine.patterns.machine_memory import Machine
from sparkstream_nb.engine.patterns.pointers import compiled, entry, machine
from sparkstream_nb.engine.patterns.pools import flags_of, zeros
from sparkstream_nb.engine.patterns.records import RECORDS, columns_of, dtype_of, offset_of, view_of, words_of


def test_fields_have_their_offsets() -> None:
    assert (memory.Cell.partial, memory.Cell.verdict, memory.Cell.bound) == (0, 7, 7)
    assert (words_of(memory.Cell), words_of(memory.Partial), words_of(memory.Bucket)) == (8, 4, 4)
    assert offset_of(memory.Partial, "events") == memory.EVENTS == 4
    assert dtype_of(memory.Bucket) == np.dtype({
        "names": ["head", "tail", "bound"],
        "formats": ["i8", "i8", "f8"],
        "offsets": [0, 8, 16],
        "itemsize": 32,
    })  # fmt: skip


def test_each_word_of_the_header_has_one_field() -> None:
    fields = RECORDS["Machine"].fields
    assert sorted(f.offset for f in fields.values() if not f.is_reading) == list(range(words_of(Machine)))


def test_python_reads_and_writes_a_header() -> None:
    words = np.zeros(words_of(Machine), np.int64)
    m = view_of(Machine, words)
    m.within, m.is_sequence = -1, True
    assert (m.within, m.is_sequence, m.is_clock_current) == (-1, True, False)
    assert words.tolist().count(0) == len(words) - 2


def test_columns_by_name() -> None:
    columns = columns_of(memory.MatchColumns, np.arange(20).reshape(10, 2))
    assert columns.sent_kind.tolist() == [14, 15]
    assert columns.events.tolist() == [[16, 17], [18, 19]]


@compiled
def _append(m: Machine, c: int, e: int) -> int:
    cell = m.cells[c]
    cell.partial = e
    cell.bound = 0.5
    m.partials[e].is_expired = not m.partials[e].is_expired
    m.partials[e].events[1] = m.states[2].kind
    m.matches.group[1] = c
    m.matches.events[1, 0] = e
    m.schedulers[0].heap[1].instance += 7
    m.free_cell = c
    return m.cells[c].verdict


@entry
def _append_at(address: int, c: int, e: int) -> int:
    return _append(machine(address), c, e)


@entry
def _write_quietly(address: int, c: int) -> None:
    machine(address).quiet_cells[c].next = 5


@entry
def _write_a_constant(address: int) -> None:
    machine(address).within = 5


def _memory() -> tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]:
    words = np.zeros(words_of(Machine), np.int64)
    pools = {
        "cells": zeros(1 << 17), "partials": zeros(64), "states": np.zeros(3, dtype_of(memory.StateDescription)),
        "matches": np.zeros((10, 2), np.int64), "schedulers": np.zeros(8, np.int64),
    }  # fmt: skip
    for name, array in pools.items():
        words[offset_of(Machine, name)] = array.ctypes.data
    view_of(Machine, words).match_capacity = 2
    return words, pools


def test_compiled_functions_read_and_write_fields() -> None:
    words, pools = _memory()
    pools["states"]["kind"] = [4, 5, 6]
    c = 3 << memory.BLOCK_SHIFT
    assert _append_at(words.ctypes.data, c, 8) == np.float64(0.5).view(np.int64)
    assert pools["cells"][c] == 8
    assert pools["partials"][[10, 13]].tolist() == [1, 6]
    assert pools["matches"][[3, 9]].tolist() == [[0, c], [8, 0]]
    assert pools["schedulers"][4 + 3] == 7
    assert words[offset_of(Machine, "free_cell")] == c


def test_writes_of_recorded_pools_mark_their_block() -> None:
    words, pools = _memory()
    _append_at(words.ctypes.data, 2 << memory.BLOCK_SHIFT, 0)
    assert np.flatnonzero(flags_of(pools["cells"])).tolist() == [2]
    _write_quietly(words.ctypes.data, 1 << memory.BLOCK_SHIFT)
    assert np.flatnonzero(flags_of(pools["cells"])).tolist() == [2]
    assert pools["cells"][(1 << memory.BLOCK_SHIFT) + memory.Cell.next] == 5


def test_a_word_that_stays_as_it_is_cannot_be_written() -> None:
    with pytest.raises((TypeError, NumbaError), match="no compiled code writes within of the machine"):
        _write_a_constant(np.zeros(words_of(Machine), np.int64).ctypes.data)
