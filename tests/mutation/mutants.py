"""Small faults for the engine's modules: which there are, and a module's code with one of them in it."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_NOTHING = (ast.Expr, ast.Assign, ast.AugAssign)


@dataclass(frozen=True)
class Mutant:
    """Fault `number` of a file: the line at which it stands, and what it is in words."""

    path: Path
    number: int
    line: int
    what: str


def mutants(path: Path) -> list[Mutant]:
    """All faults that the file can have, in the order of the text."""
    tree = ast.parse(path.read_text("utf-8"))
    return [Mutant(path, i, node.lineno, what) for i, (node, what, _) in enumerate(_faults(tree))]


def mutated(mutant: Mutant) -> ast.Module:
    """The file's tree with the fault in it; line numbers are those of the file."""
    tree = ast.parse(mutant.path.read_text("utf-8"))
    _, _, change = list(_faults(tree))[mutant.number]
    change()
    return ast.fix_missing_locations(tree)


def sample(paths: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """So many faults of these files, drawn at random, in the order of the text."""
    found = [m for path in paths for m in mutants(path)]
    chosen = random.Random(seed).sample(found, min(count, len(found)))
    return sorted(chosen, key=lambda m: (str(m.path), m.line, m.number))


def _faults(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
    """(node, what, change) for each fault: calling `change` puts it into the tree."""
    skipped = _skipped(tree)
    for node in ast.walk(tree):
        if id(node) not in skipped:
            yield from _of(node)


def _skipped(tree: ast.Module) -> set[int]:
    """What says nothing about behaviour: annotations, assertions, decorators, raised errors, what runs at import."""
    out: set[int] = set()
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    inside = {id(x) for f in functions for s in f.body for x in ast.walk(s)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            parts: list[ast.AST | None] = [*node.decorator_list, node.returns, *(a.annotation for a in node.args.args)]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.Assert | ast.Raise):
            parts = [node]
        else:
            parts = []
        out |= {id(x) for part in parts if part is not None for x in ast.walk(part)}
    return out | {id(n) for n in ast.walk(tree)} - inside


def _of(node: ast.AST) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        new = _COMPARED[type(node.ops[0])]()
        yield node, f"{_said(node.ops[0])} -> {_said(new)}", lambda: node.ops.__setitem__(0, new)
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        op = _COMPUTED[type(node.op)]()
        yield node, f"{_said(node.op)} -> {_said(op)}", lambda: setattr(node, "op", op)
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, f"{_said(node.op)} -> {_said(other)}", lambda: setattr(node, "op", other)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, f"{node.value} -> {not node.value}", lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, f"{node.value} -> {node.value + 1}", lambda: setattr(node, "value", node.value + 1)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node, "condition turned", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    for body in ("body", "orelse"):
        statements = getattr(node, body, None)
        for i, s in enumerate(statements) if isinstance(statements, list) else ():
            if isinstance(s, _NOTHING) and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
                yield s, f"without `{ast.unparse(s)[:60]}`", _without(statements, i)
            elif isinstance(s, ast.Continue | ast.Break):
                yield s, f"without `{ast.unparse(s)}`", _without(statements, i)


def _without(statements: list[ast.stmt], i: int) -> Callable[[], None]:
    return lambda: statements.__setitem__(i, ast.copy_location(ast.Pass(), statements[i]))


def _said(op: ast.AST) -> str:
    return type(op).__name__
