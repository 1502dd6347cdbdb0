"""How much one event may ask of a node: more is an error of that event, and the stream goes on."""

from __future__ import annotations

MOST_CHARACTERS = 16_000_000
"""Characters of a text that a function makes."""
MOST_NESTED = 200
"""How deep the lists and maps of an object may be nested."""
MOST_FIRINGS = 1_000_000
"""How often a trigger fires in one step; of more, the earlier ones are left out, and an error says so."""
MOST_SHOWN = 300
"""Characters of an error's message."""
