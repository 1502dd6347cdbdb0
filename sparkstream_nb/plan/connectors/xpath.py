"""The part of XPath 1.0 that attribute paths of XML mappings are written in.

`a/b`, `/root/a`, `//a`, `@x`, `a/@x`, `*`, `.`, `text()`, `p:a` with a prefix of the mapping's namespaces, and
conditions `[2]`, `[last()]`, `[a]`, `[@x='v']`, `[a='v']`. Functions, operators and other axes are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Axis = Literal["child", "attribute", "self", "text"]

LAST = -1
"""The position that `[last()]` means."""


@dataclass(frozen=True)
class Name:
    """A name with its namespace ("" for none); None if the name is `*`."""

    namespace: str
    local: str | None

    def fits(self, namespace: str, local: str) -> bool:
        """True if the name means an element or an attribute that is called so."""
        return self.local is None or (self.local == local and self.namespace == namespace)


@dataclass(frozen=True)
class XPathCondition:
    """`[a]`, `[@x]`: there is such a child or attribute; with a `value`, one with this text."""

    name: Name
    attribute: bool
    value: str | None


@dataclass(frozen=True)
class Step:
    """One step of a path. `deep`: at any depth (`//`). A condition that is a number is a position, from 1, or LAST."""

    axis: Axis
    name: Name
    deep: bool
    conditions: tuple[XPathCondition | int, ...] = ()


@dataclass(frozen=True)
class XPath:
    """A path as it is written, and its steps. `absolute`: from the document, not from the element at hand."""

    text: str
    absolute: bool
    steps: tuple[Step, ...]


class NotAPath(Exception):
    """The text is no path of this kind; the message says why, in a few words."""


_NAME = r"(?:[^\W\d][\w.-]*:)?(?:[^\W\d][\w.-]*|\*)"
_STEP = re.compile(rf"\s*(?P<slash>//?)?\s*(?:(?P<text>text\(\s*\))|(?P<at>@)?\s*(?P<name>{_NAME})|(?P<dot>\.(?!\.)))")
_CONDITION = re.compile(
    rf"\s*\[\s*(?:(?P<number>\d+)|(?P<last>last\(\s*\))"
    rf"|(?P<at>@)?(?P<name>{_NAME})(?:\s*=\s*(?P<value>'[^']*'|\"[^\"]*\"))?)\s*\]"
)


def parse_xpath(text: str, namespaces: Mapping[str, str]) -> XPath:
    """The path that `text` writes; `namespaces` are addresses by prefix. Raises NotAPath."""
    steps: list[Step] = []
    absolute = text.lstrip().startswith("/")
    at = 0
    while text[at:].strip():
        match = _STEP.match(text, at)
        if match is None or (match["slash"] is None) != (not steps and not absolute):
            raise NotAPath(f"'{text[at:].strip()}' is not a step of it")
        at = match.end()
        if text[at : at + 1] == "(" or text[at : at + 2] == "::":
            raise NotAPath("functions and axes are not read here")
        conditions: list[XPathCondition | int] = []
        while condition := _CONDITION.match(text, at):
            conditions.append(_condition(condition, namespaces))
            at = condition.end()
        deep = match["slash"] == "//"
        name = Name("", None) if match["name"] is None else _name(match["name"], namespaces)
        axis: Axis = "attribute" if match["at"] else "text" if match["text"] else "self" if match["dot"] else "child"
        if steps and steps[-1].axis in ("attribute", "text"):
            raise NotAPath("nothing is below an attribute or a text")
        steps.append(Step(axis, name, deep, tuple(conditions)))
    if not steps:
        raise NotAPath("it is empty")
    return XPath(text, absolute, tuple(steps))


def _condition(match: re.Match[str], namespaces: Mapping[str, str]) -> XPathCondition | int:
    if match["number"]:
        if len(match["number"]) > 9 or int(match["number"]) == 0:
            raise NotAPath("positions begin at 1")
        return int(match["number"])
    if match["last"]:
        return LAST
    value = match["value"]
    return XPathCondition(_name(match["name"], namespaces), bool(match["at"]), None if value is None else value[1:-1])


def _name(text: str, namespaces: Mapping[str, str]) -> Name:
    prefix, _, local = text.rpartition(":")
    if prefix and prefix not in namespaces:
        raise NotAPath(f"no namespace is given for '{prefix}:'")
    if local == "*":
        if prefix:
            raise NotAPath("'*' has no prefix")
        return Name("", None)
    return Name(namespaces[prefix] if prefix else "", local)
