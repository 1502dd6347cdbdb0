"""Timers of the absent states of a pattern (compiled)."""

from __future__ import annotations

from ..columnar.rows import ORDER_KEY_BITS
from .machine import leave_map, pop_heap, push_heap, remove_pending
from .machine_memory import ABSENT, ABSENT_LOGICAL, EMPTY_EVENT, FALSE, NO_EVENT, Machine
from .partial_matches import FAR, drop_partial, is_expired, new_partial
from .pattern_loop import DONE, NEED_CLOCK, NEED_MUCH, emit
from .pointers import called, entry, machine
from .processors import add_state, give, has_records, start_reset


@called
def has_room_for_timer(m: Machine, l0: int, p: int) -> bool:
    """True if a timer of processor `p` can run; `Machine.room_needed` is the number of records that it may take."""
    state = m.states[p]
    lp = l0 + p
    state_lists = m.lists[lp]
    n = state_lists.pending_count + state_lists.new_count + 4
    if state.kind == ABSENT_LOGICAL:
        lo = l0 + state.partner
        theirs = m.lists[lo]
        n += theirs.pending_count + theirs.new_count
    n *= 4 * m.state_count + 8
    m.room_needed = n
    return has_records(m, n) and m.links_left > 4


@called
def _send(m: Machine, l0: int, p: int, e: int) -> None:
    """`sendEvent`: nothing came in time, so the partial continues."""
    state = m.states[p]
    states, lists = m.states, m.lists
    if state.last:
        give(m, e)
    if state.next >= 0:
        add_state(m, l0, state.next, e)
    if state.every >= 0:
        m.add_every(l0, state.every, e)
    elif state.start:
        lists[l0 + p].active = False
        if state.kind == ABSENT_LOGICAL and state.is_or:
            other = state.partner
            if states[other].kind == ABSENT_LOGICAL:
                lists[l0 + other].active = False
    start_reset(m, l0, p)


@called
def _send_all(m: Machine, l0: int, p: int, first: int) -> None:
    """Sends the partials that were collected behind the matches in `Machine.selection`, from place `first` on."""
    selection = m.selection
    n = m.selected_count - first
    # Matches are put there themselves, so the collected ones move out of their way first.
    cap = m.selected_capacity
    for i in range(n):
        selection[cap - n + i] = selection[first + i]
    m.selected_count = first
    for i in range(n):
        e = selection[cap - n + i]
        m.partials[e].selection_mark = 0
        _send(m, l0, p, e)
        drop_partial(m, e)


@called
def process_timer(m: Machine, l0: int, p: int, time: int) -> None:
    """`AbsentStreamPreStateProcessor.process`; `time` is when the timer was due."""
    state = m.states[p]
    cells, partials = m.cells, m.partials
    lp = l0 + p
    state_lists = m.lists[lp]
    if m.is_partitioned and not state_lists.is_initialized and state_lists.new_count == 0 and state_lists.pending == 0:
        # A partition forgets a state that holds nothing (`PartitionStateHolder.returnState`): a timer finds a new one.
        state_lists.scheduled_time = 0
    if not state_lists.active:
        return
    wait, every = state.wait, state.every
    begin = state.start and state_lists.new_count == 0 and state_lists.pending == 0
    if begin and m.is_sequence and every < 0 and state_lists.scheduled_time > 0:
        begin = False
    if begin:
        e = new_partial(m)
        partials[e].references = 1
        add_state(m, l0, p, e)
        drop_partial(m, e)
    elif m.is_sequence and state_lists.new_count != 0:
        m.reset_state(l0, p)
    m.update_state(l0, p)
    first = m.selected_count
    c = state_lists.pending
    while c != 0:
        after, e = cells[c].next, cells[c].partial
        t = partials[e].time
        if is_expired(m, e, time):
            if state.within_every >= 0 and every >= 0 and every != p:
                m.add_every(l0, every, e)
            remove_pending(m, lp, c)
        elif (t == -1 and time >= state_lists.scheduled_time) or (t != -1 and time >= t + wait):
            partials[e].time = time
            give(m, e)
            remove_pending(m, lp, c)
        c = after
    if state.within_every >= 0:
        m.update_state(l0, state.within_every)
    nothing = m.selected_count == first
    _send_all(m, l0, p, first)
    if m.now > wait + time:
        state_lists.scheduled_time = m.now + wait
    if nothing and state_lists.scheduled_time < time:
        state_lists.scheduled_time = time + wait
        m.notify_at(lp, p, time + wait)


@called
def process_timer_logical(m: Machine, l0: int, p: int, time: int) -> None:
    """`AbsentLogicalPreStateProcessor.process`; `scheduled_time` holds its `lastArrivalTime`."""
    state = m.states[p]
    cells, partials = m.cells, m.partials
    lp = l0 + p
    state_lists = m.lists[lp]
    if not state_lists.active:
        return
    wait, other = state.wait, state.partner
    nothing = True
    if time >= state_lists.scheduled_time + wait:
        if state.start and m.is_sequence and state_lists.new_count == 0 and state_lists.pending == 0:
            e = new_partial(m)
            partials[e].references = 1
            add_state(m, l0, p, e)
            drop_partial(m, e)
        elif m.is_sequence and state_lists.new_count != 0:
            m.reset_state(l0, p)
        m.update_state(l0, p)
        first, last_expired = m.selected_count, 0
        c = state_lists.pending
        while c != 0:
            after, e = cells[c].next, cells[c].partial
            g = partials[e].events[p]
            since = partials[e].time if g == NO_EVENT else m.event_times[g]
            if is_expired(m, e, time):
                if last_expired != 0:
                    drop_partial(m, last_expired)
                last_expired = e
                partials[e].references += 1
                remove_pending(m, lp, c)
            elif time >= since + wait:
                came = partials[e].events[other] != NO_EVENT
                if state.is_or:
                    if not came:
                        partials[e].events[p] = EMPTY_EVENT if g == NO_EVENT else g
                        give(m, e)
                elif came:
                    give(m, e)
                else:
                    partials[e].events[p] = EMPTY_EVENT if g == NO_EVENT else g
                remove_pending(m, lp, c)
            c = after
        if last_expired != 0:
            if state.within_every >= 0:
                m.add_every(l0, state.within_every, last_expired)
                m.update_state(l0, state.within_every)
            drop_partial(m, last_expired)
        nothing = m.selected_count == first
        selection = m.selection
        for i in range(first, m.selected_count):
            partials[selection[i]].time = time
        _send_all(m, l0, p, first)
        state_lists.scheduled_time = 0
    if state.every >= 0 or (nothing and state.start):
        since = m.now if state_lists.scheduled_time == 0 else state_lists.scheduled_time
        m.notify_at(lp, p, since + wait)


@called
def _collect_due(m: Machine, k: int, now: int) -> None:
    """Takes the instances that run at `now` into `Machine.due`, by their first times. Of several with the
    same first time only the first in the scheduler's map runs; the others stay for the next movement of the clock
    (`columnar.timers`)."""
    lists, due, hashes, p = m.lists, m.due, m.hashes, m.timer_states[k]
    scheduler = m.schedulers[k * m.scheduler_words]
    mask = scheduler.buckets - 1
    n = 0
    while scheduler.size > 0 and scheduler.heap[0].time <= now:
        due[n].time = scheduler.heap[0].time
        instance = pop_heap(m, k)
        due[n].instance = instance
        n += lists[instance * m.state_count + p].queue != 0
    runs, i = 0, 0
    while i < n:
        best, j, time = i, i + 1, due[i].time
        while j < n and due[j].time == time:
            a, b = due[j].instance, due[best].instance
            nearer = (hashes[a] & mask) - (hashes[b] & mask)
            turn = lists[a * m.state_count + p].turn - lists[b * m.state_count + p].turn
            if nearer < 0 or (nearer == 0 and turn > 0):
                best = j
            j += 1
        first_instance = due[best].instance
        for other in range(i, j):
            if other != best:
                push_heap(m, k, time, due[other].instance)
        due[runs].instance = first_instance
        runs += 1
        i = j
    m.due_count = runs
    m.due_done = 0


@called
def _drain(m: Machine, p: int, instance: int, now: int, order_key: int) -> int:
    """`Scheduler.sendTimerEvents`: all due times of an instance, each with its effects."""
    times, states = m.times, m.states
    l0 = instance * m.state_count
    lp = l0 + p
    state_lists = m.lists[lp]
    m.now = now
    m.draining = lp + 1
    while True:
        if m.selected_count > 0:
            status = emit(m, order_key, instance, FALSE, FALSE)
            if status != DONE:
                return status
        c = state_lists.queue
        if c == 0 or times[c].time > now:
            break
        if not has_room_for_timer(m, l0, p):
            return NEED_MUCH
        time = times[c].time
        state_lists.queue = times[c].next
        times[c].next = m.free_time
        m.free_time = c
        m.times_left += 1
        if states[p].kind == ABSENT:
            process_timer(m, l0, p, time)
        else:
            process_timer_logical(m, l0, p, time)
    m.draining = 0
    if state_lists.queue != 0:
        push_heap(m, m.timer, times[state_lists.queue].time, instance)
    else:
        leave_map(m, lp, p)
    return DONE


@called
def _advance_clock(m: Machine, limit: int) -> int:
    """Fires the timers whose order key is before `limit`."""
    states, numbers, schedulers = m.states, m.timer_states, m.schedulers
    times, may_fire = m.clock_times, m.clock_may_fire
    while m.step < m.step_end:
        step = m.step
        key = step << ORDER_KEY_BITS
        if key > limit:
            return DONE
        if may_fire[step - m.first_step] != 0:
            now = times[step - m.first_step]
            while m.timer < m.timer_count:
                k = m.timer
                p = numbers[k]
                order_key = key + states[p].phase
                if order_key > limit:
                    return DONE
                if m.due_count == 0:
                    scheduler = schedulers[k * m.scheduler_words]
                    if scheduler.size > 0 and scheduler.heap[0].time <= now:
                        _collect_due(m, k, now)
                while m.due_done < m.due_count:
                    status = _drain(m, p, m.due[m.due_done].instance, now, order_key)
                    if status != DONE:
                        return status
                    m.due_done += 1
                m.due_count = 0
                m.due_done = 0
                m.timer += 1
        m.timer = 0
        m.step += 1
    return DONE


@entry
def run_timed(address: int, is_unpartitioned: int, origin: int) -> int:
    """`run` for a pattern with absent states, whose timers fire between the rows."""
    m = machine(address)
    while True:
        status = m.process_rows(is_unpartitioned, origin)
        if status != NEED_CLOCK:
            return status
        status = _advance_clock(m, m.limit)
        if status != DONE:
            return status
        schedulers = m.schedulers
        due = FAR
        for k in range(m.timer_count):
            scheduler = schedulers[k * m.scheduler_words]
            if scheduler.size > 0:
                due = min(due, scheduler.heap[0].time)
        m.next_due = due
        m.is_clock_current = True
