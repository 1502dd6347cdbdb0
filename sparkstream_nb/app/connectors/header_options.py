"""The option `headers` of sinks: `'Name:value','Name:value'`, with values that may depend on the event."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ...errors import Misuse, shown
from ...plan.query_parts import template_attributes
from ..config.secrets import References

_QUOTED = re.compile(r"'([^']*)'")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header's name, by HTTP's rules."""
_SECRET_NAME = re.compile(r"(?i)authorization|cookie|token|secret|password|passwd|api-?key|credential|signature")


@dataclass(frozen=True)
class Header:
    """A header of a message. `value` is never shown: it may have secrets. `dynamic`: it names attributes as
    `{{attribute}}`."""

    name: str
    value: str = field(repr=False)
    dynamic: bool

    @property
    def fixed_value(self) -> str:
        """The value without the parts that depend on the event."""
        return re.sub(r"\{\{[^{}]*\}\}", "", self.value)


def headers_of(text: str, reserved_names: Collection[str], references: References, what: str) -> Iterator[Header]:
    """The headers that `text`, an option of `what`, a sink in words, gives; one without quotes is one header. Raises
    `Misuse` for a name that is wrong or one of the `reserved_names` (in small letters), and for a secret in text."""
    for one in _QUOTED.findall(text) or ([text] if text.strip() else []):
        name, colon, value = one.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not _NAME.fullmatch(name):
            raise Misuse(f"{what}: headers has {shown(one)}: write headers=\"'Name:value','Name:value'\"")
        if name.lower() in reserved_names:
            raise Misuse(f"{what}: the header {name} is not an app's to set: leave it out")
        if _SECRET_NAME.search(name) and "${" not in value:
            raise Misuse(
                f"{what}: the header {name} holds a secret, which does not belong into the app's text: write "
                f"'{name}:${{sec:NAME}}'"
            )
        yield Header(name, references.resolve(value, what), bool(template_attributes(value)))
