"""How a pattern's machine lies in memory, and the raw access that its compiled loops use.

All state of a pattern is in a handful of int64 arrays (pools of fixed-size records, linked by their offsets; offset 0
means none). One array, the *header*, holds the addresses of the others and the machine's registers, so that a
compiled function takes one pointer instead of a dozen array descriptors: calls stay cheap and compile fast.

| pool | record |
| --- | --- |
| `P` processors | static description of a state, see `Processor fields` |
| `L` lists | per partition instance and processor: its pending and new lists, flags, last scheduled time |
| `E` partials | Siddhi's `StateEvent`: timestamp, references held, type, one word per state |
| `N` cells | an entry of a list: partial, neighbours, neighbours in its index bucket, and a value: what an event must
  exceed for the entry to be of interest, or the verdict of a filter that was evaluated outside |
| `C` chain cells | one event of a counted state; the head also holds the last cell and the length |
| `T` timer cells | a scheduled time |
| `H` schedulers | one per absent state: its instances by the first of their times, see `Fields of H` |
| `B` buckets | of the index over pending partials |
| `R` | partials to be put out |
| `O`, `D` | matches that were put out, and the events of their counted states |
| `W`, `Z` | words of the event log, and which of them are null (or `FAILURE`) |

The word of a state in a partial is the log number of its event, or the head of a chain for a counted state.
Log numbers 0 and 1 are no event, and an event without values (`StreamEventFactory.newInstance` of an absent state).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

NO_EVENT, EMPTY_EVENT = 0, 1

NONE, FALSE, TRUE = np.int64(0), np.bool_(False), np.bool_(True)
"""Constants as arguments: numba would compile a function anew for each plain one."""

FAILURE = 2
"""In place of 1: of a null mark of the log, the value could not be computed; of a verdict or of what columns say of an
event, a filter failed."""

# Kinds of processor.
STREAM, COUNT, LOGICAL, ABSENT, ABSENT_LOGICAL = 0, 1, 2, 3, 4

# Processor fields (`P`).
(
    KIND, START, LEAST, MOST, NEXT, EVERY, WITHIN_EVERY, LAST_STATE, RETURNS, CALLBACK, PARTNER, IS_OR, WAIT,
    PHASE, CHAINED, PROGRAM, SLOW, KEYS, KEY_COUNT, BOUND, BOUND_SIGN, STEADY, INIT_AGAIN, TIMER, STREAM_OF, AGAIN,
    REST, STRICT, SLOW_LAST, INERT,
) = range(30)  # fmt: skip
P_SIZE = 32

# Fields of `L`.
(
    PEND, PEND_TAIL, PEND_N, NEW, NEW_TAIL, NEW_N, CHANGED, SUCCESS, RESET, INITIALIZED, STARTED, ACTIVE, SCHEDULED,
    QUEUE, QUEUE_TAIL, LOW, HIGH, RISING, LAST_START, BORN, COPIED, TURN,
) = range(22)  # fmt: skip
L_SIZE = 22

# Fields of `H`: the heap's size; of the scheduler's map (`engine.timers`) the buckets, the instances in it and how many
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
B_HEAD, B_TAIL, B_BOUND, B_SPARE = range(4)
B_SIZE = 4

# Columns of `O`, each `O_CAP` long. `O_TIME` and `O_KIND` are those of the partial when it was selected, `O_SENT_TIME`
# and `O_SENT_KIND` when its chunk was sent on. `O_GROUP` is the number of the first match that goes on in the same
# chunk. `O_PARTIAL` is the partial until then, and afterwards the number of its last match in the chunk. Then per state
# the event (or the offset in `D`), and, where a state is counted, per state the number of events.
O_TIME, O_ROOT, O_PART, O_GROUP, O_KIND, O_PARTIAL, O_SENT_TIME, O_SENT_KIND, O_SLOTS = range(9)

# The header: addresses, then registers.
(
    XP, XL, XE, XN, XC, XT, XB, XR, XO, XD, XW, XZ, XET, XV, XQ, XK, XS, XH,
    I_STREAM, I_PART, I_MASK, I_ROOT, I_NOW, I_MOVED, I_MORE,
    NP, E_SIZE, WORDS, WITHIN, SEQUENCE, BUCKETS, INDEXED,
    E_FREE, E_LEFT, N_FREE, N_LEFT, C_FREE, C_LEFT, T_FREE, T_LEFT,
    R_N, R_CAP, O_N, O_CAP, O_SIZE, D_N, D_CAP,
    AT, EVENTS, BASE, STAGE, ORDINAL, CELL, EMITTED, HELD,
    STEP, STEP_END, STEP_BASE, TIMER_AT, TIMERS, NOW, DRAINING, HEAP_N,
    START_N, M_INIT, M_RESET, M_UPDATE, M_STARTUP, M_TIMERS, M_STARTS, M_STREAM, M_SELECTS, CHAINS, BY_INDEX, JUDGED,
    XDUE, XHASH, PARTED, DUE_N, DUE_AT, NEEDED, NEXT_DUE, LIMIT, CLOCKED, MARKED, LATE, FAILED, FIRST_OUT,
    F_ROWS, F_BIRTH, F_PROCESS, F_PASSES, F_COUNT, F_LOGICAL, F_CAME, F_AFTER, F_ADD, F_EVERY, F_EXPIRE, F_UPDATE,
    F_RESET, F_ENTER,
) = range(102)  # fmt: skip
X_SIZE = 104
"""`F_*` are the addresses of compiled functions (`unit`)."""


def _package_stamp() -> str:
    """A hash of the sources of all compiled functions here, since each holds the bodies and constants of others."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = _package_stamp()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function over pointers for others to call. Such calls are cheap, so that nothing needs to be written
    into the caller (`engine.jit`)."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _form(arguments: int) -> tuple[Any, ...]:
    """The types of a unit's arguments."""
    pointer: Any = types.CPointer
    return (pointer(types.int64), *[types.int64] * arguments)


@dataclass(frozen=True, slots=True)
class Unit:
    """A compiled function that is called through its address in the header (`call2` to `call5`), after the header
    itself with `arguments` int64, and that gives an int64.

    numba compiles what a function calls into it once more, and so on up; a unit is compiled once, and only for a
    pattern that can come to call it.
    """

    function: Any
    arguments: int

    @property
    def address(self) -> int:
        """Where its machine code lies. Compiles it, or takes it from numba's cache."""
        form = _form(self.arguments)
        self.function.compile(types.int64(*form))
        library, description = self.function.overloads[form].library, self.function.overloads[form].fndesc
        return int(library.get_pointer_to_function(description.llvm_func_name))


def unit(function: Callable[..., int]) -> Unit:
    """Makes a function over the header and int64 a unit."""
    return Unit(compiled(function), function.__code__.co_argcount - 1)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function that Python calls."""
    return _compiled(function)


def _compiled(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    """numba's cache looks at a function's own file only; here a change of any counts."""
    dispatcher: Any = cast(Any, njit)(cache=True, **options)(function)
    dispatcher._cache._cache_file._source_stamp = _STAMP
    return cast(Callable[..., Any], dispatcher)


def _pointer(item: Any) -> Any:
    """The signature of a function from an address to a pointer."""
    pointer: Any = types.CPointer
    return pointer(item)(types.int64)


@intrinsic
def _words(typingctx: Any, address: Any) -> Any:
    """The int64 array at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return _pointer(types.int64), codegen


@intrinsic
def _reals(typingctx: Any, address: Any) -> Any:
    """The float64 array at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.DoubleType().as_pointer())

    return _pointer(types.float64), codegen


@intrinsic
def _octets(typingctx: Any, address: Any) -> Any:
    """The uint8 array at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return _pointer(types.uint8), codegen


@intrinsic
def _as_real(typingctx: Any, word: Any) -> Any:
    """The float64 with the bits of an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def _as_word(typingctx: Any, real: Any) -> Any:
    """The int64 with the bits of a float64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def _call(address: Any, *arguments: Any) -> Any:
    """What an intrinsic gives that calls the function at `address`."""
    form = _form(len(arguments) - 1)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        called = context.call_conv.get_function_type(types.int64, form)
        pointer = builder.inttoptr(args[0], called.as_pointer())
        return context.call_conv.call_function(builder, pointer, types.int64, form, args[1:])[1]

    return types.int64(types.int64, *form), codegen


@intrinsic
def _call2(typingctx: Any, address: Any, X: Any, a: Any, b: Any) -> Any:
    return _call(address, X, a, b)


@intrinsic
def _call3(typingctx: Any, address: Any, X: Any, a: Any, b: Any, c: Any) -> Any:
    return _call(address, X, a, b, c)


@intrinsic
def _call4(typingctx: Any, address: Any, X: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return _call(address, X, a, b, c, d)


@intrinsic
def _call5(typingctx: Any, address: Any, X: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return _call(address, X, a, b, c, d, e)


class Words(Protocol):
    """A pointer to int64 (or uint8), as a type checker sees it."""

    def __getitem__(self, i: int) -> int: ...
    def __setitem__(self, i: int, value: int) -> None: ...


class Reals(Protocol):
    """A pointer to float64, as a type checker sees it."""

    def __getitem__(self, i: int) -> float: ...
    def __setitem__(self, i: int, value: float) -> None: ...


words: Callable[[int], Words] = cast(Any, _words)
call2: Callable[[int, Words, int, int], int] = cast(Any, _call2)
call3: Callable[[int, Words, int, int, int], int] = cast(Any, _call3)
call4: Callable[[int, Words, int, int, int, int], int] = cast(Any, _call4)
call5: Callable[[int, Words, int, int, int, int, int], int] = cast(Any, _call5)
reals: Callable[[int], Reals] = cast(Any, _reals)
octets: Callable[[int], Words] = cast(Any, _octets)
as_real: Callable[[int], float] = cast(Any, _as_real)
as_word: Callable[[float], int] = cast(Any, _as_word)
