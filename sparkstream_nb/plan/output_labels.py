"""Outputs by query: streams that several queries write are told apart by labels, `STREAM@QUERY`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from . import nodes as n

_AT = "@"
"""No name of a stream has it."""


def label_shared(plan: n.Plan) -> dict[str, str]:
    """By query, the label of its outputs, for each stream outside of partitions that several queries write."""
    writers = dict(_writers(plan))
    counts = Counter(writers.values())
    return {query: f"{stream}{_AT}{query}" for query, stream in writers.items() if counts[stream] > 1}


def stream_of(label: str) -> str:
    """The stream of a label; of a stream itself, the stream."""
    return label.partition(_AT)[0]


def output_streams(plan: n.Plan) -> list[str]:
    """The streams that queries write to, but for those inside of partitions, in the order of the queries."""
    targets = (q.output.target for q in plan.queries)
    return list(dict.fromkeys(t.id for t in targets if t.kind == "stream" and not is_inner(t.id)))


def is_inner(label: str) -> bool:
    """True for the outputs of a partition's inner stream."""
    return "#" in stream_of(label)


def query_of(label: str, plan: n.Plan) -> str:
    """The query that has the outputs of a label, or of a stream that one query writes; "" if none does."""
    if _AT in label:
        return label.partition(_AT)[2]
    return next((query for query, stream in _writers(plan) if stream == label), "")


def list_labels(plan: n.Plan) -> list[str]:
    """The labels and streams of all queries that write a stream outside of partitions, in the order of the text."""
    shared = label_shared(plan)
    return [shared.get(query, stream) for query, stream in _writers(plan)]


def _writers(plan: n.Plan) -> Iterator[tuple[str, str]]:
    for q in plan.queries:
        target = q.output.target
        if target.kind == "stream" and not is_inner(target.id):
            yield q.name, target.id
