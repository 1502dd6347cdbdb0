"""The hash index over pending partials (compiled): buckets by key, each with the bound that an event must exceed to
match."""

from __future__ import annotations

import numpy as np

from .machine_memory import BUCKET_WORDS, KEY_WORDS, NONE, Machine
from .partial_matches import AS_DOUBLE, AS_WORD
from .pointers import as_word, compiled, unit


@compiled
def mix(h: int, v: int) -> int:
    """Combines a hash with a further word, with two multiplications, as the lower half of a double may be all zeros."""
    h = (h ^ v) * -0x61C8864680B583EB
    h = (h ^ (h >> 32)) * -0x3D4D51C2D82B14B1
    return (h ^ (h >> 29)) & 0x7FFFFFFFFFFFFFFF


@compiled
def key_word(m: Machine, at: int, real: int, how: int) -> int:
    """The word at `at` of the log, such that equal values of any numeric types give equal words."""
    if how == AS_WORD:
        return m.words[at]
    if how == AS_DOUBLE:
        f = m.reals[at] if real != 0 else np.float64(m.words[at])
    elif real != 0:
        f = np.float64(np.float32(m.reals[at]))
    else:
        f = np.float64(np.float32(m.words[at]))
    return as_word(f + 0.0)  # -0.0 becomes 0.0


@unit
def index_key(m: Machine, lp: int, p: int, g: int, e: int) -> int:
    """The bucket for partial `e`, or for event `g` (`e` 0); -1 where a key is null: nothing can match."""
    state = m.states[p]
    partials, nulls = m.partials, m.nulls
    q = state.keys
    h = mix(lp, NONE)
    for _ in range(state.key_count):
        key = m.keys[q]
        v, column, real = g, key.column, key.real
        if e != 0:
            v, column, real = partials[e].events[key.earlier_state], key.earlier_column, key.earlier_real
        at = v + column * m.log_capacity
        if nulls[at] != 0:
            return -1
        h = mix(h, key_word(m, at, real, key.hashing))
        q += KEY_WORDS
    return (h & (m.bucket_count - 1)) * BUCKET_WORDS


@compiled
def bound_value(m: Machine, p: int, g: int, e: int) -> float:
    """The bound of partial `e`, or the value that event `g` compares with bounds (`e` 0); NaN for null."""
    state = m.states[p]
    bound = m.bounds[state.bound]
    v, column, real = g, bound.column, bound.real
    if e != 0:
        v, column, real = m.partials[e].events[bound.earlier_state], bound.earlier_column, bound.earlier_real
    at = v + column * m.log_capacity
    if m.nulls[at] != 0:
        return np.nan
    value = m.reals[at] if real != 0 else np.float64(m.words[at])
    return value * state.bound_sign


@unit
def first_candidate(m: Machine, lp: int, p: int, g: int) -> int:
    """The first pending cell that event `g` may match at processor `p`, 0 for none. With a bound and no key, the list
    itself is the only bucket. An empty bucket has an infinite bound."""
    state, state_lists = m.states[p], m.lists[lp]
    if state.key_count == 0:
        c, least = state_lists.pending, state_lists.least_bound
    else:
        b = m.index_key(lp, p, g, 0)
        if b < 0:
            return 0
        c, least = m.buckets[b].head, m.buckets[b].bound
    if state.bound >= 0:
        return c if bound_value(m, p, g, NONE) >= least else 0
    return c


@unit
def leave_index(m: Machine, c: int) -> int:
    """Takes a pending cell out of its bucket."""
    cells, buckets = m.cells, m.buckets
    b, previous_cell, next_cell = cells[c].bucket, cells[c].previous_in_bucket, cells[c].next_in_bucket
    if previous_cell == 0:
        buckets[b].head = next_cell
        if next_cell == 0:
            buckets[b].bound = np.inf
    else:
        cells[previous_cell].next_in_bucket = next_cell
    if next_cell == 0:
        buckets[b].tail = previous_cell
    else:
        cells[next_cell].previous_in_bucket = previous_cell
    m.indexed_count -= 1
    return 0


@unit
def enter_index(m: Machine, lp: int, p: int, c: int) -> int:
    """Puts a pending cell at the end of its bucket, so that a bucket keeps the order of the list; 1 if it did."""
    state, state_lists = m.states[p], m.lists[lp]
    cells = m.cells
    e = cells[c].partial
    cells[c].bucket = -1
    if state.key_count == 0:
        v = bound_value(m, p, NONE, e)
        cells[c].bound = v
        if state_lists.pending == c:
            state_lists.least_bound = np.inf
        if v < state_lists.least_bound:
            state_lists.least_bound = v
        return 0
    b = m.index_key(lp, p, 0, e)
    if b < 0:
        return 0
    buckets = m.buckets
    if state.bound >= 0:
        v = bound_value(m, p, NONE, e)
        if v != v:  # nothing exceeds null or NaN
            return 0
        cells[c].bound = v
        if v < buckets[b].bound:
            buckets[b].bound = v
    cells[c].bucket = b
    fresh = m.quiet_cells[c]
    fresh.owner = lp
    fresh.next_in_bucket = 0
    tail = buckets[b].tail
    fresh.previous_in_bucket = tail
    if tail == 0:
        buckets[b].head = c
    else:
        cells[tail].next_in_bucket = c
    buckets[b].tail = c
    m.indexed_count += 1
    return 1
