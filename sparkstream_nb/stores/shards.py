"""Warnings about shard ids that were added or removed between two starts of a deployment."""

from __future__ import annotations

from collections.abc import Collection

from .store_protocol import Store


def shard_warnings(store: Store, aggregation: str, ids: Collection[str]) -> list[str]:
    """Warnings about shard ids that do not match the stored rows of `aggregation`, with the ways out; empty if all
    match.

    `ids` are the deployment's. Reported are stored rows of an id that no node has, and then the ids without stored
    rows, each of which may be that one's new name. A node without rows alone had none yet.
    """
    stored_shards = store.shards(aggregation)
    stored_ids = {s.shard for s in stored_shards}
    out = []
    if left := sorted(stored_ids - set(ids)):
        others = ", ".join(f"'{s}'" for s in left)
        for new in sorted(set(ids) - stored_ids):
            out.append(
                f"Shard '{new}' is new to aggregation '{aggregation}', which has rows of {others}, and no such node. "
                f"If it is one of these under another name, give it back that shardId, or rename the rows: "
                f"app.store.move_shard('{aggregation}', OLD, '{new}'). If it is an additional node, nothing needs to "
                "be done."
            )
    for s in stored_shards:
        if s.shard not in ids:
            out.append(
                f"No node has the shardId '{s.shard}', which holds {s.rows:,} rows of aggregation '{aggregation}'; "
                f"they still count in every answer. Start a node with that shardId, let another shard adopt them: "
                f"app.store.move_shard('{aggregation}', '{s.shard}', OTHER), or delete them: "
                f"app.store.delete_shard('{aggregation}', '{s.shard}')."
            )
    return out
