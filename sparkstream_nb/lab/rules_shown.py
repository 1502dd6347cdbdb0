"""The comparison of two texts of an app, as text and as HTML."""

from __future__ import annotations

import html as markup

from ..app import RuleComparison, RuleSweep
from ..app.pictures.sweep_picture import sweep_picture
from ..app.results.rule_comparison import NOT_JUDGED, OUTCOMES
from ..charts.value_texts import CountCell, Figure, format_count, is_missing, text_of, when
from ..durations import describe_duration
from .display import html, limit_of, text
from .drawings.image import image
from .drawings.text_tables import Grid, paragraph


@text.register
def _(comparison: RuleComparison) -> str:
    return rules_text(comparison, None)


@html.register
def _(comparison: RuleComparison) -> str:
    return rules_html(comparison, None)


@text.register
def _(sweep: RuleSweep) -> str:
    examples = [f"{_examples_head(sweep)}\n\n{grid.text()}" for grid in _example_grids(sweep)]
    return "\n\n".join([_sweep_head(sweep), *sweep.notes, _sweep_grid(sweep).text(), *examples])


@html.register
def _(sweep: RuleSweep) -> str:
    head = paragraph(f"<b>{markup.escape(_sweep_head(sweep))}</b>")
    examples = [paragraph(markup.escape(_examples_head(sweep))) + grid.html() for grid in _example_grids(sweep)]
    return head + image(sweep_picture(sweep)) + _sweep_grid(sweep).html() + "".join(examples)


def _sweep_head(sweep: RuleSweep) -> str:
    head = f"{sweep.app}: {format_count(len(sweep.settings), 'setting')} over {format_count(sweep.events, 'event')}"
    return head if sweep.best is None else f"{head}; the best f1 has {_best_text(sweep)}"


def _best_text(sweep: RuleSweep) -> str:
    """ "LIMIT=300, SPAN=20 sec"."""
    return ", ".join(f"{name}={value}" for name, value in (sweep.best or {}).items())


def _examples_head(sweep: RuleSweep) -> str:
    return f"The first outputs and cases under {_best_text(sweep)}:"


def _example_grids(sweep: RuleSweep) -> list[Grid]:
    """The examples under the best setting, if there are any."""
    rows = [
        [r["kind"], r["stream"], when(r["timestamp"]), ", ".join(map(text_of, r["values"])),
         "" if is_missing(r["delay"]) else describe_duration(r["delay"])]
        for r in sweep.examples().to_dict("records")
    ]  # fmt: skip
    return [Grid(["kind", "stream", "time", "values", "delay"], rows, what="example")] if rows else []


def _sweep_grid(sweep: RuleSweep) -> Grid:
    frame = sweep.frame.head(limit_of(None)).astype(object)
    for name in ("outputs", "same", "gone", "new", *([NOT_JUDGED] if NOT_JUDGED in frame else [])):
        frame[name] = [CountCell(n) for n in frame[name]]
    for name in ("precision", "recall", "f1"):
        if name in frame:
            frame[name] = [Figure(f"{v:.3f}") if v == v else "" for v in frame[name]]
    if "delay" in frame:
        frame["delay"] = [describe_duration(round(v)) if v == v else "" for v in frame["delay"]]
    return Grid(list(frame.columns), frame.values.tolist(), total=len(sweep.settings), what="setting")


def rules_text(comparison: RuleComparison, limit: int | None) -> str:
    """The comparison as text with the first `limit` outputs that differ (None: as many as tables show)."""
    return "\n\n".join([_head(comparison), *_sentences(comparison), *(g.text() for g in _grids(comparison, limit))])


def rules_html(comparison: RuleComparison, limit: int | None) -> str:
    """The comparison as HTML; `limit` as in `rules_text`."""
    head = paragraph(f"<b>{markup.escape(_head(comparison))}</b>")
    notes = "".join(paragraph(markup.escape(note)) for note in _sentences(comparison))
    return head + notes + "".join(g.html() for g in _grids(comparison, limit))


def _head(comparison: RuleComparison) -> str:
    way = comparison.way
    nodes = "" if way.nodes == 1 else f" on {way.nodes} nodes under {way.route or 'the routing of the events'}"
    head = f"{comparison.app}: two texts over {format_count(comparison.events, 'event')}{nodes}"
    if not comparison.changes:
        return f"{head}: no clause differs"
    if not comparison.events:
        return f"{head}: no events yet"
    rows = (*(c.differing for c in comparison.checks.values()), *(t.pairs for t in comparison.tables.values()))
    if not comparison.differences and not any(rows):
        return f"{head}: no output differs"
    return head


def _sentences(comparison: RuleComparison) -> list[str]:
    """The notes; and on several nodes, how many differences the text causes."""
    if comparison.topology is None or not comparison.differences:
        return list(comparison.notes)
    by_text, by_nodes = comparison.by_source["text"], comparison.by_source["nodes"]
    verb = "is" if by_text == 1 else "are"
    sentence = (
        f"Of {format_count(by_text + by_nodes, 'difference')}, {by_text:,} {verb} due to the text (one node that takes "
        f"all events has it as well), {by_nodes:,} to the nodes."
    )
    return [*comparison.notes, sentence]


def _changes_grid(comparison: RuleComparison) -> Grid:
    """The clauses that differ, each with the kinds of outcome that it causes."""
    by_change = comparison.by_change
    outcomes = [o for o in OUTCOMES[1:] if by_change[o].any()]
    columns = ["in", "clause", "before", "after", *outcomes]
    rows = [[*r[:4], *map(CountCell, r[4:])] for r in by_change[columns].values.tolist()]
    return Grid(["in", "clause", "old text", "new text", *outcomes], rows, what="change")


def _grids(comparison: RuleComparison, limit: int | None) -> list[Grid]:
    """The changes, counts by query, the first outputs that differ, and the aggregations."""
    grids = [_changes_grid(comparison)] if comparison.changes else []
    if len(comparison.counts):
        counts = comparison.counts.astype(object)
        for outcome in comparison.totals:
            counts[outcome] = [CountCell(n) for n in counts[outcome]]
        grids.append(Grid.of_frame(counts, what="stream"))
    if comparison.differences:
        rows = []
        for r in comparison.first_differences(limit_of(limit)).to_dict("records"):
            values = ", ".join(text_of(v) for v in r["values"])
            if r["new values"] is not None:
                values += " → " + ", ".join(text_of(v) for v in r["new values"])
            times = [when(r["timestamp"]), *([when(r["new timestamp"])] if r["outcome"] == "other time" else [])]
            source = [] if comparison.topology is None else [r["due to"]]
            rows.append([r["query"], r["outcome"], " → ".join(times), values, *source, str(r["cause"])])
        source = [] if comparison.topology is None else ["due to"]
        columns = ["query", "outcome", "time", "values", *source, "cause"]
        grids.append(Grid(columns, rows, total=comparison.differences, what="difference"))
    if comparison.topology is not None and len(comparison.topology.frame):
        rows = [[stream, *map(CountCell, counts)] for stream, *counts in comparison.topology.frame.values.tolist()]
        grids.append(Grid(["against one node", *comparison.topology.frame.columns[1:]], rows, what="stream"))
    if comparison.tables:
        rows = [[table, *map(CountCell, counts)] for table, *counts in comparison.table_counts.values.tolist()]
        grids.append(Grid(list(comparison.table_counts.columns), rows, what="table"))
    if comparison.checks:
        checks = [[a, CountCell(c.rows), CountCell(len(c.differing))] for a, c in comparison.checks.items()]
        grids.append(Grid(["aggregation", "rows", "differing"], checks, what="aggregation"))
    return grids
