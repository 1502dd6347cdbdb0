"""The comparison of two texts of an app, as text and as HTML."""

from __future__ import annotations

import html as markup

from ..app import RuleComparison
from ..app.results.rule_comparison import OUTCOMES
from ..charts.value_texts import CountCell, format_count, text_of, when
from .display import html, limit_of, text
from .drawings.text_tables import Grid, paragraph


@text.register
def _(comparison: RuleComparison) -> str:
    return rules_text(comparison, None)


@html.register
def _(comparison: RuleComparison) -> str:
    return rules_html(comparison, None)


def rules_text(comparison: RuleComparison, limit: int | None) -> str:
    """The comparison as text with the first `limit` outputs that differ (None: as many as tables show)."""
    return "\n\n".join([_head(comparison), *(g.text() for g in _grids(comparison, limit))])


def rules_html(comparison: RuleComparison, limit: int | None) -> str:
    """The comparison as HTML; `limit` as in `rules_text`."""
    head = paragraph(f"<b>{markup.escape(_head(comparison))}</b>")
    return head + "".join(g.html() for g in _grids(comparison, limit))


def _head(comparison: RuleComparison) -> str:
    way = comparison.way
    nodes = "" if way.nodes == 1 else f" on {way.nodes} nodes under {way.route or 'the routing of the events'}"
    head = f"{comparison.app}: two texts over {format_count(comparison.events, 'event')}{nodes}"
    if not comparison.changes:
        return f"{head}: no clause differs"
    if not comparison.events:
        return f"{head}: no events yet"
    if not comparison.differences and not any(c.differing for c in comparison.checks.values()):
        return f"{head}: no output differs"
    return head


def _grids(comparison: RuleComparison, limit: int | None) -> list[Grid]:
    """The changes, counts by query, the first outputs that differ, and the aggregations."""
    rows = [[c.element, c.clause, c.text_before, c.text_after] for c in comparison.changes]
    grids = [Grid(["in", "clause", "old", "new"], rows, what="change")] if rows else []
    if any(comparison.pairs.values()):
        counts = comparison.counts.astype(object)
        for outcome in OUTCOMES:
            counts[outcome] = [CountCell(n) for n in counts[outcome]]
        grids.append(Grid.of_frame(counts, what="stream"))
    if comparison.differences:
        rows = []
        for r in comparison.first_differences(limit_of(limit)).to_dict("records"):
            values = ", ".join(text_of(v) for v in r["values"])
            if r["new values"] is not None:
                values += " → " + ", ".join(text_of(v) for v in r["new values"])
            times = [when(r["timestamp"]), *([when(r["new timestamp"])] if r["outcome"] == "other time" else [])]
            rows.append([r["query"], r["outcome"], " → ".join(times), values, str(r["cause"])])
        columns = ["query", "outcome", "time", "values", "cause"]
        grids.append(Grid(columns, rows, total=comparison.differences, what="difference"))
    if comparison.checks:
        checks = [[a, CountCell(c.rows), CountCell(len(c.differing))] for a, c in comparison.checks.items()]
        grids.append(Grid(["aggregation", "rows", "differing"], checks, what="aggregation"))
    return grids
