"""XML texts as trees, read by lxml without document types, so without entities of their own and files of others."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, TypeAlias

from lxml import etree

from ..plan.connectors.xpath import XPath
from .attribute_values import MessageError

Element: TypeAlias = Any
"""An `lxml.etree._Element`; lxml has no types of its own."""
MOST_NESTED = 256
"""Levels of a document, a limit of libxml2."""


def parse_xml(text: str) -> Element:
    """The outermost element of the document that a text holds. Raises MessageError."""
    parser = etree.XMLParser(  # of one document: a parser keeps its errors
        encoding="utf-8", resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        reason = str(error.msg).removesuffix(f", line {line}, column {column}")
        if reason.startswith("Excessive depth"):
            raise MessageError(f"XML nested deeper than {MOST_NESTED} levels") from None
        raise MessageError(f"not XML: {reason} (line {line}, character {column})") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise MessageError("it has a DOCTYPE, which is not read: it could name entities and files")
    return root


def find(path: XPath, element: Element) -> Sequence[Element | str]:
    """The elements, and the values of attributes and texts, that a path names, from an element on. The value of an
    expression such as `count(a)` is its text."""
    result = _evaluator(path)(element)
    return result if isinstance(result, list) else [_text_of_value(result)]


@lru_cache(maxsize=1024)
def _evaluator(path: XPath) -> etree.XPath:
    return path.compile()


def _text_of_value(value: bool | float | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def name_of(element: Element) -> str:
    """The name of an element without its namespace."""
    return str(etree.QName(element).localname)


def text_of(element: Element) -> str:
    """The text that is directly in an element."""
    return (element.text or "") + "".join(child.tail or "" for child in element)


def to_xml(element: Element) -> str:
    """The element as XML, with the namespaces that it uses."""
    fragment = deepcopy(element)
    etree.cleanup_namespaces(fragment)
    return str(etree.tostring(fragment, encoding="unicode", with_tail=False))
