"""The processors of a pattern (compiled), equivalent to Siddhi's `*PreStateProcessor` and `*PostStateProcessor`.

Functions carry the names of Siddhi's methods, if there is one. `machine_memory` says what their parameters are.
"""

from __future__ import annotations

from .machine import (
    append_new,
    clear_new,
    clear_pending,
    move_new,
    remove_from,
    remove_new,
    remove_pending,
    reset_times,
)  # fmt: skip
from .machine_memory import ABSENT, ABSENT_LOGICAL, COUNT, LOGICAL, NO_EVENT, STREAM, Machine
from .partial_matches import FAR, clear_slot, copy_partial, drop_partial, first_event, is_expired, new_partial
from .pointers import called, compiled, unit

FREE_TRIES = 4
"""Maximum number of partials that a state may take for one event before it asks for room."""


@compiled
def has_records(m: Machine, n: int) -> bool:
    """True if more than `n` records of each pool but the links are free, and room for as many selected partials."""
    has_lists = m.cells_left > n and m.partials_left > n
    return has_lists and m.times_left > n and m.selected_count + n < m.selected_capacity


@compiled
def has_room(m: Machine) -> bool:
    """True if the pools have room to process one further partial, whose effects are bounded by the number of states."""
    n = 4 * m.state_count + 8
    return has_records(m, n) and m.links_left > 4


@compiled
def has_room_for_event(m: Machine) -> bool:
    """True if an event can be processed with `FREE_TRIES` partials at each state without asking again."""
    n = (4 * m.state_count + 8) * (FREE_TRIES * m.state_count + 1)
    return has_records(m, n) and m.links_left > n


@compiled
def give(m: Machine, e: int) -> None:
    """Adds a partial to the output for the selector (`returnEventChunk.add`), at most once."""
    partial = m.partials[e]
    if partial.selection_mark == 0:
        partial.selection_mark = 1
        m.selection[m.selected_count] = e
        m.selected_count += 1
        partial.references += 1


# ------------------------------------------------------------------------------------------------- adding states


@called
def _add_logical(m: Machine, l0: int, p: int, e: int) -> None:
    state = m.states[p]
    lists = m.lists
    lp, other = l0 + p, state.partner
    lo = l0 + other
    if state.start or m.is_sequence:
        if lists[lp].new_count == 0:
            append_new(m, lp, p, e)
        if lists[lo].new_count == 0:
            append_new(m, lo, other, e)
    else:
        append_new(m, lp, p, e)
        append_new(m, lo, other, e)


@called
def _add_one(m: Machine, l0: int, p: int, e: int) -> None:
    """`addState` of one processor, without the partials that a count of zero passes on."""
    state, partial = m.states[p], m.partials[e]
    lp, kind = l0 + p, state.kind
    state_lists = m.lists[lp]
    if kind in (STREAM, COUNT):
        if not m.is_sequence or state_lists.new_count == 0:
            append_new(m, lp, p, e)
    elif kind == LOGICAL:
        _add_logical(m, l0, p, e)
    elif state_lists.active:
        if kind == ABSENT:
            partial.references += 1
            if m.is_sequence:
                clear_new(m, lp)
            append_new(m, lp, p, e)
            partial.references -= 1
            if not state.start:
                state_lists.scheduled_time = partial.time + state.wait
                m.notify_at(lp, p, state_lists.scheduled_time)
        else:
            _add_logical(m, l0, p, e)
            if not state.start and state.wait != -1:
                m.notify_at(lp, p, partial.time + state.wait)
                other = state.partner
                partner = m.states[other]
                if partner.kind == ABSENT_LOGICAL:
                    m.notify_at(l0 + other, other, partial.time + partner.wait)


@unit
def add_every(m: Machine, l0: int, p: int, e: int) -> int:
    """`addEveryState`: a copy of `e` without the events from this state on waits here again."""
    state = m.states[p]
    partials = m.partials
    kind, other, lp = state.kind, state.partner, l0 + p
    state_lists = m.lists[lp]
    f = copy_partial(m, e)
    if kind == ABSENT_LOGICAL:
        g = partials[f].events[p]
        if g != NO_EVENT:
            partials[f].time = m.event_times[g]
        clear_slot(m, f, p)
    else:
        for k in range(p, m.state_count):
            clear_slot(m, f, k)
    append_new(m, lp, p, f)
    if kind in (LOGICAL, ABSENT_LOGICAL):
        clear_slot(m, f, other)
        append_new(m, l0 + other, other, f)
    elif kind == ABSENT:
        state_lists.scheduled_time = partials[e].time + state.wait
        m.notify_at(lp, p, state_lists.scheduled_time)
    return 0


@compiled
def _skippable(m: Machine, p: int, e: int) -> bool:
    """True if a partial passes a counted state at once, since that needs no event."""
    state = m.states[p]
    return state.kind == COUNT and state.least == 0 and m.partials[e].events[p] == 0


@compiled
def _reach_min_count(m: Machine, l0: int, p: int) -> None:
    """The first half of `CountPostStateProcessor.processMinCountReached`: of a last state, a match."""
    if m.states[p].last:
        m.lists[l0 + p].has_changed = True
        m.has_returned[p] = 1


@unit
def add_any(m: Machine, l0: int, p: int, e: int) -> int:
    """`add_state` of any kind of state."""
    states = m.states
    first, depth = p, 0
    while True:
        # An absent state that is not active takes nothing; the partial is kept alive by the caller.
        _add_one(m, l0, p, e)
        if not _skippable(m, p, e):
            break
        _reach_min_count(m, l0, p)
        depth += 1
        if states[p].next < 0:
            break
        p = states[p].next
    while depth > 0:
        depth -= 1
        p = first
        for _ in range(depth):
            p = states[p].next
        if states[p].every >= 0:
            m.add_every(l0, states[p].every, e)
    return 0


@compiled
def add_state(m: Machine, l0: int, p: int, e: int) -> None:
    """`addState`, and also to the next state if this one needs no event."""
    states = m.states
    if states[p].kind > COUNT or _skippable(m, p, e):
        m.add_any(l0, p, e)
    elif not m.is_sequence or m.lists[l0 + p].new_count == 0:
        append_new(m, l0 + p, p, e)


@called
def init(m: Machine, l0: int, p: int) -> None:
    """`StreamPreStateProcessor.init`: a start state gets a partial without events."""
    state = m.states[p]
    partials = m.partials
    lp = l0 + p
    state_lists = m.lists[lp]
    if state.start and (not state_lists.is_initialized or state.init_again):
        e = new_partial(m)
        partials[e].references = 1
        add_state(m, l0, p, e)
        drop_partial(m, e)
        state_lists.is_initialized = True


@compiled
def start_reset(m: Machine, l0: int, p: int) -> None:
    """`callbackPreStateProcessor.startStateReset` of the processor `p`, if it has one."""
    c = m.states[p].callback
    if c >= 0:
        m.lists[l0 + c].reset = True


# -------------------------------------------------------------------------------------------- stabilising states


@unit
def update_state(m: Machine, l0: int, p: int) -> int:
    """`updateState`."""
    state = m.states[p]
    lp, kind = l0 + p, state.kind
    state_lists = m.lists[lp]
    if kind == COUNT and state_lists.reset:
        state_lists.reset = False
        init(m, l0, p)
    if state_lists.new != 0:
        move_new(m, lp, p)
    if kind in (LOGICAL, ABSENT_LOGICAL):
        other = state.partner
        move_new(m, l0 + other, other)
    return 0


@compiled
def is_blank_start(m: Machine, l0: int, p: int) -> bool:
    """True if a start state of a sequence holds only the partial without events that it would get again before the next
    event, so that it can keep it."""
    state = m.states[p]
    partials = m.partials
    lp = l0 + p
    state_lists = m.lists[lp]
    if state.kind != STREAM or not state.start or state.every < 0 or state.callback >= 0:
        return False
    if state_lists.pending_count != 1 or state_lists.new != 0:
        return False
    e = m.cells[state_lists.pending].partial
    return partials[e].references == 1


@compiled
def keep_blank_start(m: Machine, l0: int, p: int) -> bool:
    """`reset_state` of a start state that needs no other partial: true if it is one. Its partial is as new, except for
    the copy that the last event left, which Siddhi still has among the new ones.
    """
    lists, blank = m.lists, is_blank_start(m, l0, p)
    if blank and not lists[l0 + p].has_copy:
        m.partials[m.cells[lists[l0 + p].pending].partial].time = -1
    lists[l0 + p].has_copy = False
    return blank


@unit
def reset_state(m: Machine, l0: int, p: int) -> int:
    """`resetState`, which a sequence runs before every event."""
    state = m.states[p]
    lists = m.lists
    lp = l0 + p
    state_lists = m.lists[lp]
    kind = state.kind
    if kind in (LOGICAL, ABSENT_LOGICAL):
        lo = l0 + state.partner
        if not state.is_or and state_lists.pending_count != lists[lo].pending_count:
            return 0
        clear_pending(m, lp)
        clear_pending(m, lo)
    elif state_lists.pending != 0:
        if keep_blank_start(m, l0, p):
            return 0
        clear_pending(m, lp)
    if state.start and (kind == ABSENT or state_lists.new == 0):
        after = state.next
        if m.is_sequence and state.every < 0 and after >= 0 and lists[l0 + after].pending != 0:
            return 0
        init(m, l0, p)
    return 0


@called
def _expire_new(m: Machine, lp: int, p: int, t: int) -> int:
    """Drops expired partials of a new list; answers the last of them that was not known as expired, held, or 0."""
    state_lists = m.lists[lp]
    cells, states = m.cells, m.states
    steady = states[p].steady
    if steady and state_lists.low <= t and t <= state_lists.high:
        return 0
    from_head = steady and state_lists.rising and t >= state_lists.low
    last = 0
    low, high = -FAR, FAR
    c = state_lists.new
    while c != 0:
        after = cells[c].next
        e = cells[c].partial
        partial = m.partials[e]
        if is_expired(m, e, t):
            if not partial.is_expired:
                partial.is_expired = True
                if last != 0:
                    drop_partial(m, last)
                last = e
                partial.references += 1
            remove_new(m, lp, c)
        elif steady:
            starts, times = m.start_states, m.event_times
            if from_head:  # in order of their first events: no later one can have expired
                state_lists.high = times[first_event(m, e, starts[0])] + m.within
                return last
            for i in range(m.start_count):
                g = first_event(m, e, starts[i])
                if g != 0:
                    low = max(low, times[g] - m.within)
                    high = min(high, times[g] + m.within)
        c = after
    if state_lists.new == 0:
        reset_times(m, lp)
    else:
        state_lists.low = low
        state_lists.high = high
    return last


@unit
def expire_events(m: Machine, l0: int, p: int, t: int) -> int:
    """`expireEvents`: from the head of the pending list, and anywhere in the new list."""
    cells, states = m.cells, m.states
    lp = l0 + p
    state_lists = m.lists[lp]
    last = 0
    c = state_lists.pending
    while c != 0:
        e = cells[c].partial
        partial = m.partials[e]
        if not is_expired(m, e, t):
            break
        after = cells[c].next
        if not partial.is_expired:
            partial.is_expired = True
            if last != 0:
                drop_partial(m, last)
            last = e
            partial.references += 1
        remove_pending(m, lp, c)
        c = after
    if state_lists.new != 0:
        later = _expire_new(m, lp, p, t)
        if later != 0:
            if last != 0:
                drop_partial(m, last)
            last = later
    if last != 0:
        again = states[p].within_every
        if again >= 0:
            m.add_every(l0, again, last)
            m.update_state(l0, again)
        drop_partial(m, last)
    return 0


# ------------------------------------------------------------------------------------------------ post processors


@compiled
def advance(m: Machine, l0: int, p: int, e: int, g: int) -> None:
    """`StreamPostStateProcessor.process`: the state is reached, so on to the next."""
    state = m.states[p]
    lists = m.lists
    lists[l0 + p].has_changed = True
    m.partials[e].time = m.event_times[g]
    if state.last:
        m.has_returned[p] = 1
    if state.next >= 0:
        add_state(m, l0, state.next, e)
    if state.every >= 0:
        m.add_every(l0, state.every, e)
    start_reset(m, l0, p)


@unit
def reach_count(m: Machine, l0: int, p: int, e: int, g: int) -> int:
    """`CountPostStateProcessor.process`."""
    partial, state = m.partials[e], m.states[p]
    lp = l0 + p
    state_lists = m.lists[lp]
    n, least, sequence = m.links[partial.events[p]].count, state.least, m.is_sequence
    state_lists.success = True
    partial.time = m.event_times[g]
    # Below its least number Siddhi forgets the partial of a sequence, so that `x<2>` never matches; here it waits on.
    stays = sequence and (not state.last or least == 0)
    is_reached = n == least and not stays
    if is_reached:
        _reach_min_count(m, l0, p)
    if state.next >= 0 and (is_reached or (stays and n >= least)):
        add_state(m, l0, state.next, e)
    if is_reached and state.every >= 0:
        m.add_every(l0, state.every, e)
    if (stays and n != state.most) or (sequence and not stays and n < least):
        add_state(m, l0, p, e)
    if n == state.most and n >= least:
        state_lists.has_changed = True
    return 0


@called
def _partner_can_proceed(m: Machine, l0: int, p: int, e: int) -> bool:
    """`AbsentLogicalPreStateProcessor.partnerCanProceed` of the absent side `p`."""
    state = m.states[p]
    lp = l0 + p
    state_lists = m.lists[lp]
    came = m.partials[e].events[p] != NO_EVENT
    if m.is_sequence and state.every < 0 and state_lists.scheduled_time > 0:
        return False
    if state.wait != -1:
        return came
    if state.every < 0:
        return not came
    if state_lists.scheduled_time > 0:
        state_lists.scheduled_time = 0
        init(m, l0, p)
        return False
    return True


@unit
def reach_logical(m: Machine, l0: int, p: int, e: int, g: int) -> int:
    """`LogicalPostStateProcessor.process`. A state that is the whole pattern passes a match on through its right side:
    Siddhi notifies that side only for `or`, so that `A and B` is lost if A comes last (siddhi-io/siddhi#1793).
    """
    state = m.states[p]
    other, is_or = state.partner, state.is_or
    partner = m.states[other]
    if is_or:
        ready = True
    elif partner.kind == ABSENT_LOGICAL:
        ready = _partner_can_proceed(m, l0, other, e)
    else:
        ready = m.partials[e].events[other] != NO_EVENT
    if ready:
        advance(m, l0, p, e, g)
    else:
        m.lists[l0 + p].has_changed = True
    if ready and partner.last and state.returns == other:
        m.has_returned[other] = 1
    return 0


@unit
def reach_absent(m: Machine, l0: int, p: int, e: int, g: int) -> int:
    """`AbsentStreamPostStateProcessor` and `AbsentLogicalPostStateProcessor`: the event that must not occur has
    occurred."""
    state = m.states[p]
    lp = l0 + p
    state_lists = m.lists[lp]
    t = m.event_times[g]
    state_lists.has_changed = True
    m.has_returned[p] = 1
    if state.kind == ABSENT_LOGICAL:
        state_lists.scheduled_time = t
        if state.renews >= 0:
            state_lists.scheduled_time = 0
            m.add_every(l0, state.renews, e)
            remove_from(m, l0 + state.partner, e)
        return 0
    m.partials[e].time = t
    if state.start and state.every == p:
        m.add_every(l0, p, e)
    elif state.renews >= 0:  # Siddhi forgets the group, which never matches again
        m.add_every(l0, state.renews, e)
    state_lists.scheduled_time = t + state.wait
    m.notify_at(lp, p, state_lists.scheduled_time)
    return 0


@unit
def partition_created(m: Machine, l0: int, p: int, now: int) -> int:
    """`partitionCreated`: an absent start state begins to wait."""
    state = m.states[p]
    lp = l0 + p
    state_lists = m.lists[lp]
    if state_lists.has_started or state.kind < ABSENT:
        return 0
    state_lists.has_started = True
    if state.start and state.wait != -1 and state_lists.active:
        if state.kind == ABSENT:
            state_lists.scheduled_time = now + state.wait
        m.notify_at(lp, p, now + state.wait)
    return 0
