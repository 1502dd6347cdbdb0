"""XML messages as events: one message at a time, as siddhi-map-xml 5.2 reads it."""

from __future__ import annotations

from typing import Any

from ..plan.connectors.mapping import SourceMapping, XmlSource
from ..plan.connectors.xpath import XPath
from ..types import Attribute, Schema, Type
from . import xml_tree
from .attribute_values import MessageError, Row, convert_text
from .rejected_parts import ParsedMessage, RejectedPart
from .xml_tree import Element, find, parse_xml


class XmlReader:
    """`<events><event><symbol>...</symbol></event></events>` by default; else the matches of XPaths."""

    def __init__(self, mapping: SourceMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, XmlSource)
        self.schema = schema
        self.format = mapping.format
        self.fail = mapping.fail_on_missing
        self.places = mapping.places
        self.positions = {n: i for i, n in enumerate(schema.names)}

    def read(self, text: str) -> ParsedMessage:
        """The events of a message. Raises MessageError."""
        document = parse_xml(text)
        out = ParsedMessage([])
        for element in self._elements(document):
            try:
                out.rows.append(self._by_name(element) if self.places is None else self._by_path(document, element))
            except MessageError as e:
                out.bad.append(RejectedPart(str(e), element.to_xml()))
        return out

    def _elements(self, document: Element) -> list[Element]:
        """The elements that are events."""
        root = document.children[0]
        if self.places is None:
            if root.local != "events":
                raise MessageError(f"the outermost element is <{root.source_name}>, expected <events>")
            return [c for c in root.children if (c.namespace, c.local) == ("", "event")]
        if self.format.enclosing is None:
            return [root]
        elements = [e for e in find(self.format.enclosing, document, root) if isinstance(e, Element)]
        if not elements:
            raise MessageError(f"it has no '{self.format.enclosing.text}'")
        return elements if self.format.as_event else [c for e in elements for c in e.children]

    def _by_name(self, event: Element) -> Row:
        row: Row = [None] * len(self.schema)
        for child in event.children:
            position = self.positions.get(child.local)
            if position is not None:
                a = self.schema[position]
                row[position] = convert_text(a.type, child.text, a.name)
        missing = [n for n, v in zip(self.schema.names, row, strict=True) if v is None]
        if missing and self.fail:
            raise MessageError(f"it lacks {', '.join(missing)}")
        return row

    def _by_path(self, document: Element, event: Element) -> Row:
        assert self.places is not None
        return [
            self._value(a, place, document, event) if isinstance(place, XPath) else None
            for a, place in zip(self.schema, self.places, strict=True)
        ]

    def _value(self, a: Attribute, path: XPath, document: Element, event: Element) -> Any:
        nodes = find(path, document, event)
        if nodes:
            first = nodes[0]
        elif self.format.as_event and not event.children and event.local.lower() == path.text.strip().lower():
            first = event  # an event that is nothing but its value
        elif self.fail:
            raise MessageError(f"it has no '{path.text}' for {a.name}")
        else:
            return None
        if isinstance(first, xml_tree.XmlAttribute):
            return convert_text(a.type, first.value, a.name)
        if isinstance(first, Element) and first.children:
            if a.type is not Type.STRING:
                raise MessageError(f"{a.name}: '{path.text}' has elements in it, and only a string takes them")
            return first.to_xml()
        try:
            return convert_text(a.type, first.text if isinstance(first, Element) else first, a.name)
        except MessageError:
            if self.fail:
                raise
            return None
