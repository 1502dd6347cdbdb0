"""Processes an event in the states of a pattern (compiled): `processAndReturn` of Siddhi's `*PreStateProcessor`s."""

from __future__ import annotations

import numpy as np

from .check import END, comparisons
from .index import bound_value
from .machine import remove_from, take_pending
from .machine_memory import ABSENT, ABSENT_LOGICAL, COUNT, LOGICAL, NO_EVENT, NONE, STREAM, Machine
from .partial_matches import add_event, drop_partial, is_expired, new_partial
from .pointers import compiled, unit
from .processors import FREE_TRIES, add_state, advance, give, has_room, start_reset

NONE_LEFT = -1
"""Result of `process` when it is done; otherwise the cell to continue with after memory was added."""


@compiled
def _take_returned(m: Machine, p: int) -> bool:
    """True if the processor's last state has emitted a match (`isEventReturned`), which this clears."""
    has_returned = m.has_returned
    last = m.states[p].returns
    if has_returned[last] == 0:
        return False
    has_returned[last] = 0
    return True


@compiled
def _reach(m: Machine, l0: int, p: int, e: int, g: int) -> None:
    """`process` of the post state processor of a state's kind: event `g` has passed its filter."""
    kind = m.states[p].kind
    if kind == STREAM:
        advance(m, l0, p, e, g)
    elif kind == COUNT:
        m.reach_count(l0, p, e, g)
    elif kind == LOGICAL:
        m.reach_logical(l0, p, e, g)
    else:
        m.reach_absent(l0, p, e, g)


@compiled
def _too_late(m: Machine, p: int, e: int, g: int) -> bool:
    """True if an event that passes the filter of a state is further than `within` from the first one of the partial.

    Siddhi lets such a partial continue if another one is before it in the state's list: it drops expired ones from
    the head of the list only, and the list is in the order in which they reached this state (docs/differences.md).
    """
    state = m.states[p]
    if m.within < 0 or state.within_every >= 0 or state.kind == ABSENT or state.kind == ABSENT_LOGICAL:
        return False
    return is_expired(m, e, m.event_times[g])


@compiled
def _goes(m: Machine, l0: int, p: int, g: int, c: int, plain: bool) -> bool:
    """One pending partial and one event; whether it is to leave the list."""
    state = m.states[p]
    e = m.cells[c].partial
    lp, events = l0 + p, m.partials[e].events
    state_lists = m.lists[lp]
    kind, other = state.kind, state.partner
    if kind == COUNT:
        if (p + 1 < m.state_count and events[p + 1] != 0) or (p + 2 < m.state_count and events[p + 2] != 0):
            return True  # the next state has its event, so that this one takes no more
    elif other >= 0 and state.is_or and events[other] != NO_EVENT:
        return True
    state_lists.has_changed = False
    state_lists.success = False
    before = NO_EVENT
    if kind != COUNT:
        before = events[p]
        events[p] = g
    elif plain:
        add_event(m, e, p, g)
    if plain:
        # With an index, what that has decided is not asked again.
        q = state.rest if m.by_index else state.program
        if state.slow:
            holds = m.interpret_filter(p, e, g, c, q) != 0
        elif q < 0:
            holds = True
        else:
            q = comparisons(m, e, g, q)
            holds = q >= 0 and (m.codes[q] == END or m.interpret_filter(p, e, g, c, q) != 0)
        if holds and _too_late(m, p, e, g):
            if kind == COUNT:
                m.remove_last_event(e, p)
            else:
                events[p] = before
            return True
        if holds:
            _reach(m, l0, p, e, g)
        elif kind == COUNT:
            m.remove_last_event(e, p)
        if m.has_failed:  # the partial stays as it was
            if kind != COUNT:
                events[p] = before
            return False
    if kind == ABSENT_LOGICAL:
        return m.after_absent_logical(l0, p, c, e, before) != 0
    if _take_returned(m, p) and kind != ABSENT:
        give(m, e)
    if state_lists.has_changed:
        return True
    if kind == COUNT:
        return m.is_sequence and not state_lists.success
    events[p] = NO_EVENT
    if m.is_sequence and kind != LOGICAL:
        start_reset(m, l0, p)
    return m.is_sequence and kind != ABSENT


@unit
def after_absent_logical(m: Machine, l0: int, p: int, c: int, e: int, before: int) -> int:
    """The end of `AbsentLogicalPreStateProcessor.processAndReturn`, which never returns an event itself; 1 where the
    partial is to leave the list."""
    state = m.states[p]
    partials = m.partials
    lp = l0 + p
    state_lists = m.lists[lp]
    keeps = state.wait != -1 or (m.is_sequence and not state.is_or and state.every >= 0)
    if keeps or not state_lists.has_changed:
        partials[e].events[p] = before
    if _take_returned(m, p):
        if m.is_sequence:
            remove_from(m, l0 + state.partner, e)
        return 1
    return 1 if not state_lists.has_changed and m.is_sequence else 0


@unit
def process(m: Machine, l0: int, p: int, g: int, plain: int, c: int) -> int:
    """`processAndReturn` over the pending list, from cell `c` on; with `by_index` over those partials that the event
    can match (`index.first_candidate`), as the others would not change."""
    state = m.states[p]
    cells = m.cells
    lp, by_index, b = l0 + p, m.by_index, -1
    state_lists = m.lists[lp]
    has_bound, has_keys = by_index and state.bound >= 0, by_index and state.key_count > 0
    strict, renew = state.strict, False
    v, low = 0.0, np.inf
    if has_bound:
        v = bound_value(m, p, g, NONE)
        b = cells[c].bucket
        renew = (m.buckets[b].head if has_keys else state_lists.pending) == c
    tries = 0
    while c != 0:
        leaves = False
        after = cells[c].next_in_bucket if has_keys else cells[c].next
        take = not has_keys or cells[c].owner == lp
        if take and has_bound:
            u = cells[c].bound
            take = v > u or (v == u and not strict)
        if take:
            tries += 1
            if tries > FREE_TRIES and not has_room(m):
                return c
            leaves = _goes(m, l0, p, g, c, plain != 0)
            if m.has_failed:
                return NONE_LEFT
            if leaves:
                take_pending(m, lp, c)
        if renew and not leaves:
            u = cells[c].bound
            low = u if u < low else low
        c = after
    if renew:
        if has_keys:
            if m.buckets[b].head != 0:
                m.buckets[b].bound = low
        else:
            state_lists.least_bound = low
    return NONE_LEFT


@compiled
def start_again(m: Machine, l0: int, p: int, g: int) -> bool:
    """Shortcut for an event that starts a match of a first state under `every`: normally the waiting partial without
    events would take the event, and an empty copy of it would wait instead. False if the shortcut does not apply."""
    state = m.states[p]
    partials = m.partials
    lp = l0 + p
    state_lists = m.lists[lp]
    if not state.starts_again or state_lists.pending_count != 1 or state_lists.new != 0:
        return False
    t = m.event_times[g]
    partials[m.cells[state_lists.pending].partial].time = t
    state_lists.has_copy = True
    e = new_partial(m)
    fresh = m.quiet_partials[e]
    fresh.time = t
    fresh.events[p] = g
    fresh.references = 1
    if state.last:
        give(m, e)
    if state.next >= 0:
        add_state(m, l0, state.next, e)
        if _take_returned(m, p):
            give(m, e)
    drop_partial(m, e)
    return True
