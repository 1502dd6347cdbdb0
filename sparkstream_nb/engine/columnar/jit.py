"""Compiles the engine's hot loops: numba's options, specialization, and inlining of helpers.

A call between compiled functions passes every array as seven words and counts references: 60 to 130 ns with ten arrays,
more than the rest of a window's work per event. So small helpers are marked `inlined`, and `kernel` inserts their
bodies into the loop's source before numba compiles it. (numba's own `inline="always"` keeps the reference counting.)

Compiled code is kept in numba's cache beside the modules (or in `NUMBA_CACHE_DIR`), so that a loop is compiled once per
machine, not once per process.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import marshal
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.extending import intrinsic
from numba.np import arrayobj

from ...system import put_in_place

F = TypeVar("F", bound=Callable[..., object])

# A division by zero is infinite or NaN, and costs no check; no loop is called from C.
_njit: Any = cast(Any, njit)(cache=True, error_model="numpy", no_cfunc_wrapper=True)

_INLINED: dict[Any, ast.FunctionDef] = {}
_DIGESTS: dict[Any, str] = {}
"""Digests of all compiled loops (`_digest`)."""


def ask_for(builder: Any, pointer: Any) -> None:
    """Emits a prefetch of the cache line at an LLVM pointer."""
    place, number = builder.bitcast(pointer, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    call = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
    builder.call(call, [place, number(1), number(3), number(1)])  # to write, into all caches, data


def watch_compilation(notify: Callable[[bool], None]) -> None:
    """Call `notify` with True before this process compiles a loop, and with False when that is done, from now on."""
    event.register("numba:compile", _CompilationListener(notify))  # type: ignore[no-untyped-call]


class _CompilationListener(event.Listener):
    """Compiling one loop compiles those that it calls."""

    def __init__(self, notify: Callable[[bool], None]) -> None:
        self._notify, self._depth = notify, 0

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._notify(True)

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._notify(False)


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
        chosen = builder.select(*args)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

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


def cache_folder() -> Path:
    """The folder of numba's compiled loops for this folder's modules: `NUMBA_CACHE_DIR` if that is set, else beside
    the modules, else, if that is not writable, the user's cache folder.
    """
    return Path(_njit(prepare).stats.cache_path)


def digests() -> frozenset[str]:
    """Digests of the loops of this process, as they appear in the names of numba's cache files."""
    return frozenset(_DIGESTS.values())


def forget_others(kept: Collection[str]) -> None:
    """Remove numba's files of loops with other digests than those `kept`, which earlier versions of the package
    left, for this version of Python.
    """
    of_loop = re.compile(rf"_([0-9a-f]{{16}})-\d+\.py{sys.version_info.major}{sys.version_info.minor}\.")
    for folder in {Path(loop.stats.cache_path) for loop in _DIGESTS}:
        for file in folder.glob("*.nb[ic]"):
            found = of_loop.search(file.name)
            if found and found[1] not in kept:
                with contextlib.suppress(OSError):
                    file.unlink()


def prepare() -> None:
    """Loads numba's runtime ahead, for processes that are forked from this one."""
    njit()(lambda: None)()


def inlined(function: F) -> F:
    """Marks a helper that `kernel` inlines: its body replaces the call.

    The helper has one `return`, as its last statement, or none. It must be called as a statement, or as all of the
    right side of an assignment to one name. It still runs as plain Python. Raises TypeError for a helper of another
    shape.
    """
    node = _parse_function(function)
    returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    if len(returns) > 1 or (returns and node.body[-1] is not returns[0]):
        raise TypeError(f"{function.__name__}: an inlined helper returns once, at its end")
    _INLINED[function] = node
    return function


def kernel(function: Callable[..., object], **fixed: bool | int) -> Callable[..., Any]:
    """Compiles a loop over arrays and inlines the helpers that it calls. `fixed` parameters are constants and not
    parameters of the compiled loop, so branches that they rule out are removed."""
    kept = _place(function, fixed) if _is_ours(function) else None
    made = None if kept is None else _read(kept, function)
    if made is None:
        made = _inline_loop(function, fixed)
        if kept is not None:
            _write(kept, made)
    if made.code is None:
        compiled: Any = function
    else:
        scope: dict[str, Any] = {}
        exec(made.code, made.names_for(function), scope)  # the function's own source, from this package
        compiled = scope[function.__name__]
        compiled.__module__ = function.__module__
    compiled.__qualname__ = f"{function.__qualname__}_{made.digest}"
    dispatcher = _njit(compiled)
    _DIGESTS[dispatcher] = made.digest
    return cast(Callable[..., Any], dispatcher)


@dataclass(frozen=True)
class _InlinedLoop:
    """A loop with the helpers inlined: its `code` (None if it is the function itself) and its `digest` (`_digest`).
    `known`: the globals that the helpers' bodies use, as module and name there, by the loop's own names. `used`: the
    digest's text for constants and other compiled loops, by name.
    """

    code: CodeType | None
    digest: str
    known: Mapping[str, tuple[str, str]]
    used: Mapping[str, str]

    def names_for(self, function: Callable[..., object]) -> dict[str, Any]:
        """Globals for the loop's names. Raises AttributeError or KeyError if something no longer exists."""
        return {**function.__globals__, **{own: getattr(sys.modules[m], n) for own, (m, n) in self.known.items()}}


def _inline_loop(function: Callable[..., object], fixed: Mapping[str, bool | int]) -> _InlinedLoop:
    node = _parse_function(function)
    names = {n: f for n, f in function.__globals__.items() if _is_inlined(f)}
    if fixed:
        node.args.args = [a for a in node.args.args if a.arg not in fixed]
        node = _Renamer({n: ast.Constant(v) for n, v in fixed.items()}).visit(node)
    if not fixed and not any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node)):
        return _InlinedLoop(None, *_digest(node, function.__globals__, {}))
    inliner = _Inliner(names)
    node = inliner.visit(node)
    ast.fix_missing_locations(node)
    code = compile(ast.Module([node], []), function.__code__.co_filename, "exec")
    return _InlinedLoop(code, *_digest(node, {**function.__globals__, **inliner.known}, inliner.origins))


def _digest(
    node: ast.FunctionDef, known: Mapping[str, Any], origins: Mapping[str, tuple[str, str]]
) -> tuple[str, Mapping[str, tuple[str, str]], Mapping[str, str]]:
    """Digest of the inputs of a compiled loop: its source with the helpers in it, constants and other compiled loops;
    the latter two also by name.

    numba's cache looks only at the file that contains the loop, so the loop's name must carry the rest.
    """
    names = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & known.keys())
    used = {name: said for name in names if (said := _describe_value(known[name])) is not None}
    parts = [ast.unparse(node), *(f"{name}={said}" for name, said in used.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16], origins, used


def _describe_value(value: Any) -> str | None:
    """Text for a digest of a constant or of another compiled loop; None for anything else."""
    if isinstance(value, int | float | str | tuple | np.generic):
        return repr(value)
    return _DIGESTS.get(value) if isinstance(value, Hashable) else None


_ENGINE = Path(__file__).parents[1]


# Inlining takes a process some 0.7 s, and is the same in each. The result is kept beside numba's compiled loops.


@cache
def _kept_folder() -> Path:
    """The folder of inlined loops for this version of the sources; creating it removes the folders of other versions.
    """
    here = _ENGINE
    files = sorted((str(f.relative_to(here)), f.stat().st_mtime_ns, f.stat().st_size) for f in here.rglob("*.py"))
    key = hashlib.sha256(repr([str(here), sys.version, files]).encode()).hexdigest()[:16]
    folder = cache_folder() / f"inlined-{key}"
    with contextlib.suppress(OSError):
        if not folder.is_dir():
            for other in cache_folder().glob("inlined-*"):
                shutil.rmtree(other, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
    return folder


def _is_ours(function: Callable[..., object]) -> bool:
    """True if a loop is of the sources that the folder is named after."""
    return _ENGINE in Path(function.__code__.co_filename).parents


def _place(function: Callable[..., object], fixed: Mapping[str, bool | int]) -> Path:
    what = repr([function.__module__, function.__qualname__, function.__code__.co_firstlineno, sorted(fixed.items())])
    return _kept_folder() / hashlib.sha256(what.encode()).hexdigest()[:24]


def _read(kept: Path, function: Callable[..., object]) -> _InlinedLoop | None:
    """Read a loop from its file; None if there is none, or if it was built with other constants or loops."""
    try:
        code, digest, known, used = marshal.loads(kept.read_bytes())
        made = _InlinedLoop(code, digest, known, used)
        names = made.names_for(function)
        return made if all(_describe_value(names[name]) == said for name, said in used.items()) else None
    except (OSError, ValueError, EOFError, TypeError, KeyError, AttributeError):
        return None


def _write(kept: Path, made: _InlinedLoop) -> None:
    new = kept.with_name(f"{kept.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        new.write_bytes(marshal.dumps((made.code, made.digest, dict(made.known), dict(made.used))))
        put_in_place(new, kept)


def _is_inlined(f: object) -> bool:
    try:
        return f in _INLINED
    except TypeError:  # not hashable, so no function
        return False


def _parse_function(function: Callable[..., object]) -> ast.FunctionDef:
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    node.returns = None
    for a in node.args.args:
        a.annotation = None
    return node


class _Inliner(ast.NodeTransformer):
    """Replaces statements `helper(...)` and `name = helper(...)` by the helper's body."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.count = 0
        self.known: dict[str, Any] = {}
        """Globals that the helpers' bodies use in their own modules, by names in this module."""
        self.origins: dict[str, tuple[str, str]] = {}
        """The module and the name there of each."""

    def visit_Expr(self, node: ast.Expr) -> Any:
        return self._expand(node.value, None) or self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            done = self._expand(node.value, target)
            if done:
                return done
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id in self.names:
            raise TypeError(f"line {node.lineno}: {node.func.id} is inlined, so it must be a statement of its own")
        return self.generic_visit(node)

    def _expand(self, call: ast.expr, target: ast.Name | None) -> list[ast.stmt] | None:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in self.names):
            return None
        helper = _INLINED[self.names[call.func.id]]
        self.count += 1
        body = [ast.parse(ast.unparse(s)).body[0] for s in helper.body]
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        assigned = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names: dict[str, ast.expr] = {}
        before: list[ast.stmt] = []
        for parameter, value in zip((a.arg for a in helper.args.args), call.args, strict=True):
            if isinstance(value, ast.Name | ast.Constant) and parameter not in assigned:
                names[parameter] = value
            else:
                fresh = f"_{parameter}_{self.count}"
                before.append(ast.Assign([ast.Name(fresh, ast.Store())], self.visit(value)))
                names[parameter] = ast.Name(fresh, ast.Load())
        for local in assigned:
            names.setdefault(local, ast.Name(f"_{local}_{self.count}", ast.Load()))
        module = self.names[call.func.id].__globals__
        named = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
        for other in (named & module.keys()) - names.keys():
            own = f"_{module['__name__'].replace('.', '_')}_{other}"
            names[other] = ast.Name(own, ast.Load())
            self.known[own] = module[other]
            self.origins[own] = module["__name__"], other
            if _is_inlined(module[other]):
                self.names[own] = module[other]
        out: list[ast.stmt] = before
        for s in body:
            renamed = _Renamer(names).visit(s)
            if isinstance(renamed, ast.Return):
                if target is not None:
                    assert renamed.value is not None
                    renamed = ast.Assign([ast.Name(target.id, ast.Store())], renamed.value)
                else:
                    continue
            expanded = self.visit(renamed)
            out.extend(expanded if isinstance(expanded, list) else [expanded])
        for s in out:
            for n in ast.walk(s):
                ast.copy_location(n, call)
        return out


class _Renamer(ast.NodeTransformer):
    """Puts a helper's arguments and fresh locals in place of its own names."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id)
        if new is None:
            return node
        if isinstance(new, ast.Name):
            return ast.Name(new.id, node.ctx)
        return new
