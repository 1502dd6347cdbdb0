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
import marshal
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import astuple, dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, MethodType
from typing import Any, cast

import numpy as np
from numba import config, njit
from numba.core import event

from ...caches import shared_temporary_folder
from ...system import put_in_place
from .inlining import Inliner, Renamer, inlined, is_inlined, kinds, parse
from .structs import Flattener, Interface, LoopCall, Parameter, Scope, find, static, struct

__all__ = ["Loop", "compiled", "compiled_by", "inlined", "kernel", "struct"]

# A division by zero is infinite or NaN, and costs no check; no loop is called from C.
_njit: Any = cast(Any, njit)(cache=True, error_model="numpy", no_cfunc_wrapper=True)

_DIGESTS: dict[Any, str] = {}
"""Digests of all compiled loops (`_digest`)."""


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


def cache_folder() -> Path:
    """The folder of numba's compiled loops for this folder's modules: `NUMBA_CACHE_DIR` if that is set, else beside
    the modules, else, if that is not writable, the user's cache folder, else a folder for temporary files.
    """
    return Path(_njit(prepare).stats.cache_path)


def digests() -> frozenset[str]:
    """Digests of the loops of this process, as they appear in the names of numba's cache files."""
    return frozenset(_DIGESTS.values())


def forget_others(current_digests: Collection[str]) -> None:
    """Remove numba's files of loops with other digests than those `current_digests`, which earlier versions of the
    package left, for this version of Python.
    """
    of_loop = re.compile(rf"_([0-9a-f]{{16}})-\d+\.py{sys.version_info.major}{sys.version_info.minor}\.")
    for folder in {Path(loop.stats.cache_path) for loop in _DIGESTS}:
        for file in folder.glob("*.nb[ic]"):
            digest_match = of_loop.search(file.name)
            if digest_match and digest_match[1] not in current_digests:
                with contextlib.suppress(OSError):
                    file.unlink()


def prepare() -> None:
    """Loads numba's runtime ahead, for processes that are forked from this one."""
    njit()(lambda: None)()


def _require_cache() -> None:
    """Gives numba a folder for compiled code where none of its own can be written: it raises RuntimeError there."""
    try:
        _njit(prepare)
    except RuntimeError:
        os.environ["NUMBA_CACHE_DIR"] = str(shared_temporary_folder())  # of this process's children as well
        config.reload_config()  # type: ignore[no-untyped-call]


_require_cache()


class Loop:
    """A compiled loop with structs among its parameters: called with them, it hands their fields to `dispatcher`."""

    def __init__(self, dispatcher: Any, interface: Interface) -> None:
        self.dispatcher, self.interface = dispatcher, interface
        self.py_func = dispatcher.py_func
        parameters = ", ".join(p.name for p in interface.parameters)
        fields = [ast.unparse(v) for p in interface.parameters for v in p.values(ast.Name(p.name, ast.Load()))]
        self.call = eval(f"lambda {parameters}: _loop({', '.join(fields)})", {"_loop": dispatcher})

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


class compiled:
    """Marks a method of a struct that is compiled by itself and called, not inlined, with the helpers of the class that
    has it. Numbers that are fields of a struct it may change only by returning them
    (`structs.Parameter.assigned_fields`)."""

    constant_fields: tuple[str, ...] = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._loops: dict[tuple[Any, ...], Any] = {}
        self._call: Callable[..., Any] | None = None
        """The function for instances, if nothing is fixed: looking it up would take longer."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def loop(self, *values: Any) -> Any:
        """The loop for instances that have these values of the `constant_fields`."""
        if values not in self._loops:
            constants = {f"self.{name}": value for name, value in zip(self.constant_fields, values, strict=True)}
            self._loops[values] = kernel(self.function, {"self": self._owner}, **constants)
        return self._loops[values]

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        call = self._call
        if call is None:
            loop = self.loop(*(getattr(instance, name) for name in self.constant_fields))
            call = loop.call if isinstance(loop, Loop) else loop
            if not self.constant_fields:
                self._call = call
        return MethodType(call, instance)


def compiled_by(*fields: str) -> Callable[[Callable[..., Any]], compiled]:
    """`compiled`, with a loop of its own for each of the values that these fields have, which are constants in it."""

    def mark(function: Callable[..., Any]) -> compiled:
        method = compiled(function)
        method.constant_fields = fields
        return method

    return mark


def kernel(
    function: Callable[..., object], structs: Mapping[str, type] | None = None, /, **constants: bool | int
) -> Callable[..., Any]:
    """Compiles a loop over arrays and inlines the helpers that it calls. `constants` are parameters,
    and fields of structs by their paths, that are constants and not parameters of the compiled loop, so branches that
    they rule out are removed. `structs` gives parameters other structs than their annotations."""
    structs = structs or {}
    file = _place(function, structs, constants) if _is_ours(function, structs) else None
    loop = None if file is None else _read(file, function)
    if loop is None:
        loop = _inline_loop(function, structs, constants)
        if file is not None:
            _write(file, loop)
    if loop.code is None:
        source: Any = function
    else:
        scope: dict[str, Any] = {}
        exec(loop.code, loop.names_for(function), scope)  # the function's own source, from this package
        source = scope[function.__name__]
        source.__module__ = function.__module__
    source.__qualname__ = f"{function.__qualname__}_{loop.digest}"
    dispatcher = _njit(source)
    _DIGESTS[dispatcher] = loop.digest
    if all(p.fields is None for p in loop.interface.parameters):
        return cast(Callable[..., Any], dispatcher)
    return Loop(dispatcher, loop.interface)


@dataclass(frozen=True)
class _InlinedLoop:
    """A loop with the helpers inlined: its `code` (None if it is the function itself), its `digest` (`_digest`) and how
    it is called. `origins`: the globals that the helpers' bodies use, as module and name there, by the loop's own
    names. `value_texts`: the digest's text for constants and other compiled loops, by name.
    """

    code: CodeType | None
    digest: str
    origins: Mapping[str, tuple[str, str]]
    value_texts: Mapping[str, str]
    interface: Interface

    def names_for(self, function: Callable[..., object]) -> dict[str, Any]:
        """Globals for the loop's names. Raises AttributeError or KeyError if something no longer exists."""
        names = {**function.__globals__, **{unique_name: _at(origin) for unique_name, origin in self.origins.items()}}
        return {name: _dispatcher(names[name]) if name in self.value_texts else value for name, value in names.items()}


def _at(origin: tuple[str, str]) -> Any:
    """The value of a name in a module; for a compiled method, its loop."""
    value = find(*origin)
    return value.loop() if isinstance(value, compiled) else value


def _dispatcher(value: Any) -> Any:
    return value.dispatcher if isinstance(value, Loop) else value


def _inline_loop(
    function: Callable[..., object], structs: Mapping[str, type], constants: Mapping[str, bool | int]
) -> _InlinedLoop:
    node = parse(function)
    names = {n: f for n, f in function.__globals__.items() if is_inlined(f)}
    roots = kinds(node, function, structs)
    parameters = [a.arg for a in node.args.args if a.arg not in constants]
    if constants:
        node.args.args = [a for a in node.args.args if a.arg not in constants]
        node = Renamer({n: ast.Constant(v) for n, v in constants.items()}).visit(node)
    names_read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if not constants and not roots and not any(n in names or _is_loop(function, n) for n in names_read):
        interface = Interface(tuple(map(Parameter, parameters)))
        return _InlinedLoop(None, *_digest(node, function.__globals__, {}), interface)
    scope = Scope(roots, lambda name: inliner.value_of(name))
    inliner = Inliner(names, scope, function.__globals__)
    node = inliner.visit(node)
    flattener = Flattener(scope, constants, partial(_loop_call, inliner))
    node.body = [flattener.visit(s) for s in node.body]
    interface = flattener.interface(parameters)
    node.args.args = [ast.arg(name) for p in interface.parameters for name in p.flat()]
    ast.fix_missing_locations(node)
    code = compile(ast.Module([node], []), function.__code__.co_filename, "exec")
    digest = _digest(node, {**function.__globals__, **inliner.origins}, inliner.origins)
    return _InlinedLoop(code, *digest, interface)


def _is_loop(function: Callable[..., object], name: str) -> bool:
    return isinstance(function.__globals__.get(name), Loop)


def _loop_call(inliner: Inliner, call: ast.Call) -> LoopCall | None:
    """The call of a loop with structs; None for any other."""
    if isinstance(call.func, ast.Name):
        loop = inliner.value_of(call.func.id)
        return LoopCall(call.func, loop.interface, call.args) if isinstance(loop, Loop) else None
    place = inliner.scope.resolve(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if place is None or not isinstance(place.kind, type):
        return None
    assert isinstance(call.func, ast.Attribute)
    cls, method = place.kind, static(place.kind, call.func.attr)
    if not isinstance(method, compiled):
        raise TypeError(f"line {call.lineno}: {cls.__qualname__}.{call.func.attr} is neither inlined nor compiled")
    unique_name = f"_{cls.__module__.replace('.', '_')}_{cls.__qualname__}_{call.func.attr}"
    inliner.origins[unique_name] = loop = method.loop()
    inliner.origins[unique_name] = cls.__module__, f"{cls.__qualname__}.{call.func.attr}"
    return LoopCall(ast.Name(unique_name, ast.Load()), loop.interface, [call.func.value, *call.args])


def _digest(
    node: ast.FunctionDef, global_values: Mapping[str, Any], origins: Mapping[str, tuple[str, str]]
) -> tuple[str, Mapping[str, tuple[str, str]], Mapping[str, str]]:
    """Digest of the inputs of a compiled loop: its source with the helpers in it, constants and other compiled loops;
    the latter two also by name.

    numba's cache looks only at the file that contains the loop, so the loop's name must carry the rest.
    """
    names = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & global_values.keys())
    value_texts = {name: text for name in names if (text := _describe_value(global_values[name])) is not None}
    parts = [ast.unparse(node), *(f"{name}={text}" for name, text in value_texts.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16], origins, value_texts


def _describe_value(value: Any) -> str | None:
    """Text for a digest of a constant or of another compiled loop; None for anything else."""
    if isinstance(value, int | float | str | tuple | np.generic):
        return repr(value)
    value = _dispatcher(value)
    return _DIGESTS.get(value) if isinstance(value, Hashable) else None


_ENGINE = Path(__file__).parents[1]
_PACKAGE = __name__.rpartition(".notation.")[0]

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


def _is_ours(function: Callable[..., object], structs: Mapping[str, type]) -> bool:
    """True if a loop and the structs that it is made for are of the sources that the folder is named after."""
    ours = all(c.__module__.startswith(_PACKAGE) for s in structs.values() for c in s.__mro__ if c is not object)
    return ours and _ENGINE in Path(function.__code__.co_filename).parents


def _place(
    function: Callable[..., object], structs: Mapping[str, type], constants: Mapping[str, bool | int]
) -> Path:
    bound = sorted((name, cls.__module__, cls.__qualname__) for name, cls in structs.items())
    line = function.__code__.co_firstlineno
    of = [function.__module__, function.__qualname__, line, sorted(constants.items()), bound]
    what = repr(of)
    return _kept_folder() / hashlib.sha256(what.encode()).hexdigest()[:24]


def _read(file: Path, function: Callable[..., object]) -> _InlinedLoop | None:
    """Read a loop from its file; None if there is none, or if it was built with other constants or loops."""
    try:
        code, digest, origins, value_texts, parameters, returns = marshal.loads(file.read_bytes())
        interface = Interface(tuple(Parameter(*p) for p in parameters), returns)
        loop = _InlinedLoop(code, digest, origins, value_texts, interface)
        names = loop.names_for(function)
        return loop if all(_describe_value(names[name]) == text for name, text in value_texts.items()) else None
    except (OSError, ValueError, EOFError, TypeError, KeyError, AttributeError):
        return None


def _write(file: Path, loop: _InlinedLoop) -> None:
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        interface = [astuple(p) for p in loop.interface.parameters], loop.interface.returns
        new.write_bytes(marshal.dumps((loop.code, loop.digest, dict(loop.origins), dict(loop.value_texts), *interface)))
        put_in_place(new, file)


