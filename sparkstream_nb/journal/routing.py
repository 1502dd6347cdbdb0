"""Routing of events to nodes, and of nodes to Spark partitions.

Routes, as users write them:

- `round_robin`: request number i goes to node i % n. An event is a request; several events sent at once are one, as a
  load balancer does not look inside a request.
- `hash:ATTR`: abs(Java's `String.hashCode` of the attribute's value as text) % n, event by event, as Siddhi's
  `PartitionedDistributionStrategy`. Streams without the attribute go round robin.
- `node:K`: to node K, from 1.
- `random:SEED`: every request to a node drawn at random, the same one each time.
- `sticky`: each input stream to a node of its own, in the order of the app; some share one if there are fewer nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch
from ..errors import Misuse, nearest, shown
from ..nodes.partitioning import by_hash
from ..types import Schema
from .entries import EventsEntry


@dataclass(frozen=True)
class Route:
    """A parsed route. `attribute` is set for a hash; `node` (from 0) for a fixed node; `seed` for a random one; none of
    these, nor `sticky`, means round robin."""

    attribute: str | None = None
    node: int | None = None
    seed: int | None = None
    sticky: bool = False

    @staticmethod
    def parse(text: str, nodes: int, schemas: Mapping[str, Schema] | None = None) -> Route:
        """Reads `round_robin`, `hash:ATTR`, `node:K`, `random:SEED` or `sticky`.

        Raises `Misuse` for anything else, for a node that is not among `nodes`, and, where the input streams'
        `schemas` are given, for an attribute that none of them has.
        """
        if not isinstance(text, str):
            raise Misuse(f"the routing is a text, not {shown(text)}")
        kind, _, argument = text.partition(":")
        if kind == "round_robin" and not argument:
            return Route()
        if kind == "sticky" and not argument:
            return Route(sticky=True)
        if kind == "random" and argument.isdecimal():
            return Route(seed=int(argument))
        if kind == "hash" and argument:
            names = {a for s in (schemas or {}).values() for a in s.names}
            if schemas is not None and argument not in names:
                raise Misuse(nearest(f"routing {text}: no input stream has an attribute '{argument}'", argument, names))
            return Route(attribute=argument)
        if kind == "node" and argument.isdecimal():
            if not 1 <= int(argument) <= nodes:
                has = f"nodes 1 to {nodes:,}" if nodes > 1 else "only node 1"
                raise Misuse(f"there is no node {argument}: the deployment has {has}")
            return Route(node=int(argument) - 1)
        ways = "round_robin, hash:ATTRIBUTE, node:NUMBER, random:SEED, or sticky"
        raise Misuse(f"'{text}' is not a valid route. Write {ways}")


def assign(batch: InputBatch, route: Route, schemas: Mapping[str, Schema], nodes: int, first: int) -> dict[str, Array]:
    """The node (from 0) of every row, per stream. `first` is the number of the batch's first request."""
    if route.node is not None:
        return {s: np.full(len(r.ts), route.node, np.int64) for s, r in batch.rows.items()}
    if route.sticky:
        number = {s: i for i, s in enumerate(schemas)}
        return {s: np.full(len(r.ts), number[s] % nodes, np.int64) for s, r in batch.rows.items()}
    request = np.zeros(len(batch.clock), np.int64)
    for rows in batch.rows.values():
        request[rows.step] = 1
    request = first + np.cumsum(request) - 1
    if route.seed is not None:
        request = _scatter_requests(request, route.seed)
    out = {}
    for stream, rows in batch.rows.items():
        place = schemas[stream].find(route.attribute) if route.attribute is not None else None
        if place is None:
            out[stream] = request[rows.step] % nodes
        else:
            out[stream] = by_hash(rows.columns[place], schemas[stream][place].type, nodes)
    return out


def nodes_of(batch: InputBatch, entry: EventsEntry, schemas: Mapping[str, Schema], began: int) -> dict[str, Array]:
    """The number (from 0) of the node that each event of an entry went to, by stream, in an app that began with `began`
    nodes."""
    over = entry.over or tuple(range(began))
    places = assign(batch, Route.parse(entry.route, len(over)), schemas, len(over), entry.request)
    return {stream: np.array(over, np.int64)[p] for stream, p in places.items()}


def _scatter_requests(request: Array, seed: int) -> Array:
    """int64[n] ≥ 0, drawn at random for each request (SplitMix64; Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        z = (request.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed & (1 << 64) - 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((z ^ (z >> np.uint64(31))) >> np.uint64(1), np.int64)


# ------------------------------------------------------------------------------------------------- Spark partitions


def _rotate(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & 0xFFFFFFFF


def spark_hash(value: int) -> int:
    """Spark's `hash()` of an INT (Murmur3, 32 bits, seed 42), as a signed number."""
    k = _rotate(value * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    h = (_rotate(42 ^ k, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def keys_apart(count: int, partitions: int) -> list[int]:
    """`count` distinct INT keys, of which number i lies in partition i % `partitions` after Spark's hash partitioning.

    Plain node numbers do not do: of four, three may share a partition.
    """
    out: list[int] = []
    candidate = 0
    keys_by_partition: dict[int, list[int]] = {p: [] for p in range(partitions)}
    for i in range(count):
        keys = keys_by_partition[i % partitions]
        while not keys:
            keys_by_partition[spark_hash(candidate) % partitions].append(candidate)
            candidate += 1
        out.append(keys.pop(0))
    return out
