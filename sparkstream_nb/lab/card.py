"""The deployment card: a deployed app at a glance."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..app import App
from ..app.deployment.offline import describe_left_out
from ..app.results.hints import cut_by_joins
from ..nodes.distributed import Distributed
from ..plan.connectors.incoming import TIME, delivery_guarantee, incoming_annotations
from ..plan.connectors.outside import outside_annotations, promise
from ..plan.nodes import AggregationDef
from ..plan.query_parts import connector_options, connector_type
from ..plan.remarks import notes
from ..plan.shard_safety.safety import dependent_queries
from .drawings.levels import SIGNS, safety_of
from .drawings.result_blocks import muted_html
from .drawings.text_tables import MUTED, paragraph

_DOTS = {"running": "#009e73", "failed": "#d55e00"}


def card_text(app: App) -> str:
    """Nodes and shards, streams, aggregations, and queries with the effect of routing on them."""
    lines = [f"{app.name}: {headline(app)}"]
    if app.runner_note is not None:
        lines.append(f"  {app.runner_note}")
    lines += _rows_text(_rows_of(app))
    lines += [f"  ! {w}" for w in [*warnings_of(app), *app.away]]
    return "\n".join([*lines, f"  {sentence}"] if (sentence := _describe_redeployment(app)) else lines)


def card_html(app: App) -> str:
    """The same as HTML."""
    out = [
        paragraph(
            f'<span style="color:{_DOTS.get(app.state, "#888")}">●</span> <b>{html.escape(app.name)}</b> '
            f'<span style="{MUTED}">{html.escape(headline(app))}</span>'
        ),
        muted_html(app.runner_note or ""),
        _rows_html(_rows_of(app)),
        *(paragraph(f"⚠ {html.escape(w)}") for w in [*warnings_of(app), *app.away]),
    ]
    return "".join([*out, muted_html(_describe_redeployment(app) or "")])


def headline(app: App) -> str:
    """`running · 3 nodes, active-active · shards a, b, c · routing round_robin`."""
    clock = " · wall clock" if app.deployment.request.clock == "wall" else ""
    if app.nodes == 1 and app.deployment.groups is None:
        return f"{app.state} · 1 node{clock}"
    shards, groups = ", ".join(app.shard_ids), app.deployment.groups
    if isinstance(groups, Distributed):
        parts = sum(g.parallel for g in groups.split.groups)
        return f"{app.state} · {parts} partial app{'s' if parts > 1 else ''}, {app.mode} over {shards}"
    if groups is not None and len(groups.pairs) == 1:
        return f"{app.state} · {app.nodes} nodes, {app.mode}: {shards}"
    of = f"shards {shards}" if groups is None else f"groups {', '.join(groups.names)}"
    return f"{app.state} · {app.nodes} nodes, {app.mode} · {of} · routing {app.routing}{clock}"


def warnings_of(app: App) -> list[str]:
    """Warnings: of connections that are left out, of the store about shards, of queries that several nodes will not
    answer as one would, of joins that leave stored rows out, and the notes of `check` on parts that do less than they
    seem to."""
    offline = filter(None, [describe_left_out(app.deployment.connections.left_out)])
    return [*offline, *_of_nodes(app), *cut_by_joins(app.plan), *notes(app.plan, (), app.lines_before)]


def _of_nodes(app: App) -> list[str]:
    if app.deployment.led is not None:
        led = ", ".join(app.deployment.led) or "aggregations and triggers"
        sentence = (
            f"On the leader, which takes all events, as their outputs depend on which node sees which event: {led}."
        )
        return [*app.warnings, sentence]
    groups = app.deployment.groups
    if isinstance(groups, Distributed):
        sentences = [f"{note[0].upper()}{note[1:]}." for note in groups.split.notes]
        return [*app.warnings, *_describe_unplaced(groups), *sentences]
    if app.nodes == 1 or (groups is not None and len(groups.pairs) == 1):
        return app.warnings
    if off := app.deployment.switched_off:
        sentence = f"Switched off, as their outputs depend on which node sees which event: {', '.join(off)}."
        return [*app.warnings, sentence]
    wrong = dependent_queries(app.plan, app.routing)
    if not wrong:
        return app.warnings
    return [*app.warnings, f"The outputs of {', '.join(wrong)} depend on which node sees which event."]


def _describe_unplaced(distributed: Distributed) -> list[str]:
    """Why an app that is distributed waits from the start on."""
    cluster = distributed.scenario.cluster
    receivers, plain = len(cluster.receivers), len(cluster.nodes) - len(cluster.receivers)
    out = []
    for g in distributed.split.groups:
        needed_nodes, available, kind = (
            (g.parallel, receivers, "receivers") if g.receiver else (cluster.minimum, plain, "nodes")
        )
        if available < needed_nodes:
            out.append(f"The app waits: group '{g.name}' needs {needed_nodes} {kind}, and there are {available}.")
    return out


def durations_of(aggregation: AggregationDef) -> str:
    """`sec … year`, or the one duration there is."""
    d = aggregation.durations
    return d[0] if len(d) == 1 else f"{d[0]} … {d[-1]}"


def _describe_redeployment(app: App) -> str | None:
    """The fate of an earlier state; empty if it was to be dropped."""
    return None if app.deployment.request.fresh else app.redeployed


def _rows_of(app: App) -> list[tuple[str, str, str]]:
    """(kind, name, about it) of the streams that take events, the aggregations, the sources and sinks outside and the
    queries."""
    plan, rows = app.plan, list[tuple[str, str, str]]()
    repaired_queries = _repaired_by_routing(app)
    for s in plan.streams.values():
        if s.kind == "defined":
            rows.append(("stream", s.source.id, ", ".join(f"{a.name} {a.type}" for a in s.source.schema)))
    for t in plan.tables.values():
        rows.append(("table", t.source.id, ", ".join(f"{a.name} {a.type}" for a in t.source.schema)))
    for a in plan.aggregations.values():
        rows.append(
            ("aggregation", a.id, f"every {durations_of(a)} · {'by shard, ' if a.partitioned else ''}merged when read")
        )
    for stream, source in incoming_annotations(plan):
        time = connector_options(source, plan.properties).get(TIME)
        has = "the time at which they come" if time is None else f"the time in {time}"
        type_ = connector_type(source, plan.properties)
        rows.append(("source", f"{type_} of {stream.source.id}", f"{delivery_guarantee(type_)} · events have {has}"))
    for stream, sink in outside_annotations(plan):
        type_ = connector_type(sink, plan.properties)
        rows.append(("sink", f"{type_} of {stream.source.id}", promise(type_)))
    for q in plan.queries:
        target = q.output.target.id
        safety = f"{SIGNS[q.safety.level]} {safety_of(q)}"
        if q.name in repaired_queries:
            safety = f"✓ right, as events are routed by {app.routing.removeprefix('hash:')}"
        rows.append(("query", q.name, f"→ {target} · {safety}"))
    return rows


def _repaired_by_routing(app: App) -> set[str]:
    """The queries that need a routing by key, and have it."""
    if app.nodes == 1 or app.deployment.groups is not None or not app.routing.startswith("hash:"):
        return set()
    keyed_queries = {q.name for q in app.plan.queries if q.safety.level == "keyed"}
    return keyed_queries.difference(dependent_queries(app.plan, app.routing))


def _rows_html(rows: Sequence[tuple[str, str, str]]) -> str:
    body = "".join(
        f'<tr><td style="text-align:left;{MUTED}">{html.escape(kind)}</td>'
        f'<td style="text-align:left"><b>{html.escape(name)}</b></td>'
        f'<td style="text-align:left">{html.escape(about)}</td></tr>'
        for kind, name, about in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def _rows_text(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max((len(r[i]) for r in rows), default=0) for i in (0, 1)]
    return [f"  {k:<{widths[0]}}  {n:<{widths[1]}}  {about}".rstrip() for k, n, about in rows]
