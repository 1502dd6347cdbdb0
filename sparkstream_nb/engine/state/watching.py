"""The part of a node that is watched for a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Watching:
    """The query, or the named window, that is called `name`, and its watched operators: `windows` of its sides in the
    order of the text (`WatchedWindow`), or the `pattern` (`WatchedPattern`). `kinds`: by query, the kinds of its
    outputs in the last step, in order; `Outputs.queries` has them apart.
    """

    name: str
    kinds: dict[str, list[int]] = field(default_factory=dict)
    windows: list[Any] = field(default_factory=list)
    pattern: Any = None
