"""The figures of apps as Prometheus reads them: the text exposition format 0.0.4, metrics in seconds and bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...prometheus_format import Sample, format_metric

if TYPE_CHECKING:
    from .answers import Stats


@dataclass(frozen=True)
class AppMetric:
    """A metric: its name without the prefix of the package, its type, its help text, and its labels besides `app`."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()


_SOURCE = ("stream", "source", "type")
_SINK = ("stream", "sink", "type")
METRICS: Mapping[str, AppMetric] = {
    m.name: m
    for m in (
        AppMetric("running", "gauge", "Whether the app runs (1) or is stopped or failed (0)."),
        AppMetric("events_total", "counter", "Input events.", ("stream",)),
        AppMetric("committed_events_total", "counter", "Input events that are committed."),
        AppMetric("lag_events", "gauge", "Input events that are not committed yet."),
        AppMetric("lag_entries", "gauge", "Entries of the inbox that are not committed yet."),
        AppMetric(
            "outputs_total", "counter", "Output events of derived streams since the deployment.", ("stream",)
        ),
        AppMetric("dropped_outputs_total", "counter", "Outputs that are not kept any more.", ("stream",)),
        AppMetric(
            "errors_total", "counter", "Rows and events that could not be taken, since the deployment.", ("stream",)
        ),
        AppMetric("dropped_errors_total", "counter", "Errors that are not kept any more."),
        AppMetric("micro_batch_seconds", "summary", "Time of micro-batches, since the deployment.", ("quantile",)),
        AppMetric("clock_seconds", "gauge", "The app's clock: event time, since 1970."),
        AppMetric("disk_bytes", "gauge", "Size of the app's folder.", ("part",)),
        AppMetric("node_events_total", "counter", "Events that a node took, since the deployment.", ("node",)),
        AppMetric("node_micro_batch_seconds", "gauge", "Time of a node's last micro-batch.", ("node",)),
        AppMetric("node_state_bytes", "gauge", "Size of a node's state as Spark keeps it.", ("node",)),
        AppMetric(
            "state_bytes",
            "gauge",
            "Rows that a query, table, window or aggregation holds in memory on a node.",
            ("node", "query", "kind"),
        ),
        AppMetric(
            "state_rows",
            "gauge",
            "Events of windows, partial matches of patterns, rows of tables on a node.",
            ("node", "query", "kind"),
        ),
        AppMetric("source_messages_total", "counter", "Messages that a source read.", _SOURCE),
        AppMetric("source_events_total", "counter", "Events that a source took.", _SOURCE),
        AppMetric(
            "source_rejected_total", "counter", "Messages and events of a source that could not be taken.", _SOURCE
        ),
        AppMetric(
            "source_lag",
            "gauge",
            "Input that is not read yet: messages of a partition, bytes of a file.",
            (*_SOURCE, "part"),
        ),
        AppMetric("source_away", "gauge", "1 while a source cannot be read, else 0.", _SOURCE),
        AppMetric("sink_sent_events_total", "counter", "Events that a sink sent.", _SINK),
        AppMetric("sink_failed_events_total", "counter", "Events that a sink could not send.", _SINK),
        AppMetric("sink_dropped_events_total", "counter", "Events that a sink left out.", _SINK),
        AppMetric(
            "sink_pending_events", "gauge", "Events that are committed and that a sink has not looked at yet.", _SINK
        ),
    )
}
"""Every metric by its name, in the order in which they are printed."""


def prometheus_text(apps: Sequence[Stats]) -> str:
    """The figures of all these apps. Those that an app does not have are left out."""
    samples_by_metric: dict[AppMetric, list[Sample]] = {}
    for stats in apps:
        for metric, samples in _samples(stats):
            samples_by_metric.setdefault(metric, []).extend(samples)
    return "".join(
        format_metric(f"sparkstream_{metric.name}", metric.type, metric.help, samples)
        for metric, samples in samples_by_metric.items()
        if samples
    )


def _samples(s: Stats) -> Iterator[tuple[AppMetric, Iterable[Sample]]]:
    app = {"app": s.app}

    def one(value: float | None) -> list[Sample]:
        return [] if value is None else [Sample(app, value)]

    def by(label: str, values: Iterable[tuple[str, float]]) -> list[Sample]:
        return [Sample({**app, label: key}, value) for key, value in values]

    yield METRICS["running"], one(s.state == "running")
    yield METRICS["events_total"], by("stream", s.came.items())
    yield METRICS["committed_events_total"], one(sum(s.came.values()) - s.lag)
    yield METRICS["lag_events"], one(s.lag)
    yield METRICS["lag_entries"], one(s.waiting)
    yield METRICS["outputs_total"], by("stream", s.outputs.items())
    yield METRICS["dropped_outputs_total"], by("stream", s.disk.dropped.items())
    yield METRICS["errors_total"], by("stream", s.faulty.items())
    yield METRICS["dropped_errors_total"], one(s.dropped_errors)
    yield METRICS["micro_batch_seconds"], _times(s)
    yield METRICS["clock_seconds"], one(None if s.clock is None else s.clock / 1000)
    yield (
        METRICS["disk_bytes"],
        by(
            "part",
            [(p, getattr(s.disk, p)) for p in ("recording", "outputs", "state", "store")],
        ),
    )
    yield from _nodes(s)
    yield from _sources(s)
    yield from _sinks(s)


def _times(s: Stats) -> list[Sample]:
    app, t = {"app": s.app}, s.times
    quantiles = [("0.5", t.median_ms), ("0.99", t.p99_ms)]
    return [
        *(Sample({**app, "quantile": q}, math.nan if ms is None else ms / 1000) for q, ms in quantiles),
        Sample(app, t.total_ms / 1000, "_sum"),
        Sample(app, t.count, "_count"),
    ]


def _nodes(s: Stats) -> Iterator[tuple[AppMetric, Iterable[Sample]]]:
    nodes = [({"app": s.app, "node": n.shard}, n) for n in s.nodes.values()]
    kinds = {p.name: p.kind for p in s.parts}
    labelled_sizes = [
        ({**labels, "query": name, "kind": kinds.get(name, "query")}, size)
        for labels, n in nodes
        for name, size in n.held.items()
    ]
    yield METRICS["node_events_total"], [Sample(labels, n.events) for labels, n in nodes]
    yield METRICS["node_micro_batch_seconds"], [Sample(labels, n.ms / 1000) for labels, n in nodes]
    yield METRICS["node_state_bytes"], [Sample(labels, n.state_bytes) for labels, n in nodes]
    yield METRICS["state_bytes"], [Sample(labels, size.bytes) for labels, size in labelled_sizes]
    yield METRICS["state_rows"], [Sample(labels, size.rows) for labels, size in labelled_sizes if size.rows is not None]


def _sources(s: Stats) -> Iterator[tuple[AppMetric, Iterable[Sample]]]:
    sources = [({"app": s.app, "stream": f.stream, "source": f.name, "type": f.type}, f) for f in s.sources]
    for name, field in (("messages", "received"), ("events", "events"), ("rejected", "rejected")):
        yield METRICS[f"source_{name}_total"], [Sample(ls, getattr(f, field)) for ls, f in sources]
    yield (
        METRICS["source_lag"],
        [Sample({**labels, "part": part}, n) for labels, f in sources for part, n in (f.behind or {}).items()],
    )
    yield METRICS["source_away"], [Sample(labels, int(f.last_error is not None)) for labels, f in sources]


def _sinks(s: Stats) -> Iterator[tuple[AppMetric, Iterable[Sample]]]:
    sinks = [({"app": s.app, "stream": f.stream, "sink": f.name, "type": f.type}, f) for f in s.sinks]
    for name in ("sent", "failed", "dropped", "pending"):
        metric = METRICS[f"sink_{name}_events{'' if name == 'pending' else '_total'}"]
        yield metric, [Sample(labels, getattr(f, name)) for labels, f in sinks]
