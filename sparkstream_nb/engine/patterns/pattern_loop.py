"""The compiled loop of a pattern: processes the rows of all its streams in order, with timers between them, and emits
matches."""

from __future__ import annotations

from ..columnar.rows import EVENT_PHASE, ORDER_KEY_BITS
from ..notation.intrinsics import AHEAD
from .machine import clear_pending, splice_new
from .machine_memory import ABSENT, FAILURE, SETTLED_COLUMNS, Machine
from .partial_matches import FAR, drop_partial, is_expired
from .pointers import ask, called, compiled, entry, machine, unit
from .process import NONE_LEFT, start_again
from .processors import has_room, has_room_for_event, init, is_blank_start, keep_blank_start

DONE, NEED_ROOM, NEED_MUCH, NEED_ROWS, NEED_EVENTS, NEED_VERDICTS, NEED_CLOCK, NEED_REPORT = range(8)
"""Return codes of `run`: finished; or it needs memory for partials, for `Machine.room_needed` of them, for matches, for
their events; or verdicts on the cells of a list by a filter that only Python can evaluate; or timers up to
`Machine.limit` (`timed.run_timed`); or a report of the event at `Machine.row`, which failed in a filter. After any but
the first, call it again.
"""


@unit
def begin_instance(m: Machine, l0: int, now: int) -> int:
    """A new partition instance: its start states wait for their first events (`initPartition`)."""
    lists = m.lists
    if lists[l0].born:
        return 0
    lists[l0].born = True
    numbers = m.inits
    i = 0
    while numbers[i] >= 0:
        init(m, l0, numbers[i])
        i += 1
    numbers = m.startup
    i = 0
    while numbers[i] >= 0:
        m.partition_created(l0, numbers[i], now)
        i += 1
    return 0


@compiled
def _runs_out(m: Machine, lp: int, p: int, t: int) -> bool:
    """True if partials of a state may have expired by time `t`."""
    state_lists = m.lists[lp]
    cells = m.cells
    if state_lists.pending != 0 and is_expired(m, cells[state_lists.pending].partial, t):
        return True
    return state_lists.new != 0 and (not m.states[p].steady or t < state_lists.low or state_lists.high < t)


@compiled
def _is_partner_new(m: Machine, l0: int, p: int) -> bool:
    """True if the other side of a logical state has something new."""
    other = m.states[p].partner
    return other >= 0 and m.lists[l0 + other].new != 0


@compiled
def _is_idle(m: Machine, l0: int, stream: int, i: int, t: int) -> bool:
    """True if row `i` leaves everything as it is: most events of a pattern that waits for few."""
    lists, states, has_returned, mask = m.lists, m.states, m.has_returned, i * m.state_count
    if m.is_sequence:
        partials, cells = m.partials, m.cells
        for p in range(m.state_count):
            lp = l0 + p
            if lists[lp].pending == 0:
                if lists[lp].new != 0 or lists[lp].reset or states[p].start or states[p].partner >= 0:
                    return False
            elif (
                (states[p].stream == stream and m.row_masks[mask + p] != 0)
                or lists[lp].has_copy
                or has_returned[states[p].returns] != 0
                or not is_blank_start(m, l0, p)
                or partials[cells[lists[lp].pending].partial].time != -1
            ):
                return False
        return True
    numbers = m.receivers
    first = numbers[2 * stream]
    for k in range(first, first + numbers[2 * stream + 1]):
        p = numbers[k]
        lp = l0 + p
        if lists[lp].new != 0 or lists[lp].reset or _is_partner_new(m, l0, p):
            return False
        if lists[lp].pending != 0:
            row_verdict = m.row_masks[mask + p]
            if has_returned[states[p].returns] != 0 or row_verdict == FAILURE:
                return False
            if row_verdict == 0:
                if not states[p].inert:
                    return False
            elif states[p].keys < 0 or m.first_candidate(lp, p, m.log_base + i) != 0:
                return False
    if m.within >= 0:
        for p in range(m.state_count):
            if _runs_out(m, l0 + p, p, t):
                return False
    return True


@compiled
def _stabilize(m: Machine, l0: int, stream: int, t: int) -> None:
    """`stabilizeStates`: before an event, expired partials go and new ones become pending."""
    states = m.states
    if m.within >= 0:
        for p in range(m.state_count):
            if _runs_out(m, l0 + p, p, t):
                m.expire_events(l0, p, t)
    if not m.is_sequence:
        numbers = m.receivers
        first = numbers[2 * stream]
        for i in range(first, first + numbers[2 * stream + 1]):
            _update(m, l0, numbers[i])
        return
    numbers = m.resets
    i = 0
    while numbers[i] >= 0:
        p = numbers[i]
        lp = l0 + p
        if states[p].start or states[p].partner >= 0:
            if not keep_blank_start(m, l0, p):
                m.reset_state(l0, p)
        else:
            clear_pending(m, lp)
        i += 1
    numbers = m.updates
    i = 0
    while numbers[i] >= 0:
        _update(m, l0, numbers[i])
        i += 1


@compiled
def _update(m: Machine, l0: int, p: int) -> None:
    """`updateState`, at once where one partial is new."""
    lp = l0 + p
    state_lists = m.lists[lp]
    if state_lists.reset or state_lists.new_count > 1 or _is_partner_new(m, l0, p):
        m.update_state(l0, p)
    elif state_lists.new != 0:
        splice_new(m, lp, p)


@compiled
def _write_slots(m: Machine, r: int, e: int) -> bool:
    """Write the events of a partial into match `r`; False if there is no room for the events of its chains."""
    if m.counted_states != 0:
        return m.write_chains(r, e) != 0
    events, out = m.partials[e].events, m.matches.events
    for k in range(m.state_count):
        out[k, r] = events[k]
    return True


@unit
def write_chains(m: Machine, r: int, e: int) -> int:
    """`_write_slots` where states are counted."""
    events, out, match_events, n = m.partials[e].events, m.matches.events, m.match_events, m.state_count
    links, states = m.links, m.states
    more = 0
    for k in range(n):
        if states[k].is_counted and events[k] != 0:
            more += links[events[k]].count
    if m.match_event_count + more > m.match_event_capacity:
        m.room_needed = more
        return 0
    for k in range(n):
        v = events[k]
        if states[k].is_counted:
            out[k, r] = m.match_event_count
            out[n + k, r] = 0 if v == 0 else links[v].count
            while v != 0:
                match_events[m.match_event_count] = links[v].event
                m.match_event_count += 1
                v = links[v].next
        else:
            out[k, r] = v
    return 1


@compiled
def _mark(m: Machine, r: int, was_expired: bool) -> None:
    """Sets the kind of match `r`: kinds are kept from the first match on that is marked as expired."""
    if (was_expired and m.marked_from == 0) or m.marked_from > r + 1:
        m.marked_from = r + 1
    if m.marked_from != 0:
        m.matches.kind[r] = was_expired


@compiled
def emit(m: Machine, order_key: int, instance: int, hold: bool, several: bool) -> int:
    """Writes the partials given to the selector as matches. `hold`: `_settle` comes later, if any of them may change
    until then; `several`: they continue as one chunk.
    """
    selection, out = m.selection, m.matches
    while m.emitted_count < m.selected_count:
        r = m.match_count
        if r >= m.match_capacity:
            return NEED_ROWS
        e = selection[m.emitted_count]
        partial = m.partials[e]
        if not _write_slots(m, r, e):
            return NEED_EVENTS
        time, was_expired = partial.time, partial.is_expired
        out.time[r] = time
        out.order_key[r] = order_key
        if m.is_partitioned:
            out.instance[r] = instance
        out.group[r] = r - m.emitted_count if several else r
        _mark(m, r, was_expired)
        partial.selection_mark = 0
        if hold and (m.unsettled_count > 0 or partial.references > 1):
            out.partial[r] = e
            m.unsettled_count += 1
        else:
            if m.late != 0:
                out.partial[r] = r
                out.sent_time[r] = time
                out.sent_kind[r] = was_expired
            drop_partial(m, e)
        m.match_count += 1
        m.emitted_count += 1
    m.emitted_count = 0
    m.selected_count = 0
    return DONE


@called
def _discard(m: Machine) -> None:
    """Drop the partials given to a selector that the stream's receiver does not know."""
    selection, partials = m.selection, m.partials
    for i in range(m.selected_count):
        partials[selection[i]].selection_mark = 0
        drop_partial(m, selection[i])
    m.selected_count = 0


@called
def _abandon(m: Machine) -> None:
    """An event that failed in a filter makes no matches: an error leaves Siddhi's receiver before it sends any."""
    _discard(m)
    out = m.matches
    first_unsettled = max(m.first_match, m.match_count - m.unsettled_count)
    for r in range(first_unsettled, m.match_count):
        drop_partial(m, out.partial[r])
        m.unsettled_count -= 1
    m.match_count = m.first_match


@called
def _settle(m: Machine, several: bool) -> int:
    """Finish a chunk. Siddhi emits the live partials (`StateEvent`) after all events of the chunk have passed all
    states, so times and types are read here, not at selection. If several states read the stream, values were selected
    at once, and the values of a partial's last match count; else they too are read here, and a partial is emitted once.
    """
    partials, out = m.partials, m.matches
    if not several and m.counted_states > 0:  # room first, so that this can be done again
        more = m.unsettled_count * m.row_count
        if m.match_event_count + more > m.match_event_capacity:
            m.room_needed = more
            return NEED_EVENTS
    first = m.match_count - m.unsettled_count
    end = first
    for r in range(first, m.match_count):
        e = out.partial[r]
        if not several:
            if partials[e].selection_mark != 0:
                drop_partial(m, e)
                continue
            if end != r:
                for k in range(SETTLED_COLUMNS):
                    out[k, end] = out[k, r]
            out.group[end] = end
            out.time[end] = partials[e].time
            _mark(m, end, partials[e].is_expired)
            _write_slots(m, end, e)
        partials[e].selection_mark = end + 1
        end += 1
    for r in range(first, end):
        e = out.partial[r]
        time, was_expired = partials[e].time, partials[e].is_expired
        last = partials[e].selection_mark - 1
        was = out.kind[r] if 0 < m.marked_from <= r + 1 else 0
        if m.late == 0 and (time != out.time[r] or was_expired != was or last != r):
            m.late = first + 1
        out.sent_time[r] = time
        out.sent_kind[r] = was_expired
        out.partial[r] = last
        if last == r:
            partials[e].selection_mark = 0
        drop_partial(m, e)
    m.match_count = end
    m.unsettled_count = 0
    return DONE


@compiled
def _process(m: Machine, l0: int, p: int, i: int) -> int:
    """One processor and one event, from the beginning or from the cell where memory ran out."""
    state = m.states[p]
    lp = l0 + p
    state_lists = m.lists[lp]
    kind, g = state.kind, m.log_base + i
    row_verdict = int(m.row_masks[i * m.state_count + p])
    c = m.cell
    if c == 0:
        c = state_lists.pending
        if c == 0 or (kind >= ABSENT and not state_lists.active):
            return DONE
        if row_verdict == FAILURE:
            m.has_failed = True
            return DONE
        m.by_index = False
        if m.has_returned[state.returns] == 0:
            if row_verdict == 0:
                if state.inert or is_blank_start(m, l0, p):
                    return DONE  # nothing would change, or be again as it is before the next event
            elif state.program < 0 and not state.slow:
                if start_again(m, l0, p, g):
                    return DONE
            elif state.keys >= 0:
                c = m.first_candidate(lp, p, g)
                if c == 0:
                    return DONE
                m.by_index = True
        if row_verdict != 0 and state.slow and not m.has_verdicts:
            return NEED_VERDICTS
    c = m.process(l0, p, g, row_verdict, c)
    if c != NONE_LEFT:
        m.cell = c
        return NEED_ROOM
    m.cell = 0
    m.has_verdicts = False
    return DONE


@unit
def timers_wait(m: Machine, order_key: int) -> int:
    """1 if timers may fire before a row of this order key. Skips steps without due timers."""
    step = order_key >> ORDER_KEY_BITS
    if m.step > step:
        return 0
    if order_key & EVENT_PHASE != EVENT_PHASE or m.due_count != 0:
        return 1
    if m.clock_times[step - m.first_step] >= m.next_due:
        return 1
    m.step = step + 1
    m.timer = 0
    return 0


@compiled
def _ask_ahead(m: Machine, i: int) -> None:
    """Prefetch the state of later rows' instances: first their lists, then the first entries of these, then the
    entries' partials.
    """
    lists, cells, partials, instance_of = m.lists, m.cells, m.partials, m.row_instances
    n = m.state_count
    far, near = instance_of[i + AHEAD] * n, instance_of[i + AHEAD // 2] * n
    next_ = instance_of[i + AHEAD // 4] * n
    for p in range(n):
        ask(lists, far + p, 0)
        ask(lists, far + p, 8)
        ask(cells, lists[near + p].pending, 0)
        ask(cells, lists[near + p].new, 0)
        ask(partials, cells[lists[next_ + p].pending].partial, 0)
        ask(partials, cells[lists[next_ + p].new].partial, 0)


@unit
def process_rows(m: Machine, is_unpartitioned: int, origin: int) -> int:
    """Processes the rows from `Machine.row` on, and the timers up to the clock's end. `is_unpartitioned`: no
    partitions, so that instance 0 exists from the start, which is at time `origin`."""
    more, selects, numbers = m.row_continues, m.selecting, m.receivers
    order_key_of, instance_of = m.row_order_keys, m.row_instances
    stream_of, clock = m.row_streams, m.clock_times
    lists, times = m.lists, m.event_times
    if is_unpartitioned != 0 and not lists[0].born:
        if not has_room(m):
            return NEED_ROOM
        m.begin_instance(0, origin)
    status, i, stage, ordinal = DONE, m.row, m.stage, m.ordinal
    while i < m.row_count:
        order_key, stream, instance = order_key_of[i], stream_of[i], instance_of[i]
        l0 = instance * m.state_count
        if stage == 0:
            if m.is_partitioned and i + AHEAD < m.row_count:
                _ask_ahead(m, i)
            if m.timer_count > 0:
                if not m.is_clock_current and m.timers_wait(order_key) != 0:
                    m.limit = order_key
                    status = NEED_CLOCK
                    break
                m.is_clock_current = False
            t = times[m.log_base + i]
            if m.unsettled_count == 0 and lists[l0].born and _is_idle(m, l0, stream, i, t):
                i += 1
                continue
            if not has_room_for_event(m):
                m.is_clock_current = True
                status = NEED_ROOM
                break
            if not lists[l0].born:
                m.begin_instance(l0, clock[(order_key >> ORDER_KEY_BITS) - m.first_step])
            _stabilize(m, l0, stream, t)
            m.first_match = m.match_count
            stage, ordinal = 1, 0
        n = numbers[2 * stream + 1]
        hold = n > 1 or more[i] != 0 or (i > 0 and more[i - 1] != 0)
        while ordinal < n:
            p = numbers[numbers[2 * stream] + n - 1 - ordinal]
            if lists[l0 + p].pending != 0 or m.cell != 0 or stage == 2:
                if stage == 1:
                    status = _process(m, l0, p, i)
                    if status != DONE:
                        break
                    if m.has_failed:
                        _abandon(m)
                        m.has_failed = False
                        ordinal, status = n, NEED_REPORT
                        break
                    stage = 2
                if m.selected_count > 0:
                    if selects[stream] == 0:
                        _discard(m)
                    else:
                        status = emit(m, order_key, instance, hold, n > 1)
                        if status != DONE:
                            break
                stage = 1
            ordinal += 1
        if status != DONE:
            break
        if m.unsettled_count > 0 and more[i] == 0:
            stage = 3
            status = _settle(m, n > 1)
            if status != DONE:
                break
        stage = 0
        i += 1
    if status == DONE and m.timer_count > 0 and not m.is_clock_current:
        m.limit = FAR
        status = NEED_CLOCK
    m.row, m.stage, m.ordinal = i, stage, ordinal
    return status


@entry
def run(address: int, is_unpartitioned: int, origin: int) -> int:
    """`process_rows` for the machine whose header is at `address`."""
    m = machine(address)
    return m.process_rows(is_unpartitioned, origin)
