"""Streams whose events an app divides over destinations: the partitioning layer of a scaled-out app.

A sink with `@distribution` on a stream that comes in from outside says how its events go to the nodes behind the layer.
In the servers that is an app of its own, before the one that does the work; here both are one text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import SiddhiBindError
from ...lang.tree import Annotation
from .. import nodes as n
from ..connectors.outside import is_outside


@dataclass(frozen=True)
class DividedStream:
    """Division of a stream's events by `strategy` over `destinations`; "partitioned" by attribute `key`."""

    strategy: str
    key: str | None
    destinations: int


def layer_of(plan: n.Plan) -> dict[str, DividedStream]:
    """The division of each input stream that the app divides. The @distribution of a sink that publishes queries'
    outputs is none. Raises SiddhiBindError if a query writes to a divided stream, and if two have different numbers of
    destinations.
    """
    writers = {q.output.target.id: q for q in plan.queries}
    out: dict[str, DividedStream] = {}
    for name, stream in plan.streams.items():
        annotation = _distribution(stream)
        if annotation is None or (name in writers and _publishes(stream, plan)):
            continue
        if name in writers:
            raise SiddhiBindError(
                f"events of '{name}' are divided over nodes as they come in, and '{writers[name].name}' writes to it",
                annotation.span,
                hint=f"Send or feed the outputs of that query to '{name}', or leave @distribution out.",
            )
        options = {e.key: e.value for e in annotation.elements}
        places = sum(a.name.lower() == "destination" for a in annotation.nested)
        is_partitioned = options["strategy"] == "partitioned"
        out[name] = DividedStream(options["strategy"], options["partitionKey"] if is_partitioned else None, places)
        first, had = next(iter(out.items()))
        if had.destinations != places:
            raise SiddhiBindError(
                f"the @distribution of '{name}' has {places} @destination, and that of '{first}' {had.destinations}",
                annotation.span,
                hint="All of them are the groups of nodes behind one layer: give each stream the same ones.",
            )
    return out


def behind_layer(plan: n.Plan, layer: Mapping[str, DividedStream]) -> n.Plan:
    """The app for the nodes behind the layer: without the sinks that divide."""
    if not layer:
        return plan
    streams = {
        name: replace(d, annotations=tuple(a for a in d.annotations if _inner(a) is None)) if name in layer else d
        for name, d in plan.streams.items()
    }
    return replace(plan, streams=streams)


def _distribution(stream: n.StreamDef) -> Annotation | None:
    return next((annotation for a in stream.annotations if (annotation := _inner(a)) is not None), None)


def _publishes(stream: n.StreamDef, plan: n.Plan) -> bool:
    """True if every @distribution of a stream belongs to a sink that publishes outside."""
    return all(is_outside(a, plan.properties) for a in stream.annotations if _inner(a) is not None)


def _inner(a: Annotation) -> Annotation | None:
    """The @distribution of a sink."""
    if a.name.lower() != "sink":
        return None
    return next((x for x in a.nested if x.name.lower() == "distribution"), None)
