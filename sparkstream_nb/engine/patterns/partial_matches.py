"""Compiled primitives of the pattern machine: partials, and the chains of events of counted states.

A partial match (Siddhi's `StateEvent`) can be in several lists at once and is freed with its last reference. A chain
(the events of a counted state) may be shared by partials that were copied, exactly as Siddhi's copies share
their linked `StreamEvent`s, so that an event added through one is seen through the other.
"""

from __future__ import annotations

from .machine_memory import EVENTS, Machine
from .pointers import called, compiled, unit

FAR = 1 << 61
"""Beyond every timestamp."""

SINGLE, FROM_FIRST, FROM_LAST, CURRENT = 0, 1, 2, 3
"""Ways of a load to find its event: the state's only one, by number in its chain, counted from the chain's end, or the
event that is being processed.
"""

AS_WORD, AS_DOUBLE, AS_FLOAT = 0, 1, 2
"""Hashing of a key, such that values that compare equal hash equal."""


# ------------------------------------------------------------------------------------------------ partials and chains


@compiled
def new_partial(m: Machine) -> int:
    """A partial without events or references (`StateEventFactory.newInstance`)."""
    e = m.free_partial
    partial = m.partials[e]
    m.free_partial = partial.time
    m.partials_left -= 1
    partial.time = -1
    fresh = m.quiet_partials[e]
    fresh.references = 0
    fresh.is_expired = False
    fresh.selection_mark = 0
    events = fresh.events
    for k in range(EVENTS):  # a record is a multiple of these words
        events[k] = 0
    for k in range(EVENTS, m.partial_words - EVENTS):
        events[k] = 0
    return e


@unit
def drop_chain(m: Machine, c: int) -> int:
    """Drops one reference to a chain."""
    links = m.links
    links[c].references -= 1
    if links[c].references > 0:
        return 0
    while c != 0:
        after = links[c].next
        links[c].next = m.free_link
        m.free_link = c
        m.links_left += 1
        c = after
    return 0


@compiled
def drop_partial(m: Machine, e: int) -> None:
    """Drops one reference to a partial."""
    partial = m.partials[e]
    partial.references -= 1
    if partial.references > 0:
        return
    if m.counted_states > 0:
        states = m.states
        for p in range(m.state_count):
            if states[p].is_counted and partial.events[p] != 0:
                m.drop_chain(partial.events[p])
    partial.time = m.free_partial
    m.free_partial = e
    m.partials_left += 1


@compiled
def clear_slot(m: Machine, e: int, p: int) -> None:
    """`StateEvent.setEvent(p, null)`."""
    events = m.partials[e].events
    if events[p] != 0:
        if m.states[p].is_counted:
            m.drop_chain(events[p])
        events[p] = 0


@called
def copy_partial(m: Machine, e: int) -> int:
    """`StateEventCloner.copyStateEvent`: the copy shares the chains."""
    partial = m.partials[e]
    partials = m.partials
    f = new_partial(m)
    fresh = m.quiet_partials[f]
    fresh.time = partial.time
    for k in range(m.partial_words - EVENTS):
        fresh.events[k] = partial.events[k]
    if m.counted_states > 0:
        states, links = m.states, m.links
        for p in range(m.state_count):
            if states[p].is_counted and partials[f].events[p] != 0:
                links[partials[f].events[p]].references += 1
    return f


@compiled
def add_event(m: Machine, e: int, p: int, g: int) -> None:
    """`StateEvent.addEvent` for a counted state."""
    partial = m.partials[e]
    links = m.links
    c = m.free_link
    m.free_link = links[c].next
    m.links_left -= 1
    links[c].event = g
    links[c].next = 0
    links[c].previous = 0
    head = partial.events[p]
    if head == 0:
        links[c].references = 1
        links[c].tail = c
        links[c].count = 1
        partial.events[p] = c
    else:
        last = links[head].tail
        links[last].next = c
        links[c].previous = last
        links[head].tail = c
        links[head].count += 1


@unit
def remove_last_event(m: Machine, e: int, p: int) -> int:
    """`StateEvent.removeLastEvent`."""
    partial = m.partials[e]
    links = m.links
    head = partial.events[p]
    if head == 0:
        return 0
    last = links[head].tail
    if last == head:
        partial.events[p] = 0
        m.drop_chain(head)
        return 0
    links[head].tail = links[last].previous
    links[links[last].previous].next = 0
    links[head].count -= 1
    links[last].next = m.free_link
    m.free_link = last
    m.links_left += 1
    return 0


@compiled
def first_event(m: Machine, e: int, p: int) -> int:
    """The log number of the (first) event of a state; 0 for none."""
    v = m.partials[e].events[p]
    if v != 0 and m.states[p].is_counted:
        return m.links[v].event
    return v


@compiled
def is_expired(m: Machine, e: int, t: int) -> bool:
    """True if an event of a start state is further than `within` from time `t`, in either direction."""
    within = m.within
    if within < 0:
        return False
    starts, times = m.start_states, m.event_times
    for i in range(m.start_count):
        g = first_event(m, e, starts[i])
        if g != 0 and abs(times[g] - t) > within:
            return True
    return False


# ------------------------------------------------------------------------------------------------------- loads


@unit
def event_in_chain(m: Machine, v: int, mode: int, k: int) -> int:
    """The event with number `k` of a chain."""
    links = m.links
    if mode == FROM_FIRST:
        while k > 0 and v != 0:
            v = links[v].next
            k -= 1
    else:
        if k >= links[v].count:
            return 0
        v = links[v].tail
        while k > 0:
            v = links[v].previous
            k -= 1
    return 0 if v == 0 else links[v].event


@compiled
def find_event(m: Machine, e: int, g: int, mode: int, p: int, k: int) -> int:
    """The log number of the event that a load instruction refers to; 0 for none."""
    if mode == CURRENT:
        return g
    v = m.partials[e].events[p]
    if mode == SINGLE or v == 0:
        return v
    if mode == FROM_LAST and k == 0:
        links = m.links
        return links[links[v].tail].event
    return m.event_in_chain(v, mode, k)
