"""Comparisons with one node for the command line: as text, as JSON, and as an HTML page."""

from __future__ import annotations

from typing import Any

from ..app import (
    Divergence,
    EventHistory,
    Failover,
    Moment,
    OutputOrigin,
    QueryMoment,
    RuleComparison,
    RuleSweep,
    Study,
    WhyNot,
)
from ..engine.expressions.objects import jsonable
from ..lang.clause_changes import Change
from .display import html, text
from .drawings.result_blocks import blocks_html, blocks_text
from .drawings.text_tables import fit_terminal
from .failover_shown import failover_text
from .history_shown import history_data, history_text
from .moments_shown import moment_data, moment_text, query_data, records
from .plans_shown import page_of
from .results_shown import count_text, divergence_html, divergence_text
from .rules_shown import rules_blocks
from .why_not_shown import why_not_data

Comparison = (
    Divergence | Study | Failover | RuleComparison | RuleSweep | Moment | QueryMoment | WhyNot | EventHistory
    | OutputOrigin
)  # fmt: skip


def comparison_text(comparison: Comparison, limit: int) -> str:
    """A comparison as text with `limit` rows, fitted into the terminal."""
    with fit_terminal():
        match comparison:
            case Divergence():
                return divergence_text(comparison, limit)
            case Study():
                return count_text(comparison, limit)
            case RuleComparison():
                return blocks_text(rules_blocks(comparison, limit))
            case RuleSweep() | WhyNot():
                return text(comparison)
            case Moment() | QueryMoment():
                return moment_text(comparison, limit)
            case EventHistory() | OutputOrigin():
                return history_text(comparison, limit)
        return failover_text(comparison, limit)


def comparison_page(comparison: Comparison, limit: int) -> str:
    """A comparison as an HTML page that needs nothing else."""
    if isinstance(comparison, RuleComparison):
        return page_of(f"{comparison.app}: two texts", blocks_html(rules_blocks(comparison, limit)))
    if isinstance(comparison, RuleSweep):
        return page_of(f"{comparison.app}: {len(comparison.settings)} settings", html(comparison))
    if isinstance(comparison, WhyNot):
        return page_of(f"{comparison.app}: why not {comparison.title}", html(comparison))
    if isinstance(comparison, EventHistory | OutputOrigin):
        return page_of(f"{comparison.app}: {comparison.title}", html(comparison))
    if isinstance(comparison, Moment | QueryMoment):
        subject = comparison.app if isinstance(comparison, Moment) else comparison.name
        return page_of(f"{subject}: a moment", html(comparison))
    body = divergence_html(comparison, None, limit) if isinstance(comparison, Divergence) else html(comparison)
    return page_of(f"{comparison.app}: several nodes and one", body)


def comparison_json(comparison: Comparison, limit: int) -> dict[str, Any]:
    """A comparison as plain data: counts, advice, and `limit` outputs that differ."""
    match comparison:
        case Divergence():
            first = comparison.first_differences(limit).astype({"cause": str, "timestamp": int})
            return {
                "app": comparison.app, "nodes": comparison.nodes, "routing": comparison.way.route,
                "events": comparison.events, "counts": records(comparison.counts), "repairs": comparison.repairs,
                "advice": comparison.advice, "aggregations": records(comparison.aggregations),
                "differences": comparison.differences,
                "first": records(first.assign(node=[n or None for n in first["node"]])), "warning": comparison.warning,
            }  # fmt: skip
        case Study():
            return {
                "app": comparison.app, "recommendation": comparison.recommendation, "best": comparison.best,
                "repairs": comparison.repairs, "combinations": records(comparison.frame),
                "queries": records(comparison.by_query),
            }  # fmt: skip
        case Moment():
            return moment_data(comparison)
        case WhyNot():
            return why_not_data(comparison)
        case QueryMoment():
            return query_data(comparison)
        case EventHistory() | OutputOrigin():
            return history_data(comparison, limit)
        case RuleSweep():
            examples = comparison.examples()
            examples["values"] = examples["values"].map(jsonable)
            return {
                "app": comparison.app, "events": comparison.events, "notes": list(comparison.notes),
                "settings": records(comparison.frame), "best": comparison.best, "examples": records(examples),
            }  # fmt: skip
        case RuleComparison():
            first = comparison.first_differences(limit).astype({"cause": str, "timestamp": int})
            first[["values", "new values"]] = first[["values", "new values"]].map(jsonable)
            topology = comparison.topology
            return {
                "app": comparison.app, "nodes": comparison.way.nodes, "routing": comparison.way.route,
                "events": comparison.events, "changes": [_change(c) for c in comparison.changes],
                "new_names": dict(comparison.texts.new_names), "notes": list(comparison.notes),
                "counts": records(comparison.counts),
                "totals": comparison.totals, "aggregations": records(comparison.aggregations),
                "tables": records(comparison.table_counts), "differences": comparison.differences,
                "by_source": comparison.by_source,
                "against_one_node": None if topology is None else records(topology.frame), "first": records(first),
            }  # fmt: skip
    return {
        "app": comparison.app, "result": comparison.said, "counts": records(comparison.frame),
        "incidents": records(comparison.timeline.head(limit)),
    }  # fmt: skip


def _change(change: Change) -> dict[str, Any]:
    return {"in": change.element, "clause": change.clause, "old": change.text_before, "new": change.text_after}
