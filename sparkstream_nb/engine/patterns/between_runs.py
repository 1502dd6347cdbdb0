"""Compiled maintenance functions that Python calls between runs of the loop."""

from __future__ import annotations

from typing import Any

from .machine import clear_new, clear_pending, leave_map
from .pointers import entry, machine


@entry
def candidates(address: int, p: int, out: Any) -> int:
    """The cells that processor `p` will look at for the current event; their verdicts are cleared. With an index only
    the cells of one bucket are taken, and if Python's conditions come last only cells that pass the others. `out` has
    room for a whole list.
    """
    m = machine(address)
    state = m.states[p]
    lists, cells = m.lists, m.cells
    i = m.row
    g, lp = m.log_base + i, m.row_instances[i] * m.state_count + p
    if m.by_index:
        c = m.first_candidate(lp, p, g)
    else:
        c = lists[lp].pending
    q = state.rest if m.by_index else state.program
    n = 0
    while c != 0:
        if not m.by_index or cells[c].owner == lp:
            cells[c].verdict = 1
            m.has_failed = False
            may_match = not state.slow_last or m.interpret_filter(p, cells[c].partial, g, c, q) != 0
            if may_match or m.has_failed:
                out[n] = c
                n += 1
            m.has_failed = False
            cells[c].verdict = 0
        c = cells[c].next_in_bucket if m.by_index else cells[c].next
    return n


@entry
def reindex(address: int, instances: int) -> None:
    """Inserts all pending cells into the new, empty bucket array, in list order."""
    m = machine(address)
    lists, cells = m.lists, m.cells
    m.indexed_count = 0
    for instance in range(instances):
        for p in range(m.state_count):
            state = m.states[p]
            if state.keys >= 0 and state.key_count > 0:
                lp = instance * m.state_count + p
                c = lists[lp].pending
                while c != 0:
                    m.enter_index(lp, p, c)
                    c = cells[c].next


@entry
def begin_instances(address: int, instances: Any, times: Any) -> None:
    """Begins partition instances, each at its time; there is room for their first states."""
    m = machine(address)
    for i in range(len(instances)):
        m.begin_instance(instances[i] * m.state_count, times[i])


@entry
def forget_instances(address: int, instances: Any) -> None:
    """Frees the memory of partition instances. Their lists are not cleared otherwise, and entries of
    theirs in the schedulers' heaps find nothing to run."""
    m = machine(address)
    times = m.times
    for instance in instances:
        for p in range(m.state_count):
            lp = instance * m.state_count + p
            state_lists = m.lists[lp]
            clear_pending(m, lp)
            clear_new(m, lp)
            if state_lists.turn != 0:
                leave_map(m, lp, p)
            while state_lists.queue != 0:
                c = state_lists.queue
                state_lists.queue = times[c].next
                times[c].next = m.free_time
                m.free_time = c
                m.times_left += 1


@entry
def mark_events(address: int, capacity: int, is_used: Any) -> None:
    """Sets `is_used` at every log number that a living partial refers to. `capacity`: words of the partials."""
    m = machine(address)
    partials, links, states = m.partials, m.links, m.states
    e = m.partial_words
    while e < capacity:
        if partials[e].references > 0:
            for p in range(m.state_count):
                v = partials[e].events[p]
                if states[p].is_counted:
                    while v != 0:
                        is_used[links[v].event] = 1
                        v = links[v].next
                else:
                    is_used[v] = 1
        e += m.partial_words


@entry
def renumber_events(address: int, capacity: int, new: Any) -> None:
    """Replaces log numbers by `new[number]` in all living partials. Chains are shared, so they are visited cell by cell
    through a negative sign."""
    m = machine(address)
    partials, links, states = m.partials, m.links, m.states
    e = m.partial_words
    while e < capacity:
        if partials[e].references > 0:
            for p in range(m.state_count):
                v = partials[e].events[p]
                if not states[p].is_counted:
                    partials[e].events[p] = new[v]
                elif v != 0 and links[v].event >= 0:
                    while v != 0:
                        links[v].event = -1 - new[links[v].event]
                        v = links[v].next
        e += m.partial_words
    e = m.partial_words
    while e < capacity:
        if partials[e].references > 0:
            for p in range(m.state_count):
                v = partials[e].events[p]
                if states[p].is_counted and v != 0 and links[v].event < 0:
                    while v != 0:
                        links[v].event = -1 - links[v].event
                        v = links[v].next
        e += m.partial_words
