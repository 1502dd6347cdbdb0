"""Texts with values of events in them that become a header, an address or a name: which of them go no further."""

from __future__ import annotations

import re
from functools import lru_cache

from ..errors import has_surrogate
from ..plan.query_parts import template_attributes, template_parts

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what some programs read as the end of a line."""
_ENCODED_WORD = re.compile(r"=\?[^?\s]*\?[^?]*\?")
"""The beginning of an encoded word of RFC 2047: its reader would see something else, such as further headers."""
ADDRESS_MARKS, COOKIE_MARKS = '()<>[]:;@\\,"', ';,"\\'
"""Characters by which an address (RFC 5322) and a cookie (RFC 6265) end, or begin."""


def text_fault(text: str) -> str | None:
    """The reason for which no name and no header has this text; None if they may."""
    if _CONTROL.search(text):
        return "has a line break or another control character in it"
    if has_surrogate(text):
        return "has half of a surrogate pair in it, which is no character"
    return None


def header_fault(text: str) -> str | None:
    """The reason for which no header has this text, which values are part of; None if one may."""
    if _ENCODED_WORD.search(text):
        return "has an encoded word (=?...?=) in it, which mail programs would decode"
    return text_fault(text)


def part_fault(text: str, template: str, separator: str, marks: str) -> str | None:
    """The reason for which `text`, made by `template`, says more than it: a value has one of `marks` in it. Of the
    parts between the separators, a value that is all of one may be anything, also several."""
    if not template_attributes(template) or _pattern(template, separator, marks).fullmatch(text):
        return None
    return f"has one of {marks} in a value that is a part of it"


@lru_cache(maxsize=1000)
def _pattern(template: str, separator: str, marks: str) -> re.Pattern[str]:
    """The texts that `template` makes of values without marks, and of any values that are a whole part."""
    parts = template_parts(template)
    pattern = re.escape(parts[0])
    for i in range(1, len(parts), 2):
        before, after = parts[i - 1].rstrip(), parts[i + 1].lstrip()
        begins = before.endswith(separator) or (i == 1 and not before)
        ends = after.startswith(separator) or (i == len(parts) - 2 and not after)
        is_whole = begins and ends and '"' not in template
        pattern += (".*" if is_whole else f"[^{re.escape(marks)}]*") + re.escape(parts[i + 1])
    return re.compile(pattern, re.DOTALL)
