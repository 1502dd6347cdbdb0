"""XML texts as trees, read by expat without document types, so without entities of their own and files of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from ..limits import MOST_NESTED
from ..plan.connectors.xpath import LAST, Step, XPath, XPathCondition
from .attribute_values import MessageError

_BETWEEN = "\n"
"""Separates a name's parts for expat; no name holds a line break."""


@dataclass(frozen=True)
class XmlAttribute:
    """An attribute of an element; `source_name` is its name as it is written."""

    namespace: str
    local: str
    source_name: str
    value: str


@dataclass(eq=False)
class Element:
    """An element, or the document (`local` is ""). `namespaces` are those that it declares, by prefix."""

    namespace: str
    local: str
    source_name: str
    attributes: list[XmlAttribute] = field(default_factory=list)
    namespaces: list[tuple[str, str]] = field(default_factory=list)
    content: list[Element | str] = field(default_factory=list)
    parent: Element | None = None

    @property
    def children(self) -> list[Element]:
        """The elements in it."""
        return [c for c in self.content if isinstance(c, Element)]

    @property
    def text(self) -> str:
        """The text that is directly in it."""
        return "".join(c for c in self.content if isinstance(c, str))

    def to_xml(self) -> str:
        """The element as XML."""
        names = [f"xmlns:{p}" if p else "xmlns" for p, _ in self.namespaces]
        pairs = [
            *zip(names, (u for _, u in self.namespaces), strict=True),
            *((a.source_name, a.value) for a in self.attributes),
        ]
        head = self.source_name + "".join(f" {n}={quoteattr(v)}" for n, v in pairs)
        if not self.content:
            return f"<{head}/>"
        inside = "".join(c.to_xml() if isinstance(c, Element) else escape(c) for c in self.content)
        return f"<{head}>{inside}</{self.source_name}>"


class _XmlTreeBuilder:
    """Builds a tree from expat's events."""

    def __init__(self) -> None:
        self.document = self.at = Element("", "", "")
        self.depth = 0
        self.declared: list[tuple[str, str]] = []

    def start(self, name: str, attributes: list[str]) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise MessageError(f"XML nested deeper than {MOST_NESTED} levels")
        element = Element(*_name(name), namespaces=self.declared, parent=self.at)
        self.declared = []
        element.attributes = [
            XmlAttribute(*_name(n), v) for n, v in zip(attributes[::2], attributes[1::2], strict=True)
        ]  # fmt: skip
        self.at.content.append(element)
        self.at = element

    def end(self, name: str) -> None:
        self.depth -= 1
        assert self.at.parent is not None
        self.at = self.at.parent

    def text(self, data: str) -> None:
        self.at.content.append(data)

    def declare(self, prefix: str | None, uri: str | None) -> None:
        self.declared.append((prefix or "", uri or ""))

    def doctype(self, *_: object) -> None:
        raise MessageError("it has a DOCTYPE, which is not read: it could name entities and files")


def _name(name: str) -> tuple[str, str, str]:
    """(namespace, local name, name as it is written)."""
    parts = name.split(_BETWEEN)
    if len(parts) == 1:
        return "", name, name
    return parts[0], parts[1], f"{parts[2]}:{parts[1]}" if len(parts) > 2 else parts[1]


def parse_xml(text: str) -> Element:
    """The document that a text holds. Raises MessageError."""
    builder = _XmlTreeBuilder()
    parser = expat.ParserCreate("utf-8", _BETWEEN)
    parser.namespace_prefixes = True
    parser.ordered_attributes = True
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartNamespaceDeclHandler = builder.declare
    parser.StartDoctypeDeclHandler = builder.doctype
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as e:
        where = f"line {e.lineno}, character {e.offset + 1}"
        raise MessageError(f"not XML: {expat.ErrorString(e.code)} ({where})") from None
    return builder.document


# ------------------------------------------------------------------------------------------------------------ finding


Found = Element | XmlAttribute | str


def find(path: XPath, document: Element, at: Element) -> list[Found]:
    """Elements or values that a path names, from the element `at`, or from the document if it is absolute."""
    nodes: list[Found] = [document if path.absolute else at]
    for step in path.steps:
        seen: set[int] = set()
        out: list[Found] = []
        for start in nodes:
            if isinstance(start, Element):
                for element in _below(start) if step.deep else (start,):
                    for item in _step(step, element):
                        if not isinstance(item, Element) or id(item) not in seen:
                            seen.add(id(item))
                            out.append(item)
        nodes = out
    return nodes


def _below(element: Element) -> Iterator[Element]:
    """An element, and all in it."""
    yield element
    for child in element.children:
        yield from _below(child)


def _step(step: Step, element: Element) -> list[Found]:
    items: list[Found]
    match step.axis:
        case "attribute":
            items = [a for a in element.attributes if step.name.fits(a.namespace, a.local)]
        case "text":
            items = [c for c in element.content if isinstance(c, str)]
        case "self":
            items = [element]
        case "child":
            items = [c for c in element.children if step.name.fits(c.namespace, c.local)]
    for condition in step.conditions:
        if isinstance(condition, int):
            at = len(items) if condition == LAST else condition
            items = items[at - 1 : at] if at else []
        else:
            items = [i for i in items if isinstance(i, Element) and _holds(condition, i)]
    return items


def _holds(condition: XPathCondition, element: Element) -> bool:
    name, value = condition.name, condition.value
    if condition.attribute:
        texts = [a.value for a in element.attributes if name.fits(a.namespace, a.local)]
    else:
        texts = [_all_text(c) for c in element.children if name.fits(c.namespace, c.local)]
    return bool(texts) if value is None else value in texts


def _all_text(element: Element) -> str:
    return "".join(c if isinstance(c, str) else _all_text(c) for c in element.content)
