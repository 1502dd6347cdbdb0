"""What the magics and the Python functions show: objects with `_repr_mimebundle_`, in plain text and in HTML.

Every one of them has the data itself as an attribute. Texts of users' events are escaped; long answers are cut, and
say so.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import SiddhiError
from ..plan.nodes import AggregationDef, Plan, Query
from .tables import MUTED, Grid

# Rows shown where neither the call nor `%config SiddhiMagic.displaylimit` says otherwise.
DISPLAY_LIMIT = 20

_LEVELS = {
    "stateless": "right on any node",
    "merged": "right once the shards are merged",
    "keyed": "right if routed by",
    "node-dependent": "depends on the node",
}
_SIGNS = {"stateless": "✓", "merged": "✓", "keyed": "!", "node-dependent": "✗"}


class Shown:
    """Base of the results: subclasses give `text()` and `html()`; both are functions of the data alone."""

    def text(self) -> str:
        raise NotImplementedError

    def html(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": self.text(), "text/html": self.html()}


def _paragraph(text: str) -> str:
    return f'<div style="margin:.3em 0">{text}</div>'


def _escaped_lines(text: str) -> str:
    return f'<pre style="margin:.3em 0;line-height:1.35">{html.escape(text)}</pre>'


def safety_of(query: Query) -> str:
    """What routing does to a query, in a few words."""
    level = query.safety.level
    words = _LEVELS[level]
    if level == "keyed":
        words += " " + ", ".join(sorted({attribute for _, attribute in query.safety.keys}))
    return words


def durations_of(aggregation: AggregationDef) -> str:
    """`sec … year`, or the one duration there is."""
    d = aggregation.durations
    return d[0] if len(d) == 1 else f"{d[0]} … {d[-1]}"


def _rows_of_plan(plan: Plan) -> list[tuple[str, str, str]]:
    """(kind, name, about it) of the streams that take events, the aggregations and the queries."""
    rows: list[tuple[str, str, str]] = []
    for s in plan.streams.values():
        if s.kind == "defined":
            rows.append(("stream", s.source.id, ", ".join(f"{a.name} {a.type}" for a in s.source.schema)))
    for t in plan.tables.values():
        rows.append(("table", t.source.id, ", ".join(f"{a.name} {a.type}" for a in t.source.schema)))
    for a in plan.aggregations.values():
        rows.append(
            ("aggregation", a.id, f"every {durations_of(a)} · {'by shard, ' if a.partitioned else ''}merged when read")
        )
    for q in plan.queries:
        target = q.output.target.id
        rows.append(("query", q.name, f"→ {target} · {_SIGNS[q.safety.level]} {safety_of(q)}"))
    return rows


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


class DeploymentCard(Shown):
    """A deployed app at a glance: nodes and shards, streams, aggregations, queries with what routing does to them."""

    def __init__(
        self,
        plan: Plan,
        *,
        name: str,
        state: str,
        nodes: int,
        mode: str,
        shard_ids: Sequence[str],
        routing: str | None = None,
        redeployed: str | None = None,
        shard_warnings: Sequence[str] = (),
    ) -> None:
        self.shard_warnings = list(shard_warnings)
        self.plan, self.name, self.state, self.nodes, self.mode = plan, name, state, nodes, mode
        self.shard_ids, self.routing, self.redeployed = list(shard_ids), routing, redeployed

    @property
    def headline(self) -> str:
        """`running · 3 nodes, active-active · shards a, b, c`."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes, {self.mode}"
        parts = [self.state, nodes]
        if self.nodes > 1:
            parts.append(f"shards {', '.join(self.shard_ids)}")
            if self.routing:
                parts.append(f"routing {self.routing}")
        return " · ".join(parts)

    @property
    def warnings(self) -> list[str]:
        """What the store says of the shards, and which queries several nodes will not answer as one would."""
        if self.nodes == 1:
            return self.shard_warnings
        hashed = self.routing.removeprefix("hash:") if self.routing and self.routing.startswith("hash:") else None
        wrong = [
            q.name
            for q in self.plan.queries
            if q.safety.level == "node-dependent"
            or (q.safety.level == "keyed" and any(attribute != hashed for _, attribute in q.safety.keys))
        ]
        if not wrong:
            return self.shard_warnings
        listed = ", ".join(wrong)
        puts = "puts" if len(wrong) == 1 else "put"
        return [*self.shard_warnings, f"What {listed} {puts} out depends on which node sees which event."]

    def text(self) -> str:
        lines = [f"{self.name}: {self.headline}", *_rows_text(_rows_of_plan(self.plan))]
        lines += [f"  ! {w}" for w in self.warnings]
        return "\n".join([*lines, f"  {self.redeployed}"] if self.redeployed else lines)

    def html(self) -> str:
        dot = {"running": "#009e73", "failed": "#d55e00"}.get(self.state, "#888")
        out = [
            _paragraph(
                f'<span style="color:{dot}">●</span> <b>{html.escape(self.name)}</b> '
                f'<span style="{MUTED}">{html.escape(self.headline)}</span>'
            ),
            _rows_html(_rows_of_plan(self.plan)),
            *(_paragraph(f"⚠ {html.escape(w)}") for w in self.warnings),
        ]
        if self.redeployed:
            out.append(_paragraph(f'<span style="{MUTED}">{html.escape(self.redeployed)}</span>'))
        return "".join(out)


class FeedShown(Shown):
    """What a feed did. `report` is the cluster's: stream, rows, rejected, seconds, events_per_second, outputs."""

    def __init__(self, report: Any, app: str, reasons: Mapping[str, int] | None = None) -> None:
        self.report, self.app, self.reasons = report, app, dict(reasons or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.report, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), "events_per_second", "outputs", "rejected", "rows", "seconds", "stream"})

    @property
    def headline(self) -> str:
        """`336,776 events in 12.3 s elapsed, 27,380 events/s`."""
        r = self.report
        accepted = r.rows - r.rejected
        events = f"{accepted:,} event{'' if accepted == 1 else 's'}"
        return f"{events} in {r.seconds:.1f} s elapsed, {r.events_per_second:,.0f} events/s"

    def _rejected(self) -> list[str]:
        r = self.report
        if not r.rejected:
            return []
        lines = [f"{r.rejected:,} of {r.rows:,} rows did not fit the stream and are kept: %siddhi errors {self.app}"]
        return lines + [f"{n:,} × {reason}" for reason, n in self.reasons.items()]

    def text(self) -> str:
        lines = [f"{self.app}.{self.report.stream}: {self.headline}"]
        lines += [f"  → {stream}: {n:,}" for stream, n in sorted(self.report.outputs.items())]
        rejected = self._rejected()
        return "\n".join([*lines, *(f"  {'!' if i == 0 else ' '} {t}" for i, t in enumerate(rejected))])

    def html(self) -> str:
        r = self.report
        out = [
            _paragraph(
                f"<b>{html.escape(self.app)}.{html.escape(r.stream)}</b> "
                f'<span style="{MUTED}">{html.escape(self.headline)}</span>'
            )
        ]
        for stream, n in sorted(r.outputs.items()):
            out.append(_paragraph(f"→ <b>{html.escape(stream)}</b> {n:,}"))
        rejected = self._rejected()
        if rejected:
            rest = "".join(f"<br>{html.escape(t)}" for t in rejected[1:])
            out.append(_paragraph(f"⚠ {html.escape(rejected[0])}{rest}"))
        return "".join(out)


class QueryShown(Shown):
    """The answer to an on-demand query, merged over shards.

    `frame` is a pandas frame with the attributes' types; `by_shard` the same before merging, with SHARD_ID, or None.
    """

    def __init__(self, result: Any, limit: int | None = None) -> None:
        self.result = result
        self.limit = DISPLAY_LIMIT if limit is None else limit

    @property
    def frame(self) -> Any:
        """The answer as a pandas frame."""
        return self.result.frame

    @property
    def by_shard(self) -> Any:
        """What each shard holds of it, with SHARD_ID, where the source is an aggregation; else None."""
        return self.result.by_shard

    @property
    def columns(self) -> list[tuple[str, str]]:
        """(name, SiddhiQL type) of the answer's columns."""
        return [(str(n), str(t)) for n, t in self.result.columns]

    @property
    def rows(self) -> list[list[Any]]:
        """The answer as Python values."""
        return [list(r) for r in self.result.rows]

    def __len__(self) -> int:
        return len(self.result.rows)

    def grid(self) -> Grid:
        """The rows to show."""
        columns = self.columns
        return Grid(
            [n for n, _ in columns],
            self.result.rows[: self.limit],
            total=len(self.result.rows),
            notes=[t for _, t in columns],
        )

    def text(self) -> str:
        return self.grid().text()

    def html(self) -> str:
        return self.grid().html()


class FrameShown(Shown):
    """Events or errors as a table. `frame` is the pandas frame, whole."""

    def __init__(self, frame: Any, *, empty: str, what: str = "row", limit: int | None = None) -> None:
        self.frame, self.empty, self.what = frame, empty, what
        self.limit = DISPLAY_LIMIT if limit is None else limit

    def __len__(self) -> int:
        return len(self.frame)

    def grid(self) -> Grid:
        """The rows to show."""
        return Grid.of_frame(self.frame, limit=self.limit, what=self.what)

    def text(self) -> str:
        return self.grid().text() if len(self.frame) else self.empty

    def html(self) -> str:
        return self.grid().html() if len(self.frame) else _paragraph(html.escape(self.empty))


class ErrorsShown(FrameShown):
    """Rows and events that an app could not take: first how many for each reason, then the first of them."""

    @property
    def reasons(self) -> dict[str, int]:
        """Count by reason, the most frequent first."""
        counts: dict[str, int] = {}
        for reason in self.frame["reason"].tolist():
            counts[str(reason)] = counts.get(str(reason), 0) + 1
        return dict(sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])))

    def _summary(self) -> Grid:
        return Grid(["reason", "count"], list(self.reasons.items()), limit=self.limit, what="reason")

    def text(self) -> str:
        return f"{self._summary().text()}\n\n{self.grid().text()}" if len(self.frame) else self.empty

    def html(self) -> str:
        return self._summary().html() + self.grid().html() if len(self.frame) else super().html()


class PlanShown(Shown):
    """A plan as `explain` prints it. `str()` is the text."""

    def __init__(self, plan_text: str) -> None:
        self.plan_text = plan_text.rstrip("\n")

    def text(self) -> str:
        return self.plan_text

    def html(self) -> str:
        return _escaped_lines(self.plan_text)


class CheckShown(Shown):
    """Whether an app is right: `error` is None, or the first thing that is wrong, with its place and the way out."""

    def __init__(self, plan: Plan | None, error: SiddhiError | None) -> None:
        self.plan, self.error = plan, error

    @property
    def ok(self) -> bool:
        return self.error is None

    def __bool__(self) -> bool:
        return self.ok

    def _found(self) -> str:
        assert self.plan is not None
        p = self.plan
        streams = sum(s.kind == "defined" for s in p.streams.values())
        counts = [
            (streams, "stream", "s"),
            (len(p.tables), "table", "s"),
            (len(p.aggregations), "aggregation", "s"),
            (len(p.queries), "quer", "ies"),
        ]
        words = [f"{n} {w}{(many if n != 1 else ('y' if w == 'quer' else ''))}" for n, w, many in counts if n]
        return f"{p.name}: no mistakes found ({', '.join(words)})"

    def text(self) -> str:
        return self._found() if self.error is None else str(self.error)

    def html(self) -> str:
        return (
            _paragraph(f"✓ {html.escape(self._found())}") if self.error is None else _escaped_lines(f"✗ {self.error}")
        )


class AppsShown(Shown):
    """The apps of this process."""

    def __init__(self, apps: Mapping[str, Any]) -> None:
        self.apps = dict(apps)

    def _grid(self) -> Grid:
        rows = [(name, a.state, a.nodes, a.mode, ", ".join(a.shard_ids)) for name, a in sorted(self.apps.items())]
        return Grid(["app", "state", "nodes", "mode", "shards"], rows, what="app")

    def text(self) -> str:
        return self._grid().text() if self.apps else "No app yet. %%siddhi NAME deploys the text of a cell."

    def html(self) -> str:
        return self._grid().html() if self.apps else _paragraph(html.escape(self.text()))


class StatsShown(Shown):
    """Figures of an app as a two-column table; nested ones are named by their path. `stats` is the dict."""

    def __init__(self, stats: Mapping[str, Any]) -> None:
        self.stats = dict(stats)

    def _flat(self) -> list[tuple[str, Any]]:
        out: list[tuple[str, Any]] = []

        def add(prefix: str, value: Any) -> None:
            if isinstance(value, Mapping):
                for k, v in value.items():
                    add(f"{prefix}.{k}" if prefix else str(k), v)
            else:
                out.append((prefix, value))

        add("", self.stats)
        return out

    def text(self) -> str:
        return Grid(["figure", "value"], self._flat(), what="figure").text(footer=False)

    def html(self) -> str:
        return Grid(["figure", "value"], self._flat(), what="figure").html(footer=False)
