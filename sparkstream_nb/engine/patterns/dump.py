"""Saves and restores the machine's state as plain arrays (compiled)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..columnar.column_data import Array
from .machine import append_new, splice_new
from .machine_memory import EVENTS, LINK_WORDS, Machine, Partial
from .pointers import compiled, entry, machine

_FIELDS = (
    "pending", "new", "queue", "has_changed", "success", "reset", "is_initialized", "born", "has_started", "active",
    "scheduled_time", "has_copy", "turn",
)  # fmt: skip

LISTS = np.dtype([(name, np.int64) for name in _FIELDS])
"""A state of an instance as it is saved: the lengths of the pending and the new list and of the queue, then flags."""


class Dump(NamedTuple):
    """A machine's state. `lists` (`LISTS`) of all states and instances; `cells`: the partial of every entry;
    `partials`: time, unused, expired, unused, slots (chain number + 1 where counted); `chains`: where each chain ends
    in `events`; `times`: the scheduled ones."""

    lists: Array
    cells: Array
    partials: Array
    chains: Array
    events: Array
    times: Array


_TIME, _EXPIRED = Partial.time, Partial.is_expired


@entry
def measure(address: int, instances: int, out: Any) -> None:
    """Counts list entries, partials at most, chain cells at most and scheduled times."""
    m = machine(address)
    for i in range(instances * m.state_count):
        lists = m.lists[i]
        for head in (lists.pending, lists.new):
            c = head
            while c != 0:
                out[0] += 1
                out[2] += _count_links(m, m.cells[c].partial)
                c = m.cells[c].next
        c = lists.queue
        while c != 0:
            out[3] += 1
            c = m.times[c].next
    out[1] = out[0]


@compiled
def _count_links(m: Machine, e: int) -> int:
    """The number of events of the counted states of a partial."""
    n, events = 0, m.partials[e].events
    for p in range(m.state_count):
        if m.states[p].is_counted and events[p] != 0:
            n += m.links[events[p]].count
    return n


@entry
def dump_machine(address: int, instances: int, dump: Dump, numbers: Array, chain_numbers: Array) -> Any:
    """Writes a state into arrays of zeros, and the numbers + 1 of all partials and chains by their records. Returns how
    many partials and chains there are."""
    m = machine(address)
    lists, cells, partials, chains, events, times = dump
    at = n = k = d = q = 0
    for i in range(instances * m.state_count):
        source, out = m.lists[i], lists[i]
        for j in range(2):
            c = source.pending if j == 0 else source.new
            while c != 0:
                if j == 0:
                    out.pending += 1
                else:
                    out.new += 1
                e = m.cells[c].partial
                slot = e // m.partial_words
                if numbers[slot] == 0:
                    partial = m.partials[e]
                    partials[n, _TIME] = partial.time
                    partials[n, _EXPIRED] = partial.is_expired
                    for p in range(m.state_count):
                        v = partial.events[p]
                        if m.states[p].is_counted and v != 0:
                            if chain_numbers[v // LINK_WORDS] == 0:
                                w = v
                                while w != 0:
                                    events[d] = m.links[w].event
                                    d += 1
                                    w = m.links[w].next
                                chains[k] = d
                                k += 1
                                chain_numbers[v // LINK_WORDS] = k
                            v = chain_numbers[v // LINK_WORDS]
                        partials[n, EVENTS + p] = v
                    n += 1
                    numbers[slot] = n
                cells[at] = numbers[slot] - 1
                at += 1
                c = m.cells[c].next
        c = source.queue
        while c != 0:
            out.queue += 1
            times[q] = m.times[c].time
            q += 1
            c = m.times[c].next
        out.has_changed = source.has_changed
        out.success = source.success
        out.reset = source.reset
        out.is_initialized = source.is_initialized
        out.born = source.born
        out.has_started = source.has_started
        out.active = source.active
        out.scheduled_time = source.scheduled_time
        out.has_copy = source.has_copy
        out.turn = source.turn
    return n, k


@entry
def restore_machine(address: int, instances: int, dump: Dump) -> None:
    """The inverse of `dump_machine`, into an empty machine that has room."""
    m = machine(address)
    lists, cells, partials, chains, events, times = dump
    links = m.links
    first_partial = m.free_partial
    first_chain = m.free_link
    d = 0
    for k in range(len(chains)):
        head = m.free_link
        last = 0
        while d < chains[k]:
            c = m.free_link
            m.free_link = links[c].next
            m.links_left -= 1
            links[c].event = events[d]
            links[c].next = 0
            links[c].previous = last
            if last != 0:
                links[last].next = c
            last = c
            links[head].count = links[head].count + 1 if c != head else 1
            d += 1
        links[head].tail = last
        links[head].references = 0
    for i in range(len(partials)):
        partial = m.partials[m.free_partial]
        m.free_partial = partial.time
        m.partials_left -= 1
        partial.time = partials[i, _TIME]
        partial.is_expired = partials[i, _EXPIRED] != 0
        partial.references = 0
        for p in range(m.state_count):
            v = partials[i, EVENTS + p]
            if m.states[p].is_counted and v != 0:
                # Free records of a fresh machine follow one another, so a chain starts where those before it end.
                v = first_chain + (chains[v - 2] if v > 1 else 0) * LINK_WORDS
                links[v].references += 1
            partial.events[p] = v
        for p in range(m.state_count, m.partial_words - EVENTS):
            partial.events[p] = 0
    at = q = 0
    for i in range(instances * m.state_count):
        lp, p, source = i, i % m.state_count, lists[i]
        out = m.lists[lp]
        for j in range(2):
            for _ in range(source.pending if j == 0 else source.new):
                append_new(m, lp, p, first_partial + cells[at] * m.partial_words)
                at += 1
            if j == 0 and out.new != 0:
                splice_new(m, lp, p)
        for _ in range(source.queue):
            m.notify_at(lp, p, times[q])
            q += 1
        out.has_changed = source.has_changed != 0
        out.success = source.success != 0
        out.reset = source.reset != 0
        out.is_initialized = source.is_initialized != 0
        out.born = source.born != 0
        out.has_started = source.has_started != 0
        out.active = source.active != 0
        out.scheduled_time = source.scheduled_time
        out.has_copy = source.has_copy != 0
        out.turn = source.turn
