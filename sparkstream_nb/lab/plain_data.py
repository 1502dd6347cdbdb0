"""Plain data on its way to a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import escape_controls


def without_controls(data: Any) -> Any:
    """Plain data whose texts have no control characters."""
    match data:
        case str():
            return escape_controls(data)
        case Mapping():
            return {key: without_controls(value) for key, value in data.items()}
        case list() | tuple():
            return [without_controls(value) for value in data]
    return data
