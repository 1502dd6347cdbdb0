"""The Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .compare import Verdict
from .protocol import Peer, Query, Result
from .turns import Turn

Measured = Mapping[str, Mapping[str, Result | str]]
"""Results, or why there is none, by query and peer."""


def table(measured: Measured, queries: Iterable[Query], turns: Sequence[Turn]) -> list[str]:
    """CPU and wall seconds by query: for each form of ours, the peers that it took turns with, and the ratio of its CPU
    to the best of theirs. Of a peer's CPU the ratio takes its part alone, where it tells one."""
    forms = list(dict.fromkeys(t.ours.name for t in turns))
    groups = [
        (next(t.ours for t in turns if t.ours.name == f), [t.peer for t in turns if t.ours.name == f]) for f in forms
    ]
    head = ["query"]
    for ours, peers in groups:
        names = [p.title for p in peers]
        head += [_head(ours), *map(_head, peers), "ours / best other" if len(peers) > 1 else f"ours / {names[0]}"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for query in queries:
        row, found = [query.title], measured.get(query.name, {})
        if not any(p.name in found for _, peers in groups for p in peers):
            continue
        for ours, peers in groups:
            own = found.get(ours.name)
            others = [found.get(p.name) for p in peers]
            row += [_cell(own), *map(_cell, others), _ratio(own, others)]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _head(peer: Peer) -> str:
    return f"{peer.title} ({peer.part})" if peer.part else peer.title


def _cell(found: Result | str | None) -> str:
    if found is None:
        return "—"
    if isinstance(found, str):
        return "failed" if "ended" in found else found
    part = f" ({_seconds(found.part)})" if found.part is not None else ""
    return f"{_seconds(found.cpu)}{part}; {_seconds(found.wall)}"


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def _ratio(own: Result | str | None, others: Iterable[Result | str | None]) -> str:
    costs = [o.cpu if o.part is None else o.part for o in others if isinstance(o, Result)]
    if not isinstance(own, Result) or not costs or min(costs) <= 0:
        return "—"
    ratio = own.cpu / min(costs)
    text = f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"
    return text if ratio < 1 else f"**{text}**"


def outputs(
    verdicts: Mapping[str, Mapping[str, Verdict]], queries: Iterable[Query], peers: Sequence[Peer]
) -> list[str]:
    """Comparison of outputs, by query and peer."""
    lines = ["| query | " + " | ".join(p.title for p in peers) + " |", "| --- |" + " --- |" * len(peers)]
    for query in queries:
        found = verdicts.get(query.name, {})
        cells = [found[p.name].text if p.name in found else query.without.get(p.name, "—") for p in peers]
        lines.append(f"| {query.title} | " + " | ".join(cells) + " |")
    return lines
