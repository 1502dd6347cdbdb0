"""Inlining: the bodies of small helpers, functions and methods of structs, in place of their calls."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Hashable, Mapping, Set
from functools import cache
from typing import Any, TypeVar

from .structs import Kind, Scope, fields, is_struct, kind_of, static

F = TypeVar("F", bound=Callable[..., object])

_HELPERS: dict[Any, ast.FunctionDef | None] = {}
"""The helpers, with their sources once these were needed: to read all takes a process 0.4 s."""


def inlined(function: F) -> F:
    """Marks a helper that `kernel` inlines: its body replaces the call.

    The helper has one `return`, as its last statement, or none; `kernel` raises TypeError for another shape. It must be
    called as a statement, or as all that is assigned or returned. A parameter that is a struct is the caller's struct:
    fields that the helper assigns are assigned there. It still runs as plain Python.
    """
    _HELPERS[function] = None
    return function


def _source(helper: Any) -> ast.FunctionDef:
    """The source of a helper. Raises TypeError if it cannot be inlined."""
    node = _HELPERS[helper]
    if node is None:
        node = _HELPERS[helper] = parse(helper)
        returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
        if len(returns) > 1 or (returns and node.body[-1] is not returns[0]):
            raise TypeError(f"{helper.__name__}: an inlined helper returns once, at its end")
    return node


def is_inlined(value: object) -> bool:
    """True for a function that was marked `inlined`."""
    return isinstance(value, Hashable) and value in _HELPERS


def parse(function: Callable[..., object]) -> ast.FunctionDef:
    """The source of a function, without its decorators and what it returns."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    node.returns = None
    return node


def kinds(node: ast.FunctionDef, function: Callable[..., object], known_kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """The kinds of the parameters of a function: by `known_kinds`, else by their annotations, which are removed."""
    kinds_of: dict[str, Kind] = {}
    for a in node.args.args:
        if a.arg in known_kinds:
            kinds_of[a.arg] = known_kinds[a.arg]
        elif a.annotation is not None and (kind := kind_of(ast.unparse(a.annotation), function.__module__)) is not None:
            kinds_of[a.arg] = kind
        a.annotation = None
    return kinds_of


@cache
def _find_assigned(helper: ast.FunctionDef) -> frozenset[str]:
    """The names of the fields that a helper assigns, itself or by helpers that it calls."""
    names: set[str] = set()
    for n in ast.walk(helper):
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            names.add(n.attr)
        elif isinstance(n, ast.Call):
            name = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", None)
            for other in [_source(h) for h in _HELPERS if h.__name__ == name]:
                if other is not helper:
                    names |= _find_assigned(other)
    return frozenset(names)


class Inliner(ast.NodeTransformer):
    """Replaces statements `helper(...)` and `target = helper(...)` by the helper's body.

    `names`: the helpers of the function's module, by name. `scope`: its structs. `globals`: its module's names.
    """

    def __init__(self, names: dict[str, Any], scope: Scope, globals: Mapping[str, Any]) -> None:
        self.names, self.scope, self._globals = names, scope, globals
        self.count = 0
        self.helper_globals: dict[str, Any] = {}
        """Globals that the helpers' bodies use in their own modules, by names in this module."""
        self.origins: dict[str, tuple[str, str]] = {}
        """The module and the name there of each."""

    def value_of(self, name: str) -> Any:
        """The value of a name in the function's module; None for its own variables."""
        return self.helper_globals.get(name, self._globals.get(name))

    def visit_Expr(self, node: ast.Expr) -> Any:
        return self._expand(node.value, None) or self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name | ast.Attribute):
            body = self._expand(node.value, target)
            if body:
                return body
            if isinstance(target, ast.Name):
                new = self._struct_of(node.value, target.id)
                if new is not None:
                    return new
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> Any:
        self.count += 1
        name = f"_result_{self.count}"
        body = None if node.value is None else self._expand(node.value, ast.Name(name, ast.Store()))
        if not body:
            return self.generic_visit(node)
        return [*body, ast.copy_location(ast.Return(ast.Name(name, ast.Load())), node)]

    def _struct_of(self, value: ast.expr, target: str) -> list[ast.stmt] | None:
        """A variable that becomes another name of a struct, or a new one; None if it is none of them."""
        place = self.scope.resolve(value)
        if place is not None and place.kind is not None:
            self.scope.aliases[target] = value
            return [ast.copy_location(ast.Pass(), value)]
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
            return None
        kind = self.value_of(value.func.id)
        if not is_struct(kind):
            return None
        self.scope.roots[target] = kind
        out: list[ast.stmt] = []
        for name, argument in zip(fields(kind), value.args, strict=True):
            field = ast.Attribute(ast.Name(target, ast.Load()), name, ast.Store())
            out.append(ast.copy_location(ast.Assign([field], self.visit(argument)), value))
        return out

    def visit_Call(self, node: ast.Call) -> Any:
        helper = self._helper(node)
        if helper is not None:
            name = helper[0].__name__
            raise TypeError(f"line {node.lineno}: {name} is inlined, so it must be a statement of its own")
        return self.generic_visit(node)

    def _helper(self, call: ast.Call) -> tuple[Callable[..., Any], list[ast.expr]] | None:
        """The helper that is called, and its arguments, `self` among them; None for any other function."""
        if isinstance(call.func, ast.Name) and call.func.id in self.names:
            return self.names[call.func.id], call.args
        if isinstance(call.func, ast.Attribute):
            place = self.scope.resolve(call.func.value)
            if place is not None and isinstance(place.kind, type):
                method = static(place.kind, call.func.attr)
                if is_inlined(method):
                    return method, [call.func.value, *call.args]
        return None

    def _expand(self, call: ast.expr, target: ast.Name | ast.Attribute | None) -> list[ast.stmt] | None:
        call_of_helper = self._helper(call) if isinstance(call, ast.Call) else None
        if call_of_helper is None:
            return None
        function, arguments = call_of_helper
        helper = _source(function)
        self.count += 1
        body = [ast.parse(ast.unparse(s)).body[0] for s in helper.body]
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        nodes = [n for s in body for n in ast.walk(s)]
        local_names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        assigned_fields = _find_assigned(helper)
        names: dict[str, ast.expr] = {}
        before: list[ast.stmt] = []
        for parameter, value in zip((a.arg for a in helper.args.args), arguments, strict=True):
            if parameter not in local_names and self._stays(value, assigned_fields):
                names[parameter] = value
            else:
                fresh = f"_{parameter}_{self.count}"
                before.append(ast.Assign([ast.Name(fresh, ast.Store())], self.visit(value)))
                names[parameter] = ast.Name(fresh, ast.Load())
        for local in local_names:
            names.setdefault(local, ast.Name(f"_{local}_{self.count}", ast.Load()))
        module = function.__globals__
        names_read = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
        for other in (names_read & module.keys()) - names.keys():
            unique_name = f"_{module['__name__'].replace('.', '_')}_{other}"
            names[other] = ast.Name(unique_name, ast.Load())
            self.helper_globals[unique_name] = module[other]
            self.origins[unique_name] = module["__name__"], other
            if is_inlined(module[other]):
                self.names[unique_name] = module[other]
        out: list[ast.stmt] = before
        for s in body:
            statement = Renamer(names).visit(s)
            if isinstance(statement, ast.Return):
                assert statement.value is not None
                if target is not None:
                    statement = ast.Assign([_as_target(target)], statement.value)
                elif isinstance(statement.value, ast.Call):
                    statement = ast.Expr(statement.value)
                else:
                    continue
            statements = self.visit(statement)
            out.extend(statements if isinstance(statements, list) else [statements])
        for s in out:
            for n in ast.walk(s):
                ast.copy_location(n, call)
        return out or [ast.copy_location(ast.Pass(), call)]

    def _stays(self, value: ast.expr, assigned_fields: Set[str]) -> bool:
        """True for an argument that a helper which assigns fields of these names may read wherever it reads
        its parameter: a constant, a variable, a struct, and a field that it does not assign."""
        place = self.scope.resolve(value)
        if place is not None and len(place.path) > 1:
            return place.kind is not None or assigned_fields.isdisjoint(place.path)
        return isinstance(value, ast.Name | ast.Constant)


def _as_target(target: ast.Name | ast.Attribute) -> ast.expr:
    new = copy.deepcopy(target)
    new.ctx = ast.Store()
    return new


class Renamer(ast.NodeTransformer):
    """Puts a helper's arguments and fresh locals in place of its own names."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id)
        if new is None:
            return node
        if isinstance(new, ast.Name):
            return ast.Name(new.id, node.ctx)
        return copy.deepcopy(new)
