"""The lists of a pattern's states and the queues of their timers, compiled."""

from __future__ import annotations

from .machine_memory import Machine
from .partial_matches import FAR, drop_partial, first_event
from .pointers import called, compiled, unit

# -------------------------------------------------------------------------------------------------------- lists


@compiled
def free_cell(m: Machine, c: int) -> None:
    cells = m.cells
    cells[c].next = m.free_cell
    m.free_cell = c
    m.cells_left += 1


@compiled
def append_new(m: Machine, lp: int, p: int, e: int) -> None:
    """Adds a partial to a processor's `newAndEveryStateEventList`."""
    state_lists = m.lists[lp]
    cells, partials = m.cells, m.partials
    c = m.free_cell
    m.free_cell = cells[c].next
    m.cells_left -= 1
    partials[e].references += 1
    cells[c].partial = e
    fresh = m.quiet_cells[c]
    fresh.next = 0
    fresh.bucket = -1
    tail = state_lists.new_tail
    fresh.previous = tail
    if tail == 0:
        state_lists.new = c
    else:
        cells[tail].next = c
    state_lists.new_tail = c
    state_lists.new_count += 1
    if m.states[p].steady:
        widen(m, lp, e)


@called
def widen(m: Machine, lp: int, e: int) -> None:
    """Keeps, for a new list, the times between which no entry of it expires."""
    state_lists = m.lists[lp]
    times, starts = m.event_times, m.start_states
    for i in range(m.start_count):
        g = first_event(m, e, starts[i])
        if g != 0:
            t = times[g]
            if t - m.within > state_lists.low:
                state_lists.low = t - m.within
            if t + m.within < state_lists.high:
                state_lists.high = t + m.within
            if t < state_lists.last_start or m.start_count > 1:
                state_lists.rising = False
            state_lists.last_start = t
        else:
            state_lists.rising = False


@called
def reset_times(m: Machine, lp: int) -> None:
    """Set the times of an empty new list."""
    state_lists = m.lists[lp]
    state_lists.low = -FAR
    state_lists.high = FAR
    state_lists.last_start = -FAR
    state_lists.rising = True


@called
def remove_new(m: Machine, lp: int, c: int) -> None:
    """Takes a cell out of a new list."""
    state_lists = m.lists[lp]
    cells = m.cells
    before, after = cells[c].previous, cells[c].next
    if before == 0:
        state_lists.new = after
    else:
        cells[before].next = after
    if after == 0:
        state_lists.new_tail = before
    else:
        cells[after].previous = before
    state_lists.new_count -= 1
    e = cells[c].partial
    free_cell(m, c)
    drop_partial(m, e)


@called
def clear_new(m: Machine, lp: int) -> None:
    state_lists = m.lists[lp]
    while state_lists.new != 0:
        remove_new(m, lp, state_lists.new)
    reset_times(m, lp)


@compiled
def take_pending(m: Machine, lp: int, c: int) -> None:
    """Takes a cell out of a pending list."""
    state_lists = m.lists[lp]
    cells = m.cells
    before, after = cells[c].previous, cells[c].next
    if before == 0:
        state_lists.pending = after
    else:
        cells[before].next = after
    if after == 0:
        state_lists.pending_tail = before
    else:
        cells[after].previous = before
    state_lists.pending_count -= 1
    if cells[c].bucket >= 0:
        m.leave_index(c)
    e = cells[c].partial
    free_cell(m, c)
    drop_partial(m, e)


@called
def remove_pending(m: Machine, lp: int, c: int) -> None:
    """`take_pending`, not inlined, for rare callers."""
    take_pending(m, lp, c)


@called
def remove_from(m: Machine, lp: int, e: int) -> None:
    """Takes a partial out of a pending list, if it is there."""
    cells = m.cells
    c = m.lists[lp].pending
    while c != 0:
        if cells[c].partial == e:
            remove_pending(m, lp, c)
            return
        c = cells[c].next


@compiled
def clear_pending(m: Machine, lp: int) -> None:
    state_lists = m.lists[lp]
    while state_lists.pending != 0:
        take_pending(m, lp, state_lists.pending)


@called
def sort_new(m: Machine, lp: int) -> None:
    """Sorts a new list by the partials' times, -1 last, stably (`eventTimeComparator`)."""
    state_lists = m.lists[lp]
    cells, partials = m.cells, m.partials
    c = cells[state_lists.new].next
    while c != 0:
        after = cells[c].next
        t = partials[cells[c].partial].time
        t = FAR if t == -1 else t
        back = cells[c].previous
        steps = 0
        while back != 0:
            u = partials[cells[back].partial].time
            u = FAR if u == -1 else u
            if u <= t:
                break
            back = cells[back].previous
            steps += 1
        if steps > 0:
            before = cells[c].previous
            cells[before].next = after
            if after == 0:
                state_lists.new_tail = before
            else:
                cells[after].previous = before
            if back == 0:
                front = state_lists.new
                state_lists.new = c
            else:
                front = cells[back].next
                cells[back].next = c
            cells[c].previous = back
            cells[c].next = front
            cells[front].previous = c
        c = after


@called
def move_new(m: Machine, lp: int, p: int) -> None:
    """`updateState`: the new list goes to the end of the pending list."""
    state_lists = m.lists[lp]
    head = state_lists.new
    if head == 0:
        return
    if state_lists.new_count > 1:
        sort_new(m, lp)
    splice_new(m, lp, p)


@compiled
def splice_new(m: Machine, lp: int, p: int) -> None:
    """Appends the new list, unchanged, to the end of the pending list."""
    state_lists, state = m.lists[lp], m.states[p]
    cells = m.cells
    head = state_lists.new
    tail = state_lists.pending_tail
    if tail == 0:
        state_lists.pending = head
    else:
        cells[tail].next = head
        cells[head].previous = tail
    state_lists.pending_tail = state_lists.new_tail
    state_lists.pending_count += state_lists.new_count
    state_lists.new = 0
    state_lists.new_tail = 0
    state_lists.new_count = 0
    if state.steady:
        reset_times(m, lp)
    if state.keys >= 0:
        c = head
        while c != 0:
            m.enter_index(lp, p, c)
            c = cells[c].next


# -------------------------------------------------------------------------------------------------------- timers


@unit
def notify_at(m: Machine, lp: int, p: int, time: int) -> int:
    """`Scheduler.notifyAt`: appends a time to the queue of this processor and instance."""
    state_lists = m.lists[lp]
    times, states = m.times, m.states
    c = m.free_time
    m.free_time = times[c].next
    m.times_left -= 1
    times[c].time = time
    times[c].next = 0
    if state_lists.queue == 0:
        state_lists.queue = c
        state_lists.queue_tail = c
        timer = states[p].timer
        if state_lists.turn == 0:
            scheduler = m.schedulers[timer * m.scheduler_words]
            if scheduler.instances > scheduler.buckets * 3 // 4:
                scheduler.buckets *= 2
            scheduler.instances += 1
            scheduler.turns += 1
            state_lists.turn = scheduler.turns
        if m.draining != lp + 1:
            push_heap(m, timer, time, lp // m.state_count)
    else:
        times[state_lists.queue_tail].next = c
        state_lists.queue_tail = c
    return 0


@compiled
def leave_map(m: Machine, lp: int, p: int) -> None:
    """An instance without a scheduled time leaves the map of its scheduler."""
    m.schedulers[m.states[p].timer * m.scheduler_words].instances -= 1
    m.lists[lp].turn = 0


@called
def push_heap(m: Machine, timer: int, time: int, instance: int) -> None:
    """Pushes (time, instance) onto the heap of a scheduler."""
    scheduler = m.schedulers[timer * m.scheduler_words]
    heap = scheduler.heap
    i = scheduler.size
    scheduler.size = i + 1
    m.next_due = min(m.next_due, time)
    while i > 0:
        up = (i - 1) >> 1
        if heap[up].time < time or (heap[up].time == time and heap[up].instance <= instance):
            break
        heap[i].time = heap[up].time
        heap[i].instance = heap[up].instance
        i = up
    heap[i].time = time
    heap[i].instance = instance


@called
def pop_heap(m: Machine, timer: int) -> int:
    """Pops the first (time, instance) of the heap of a scheduler; returns the instance."""
    scheduler = m.schedulers[timer * m.scheduler_words]
    heap = scheduler.heap
    n = scheduler.size - 1
    scheduler.size = n
    out = heap[0].instance
    time, instance = heap[n].time, heap[n].instance
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            break
        if low + 1 < n and _is_before(heap[low + 1].time, heap[low + 1].instance, heap[low].time, heap[low].instance):
            low += 1
        if not _is_before(heap[low].time, heap[low].instance, time, instance):
            break
        heap[i].time = heap[low].time
        heap[i].instance = heap[low].instance
        i = low
    heap[i].time = time
    heap[i].instance = instance
    return out


@compiled
def _is_before(time: int, instance: int, other_time: int, other_instance: int) -> bool:
    return time < other_time or (time == other_time and instance < other_instance)
