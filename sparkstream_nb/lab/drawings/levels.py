"""Shard safety in words and signs."""

from __future__ import annotations

from ...plan.nodes import Query, Safety

LEVELS = {
    "stateless": "right on any node",
    "merged": "right once the shards are merged",
    "keyed": "right if routed by",
    "node-dependent": "depends on the node",
}
SIGNS = {"stateless": "✓", "merged": "✓", "keyed": "!", "node-dependent": "✗"}


def safety_of(query: Query) -> str:
    """The effect of routing on a query, in a few words."""
    return words_of(query.safety)


def words_of(safety: Safety) -> str:
    """The effect of routing, in a few words."""
    words = LEVELS[safety.level]
    if safety.level == "keyed":
        words += " " + ", ".join(sorted({attribute for _, attribute in safety.keys}))
    return words
