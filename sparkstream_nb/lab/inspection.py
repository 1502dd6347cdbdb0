"""Shift-Tab in SiddhiQL: the signatures of the name at the cursor, or the text that defines it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .. import app as api
from ..lang.partial import lex_text, statements
from ..masking import mask_passwords
from ..plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS, Signature
from ..plan.signatures.help import Kind, help_of
from .arguments import deploy_options, line_options, overview

_OPERATORS = {
    "within": "within\n\nOf an aggregation: the time whose buckets are read, as within '2024-06-**'.\n"
    "Of a pattern: how long its events may be apart, as within 5 min.",
    "per": "per\n\nThe duration of the buckets that are read from an aggregation: per 'hour'.",
}
"""Keywords that are looked up like functions, with their help."""

_NAME = re.compile(r"(#\s*window\s*\.\s*|#)?((?:\w+:)?\w+)", re.I)


def install(kernel: Any) -> None:
    """Answers the kernel's inspection requests in `%%siddhi` cells and `%siddhi` lines; leaves Python's alone."""
    if getattr(kernel.do_inspect, "knows_siddhi", False):
        return
    kernel.do_inspect = _with_siddhi(kernel.do_inspect)


def _with_siddhi(python: Callable[..., Any]) -> Callable[..., Any]:
    def do_inspect(code: str, cursor_pos: int, *rest: Any, **kwargs: Any) -> Any:
        text = at_cursor(code, cursor_pos)
        if text is None:
            return python(code, cursor_pos, *rest, **kwargs)
        return {"status": "ok", "found": True, "data": {"text/plain": text}, "metadata": {}}

    do_inspect.knows_siddhi = True  # type: ignore[attr-defined]
    return do_inspect


def at_cursor(code: str, position: int) -> str | None:
    """The description of the name at `position`, or of the call around it; None outside of SiddhiQL or a name."""
    begin, magic = _body(code, position)
    if begin is None:
        return _magic_help(code, position)
    text, at = code[begin:], position - begin
    match = next((m for m in _NAME.finditer(text) if m.start(2) <= at <= m.end(2)), None)
    description = _describe_name(match[1] or "", match[2], text, magic) if match else None
    return description or _call_around(text, at)


def _magic_help(code: str, position: int) -> str | None:
    """The help of the magic, or of its command, on whose line the cursor is."""
    line = code[code.rfind("\n", 0, position) + 1 :].partition("\n")[0].split()
    if line[:1] == ["%%siddhi"]:
        return deploy_options().format_help()
    if line[:1] != ["%siddhi"]:
        return None
    commands = line_options()
    options = commands.get(line[1]) if len(line) > 1 else None
    return overview(commands) if options is None else options.format_help()


def _body(code: str, position: int) -> tuple[int | None, str]:
    """The beginning of the SiddhiQL around the cursor, and the line of the magic; None if there is none."""
    if code.lstrip().startswith("%%siddhi"):
        begin = code.find("\n", code.index("%%siddhi")) + 1
        return (begin if 0 < begin <= position else None), code[:begin]
    begin = code.rfind("\n", 0, position) + 1
    line = code[begin:].partition("\n")[0]
    return (begin if re.match(r"\s*%siddhi\s+query\b", line) else None), line


def _describe_name(sign: str, name: str, text: str, magic: str) -> str | None:
    if len(sign) > 1:
        return _signatures("#window.", WINDOWS[name], "windows") if name in WINDOWS else None
    if sign and name in STREAM_FUNCTIONS:
        return _signatures("#", STREAM_FUNCTIONS[name].signature, "stream_functions")
    running = [a.plan.text for n, a in api.apps().items() if n in magic.split()]
    for source in (text, *running):
        definition = _definition(source, name)
        if definition:
            return definition
    if name.lower() in _OPERATORS:
        return _OPERATORS[name.lower()]
    # `and` and `or` are operators wherever nothing is called.
    kinds: list[tuple[Mapping[str, Signature], Kind]] = [(AGGREGATORS, "aggregators"), (SCALARS, "functions")]
    return next((_signatures("", table[name], kind) for table, kind in kinds if name in table), None)


def _signatures(sign: str, signature: Signature, kind: Kind) -> str:
    rows = [f"{sign}{signature.key}{o}{_result(o.result)}" for o in signature.overloads]
    return "\n".join([*rows, "", help_of(kind, signature.key)])


def _result(result: object) -> str:
    if result in (None, "?"):
        return ""
    return f" -> {'the type of the first argument' if result == '$1' else result}"


def _definition(text: str, name: str) -> str | None:
    """The statement of `text` that defines `name`, its passwords masked."""
    for statement in statements(lex_text(text)):
        words = [t.lower() for t in statement]
        at = words.index("define") if "define" in words else len(words)
        if at + 2 < len(words) and str(statement[at + 2]).strip("`") == name:
            return mask_passwords(text[statement[0].start_pos or 0 : statement[-1].end_pos or 0])
    return None


def _call_around(text: str, at: int) -> str | None:
    """The signatures of the call in whose brackets the cursor is."""
    open_positions: list[int] = []
    for token in lex_text(text[:at]):
        if token.type == "LPAR":
            open_positions.append(token.start_pos or 0)
        elif token.type == "RPAR" and open_positions:
            open_positions.pop()
    for end in reversed(open_positions):
        match = next((m for m in _NAME.finditer(text[:end]) if m.end(2) == end), None)
        description = _describe_name(match[1] or "", match[2], "", "") if match else None
        if description:
            return description
    return None
