"""Recording of what an app's sources read, without computing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...errors import Misuse
from ...lang import tree
from ...lang.parser import parse
from ...lang.printer import to_text

_OF_SINKS = ("sink", "async", "onerror")


def sources_only(text: str, variables: Mapping[str, str] | None = None) -> str:
    """The text of an app that has the streams with a source of another one, and nothing else. Raises SiddhiError for a
    text that is no app, and `Misuse` if no stream has a source."""
    app = parse(text, variables or {})
    streams = [
        replace(d, annotations=tuple(a for a in d.annotations if a.name.lower() not in _OF_SINKS))
        for d in app.definitions
        if isinstance(d, tree.StreamDefinition) and any(a.name.lower() == "source" for a in d.annotations)
    ]
    if not streams:
        raise Misuse("there is nothing to record: no stream of the app has a @source")
    return to_text(replace(app, definitions=tuple(streams), elements=()))
