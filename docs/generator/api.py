"""The reference page of the Python API, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import sparkstream_nb
from sparkstream_nb import app as api
from sparkstream_nb.app.running.part_method import PartMethod

from .markdown import code, fence, table


def python() -> str:
    """The page."""
    own = [n for n in sparkstream_nb.__all__ if not n.startswith("_")]
    functions = [n for n in own if not inspect.isclass(getattr(sparkstream_nb, n))]
    classes = ["App", *(n for n in own if inspect.isclass(getattr(sparkstream_nb, n)) and n != "App")]
    further = [n for n in api.__all__ if n not in own and inspect.isclass(getattr(api, n))]
    more_functions = [n for n in api.__all__ if n not in own and n not in further]
    out = [
        "# Python API",
        "",
        "`import sparkstream_nb` has what is listed first; `sparkstream_nb.app` has it too, and the rest. "
        "[Stability](../development/stability.md) says what may change when.",
        "",
        table(["name", "what it is"], [(f"[{code(n)}](#{n.lower()})", _summary(getattr(api, n))) for n in
                                       [*functions, *classes, *more_functions, *further] if hasattr(api, n)]),
    ]  # fmt: skip
    for name in functions:
        out += document_function(name, getattr(sparkstream_nb, name), "##")
    for name in classes:
        out += document_class(name, getattr(sparkstream_nb, name))
    for name in more_functions:
        out += document_function(name, getattr(api, name), "##")
    for name in further:
        out += document_class(name, getattr(api, name))
    return "\n".join(out)


def _summary(thing: Any) -> str:
    return " ".join(_doc(thing).partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."


def _doc(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    return text.replace("{{", "{ {")


def _prose(text: str) -> str:
    """A docstring as Markdown: indented lines of code become fences."""
    out: list[str] = []
    for block in re.split(r"\n{2,}", text):
        lines = block.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            out.append(fence("\n".join(line[4:] for line in lines), "python"))
        else:
            out.append(block)
    return "\n\n".join(out)


def _signature(name: str, thing: Any) -> str:
    found = inspect.signature(thing)
    parts, star = [], False
    for p in found.parameters.values():
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or p.kind is p.VAR_POSITIONAL
        parts.append(_parameter(p))
    result = found.return_annotation
    written = result if isinstance(result, str) else inspect.formatannotation(result)
    arrow = "" if result is found.empty else f" -> {_plain(written)}"
    whole = f"{name}({', '.join(parts)}){arrow}"
    if len(whole) <= 88:
        return whole
    return f"{name}(\n" + "".join(f"    {p},\n" for p in parts) + f"){arrow}"


def _parameter(p: inspect.Parameter) -> str:
    """A parameter with its annotation, and its default; one that has no short text is `...`."""
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    written = p.annotation if isinstance(p.annotation, str) else inspect.formatannotation(p.annotation)
    annotation = "" if p.annotation is p.empty else f": {_plain(written)}"
    default = "" if p.default is p.empty else re.sub(r"<[^>]*>", "...", _plain(repr(p.default)))
    return f"{star}{p.name}{annotation}" + (f" = {default}" if default else "")


def _plain(text: str) -> str:
    """A text without the modules of its names."""
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text).replace("'", '"')


def document_function(name: str, thing: Any, level: str, called: str | None = None) -> list[str]:
    return [f"{level} {name} {{ #{(called or name).lower()} }}", "", fence(_signature(name, thing), "python"),
            _prose(_doc(thing)), ""]  # fmt: skip


def document_class(name: str, thing: Any) -> list[str]:
    out = [f"## {name} {{ #{name.lower()} }}", "", _prose(_doc(thing)), ""]
    fields = [(f, p) for f, p in _fields(thing)]
    out.append(table(["field or property", "meaning"], [(code(f), p) for f, p in fields]))
    for method, function in _methods(thing):
        out += document_function(f"{name}.{method}", function, "###")
    return out


def _members(thing: Any) -> Iterator[tuple[str, Any]]:
    """The public members of a class and of its bases in this package, in the order of the source."""
    seen: set[str] = set()
    for c in thing.__mro__:
        if not c.__module__.startswith("sparkstream_nb"):
            continue
        for name, member in vars(c).items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, member


def _methods(thing: Any) -> Iterator[tuple[str, Any]]:
    for name, member in _members(thing):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        function = getattr(thing, name) if isinstance(member, PartMethod) else function
        if inspect.isfunction(function):
            yield name, function


def _fields(thing: Any) -> Iterator[tuple[str, str]]:
    for name, member in _members(thing):
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            yield name, _summary(member)
    for name in getattr(thing, "__dataclass_fields__", ()):
        if not name.startswith("_"):
            yield name, ""
