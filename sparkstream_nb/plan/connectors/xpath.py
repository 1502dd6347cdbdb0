"""XPath 1.0, in which attribute paths of XML mappings are written. lxml evaluates it; Siddhi's mapper has Axiom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml import etree


def _etree() -> Any:
    """lxml's module for elements: 25 ms that apps without XML do not pay."""
    from lxml import etree

    return etree


class NotAPath(Exception):
    """The text is no XPath; the message says why, in a few words."""


@dataclass(frozen=True)
class XPath:
    """A path as it is written, and the addresses of its namespaces by prefix. It is relative to the element at hand,
    unless it begins with `/`."""

    text: str
    namespaces: tuple[tuple[str, str], ...] = ()

    def compile(self) -> etree.XPath:
        """The path, ready to be evaluated at an element. Raises lxml's XPathError."""
        return _etree().XPath(self.text, namespaces=dict(self.namespaces))


def parse_xpath(text: str, namespaces: Mapping[str, str]) -> XPath:
    """The path that `text` writes; `namespaces` are addresses by prefix. Raises NotAPath."""
    etree = _etree()
    path = XPath(text.strip(), tuple(namespaces.items()))
    if not path.text:
        raise NotAPath("it is empty")
    try:
        path.compile()(etree.Element("none"))  # names of namespaces, functions and variables are looked up here
    except etree.XPathError as error:
        unknown = [p for p in re.findall(r"([\w.-]+):(?!:)", path.text) if p not in namespaces]
        if "prefix" in str(error) and unknown:
            raise NotAPath(f"no namespace is given for '{unknown[0]}:'") from None
        raise NotAPath(str(error)[:1].lower() + str(error)[1:]) from None
    return path
