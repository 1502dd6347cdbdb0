"""Comparisons with one node for the command line: as text, as JSON, and as an HTML page."""

from __future__ import annotations

from typing import Any

from ..app import Divergence, Failover, Study
from .display import html
from .drawings.text_tables import fit_terminal
from .failover_shown import failover_text
from .plans_shown import page_of
from .results_shown import count_text, divergence_html, divergence_text

Comparison = Divergence | Study | Failover


def comparison_text(shown: Comparison, limit: int) -> str:
    """A comparison as text with `limit` rows, fitted into the terminal."""
    with fit_terminal():
        match shown:
            case Divergence():
                return divergence_text(shown, limit)
            case Study():
                return count_text(shown, limit)
        return failover_text(shown, limit)


def comparison_page(shown: Comparison, limit: int) -> str:
    """A comparison as an HTML page that needs nothing else."""
    body = divergence_html(shown, None, limit) if isinstance(shown, Divergence) else html(shown)
    return page_of(f"{shown.app}: several nodes and one", body)


def comparison_json(shown: Comparison, limit: int) -> dict[str, Any]:
    """A comparison as plain data: counts, advice, and `limit` outputs that differ."""
    match shown:
        case Divergence():
            first = shown.first_differences(limit).astype({"cause": str, "timestamp": int})
            return {
                "app": shown.app, "nodes": shown.nodes, "routing": shown.way.route, "events": shown.events,
                "counts": _records(shown.counts), "repairs": shown.repairs, "advice": shown.advice,
                "aggregations": _records(shown.aggregations), "differences": shown.differences,
                "first": _records(first.assign(node=[n or None for n in first["node"]])), "warning": shown.warning,
            }  # fmt: skip
        case Study():
            return {
                "app": shown.app, "recommendation": shown.recommendation, "best": shown.best,
                "repairs": shown.repairs, "combinations": _records(shown.frame), "queries": _records(shown.by_query),
            }  # fmt: skip
    return {
        "app": shown.app, "result": shown.said, "counts": _records(shown.frame),
        "incidents": _records(shown.timeline.head(limit)),
    }  # fmt: skip


def _records(frame: Any) -> list[dict[str, Any]]:
    return frame.astype(object).to_dict("records")
