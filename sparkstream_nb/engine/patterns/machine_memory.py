"""The memory layout of a pattern's state machine (`pointers`: access to it from compiled loops).

All state of a pattern is in a handful of int64 arrays (pools of fixed-size records, linked by their offsets; offset 0
means none). One array, the *header*, holds the addresses of the others and the machine's registers, so that a
compiled function takes one pointer instead of a dozen array descriptors: calls stay cheap and compile fast.

| pool | record |
| --- | --- |
| `P` processors | static description of a state, see `Processor fields` |
| `L` lists | per partition instance and processor: its pending and new lists, flags, last scheduled time |
| `E` partials | Siddhi's `StateEvent`: timestamp, references held, type, one word per state |
| `N` cells | an entry of a list: partial, neighbours, neighbours in its index bucket, and a value: a bound that an
event must exceed for the entry to matter, or the verdict of a filter that was evaluated outside |
| `C` chain cells | one event of a counted state; the head also holds the last cell and the length |
| `T` timer cells | a scheduled time |
| `H` schedulers | one per absent state: its instances by the first of their times, see `Fields of H` |
| `B` buckets | of the index over pending partials |
| `R` | partials to be emitted |
| `S`, `M` | the stack of a filter's values, and which of them are null |
| `O`, `D` | emitted matches, and the events of their counted states |
| `W`, `Z` | words of the event log, column after column of `WORDS` each, and which are null (or `FAILURE`) |

The word of a state in a partial is the log number of its event, or the head of a chain for a counted state.
Log numbers 0 and 1 are no event, and an event without values (`StreamEventFactory.newInstance` of an absent state).
"""

from __future__ import annotations

import numpy as np

NO_EVENT, EMPTY_EVENT = 0, 1

NONE, FALSE, TRUE = np.int64(0), np.bool_(False), np.bool_(True)
"""Typed constants for arguments: numba would compile a function again for each literal type."""

FAILURE = 2
"""In place of 1: of a null mark of the log, the value could not be computed; of a verdict or of an event's columns, a
filter failed.
"""

# Kinds of processor.
STREAM, COUNT, LOGICAL, ABSENT, ABSENT_LOGICAL = 0, 1, 2, 3, 4

# Processor fields (`P`).
(
    KIND, START, LEAST, MOST, NEXT, EVERY, WITHIN_EVERY, LAST_STATE, RETURNS, CALLBACK, PARTNER, IS_OR, WAIT,
    PHASE, CHAINED, PROGRAM, SLOW, KEYS, KEY_COUNT, BOUND, BOUND_SIGN, STEADY, INIT_AGAIN, TIMER, STREAM_OF, AGAIN,
    REST, STRICT, SLOW_LAST, INERT, RENEWS,
) = range(31)  # fmt: skip
P_SIZE = 32

# Fields of `L`. What nearly every event asks for stands first, in one line of the processor's cache.
(
    PEND, PEND_TAIL, PEND_N, NEW, NEW_TAIL, NEW_N, RESET, BORN,
    CHANGED, SUCCESS, COPIED, LEAST_VALUE, LOW, HIGH, RISING, LAST_START,
    INITIALIZED, STARTED, ACTIVE, SCHEDULED, QUEUE, QUEUE_TAIL, TURN,
) = range(23)  # fmt: skip
L_SIZE = 24

# Fields of `H`: the heap's size; of the scheduler's map (`timers.py`) the buckets, the instances in it and how many
# came in ever, of which `TURN` of `L` is each one's number; the heap's entries (time, instance) follow.
H_SIZE, H_BUCKETS, H_HELD, H_TURN, H_HEAP = range(5)

# Fields of `E`; slots follow.
E_TIME, E_REFS, E_EXPIRED, E_GIVEN, E_SLOTS = range(5)

# Fields of `N`.
N_PARTIAL, N_NEXT, N_PREV, N_UP, N_DOWN, N_OWNER, N_BUCKET, N_VALUE = range(8)
N_SIZE = 8

# Fields of `C`.
C_EVENT, C_NEXT, C_PREV, C_REFS, C_TAIL, C_COUNT = range(6)
C_SIZE = 6

# Fields of `B`.
B_HEAD, B_TAIL, B_BOUND = range(3)
B_SIZE = 4

# Columns of `O`, each `O_CAP` long. `O_TIME` and `O_KIND` are the partial's when it was selected, `O_SENT_TIME` and
# `O_SENT_KIND` when its chunk was emitted. `O_GROUP` is the number of the first match of the same chunk. `O_PARTIAL` is
# the partial until then, and afterwards the number of its last match in the chunk. Then per state the event (or the
# offset in `D`), and, if a state is counted, per state the number of events.
O_TIME, O_ORDER_KEY, O_INSTANCE, O_GROUP, O_KIND, O_PARTIAL, O_SENT_TIME, O_SENT_KIND, O_SLOTS = range(9)

# The header: addresses, then registers.
(
    XP, XL, XE, XN, XC, XT, XB, XR, XO, XD, XW, XZ, XET, XV, XQ, XK, XS, XM, XH,
    I_STREAM, I_INSTANCE, I_MASK, I_ORDER_KEY, I_NOW, I_MOVED, I_MORE,
    NP, E_SIZE, WORDS, WITHIN, SEQUENCE, BUCKETS, INDEXED,
    E_FREE, E_LEFT, N_FREE, N_LEFT, C_FREE, C_LEFT, T_FREE, T_LEFT,
    R_N, R_CAP, O_N, O_CAP, O_SIZE, D_N, D_CAP,
    AT, EVENTS, BASE, STAGE, ORDINAL, CELL, EMITTED, HELD,
    STEP, STEP_END, STEP_BASE, TIMER_AT, TIMERS, NOW, DRAINING, HEAP_N,
    START_N, M_INIT, M_RESET, M_UPDATE, M_STARTUP, M_TIMERS, M_STARTS, M_STREAM, M_SELECTS, CHAINS, BY_INDEX, JUDGED,
    XDUE, XHASH, PARTED, DUE_N, DUE_AT, NEEDED, NEXT_DUE, LIMIT, CLOCKED, MARKED, LATE, FAILED, FIRST_OUT,
    F_ROWS, F_BIRTH, F_PROCESS, F_PASSES, F_COUNT, F_LOGICAL, F_CAME, F_AFTER, F_ADD, F_EVERY, F_EXPIRE, F_UPDATE,
    F_RESET, F_ENTER, F_LOOK, F_KEY, F_LEAVE, F_CREATED, F_NOTIFY, F_WAIT, F_WRITE, F_CHAIN, F_DROP, F_SHORTEN,
) = range(113)  # fmt: skip
X_SIZE = 120
"""`F_*` are the addresses of compiled functions (`unit`)."""

REGISTERS = frozenset((
    INDEXED, E_FREE, E_LEFT, N_FREE, N_LEFT, C_FREE, C_LEFT, T_FREE, T_LEFT, R_N, O_N, D_N, AT, STAGE, ORDINAL, CELL,
    EMITTED, HELD, STEP, TIMER_AT, NOW, DRAINING, BY_INDEX, JUDGED, DUE_N, DUE_AT, NEEDED, NEXT_DUE, LIMIT, CLOCKED,
    MARKED, LATE, FAILED, FIRST_OUT,
))  # fmt: skip
"""The words of the header that compiled code writes; the others stay as they are while it runs."""

WRITTEN = frozenset((XL, XE, XN, XC, XT, XB, XR, XO, XD, XV, XS, XM, XH, XDUE))
"""The pools that compiled code writes."""

KEPT = (XL, XE, XN, XC, XT)
"""The pools that keep state between two batches."""

TOLD = frozenset((XE, XN))
"""Pools whose writes compiled code records, which costs time; they are most of a pattern's state. There is a byte for
each block of 2^`TOLD_SHIFT` words, in `TOLD_SIZE` bytes before the pool; blocks `TOLD_SIZE` apart share one.
"""

TOLD_SHIFT = 15
TOLD_SIZE = 1 << 12

OCTETS = frozenset((XZ, XM, I_MASK, I_MOVED, I_MORE))
"""The arrays of bytes."""
