"""XML messages as events: one message at a time, as siddhi-map-xml 5.2 reads it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..plan.connectors.mapping import SourceMapping, XmlSource
from ..plan.connectors.xpath import XPath
from ..types import Attribute, Schema, Type
from .attribute_values import MessageError, Row, convert_text
from .rejected_parts import ParsedMessage, RejectedPart
from .xml_tree import Element, find, name_of, parse_xml, text_of, to_xml


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
        out = ParsedMessage([])
        for element in self._elements(parse_xml(text)):
            try:
                out.rows.append(self._by_name(element) if self.places is None else self._by_path(element))
            except MessageError as e:
                out.bad.append(RejectedPart(str(e), to_xml(element)))
        return out

    def _elements(self, root: Element) -> list[Element]:
        """The elements that are events."""
        if self.places is None:
            if name_of(root) != "events":
                name = f"{root.prefix}:{name_of(root)}" if root.prefix else name_of(root)
                raise MessageError(f"the outermost element is <{name}>, expected <events>")
            return list(root.findall("event"))
        if self.format.enclosing is None:
            return [root]
        elements = [e for e in find(self.format.enclosing, root) if not isinstance(e, str)]
        if not elements:
            raise MessageError(f"it has no '{self.format.enclosing.text}'")
        if self.format.is_streamed:
            return [deepcopy(e) for e in elements]  # a copy is the outermost element of a document of its own
        return elements if self.format.as_event else [child for e in elements for child in e]

    def _by_name(self, event: Element) -> Row:
        row: Row = [None] * len(self.schema)
        for child in event:
            position = self.positions.get(name_of(child))
            if position is not None:
                a = self.schema[position]
                row[position] = convert_text(a.type, text_of(child), a.name)
        missing = [n for n, v in zip(self.schema.names, row, strict=True) if v is None]
        if missing and self.fail:
            raise MessageError(f"it lacks {', '.join(missing)}")
        return row

    def _by_path(self, event: Element) -> Row:
        assert self.places is not None
        return [
            self._value(a, place, event) if isinstance(place, XPath) else None
            for a, place in zip(self.schema, self.places, strict=True)
        ]

    def _value(self, a: Attribute, path: XPath, event: Element) -> Any:
        nodes = find(path, event)
        if nodes:
            first = nodes[0]
        elif self.format.as_event and not len(event) and name_of(event).lower() == path.text.lower():
            first = event  # an event that is nothing but its value
        elif self.fail:
            raise MessageError(f"it has no '{path.text}' for {a.name}")
        else:
            return None
        if getattr(first, "is_attribute", False):
            return convert_text(a.type, str(first), a.name)
        if not isinstance(first, str) and len(first):
            if a.type is not Type.STRING:
                raise MessageError(f"{a.name}: '{path.text}' has elements in it, and only a string takes them")
            return to_xml(first)
        try:
            return convert_text(a.type, str(first) if isinstance(first, str) else text_of(first), a.name)
        except MessageError:
            if self.fail:
                raise
            return None
