"""The two forms of a part's state: `state()`, which depends only on its meaning, and, for parts that track their
writes, `saved()`, which is saved by change (`blocks.Tracked`) and may contain more. `load` takes both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Form = Callable[[Any], Any]
"""Gives the state of a part in one of the forms."""


def plain(part: Any) -> Any:
    """The state of a part (None: None)."""
    return None if part is None else part.state()


def by_change(part: Any) -> Any:
    """The state of a part as it is saved."""
    return None if part is None else getattr(part, "save_state", part.state)()
