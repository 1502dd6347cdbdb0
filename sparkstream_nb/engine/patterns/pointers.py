"""Raw access to a pattern machine's memory in compiled loops, and their compilation.

Loads carry aliasing information for LLVM: arrays of different pools do not overlap, and most of the header, the table
of processors and the rows of a batch do not change while a loop runs. So values need not be loaded again after every
write.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from llvmlite import ir
from numba import njit, types
from numba.core import datamodel
from numba.extending import intrinsic, lower_builtin, register_model

from ..notation.intrinsics import ask_for
from .machine_memory import OCTETS, REGISTERS, TOLD, TOLD_SHIFT, TOLD_SIZE, WRITTEN


class Pointer(types.CPointer):
    """A pointer to one pool (`at`: where the header has its address; -1: the header itself). `tells`: writes through it
    are recorded, if the pool is `TOLD`.
    """

    tells = False  # of those in a cache of a former version, which is looked at before it is left

    def __init__(self, at: int, dtype: Any, tells: bool = True) -> None:
        super().__init__(dtype)  # type: ignore[no-untyped-call]
        self.at, self.tells = at, tells and at in TOLD
        self.name = f"pool{at}_{dtype}_{self.tells}"

    @property
    def key(self) -> Any:
        return self.at, self.dtype, self.tells


register_model(Pointer)(datamodel.models.PointerModel)

HEADER = Pointer(-1, types.int64)
_TOLD_KIND = -2
"""In place of a pool: the bytes that record writes."""


def _note(builder: Any, access: Any, at: int, fixed: bool) -> Any:
    """Mark a load or store for the compiler as one of pool `at`, which is `fixed` if no loop writes it."""
    module = builder.module
    if fixed:
        access.set_metadata("invariant.load", module.add_metadata([]))
    else:
        order_key = module.add_metadata(["pattern machine"])
        kind = module.add_metadata([f"pool {at}", order_key, ir.IntType(64)(0)])
        access.set_metadata("tbaa", module.add_metadata([kind, kind, ir.IntType(64)(0)]))
    return access


def _is_fixed(at: int, index: Any) -> bool:
    if at < 0:
        return isinstance(index, ir.Constant) and index.constant not in REGISTERS
    return at not in WRITTEN


@lower_builtin(operator.getitem, Pointer, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    at = signature.args[0].at
    load = builder.load(builder.gep(args[0], [args[1]]))
    return _note(builder, load, at, _is_fixed(at, args[1]))


@lower_builtin(operator.setitem, Pointer, types.Integer, types.Any)  # type: ignore[no-untyped-call, untyped-decorator]
def _store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    at = signature.args[0].at
    _note(builder, builder.store(args[2], builder.gep(args[0], [args[1]])), at, False)
    if signature.args[0].tells:
        word, octet = ir.IntType(64), ir.IntType(8)
        index = args[1] if args[1].type == word else builder.sext(args[1], word)
        block = builder.and_(builder.lshr(index, word(TOLD_SHIFT)), word(TOLD_SIZE - 1))
        first = builder.bitcast(args[0], octet.as_pointer())
        told = builder.gep(first, [builder.sub(block, word(TOLD_SIZE))])
        _note(builder, builder.store(octet(1), told), _TOLD_KIND, False)
    return context.get_dummy_value()


def _pool(typingctx: Any, X: Any, at: Any) -> Any:
    if not isinstance(at, types.IntegerLiteral):
        return None
    place = at.literal_value
    out = Pointer(place, types.uint8 if place in OCTETS else types.int64)
    return _pool_at(X, at, out)


def _quiet(typingctx: Any, X: Any, at: Any) -> Any:
    if not isinstance(at, types.IntegerLiteral):
        return None
    return _pool_at(X, at, Pointer(at.literal_value, types.int64, False))


def _pool_at(X: Any, at: Any, out: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        load = builder.load(builder.gep(args[0], [ir.IntType(64)(at.literal_value)]))
        _note(builder, load, -1, True)
        return builder.inttoptr(load, context.get_value_type(out))

    return out(X, at), codegen


@intrinsic
def _ask(typingctx: Any, array: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        ask_for(builder, builder.gep(args[0], [args[1]]))
        return context.get_dummy_value()

    return types.void(array, index), codegen


def _reals(typingctx: Any, X: Any, at: Any) -> Any:
    if not isinstance(at, types.IntegerLiteral):
        return None
    return _pool_at(X, at, Pointer(at.literal_value, types.float64))


def _package_stamp() -> str:
    """A hash of the sources of all compiled functions here, since each holds the bodies and constants of others."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = _package_stamp()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function over pointers that is inlined into its callers: a call costs more than most such
    functions."""
    return _compile_uncached(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function over pointers that is not inlined, because it is long or rarely called."""
    return _compile_uncached(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _form(arguments: int) -> tuple[Any, ...]:
    """The types of a unit's arguments."""
    return (HEADER, *[types.int64] * arguments)


@dataclass(frozen=True, slots=True)
class Unit:
    """A compiled function that is called through its address in the header (`call1` to `call5`), after the header
    itself with `arguments` int64, and that returns an int64.

    numba compiles a callee again into each caller, and so on up the call graph; a unit is compiled once, and only for a
    pattern that can call it.
    """

    function: Any
    arguments: int

    @property
    def address(self) -> int:
        """The address of its machine code. Compiles it, or loads it from numba's cache."""
        form = _form(self.arguments)
        self.function.compile(types.int64(*form))
        library, description = self.function.overloads[form].library, self.function.overloads[form].fndesc
        return int(library.get_pointer_to_function(description.llvm_func_name))


def unit(function: Callable[..., int]) -> Unit:
    """Makes a function over the header and int64 a unit."""
    return Unit(compiled(function), function.__code__.co_argcount - 1)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function that Python calls."""
    return _compile_uncached(function)


def _compile_uncached(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    """numba's cache looks at a function's own file only; here a change of any counts."""
    dispatcher: Any = cast(Any, njit)(cache=True, **options)(function)
    dispatcher._cache._cache_file._source_stamp = _STAMP
    return cast(Callable[..., Any], dispatcher)


@intrinsic
def _header(typingctx: Any, address: Any) -> Any:
    """The header at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return HEADER(types.int64), codegen


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
    """Intrinsic that calls the function at `address`."""
    form = _form(len(arguments) - 1)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        called = context.call_conv.get_function_type(types.int64, form)
        pointer = builder.inttoptr(args[0], called.as_pointer())
        return context.call_conv.call_function(builder, pointer, types.int64, form, args[1:])[1]

    return types.int64(types.int64, *form), codegen


@intrinsic
def _call1(typingctx: Any, address: Any, X: Any, a: Any) -> Any:
    return _call(address, X, a)


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


header: Callable[[int], Words] = cast(Any, _header)
pool: Callable[[Words, int], Words] = cast(Any, intrinsic(prefer_literal=True)(_pool))
quiet: Callable[[Words, int], Words] = cast(Any, intrinsic(prefer_literal=True)(_quiet))
"""`pool`, for words of a record of which another word is written through `pool` as well."""
call1: Callable[[int, Words, int], int] = cast(Any, _call1)
call2: Callable[[int, Words, int, int], int] = cast(Any, _call2)
call3: Callable[[int, Words, int, int, int], int] = cast(Any, _call3)
call4: Callable[[int, Words, int, int, int, int], int] = cast(Any, _call4)
call5: Callable[[int, Words, int, int, int, int, int], int] = cast(Any, _call5)
ask: Callable[[Words, int], None] = cast(Any, _ask)
"""Asks for the cache line of a word of a pool ahead of time (`intrinsics.prefetch`)."""
reals: Callable[[Words, int], Reals] = cast(Any, intrinsic(prefer_literal=True)(_reals))
as_real: Callable[[int], float] = cast(Any, _as_real)
as_word: Callable[[float], int] = cast(Any, _as_word)
