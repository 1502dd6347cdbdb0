"""Topics within an app whose sinks send messages, and not events: each goes to the sources of its topic.

A sink continues when a message is in the inbox, on the disk, for each source. If a crash comes between, the message is
left once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .call_responses import Desk


class MessageTopics:
    """The topics of an app. `sources` are the names of the sources by their topic."""

    def __init__(self, sources: Mapping[str, Sequence[str]] | None = None) -> None:
        self.sources = {topic: tuple(names) for topic, names in (sources or {}).items()}
        self.desk = Desk()
