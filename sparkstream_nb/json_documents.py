"""JSON documents that others wrote, and that may be anything."""

from __future__ import annotations

import json
from typing import Any


def json_object(text: str | bytes) -> dict[str, Any]:
    """The members of a JSON object; none for another text."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
