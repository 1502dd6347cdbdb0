"""Structs: parameters of compiled loops that hold several arrays and numbers.

A class marked `struct` may be the annotation of a parameter of a loop. The loop reads `log.time[i]` and hands on `log`;
when it is compiled, each field that it uses becomes a parameter of its own (`log_time`), so nothing is paid for the
notation: a loop over a struct is the loop over its arrays. A field is any attribute: one whose annotation is a struct
is one in turn, one whose annotation is a list of arrays or structs is indexed by constants, and the others are arrays
or numbers. A number that a loop assigns is a variable of that loop.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

C = TypeVar("C", bound=type)
Step = str | int
Path = tuple[Step, ...]
"""A parameter or variable, then the attributes and indices that lead from it to a field."""

_STRUCTS: dict[tuple[str, str], type] = {}
"""By module and qualified name: a class can be used before its module knows it."""


def struct(cls: C) -> C:
    """Marks a class whose attributes loops may use."""
    _STRUCTS[cls.__module__, cls.__qualname__] = cls
    return cls


def is_struct(kind: object) -> bool:
    """True for a class marked `struct`, and for a class that inherits from one."""
    return isinstance(kind, type) and any(_STRUCTS.get((c.__module__, c.__qualname__)) is c for c in kind.__mro__)


@dataclass(frozen=True)
class ListOf:
    """A list of structs, or (None) of arrays or numbers."""

    item: type | None


Kind = type | ListOf | None
"""The kind of the value at a path: a struct, a list, or None for an array or a number."""


def find(module: str, name: str) -> Any:
    """The value of a qualified name in a module. Raises KeyError or AttributeError if there is none any more."""
    first, *rest = name.split(".")
    value = _STRUCTS.get((module, first)) or getattr(sys.modules[module], first)
    for attribute in rest:
        value = static(value, attribute)
    return value


def static(cls: type, name: str) -> Any:
    """The attribute of a class as the class has it, without binding. Raises AttributeError."""
    for c in cls.__mro__:
        if name in c.__dict__:
            return c.__dict__[name]
    raise AttributeError(f"{cls.__qualname__} has no attribute {name}")


def kind_of(annotation: object, module: str) -> Kind:
    """The kind that an annotation, as it stands in a module, gives."""
    if isinstance(annotation, str):
        local_structs = {name: cls for (where, name), cls in _STRUCTS.items() if where == module}
        try:
            annotation = eval(annotation, {**vars(sys.modules[module]), **local_structs})  # the package's own source
        except NameError:  # a name for type checkers alone
            return None
    if get_origin(annotation) in (list, tuple):
        item = get_args(annotation)[0]
        return ListOf(item if is_struct(item) else None)
    return annotation if isinstance(annotation, type) and is_struct(annotation) else None


def _field(cls: type, name: str) -> Kind:
    for c in cls.__mro__:
        annotations = get_annotations(c)
        if name in annotations:
            return kind_of(annotations[name], c.__module__)
        attribute = c.__dict__.get(name)
        if isinstance(attribute, property) and attribute.fget is not None:
            return kind_of(attribute.fget.__annotations__.get("return"), c.__module__)
    return None


def fields(cls: type) -> list[str]:
    """The annotated attributes of a class, in order."""
    return [name for c in reversed(cls.__mro__) for name in get_annotations(c)]


class Place(NamedTuple):
    """A path and the kind of its value."""

    path: Path
    kind: Kind


class Scope:
    """The structs that the variables of a function are (`roots`), and its constants."""

    def __init__(self, roots: Mapping[str, Kind], constant: Callable[[str], object]) -> None:
        self.roots = dict(roots)
        self.aliases: dict[str, ast.expr] = {}
        """Variables that are another name of a struct."""
        self._constant = constant

    def resolve(self, node: ast.expr) -> Place | None:
        """The place that an expression names; None if it names none."""
        if isinstance(node, ast.Name):
            if node.id in self.aliases:
                return self.resolve(self.aliases[node.id])
            return Place((node.id,), self.roots[node.id]) if node.id in self.roots else None
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            if base is None or not isinstance(base.kind, type):
                return None
            return Place((*base.path, node.attr), _field(base.kind, node.attr))
        if isinstance(node, ast.Subscript):
            base = self.resolve(node.value)
            if base is None or not isinstance(base.kind, ListOf):
                return None
            index: object = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(node.slice, ast.Name):
                index = self._constant(node.slice.id)
            if not isinstance(index, int):
                raise TypeError(f"line {node.lineno}: {ast.unparse(node)}: a list of a struct is indexed by constants")
            return Place((*base.path, index), base.kind.item)
        return None


def path_text(path: Path) -> str:
    """A path as Python has it."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path)[1:]


def flat_name(path: Path) -> str:
    """The variable of a compiled loop for a field."""
    return "_".join(map(str, path))


@dataclass(frozen=True)
class Parameter:
    """A parameter of a loop as it is written, and the `fields` of it that the compiled loop takes; None if it is no
    struct. `assigned_fields`: those fields, numbers, that the loop changes."""

    name: str
    fields: tuple[Path, ...] | None = None
    assigned_fields: tuple[Path, ...] = ()

    def flat(self) -> list[str]:
        """The parameters of the compiled loop in its place."""
        return [self.name] if self.fields is None else [flat_name((self.name, *path)) for path in self.fields]

    def values(self, argument: ast.expr) -> list[ast.expr]:
        """The arguments of the compiled loop for an argument."""
        if self.fields is None:
            return [argument]
        return [_extend(argument, path) for path in self.fields]


def _extend(node: ast.expr, path: Path) -> ast.expr:
    for step in path:
        if isinstance(step, int):
            node = ast.Subscript(node, ast.Constant(step), ast.Load())
        else:
            node = ast.Attribute(node, step, ast.Load())
    return node


@dataclass(frozen=True)
class Interface:
    """The signature of a loop: its parameters, and the field that it returns (None: another value, or none)."""

    parameters: tuple[Parameter, ...]
    returns: Path | None = None


@dataclass(frozen=True)
class LoopCall:
    """A call of a compiled loop: the name to call it by, how it is called, and the arguments as they are written."""

    function: ast.expr
    interface: Interface
    arguments: Sequence[ast.expr]


class Flattener(ast.NodeTransformer):
    """Puts variables in place of fields. `loop_call` tells which calls are of loops with structs. `constants` are the
    fields that are constants, by their paths as Python has them.
    """

    def __init__(
        self, scope: Scope, constants: Mapping[str, bool | int], loop_call: Callable[[ast.Call], LoopCall | None]
    ) -> None:
        self._scope, self._constants, self._loop_call = scope, constants, loop_call
        self._fields_used: dict[str, dict[Path, None]] = {}
        """By variable, the fields used, in order."""
        self._assigned_fields: set[Path] = set()
        self._return_paths: set[Path | None] = set()
        self._receiver: Path | None = None
        """The field that the statement at hand assigns."""

    def interface(self, names: Sequence[str]) -> Interface:
        """The signature of the function that was visited; `names` are its parameters as they are written."""
        path = next(iter(self._return_paths)) if len(self._return_paths) == 1 else None
        return Interface(tuple(map(self._parameter, names)), path)

    def _parameter(self, name: str) -> Parameter:
        if not is_struct(self._scope.roots.get(name)):
            return Parameter(name)
        paths = tuple(self._fields_used.get(name, ()))
        return Parameter(name, paths, tuple(p for p in paths if (name, *p) in self._assigned_fields))

    def _leaf(self, node: ast.Attribute | ast.Subscript) -> ast.expr | None:
        place = self._scope.resolve(node)
        if place is None or len(place.path) == 1:
            return None
        path, kind = place
        if kind is not None:
            raise TypeError(f"line {node.lineno}: {ast.unparse(node)} is a struct, which only compiled loops take")
        text = path_text(path)
        if text in self._constants:
            return ast.Constant(self._constants[text])
        self._fields_used.setdefault(str(path[0]), {})[path[1:]] = None
        if isinstance(node.ctx, ast.Store):
            self._assigned_fields.add(path)
        return ast.Name(flat_name(path), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._leaf(node) or self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._leaf(node) or self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._scope.aliases or self._scope.roots.get(node.id) is not None:
            raise TypeError(f"line {node.lineno}: {node.id} is a struct, which only compiled loops take")
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        place = None if node.value is None else self._scope.resolve(node.value)
        self._return_paths.add(place.path if place else None)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        place = self._scope.resolve(node.targets[0])
        self._receiver = place.path if place else None
        statement = self.generic_visit(node)
        self._receiver = None
        return statement

    def visit_Call(self, node: ast.Call) -> ast.AST:
        call = self._loop_call(node)
        if call is None:
            return self.generic_visit(node)
        receiver, values = self._receiver, []
        for parameter, argument in zip(call.interface.parameters, call.arguments, strict=True):
            for path in parameter.assigned_fields:
                at = self._scope.resolve(argument)
                assert at is not None
                if call.interface.returns != (parameter.name, *path) or receiver != (*at.path, *path):
                    raise TypeError(
                        f"line {node.lineno}: the loop assigns {path_text((parameter.name, *path))}: it must return "
                        f"that, and the call be assigned to {path_text((*at.path, *path))}"
                    )
            values += [self.visit(ast.copy_location(v, node)) for v in parameter.values(argument)]
        return ast.Call(call.function, values, [])
