"""The memory of a pattern's state machine (`pointers`: access to it from compiled loops).

All state of a pattern is in a handful of arrays of 64-bit words: pools of records, which refer to one another by their
offsets; offset 0 means none. The *machine* itself is a record too, the header: it has the addresses of the others, the
registers and the addresses of compiled functions, so that a compiled function takes one pointer instead of a dozen
array descriptors: calls stay cheap and compile fast.

The word of a state in a partial is the log number of its event, or the first link of a chain for a counted state.
Log numbers 0 and 1 are no event, and an event without values (`StreamEventFactory.newInstance` of an absent state).

In compiled functions, `m` is the machine, `p` the number of a state, `g` the log number of an event. `e`, `c` and `v`
are the offsets of a partial, a cell and a link. `m.lists[lp]` are the lists of a state in a partition instance; `lp` is
`l0 + p`, and `l0` the number of the lists of the instance's first state.
"""

from __future__ import annotations

from typing import Annotated, Protocol

import numpy as np

from .records import (
    RECORDED,
    RECORDS,
    WRITTEN,
    Columns,
    Grid,
    Octets,
    Pool,
    Reals,
    Same,
    Table,
    Words,
    header,
    offset_of,
    record,
    words_of,
)  # fmt: skip

NO_EVENT, EMPTY_EVENT = 0, 1

NONE, FALSE, TRUE = np.int64(0), np.bool_(False), np.bool_(True)
"""Typed constants for arguments: numba would compile a function again for each literal type."""

FAILURE = 2
"""In place of 1: of a null mark of the log, the value could not be computed; of a verdict or of an event's columns, a
filter failed.
"""

# Kinds of state.
STREAM, COUNT, LOGICAL, ABSENT, ABSENT_LOGICAL = 0, 1, 2, 3, 4


@record(words=32)
class StateDescription:
    """A state of the pattern: its kind and wiring (`machine_layout.Processor`) and its filter (`filter_program`). It
    does not change."""

    kind: int
    start: bool
    least: int
    most: int
    next: int
    every: int
    within_every: int
    last: bool
    returns: int
    callback: int
    partner: int
    is_or: bool
    wait: int
    phase: int
    is_counted: bool
    program: int
    slow: bool
    keys: int
    key_count: int
    bound: int
    bound_sign: int
    steady: bool
    init_again: bool
    timer: int
    stream: int
    starts_again: bool
    rest: int
    strict: bool
    slow_last: bool
    inert: bool
    renews: int


@record(words=24)
class StateLists:
    """Per partition instance and state: its pending and new lists, flags, and the last scheduled time. What nearly
    every event asks for stands first, in one line of the processor's cache."""

    pending: int
    pending_tail: int
    pending_count: int
    new: int
    new_tail: int
    new_count: int
    reset: bool
    born: bool
    has_changed: bool
    success: bool
    has_copy: bool
    least_bound: float
    low: int
    high: int
    rising: bool
    last_start: int
    is_initialized: bool
    has_started: bool
    active: bool
    scheduled_time: int
    queue: int
    queue_tail: int
    turn: int


@record()
class Partial:
    """A partial match, Siddhi's `StateEvent`: its timestamp (of a free record the next free one), how many lists hold
    it, whether it has expired, whether it was given to the selector, and one word per state."""

    time: int
    references: int
    is_expired: bool
    selection_mark: int
    events: Words


@record()
class Cell:
    """An entry of a list: its partial, its neighbours, its neighbours in its bucket of the index, the lists that it is
    in, and its bucket. `bound`: what an event must exceed for the entry to matter; `verdict`: of a filter that was
    evaluated outside."""

    partial: int
    next: int
    previous: int
    previous_in_bucket: int
    next_in_bucket: int
    owner: int
    bucket: int
    verdict: int
    bound: Annotated[float, Same("verdict")]


@record()
class Link:
    """One event of a counted state. The first of a chain also has the last one, the length, and the number of partials
    that have the chain."""

    event: int
    next: int
    previous: int
    references: int
    tail: int
    count: int


@record()
class ScheduledTime:
    """A time for which a timer is set, in a queue."""

    time: int
    next: int


@record(words=4)
class Bucket:
    """A bucket of the index over pending partials, with the least bound of its entries."""

    head: int
    tail: int
    bound: float


@record()
class DueTime:
    """An instance and the first of its scheduled times."""

    time: int
    instance: int


@record()
class Scheduler:
    """The timers of an absent state: a heap of instances by the first of their times, of `size` entries; and of the
    scheduler's map (`timed`) the buckets, the instances in it and how many came in ever, of which `turn` of
    `StateLists` is each one's number."""

    size: int
    buckets: int
    instances: int
    turns: int
    heap: Table[DueTime]


@record()
class MatchColumns(Grid, Protocol):
    """The columns of matches. `time` and `kind` are the partial's when it was selected, `sent_time` and `sent_kind`
    when its chunk was emitted. `group` is the number of the first match of the same chunk. `partial` is the partial
    until then, and afterwards the number of its last match in the chunk. `events`: per state the event (or the offset
    in `Machine.match_events`), and, if a state is counted, per state the number of events."""

    time: Words
    order_key: Words
    instance: Words
    group: Words
    kind: Words
    partial: Words
    sent_time: Words
    sent_kind: Words
    events: Grid


# Programs of filters (`check`) and the index, in `Machine.codes`. A value is loaded from the event that a mode, a state
# and a number name (`partial_matches.find_event`), from a column of the log that has doubles if it is real.


@record()
class Comparison:
    """Compares two loaded values. `leap`: the length of what a true first condition of an `or` leaps over."""

    code: int
    op: int
    kind: int
    left_mode: int
    left_state: int
    left_number: int
    left_column: int
    left_real: int
    right_mode: int
    right_state: int
    right_number: int
    right_column: int
    right_real: int
    leap: int


@record()
class Load:
    """Pushes a loaded value."""

    code: int
    mode: int
    state: int
    number: int
    column: int


@record()
class Operation:
    """An operation on the last values of the stack, of this type."""

    code: int
    op: int
    kind: int
    left_real: int
    right_real: int


@record()
class FunctionCall:
    """A function of the last values of the stack."""

    code: int
    function: int
    left_real: int
    right_real: int


@record()
class IndexKey:
    """A key of the index: how it is hashed, and its columns for the event and for an earlier event of the partial."""

    hashing: int
    column: int
    real: int
    earlier_state: int
    earlier_column: int
    earlier_real: int


@record()
class IndexBound:
    """The bound of an index, as the columns of a key."""

    column: int
    real: int
    earlier_state: int
    earlier_column: int
    earlier_real: int


Register = Annotated[int, WRITTEN]
"""A word of the header that compiled code writes; the others stay as they are while it runs."""

Flag = Annotated[bool, WRITTEN]

Memory = Annotated[Words, WRITTEN]
"""Words that compiled code writes."""


@header
class Machine(Protocol):
    """The header: all that compiled functions work on. Its methods are the compiled functions of these names
    (`pointers.Unit`)."""

    # The pattern.
    states: Table[StateDescription]
    state_count: int
    within: int
    is_sequence: bool
    is_partitioned: bool
    counted_states: int
    start_states: Words
    start_count: int
    inits: Words
    resets: Words
    updates: Words
    startup: Words
    receivers: Words
    selecting: Words
    codes: Words
    comparisons: Annotated[Pool[Comparison], Same("codes")]
    loads: Annotated[Pool[Load], Same("codes")]
    operations: Annotated[Pool[Operation], Same("codes")]
    calls: Annotated[Pool[FunctionCall], Same("codes")]
    keys: Annotated[Pool[IndexKey], Same("codes")]
    bounds: Annotated[Pool[IndexBound], Same("codes")]
    constants: Words

    # Its state.
    lists: Annotated[Table[StateLists], WRITTEN]
    partials: Annotated[Pool[Partial], WRITTEN, RECORDED]
    quiet_partials: Annotated[Pool[Partial], Same("partials")]
    """`partials`, for words of a record of which another word is written through `partials` as well."""
    free_partial: Register
    partials_left: Register
    partial_words: int
    cells: Annotated[Pool[Cell], WRITTEN, RECORDED]
    quiet_cells: Annotated[Pool[Cell], Same("cells")]
    free_cell: Register
    cells_left: Register
    links: Annotated[Pool[Link], WRITTEN]
    free_link: Register
    links_left: Register
    times: Annotated[Pool[ScheduledTime], WRITTEN]
    free_time: Register
    times_left: Register
    has_returned: Memory
    """Per state, whether it has emitted a match (`isEventReturned`)."""

    # The index.
    buckets: Annotated[Pool[Bucket], WRITTEN]
    bucket_count: int
    indexed_count: Register
    by_index: Flag

    # The event log: words, column after column of `log_capacity` each, and which are null (or `FAILURE`).
    words: Words
    reals: Annotated[Reals, Same("words")]
    nulls: Octets
    event_times: Words
    log_capacity: int

    # The rows at hand: the first has number `log_base` in the log.
    row_streams: Words
    row_instances: Words
    row_masks: Octets
    row_order_keys: Words
    row_continues: Octets
    row_count: int
    log_base: int
    row: Register
    stage: Register
    ordinal: Register
    cell: Register
    has_verdicts: Flag
    has_failed: Flag
    room_needed: Register

    # Partials that are given to the selector, and the matches that they become.
    selection: Memory
    selected_count: Register
    selected_capacity: int
    matches: Annotated[MatchColumns, WRITTEN, Columns("match_capacity")]
    match_count: Register
    match_capacity: int
    match_columns: int
    match_events: Memory
    match_event_count: Register
    match_event_capacity: int
    emitted_count: Register
    unsettled_count: Register
    first_match: Register
    marked_from: Register
    late: Register

    # Timers and the clock.
    timer_states: Words
    timer_count: int
    schedulers: Annotated[Pool[Scheduler], WRITTEN]
    scheduler_words: int
    hashes: Words
    due: Annotated[Table[DueTime], WRITTEN]
    due_count: Register
    due_done: Register
    next_due: Register
    clock_times: Words
    clock_may_fire: Octets
    first_step: int
    step: Register
    step_end: int
    timer: Register
    now: Register
    draining: Register
    limit: Register
    is_clock_current: Flag

    # A filter's values, and which of them are null.
    stack: Memory
    stack_reals: Annotated[Reals, Same("stack")]
    stack_nulls: Annotated[Octets, WRITTEN]

    def process_rows(self, is_unpartitioned: int, origin: int) -> int: ...
    def begin_instance(self, l0: int, now: int) -> int: ...
    def process(self, l0: int, p: int, g: int, plain: int, c: int) -> int: ...
    def interpret_filter(self, p: int, e: int, g: int, cell: int, q: int) -> int: ...
    def reach_count(self, l0: int, p: int, e: int, g: int) -> int: ...
    def reach_logical(self, l0: int, p: int, e: int, g: int) -> int: ...
    def reach_absent(self, l0: int, p: int, e: int, g: int) -> int: ...
    def after_absent_logical(self, l0: int, p: int, c: int, e: int, before: int) -> int: ...
    def add_any(self, l0: int, p: int, e: int) -> int: ...
    def add_every(self, l0: int, p: int, e: int) -> int: ...
    def expire_events(self, l0: int, p: int, t: int) -> int: ...
    def update_state(self, l0: int, p: int) -> int: ...
    def reset_state(self, l0: int, p: int) -> int: ...
    def enter_index(self, lp: int, p: int, c: int) -> int: ...
    def first_candidate(self, lp: int, p: int, g: int) -> int: ...
    def index_key(self, lp: int, p: int, g: int, e: int) -> int: ...
    def leave_index(self, c: int) -> int: ...
    def partition_created(self, l0: int, p: int, now: int) -> int: ...
    def notify_at(self, lp: int, p: int, time: int) -> int: ...
    def timers_wait(self, order_key: int) -> int: ...
    def write_chains(self, r: int, e: int) -> int: ...
    def event_in_chain(self, v: int, mode: int, k: int) -> int: ...
    def drop_chain(self, c: int) -> int: ...
    def remove_last_event(self, e: int, p: int) -> int: ...


LINKED_POOLS = ("partials", "cells", "links", "times")
"""The pools whose free records are linked, and whose record 0 means none."""

STATE_POOLS = ("lists", *LINKED_POOLS)
"""The pools that keep state between two batches."""

LENGTHS = words_of(Machine)
"""After the header are as many words again: at the places of addresses, how many numbers there are. Only bounds checks
read them (`pointers.IS_CHECKED`)."""

BLOCK_SHIFT = 15
BLOCK_MARKS = 1 << 12
"""`RECORDED` pools are most of a pattern's state. Each has a byte for each block of 2^`BLOCK_SHIFT` words, in
`BLOCK_MARKS` bytes before the pool; blocks `BLOCK_MARKS` apart share one."""

RECORDED_POOLS = tuple(f.name for f in RECORDS["Machine"].fields.values() if f.is_recorded)

LINK_WORDS, BUCKET_WORDS, KEY_WORDS = words_of(Link), words_of(Bucket), words_of(IndexKey)
COMPARISON_WORDS, LEAP_WORDS = offset_of(Comparison, "leap"), words_of(Comparison)
LOAD_WORDS, OPERATION_WORDS, CALL_WORDS = words_of(Load), words_of(Operation), words_of(FunctionCall)
EVENTS = offset_of(Partial, "events")
"""Words of a partial before its events."""
SETTLED_COLUMNS = offset_of(MatchColumns, "events")
"""Columns of matches before the events."""
