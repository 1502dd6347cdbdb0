"""Instructions that numba has no word for: prefetching, vectors of eight, fused arithmetic, bytes as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj


def ask_for(builder: Any, pointer: Any) -> None:
    """Emits a prefetch of the cache line at an LLVM pointer."""
    place, number = builder.bitcast(pointer, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    call = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
    builder.call(call, [place, number(1), number(3), number(1)])  # to write, into all caches, data


def _prefetch(context: Any, array: Any, index: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        make: Any = arrayobj.make_array
        data = make(signature.args[0])(context, builder, args[0]).data
        ask_for(builder, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, index), code


prefetch = cast(Callable[[Any, Any], None], intrinsic(_prefetch))
"""`prefetch(array, index)` in a compiled loop asks for the cache line of `array[index]`, an array of one axis that lies
in one piece; `index` may be anything. A loop over tables that the cache does not hold waits for every row's state,
unless it asks for that of a later row ahead of time."""


def _load64(context: Any, array: Any, index: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        make: Any = arrayobj.make_array
        data = make(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(array, index), code


load64 = cast(Callable[[Any, Any], Any], intrinsic(_load64))
"""`load64(array, at)` in a compiled loop: the eight bytes from byte `at` of an array of bytes, wherever that lies, as
a number (uint64)."""


def _store64(context: Any, array: Any, index: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        make: Any = arrayobj.make_array
        data = make(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(args[2], place, align=1)
        return context.get_dummy_value()

    return types.void(array, index, types.uint64), code


store64 = cast(Callable[[Any, Any, Any], None], intrinsic(_store64))
"""`store64(array, at, word)` in a compiled loop: the inverse of `load64`."""


def _high64(context: Any, one: Any, other: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


high64 = cast(Callable[[Any, Any], Any], intrinsic(_high64))
"""`high64(one, other)` in a compiled loop: the upper half of the product of two numbers (uint64)."""


def _emit_fma(context: Any, one: Any, other: Any, term: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), code


fused = cast(Callable[[Any, Any, Any], Any], intrinsic(_emit_fma))
"""`fused(one, other, term)` in a compiled loop: one * other + term (doubles), rounded once."""


def _either(context: Any, condition: Any, one: Any, other: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.select(*args)
        value.set_metadata("unpredictable", builder.module.add_metadata([]))
        return value

    return one(types.boolean, one, one), code


either = cast(Callable[[Any, Any, Any], Any], intrinsic(_either))
"""`either(condition, one, other)` in a compiled loop: one of two numbers of one type, without a branch, which LLVM
otherwise likes to make of `one if condition else other`. For conditions that no processor can guess."""


def _vector(context: Any, builder: Any, type: Any, array: Any, at: Any, lanes: int) -> Any:
    """A vector of `lanes` elements from an LLVM index on, at any alignment."""
    make: Any = arrayobj.make_array
    data = make(type)(context, builder, array).data
    place = builder.bitcast(builder.gep(data, [at]), ir.VectorType(data.type.pointee, lanes).as_pointer())
    return builder.load(place, align=8)


def _all(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of one value alone."""
    number = ir.IntType(32)
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, number(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(number, lanes), [0] * lanes))


def _number_of_five(context: Any, array: Any, index: Any, key: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, half, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8)
        line = _vector(context, builder, signature.args[0], args[0], args[1], 8)
        same = builder.bitcast(builder.icmp_unsigned("==", line, _all(builder, args[2], 8)), byte)
        at = builder.zext(builder.cttz(builder.or_(same, byte(1 << 5)), ir.IntType(1)(1)), word)
        make: Any = arrayobj.make_array
        data = make(signature.args[0])(context, builder, args[0]).data
        halves = builder.bitcast(builder.gep(data, [args[1]]), half.as_pointer())
        return builder.zext(builder.load(builder.gep(halves, [builder.add(at, word(10))])), word)

    return types.uint64(array, types.uint64, types.uint64), code


number_of_five = cast(Callable[[Any, Any, Any], Any], intrinsic(_number_of_five))
"""`number_of_five(array, at, key)` in a compiled loop: at `at` are five keys (uint64), then the number of each (uint32)
and a 0; the number of the first that is `key`, or 0 if none is.
"""


def _eight(relation: str) -> Callable[..., Any]:
    def load_typed(context: Any, array: Any, index: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lanes = _vector(context, builder, signature.args[0], args[0], args[1], 8)
            compare = builder.fcmp_ordered if isinstance(array.dtype, types.Float) else builder.icmp_signed
            bits = builder.bitcast(compare(relation, lanes, _all(builder, args[2], 8)), ir.IntType(8))
            return builder.zext(bits, ir.IntType(64))

        return types.uint64(array, types.uint64, array.dtype), code

    return cast(Callable[..., Any], intrinsic(load_typed))


eight_equal, eight_greater, eight_less = _eight("=="), _eight(">"), _eight("<")
"""`eight_less(array, at, value)` in a compiled loop: which of the eight numbers from `at` on are less than `value` (the
others: equal to it, greater), bit 0 for the first."""


def _ones_above(context: Any, bits: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.IntType(64)
        rest = builder.shl(builder.not_(args[0]), number(56))
        return builder.ctlz(builder.or_(rest, number((1 << 56) - 1)), ir.IntType(1)(0))

    return types.uint64(types.uint64), code


ones_above = cast(Callable[[Any], Any], intrinsic(_ones_above))
"""`ones_above(bits)` in a compiled loop: of eight bits, how many are set from the last on without one that is not."""

AHEAD = 128
"""Number of rows ahead that loops prefetch."""

FAR = 1 << 13
"""Number of words of state from which some may be in no near cache, so that prefetching pays."""
