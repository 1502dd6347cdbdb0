"""Texts with values of events in them that become a header, an address or a name: which of them go no further."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..errors import has_surrogate
from ..plan.query_parts import template_parts
from .target import Undeliverable

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what some programs read as the end of a line."""
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Characters that turn the direction of what follows, or are not seen: a reader would see another name or subject.
Joiners (U+200C, U+200D) are parts of words and of emoji."""
_ENCODED_WORD = re.compile(r"=\?[^?\s]*\?[^?]*\?")
"""The beginning of an encoded word of RFC 2047: its reader would see something else, such as further headers."""
ADDRESS_MARKS, COOKIE_MARKS = '()<>[]:;@\\,"', ';,"\\'
"""Characters by which an address (RFC 5322) and a cookie (RFC 6265) end, or begin."""


def text_fault(text: str) -> str | None:
    """The reason for which no name and no header has this text; None if they may."""
    if _CONTROL.search(text):
        return "has a line break or another control character in it"
    if _INVISIBLE.search(text):
        return "has a character in it that is not seen or turns the direction of writing"
    if has_surrogate(text):
        return "has half of a surrogate pair in it, which is no character"
    return None


def header_fault(text: str) -> str | None:
    """The reason for which no header has this text, which values are part of; None if one may."""
    if _ENCODED_WORD.search(text):
        return "has an encoded word (=?...?=) in it, which mail programs would decode"
    return text_fault(text)


def partial_attributes(template: str, separator: str) -> list[str]:
    """The attributes in `template` whose values are a part of what is between two separators, and not all of it: such a
    value must not end that and begin another."""
    parts, out = template_parts(template), []
    for i in range(1, len(parts), 2):
        before, after = parts[i - 1].rstrip(), parts[i + 1].lstrip()
        begins = before.endswith(separator) or (i == 1 and not before)
        ends = after.startswith(separator) or (i == len(parts) - 2 and not after)
        if not (begins and ends) or '"' in template:
            out.append(parts[i])
    return out


def value_templates(attributes: Iterable[str]) -> dict[str, str]:
    """The templates by which a message's properties have these attributes' values."""
    return {f"value {a}": f"{{{{{a}}}}}" for a in attributes}


def value_fault(properties: Mapping[str, str], attributes: Iterable[str], marks: str) -> str | None:
    """The reason for which the value of one of `attributes` says more than it should: it has one of `marks` in it."""
    if any(mark in properties[f"value {a}"] for a in attributes for mark in marks):
        return f"has one of {marks} in a value that is a part of it"
    return None


def forbidden(value: str) -> str | None:
    """Why a header cannot have a value; None if it can."""
    fault = text_fault(value.replace("\t", " "))
    if fault is not None:
        return fault
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return "has a character that headers do not have"
    return None


class HeaderTemplates:
    """The headers of a sink's messages over HTTP: `fixed_headers` as they are, and `header_templates` that name
    attributes as `{{attribute}}`, by name."""

    def __init__(
        self, fixed_headers: Sequence[tuple[str, str]], header_templates: Sequence[tuple[str, str]]
    ) -> None:
        self._fixed_headers, self._header_templates = dict(fixed_headers), tuple(header_templates)
        self.templates: Mapping[str, str] = {f"header {name}": value for name, value in header_templates}
        """Texts that a message needs filled in as its properties."""
        for name, template in header_templates:
            if name.lower() == "cookie":
                self.templates = {**self.templates, **value_templates(partial_attributes(template, ";"))}

    def fill(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The headers of a message with these properties. Raises Undeliverable for a value that no header has."""
        headers = dict(self._fixed_headers)
        for name, template in self._header_templates:
            value = properties[f"header {name}"]
            fault = forbidden(value) or header_fault(value.replace("\t", " "))
            if fault is None and name.lower() == "cookie":
                fault = value_fault(properties, partial_attributes(template, ";"), COOKIE_MARKS)
            if fault is not None:
                raise Undeliverable(f"header {name} {fault}")
            headers[name] = value
        return headers
