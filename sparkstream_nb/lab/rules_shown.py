"""The comparison of two texts of an app, as text and as HTML."""

from __future__ import annotations

from ..app import RuleComparison, RuleSweep
from ..app.pictures.sweep_picture import sweep_picture
from ..app.results.rule_comparison import NOT_JUDGED, OUTCOMES
from ..charts.value_texts import CountCell, Figure, format_count, is_missing, text_of, when
from ..durations import describe_duration
from .display import blocks_of, html, limit_of, text
from .drawings.frame_tables import grid_of_frame
from .drawings.image import image
from .drawings.result_blocks import Block, Heading, blocks_html, blocks_text
from .drawings.text_tables import Grid


@blocks_of(RuleComparison)
def _(comparison: RuleComparison) -> list[Block]:
    return rules_blocks(comparison, None)


@text.register
def _(sweep: RuleSweep) -> str:
    return blocks_text([*_sweep_head(sweep), *_sweep_blocks(sweep)])


@html.register
def _(sweep: RuleSweep) -> str:
    return blocks_html(_sweep_head(sweep)) + image(sweep_picture(sweep)) + blocks_html(_sweep_blocks(sweep))


def _sweep_head(sweep: RuleSweep) -> list[Block]:
    head = f"{sweep.app}: {format_count(len(sweep.settings), 'setting')} over {format_count(sweep.events, 'event')}"
    return [Heading(head if sweep.best is None else f"{head}; the best f1 has {_best_text(sweep)}"), *sweep.notes]


def _best_text(sweep: RuleSweep) -> str:
    """ "LIMIT=300, SPAN=20 sec"."""
    return ", ".join(f"{name}={value}" for name, value in (sweep.best or {}).items())


def _sweep_blocks(sweep: RuleSweep) -> list[Block]:
    """The settings, and the examples under the best one, if there are any."""
    rows = [
        [r["kind"], r["stream"], when(r["timestamp"]), ", ".join(map(text_of, r["values"])),
         "" if is_missing(r["delay"]) else describe_duration(r["delay"])]
        for r in sweep.examples().to_dict("records")
    ]  # fmt: skip
    if not rows:
        return [_sweep_grid(sweep)]
    examples = Grid(["kind", "stream", "time", "values", "delay"], rows, what="example")
    return [_sweep_grid(sweep), f"The first outputs and cases under {_best_text(sweep)}:", examples]


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


def rules_blocks(comparison: RuleComparison, limit: int | None) -> list[Block]:
    """The comparison with the first `limit` outputs that differ (None: as many as tables show)."""
    return [Heading(_head(comparison)), *_sentences(comparison), *_grids(comparison, limit)]


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
        grids.append(grid_of_frame(comparison.counts, counts=comparison.totals, what="stream"))
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
