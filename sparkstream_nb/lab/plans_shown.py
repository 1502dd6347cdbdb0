"""The display of checks, plans, graphs, repairs and audits. Loads nothing that runs apps."""

from __future__ import annotations

import html as markup
from collections.abc import Sequence

from ..app.audit.audit_answers import measurement_text
from ..app.audit.auditing import AppAudit, AuditReport
from ..app.results.text_answers import AppGraph, Check, PlanText, RepairList
from ..charts.value_texts import WholeText, format_count
from ..plan.nodes import Plan
from ..plan.reports.query_routing import describe_parts
from ..plan.reports.repair import routes
from .display import html, text
from .drawings.pictures import DARK_PICTURE
from .drawings.text_tables import Grid, escaped_lines, paragraph
from .graph import graph_drawing
from .graph.edge_labels import total_labels

text.register(PlanText, str)


@html.register
def _(plan_text: PlanText) -> str:
    return escaped_lines(str(plan_text))


_SIGNS = {
    "stateless": "✓", "merged": "✓", "safe": "✓", "keyed": "!", "node-dependent": "✗",
    "known-fault": "ⓘ known-fault in",
}  # fmt: skip


def _audit_grid(audit: AppAudit) -> Grid:
    rows = [
        [
            f.line, f"{_SIGNS['safe'] if f.accepted else _SIGNS[f.level]} {f.kind} {f.name}",
            WholeText(f.effect), WholeText(f.cause),
            WholeText(f.repair if f.accepted is None else f"accepted: {f.accepted}"),
        ]
        for f in audit.findings
    ]  # fmt: skip
    return Grid(["line", "element", "on several nodes", "cause", "repair"], rows, what="element")


_SPLIT = (
    "next: split the app into these parts, each with its routing: annotate the queries of a part with "
    "@dist(execGroup='NAME'), a name for each part, and sparkstream split writes the parts as apps"
)


def _audit_said(audit: AppAudit) -> str:
    n, keyed_queries, routing = len(audit.failing), audit.keyed, audit.routing
    if n:
        sentence = f"{format_count(n, 'element')} depend{'s' if n == 1 else ''} on the node"
        also = f"{len(keyed_queries):,} more " + ("is" if len(keyed_queries) == 1 else "are")
    else:
        sentence, also = "nothing depends on the node that is not accepted", "that"
    if routing is None:
        sentence += f", but its queries need different routings: {describe_parts(audit.parts)}.\n{_SPLIT}"
    elif routing:
        sentence += f", if events are routed {routes(routing.items())}" if not n else (
            f"; {also} right only if events are routed {routes(routing.items())}"
        )  # fmt: skip
    return f"{audit.path}: {sentence}"


def _describe_measured(audit: AppAudit) -> list[str]:
    m = audit.measured
    if m is None:
        return []
    lines = [measurement_text(way) for way in m.ways] if m.failure is None else [f"not possible: {m.failure}"]
    return [*lines, *([f"{format_count(m.rejected, 'row')} rejected"] if m.rejected else []), *m.notes]


@text.register
def _(audit: AppAudit) -> str:
    if audit.error is not None:
        return f"{audit.path}: {audit.error}"
    parts = [_audit_said(audit), _audit_grid(audit).text(footer=False)]
    return "\n".join([*parts, *(f"measured: {line}" for line in _describe_measured(audit)), *_notes(audit.notes)])


@html.register
def _(audit: AppAudit) -> str:
    if audit.error is not None:
        return paragraph(f"<b>{markup.escape(audit.path)}</b>") + escaped_lines(str(audit.error))
    measurement_html = "".join(paragraph(f"measured: {markup.escape(line)}") for line in _describe_measured(audit))
    audit_html = (
        f"<h2>{markup.escape(_audit_said(audit))}</h2>{_audit_grid(audit).html(footer=False)}{measurement_html}"
    )
    return audit_html + _notes_html(audit.notes)


@text.register
def _(report: AuditReport) -> str:
    return "\n\n".join(text(a) for a in report.apps)


@html.register
def _(report: AuditReport) -> str:
    return "".join(html(a) for a in report.apps)


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>sparkstream</title><style>
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; }
h2 { font-size: 1.1em; margin: 2em 0 .6em; }
table { border-collapse: collapse; }
th, td { padding: 4px 12px 4px 0; vertical-align: top; border-bottom: 1px solid #8884; }
td { white-space: normal !important; overflow-wrap: anywhere; min-width: 7em; }
td:first-child { min-width: 0; }
body { overflow-x: auto; }
h2 { overflow-wrap: anywhere; }
@media screen and (prefers-color-scheme: dark) { DARK_PICTURE }
</style></head><body>
""".replace("DARK_PICTURE", DARK_PICTURE)


def page(report: AuditReport) -> str:
    """A report as an HTML page that needs nothing else."""
    return page_of("What several nodes do to these apps", html(report))


def page_of(title: str, body: str) -> str:
    """HTML as a page that needs nothing else, with a title."""
    head = _PAGE.replace("<title>sparkstream<", f"<title>{markup.escape(title)}<")
    return f"{head}<h1>{markup.escape(title)}</h1>{body}</body></html>\n"


def _repair_grid(repair_list: RepairList) -> Grid:
    rows = [
        [query, line, f"{_SIGNS[level]} {level}", WholeText(advice)]
        for query, line, level, _, advice in repair_list.rows
    ]
    return Grid(["query", "line", "shard safety", "repair"], rows, what="query")


def _rewritten(repair_list: RepairList) -> list[tuple[str, str]]:
    """Texts with their headings: rewritten parts, and aggregations to take the place of queries."""
    parts = [
        (f"An aggregation in the place of {r.query}:", r.text)
        for r in repair_list.repairs.repairs
        if r.kind == "aggregation" and r.text is not None
    ]
    if repair_list.repairs.rewritten is not None:
        parts.append(("The app, rewritten:", repair_list.repairs.rewritten.strip()))
    return parts


@text.register
def _(repair_list: RepairList) -> str:
    parts = [f"{head}\n{body}" for head, body in _rewritten(repair_list)]
    return "\n\n".join([_repair_grid(repair_list).text(footer=False), *parts])


@html.register
def _(repair_list: RepairList) -> str:
    parts = [f"{paragraph(markup.escape(head))}{escaped_lines(body)}" for head, body in _rewritten(repair_list)]
    return _repair_grid(repair_list).html(footer=False) + "".join(parts)


@text.register
def _(graph: AppGraph) -> str:
    return "\n".join([graph_drawing.text(graph.graph, total_labels(graph)), *_notes(graph.notes)])


@html.register
def _(graph: AppGraph) -> str:
    return graph_drawing.image(graph.graph, total_labels(graph)) + _notes_html(graph.notes)


@text.register
def _(check: Check) -> str:
    if check.plan is None:
        return check.gaps if check.ok else str(check.error)
    return "\n".join([_right(check.plan) + _but(check), *_notes(check.notes)])


@html.register
def _(check: Check) -> str:
    if check.plan is None:
        return paragraph(f"⚠ {markup.escape(check.gaps)}") if check.ok else escaped_lines(f"✗ {check.error}")
    sign = "⚠" if check.gaps else "✓"
    return paragraph(f"{sign} {markup.escape(_right(check.plan) + _but(check))}") + _notes_html(check.notes)


def _notes(notes: Sequence[str]) -> list[str]:
    return [f"note: {note}" for note in notes]


def _notes_html(notes: Sequence[str]) -> str:
    return "".join(paragraph(markup.escape(line)) for line in _notes(notes))


def _but(check: Check) -> str:
    return f", but this build cannot run {check.gaps}" if check.gaps else ""


def _right(plan: Plan) -> str:
    """`Trades: no mistakes found (1 stream, 2 queries)`; without the name where the app has none."""
    streams = sum(s.kind == "defined" for s in plan.streams.values())
    counts = [
        (streams, "stream", "streams"),
        (len(plan.tables), "table", "tables"),
        (len(plan.aggregations), "aggregation", "aggregations"),
        (len(plan.queries), "query", "queries"),
    ]
    words = [f"{n:,} {one if n == 1 else many}" for n, one, many in counts if n]
    verdict = f"no mistakes found ({', '.join(words)})"
    return f"{plan.name}: {verdict}" if plan.name else verdict
