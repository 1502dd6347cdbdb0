"""The figures of apps as Prometheus reads them: what its own parser makes of the text."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from sparkstream_nb.app.results.answers import DiskStats, NodeStats, PartStats, StateSize, Stats
from sparkstream_nb.app.results.prometheus_text import METRICS, prometheus_text
from sparkstream_nb.journal.throughput import BatchTimes
from sparkstream_nb.retention import Retention
from sparkstream_nb.sinks.delivery import SinkFigures
from sparkstream_nb.sources.intake import SourceFigures

NAME = 'a "b" \\ c\nd'


def stats(app: str) -> Stats:
    """Figures of an app with two nodes."""
    nodes = {
        n: NodeStats(n, 10, None, 1500.0, 2_000, 1_000, held={"rise": StateSize(80, 3), "Totals": StateSize(10)})
        for n in ("node-1", "node-2")
    }
    parts = (PartStats("query", "rise", "Rises", 7, 160, 6), PartStats("aggregation", "Totals", None, None, 20))
    return Stats(
        app=app,
        state="running",
        clock=1_717_236_000_500,
        events=20,
        waiting=2,
        micro_batches=3,
        outputs={"Rises": 7},
        errors=4,
        nodes=nodes,
        parts=parts,
        disk=DiskStats(1, 2, 3, 4, Retention(), {"Rises": 5}),
        sinks=(SinkFigures("Rises-http-1", "Rises", "http", "http://host", "at least once", 6, 1, 2, 3, None),),
        sources=(
            SourceFigures("S-kafka-1", "S", "kafka", "t at h:1", 9, 7, 2, {"t-0": 1_200, "t-1": 0}, None),
            SourceFigures("S-http-1", "S", "http", "http://h/t", 0, 0, 0, None, "in use"),
        ),
        came={"S": 20, NAME: 1},
        lag=5,
        times=BatchTimes(120.0, 100.0, 300.0, 4_000.0, 3),
        faulty={"S": 4},
        dropped_errors=6,
    )


def samples(text: str) -> dict[str, list[Sample]]:
    return {m.name: m.samples for m in text_string_to_metric_families(text)}


def test_every_metric_has_the_labels_of_the_table() -> None:
    """The figures above have something for each metric, so none of the table is missing."""
    found = {s.name: s.labels.keys() - {"app"} for own in samples(stats("A").prometheus()).values() for s in own}
    for metric in METRICS.values():
        name = f"sparkstream_{metric.name}"
        if metric.type == "summary":
            assert f"{name}_sum" in found
        assert found[name] == set(metric.labels)


def test_the_text_is_read_back_by_prometheus() -> None:
    found = samples(stats("Trades").prometheus())
    assert all(name.startswith("sparkstream_") for name in found)
    values = {
        (s.name.removeprefix("sparkstream_"), *(v for k, v in s.labels.items() if k != "app")): s.value
        for own in found.values()
        for s in own
    }
    assert all(s.labels["app"] == "Trades" for own in found.values() for s in own)
    expected = {
        ("running",): 1,
        ("events_total", "S"): 20,
        ("events_total", NAME): 1,
        ("committed_events_total",): 16,
        ("lag_events",): 5,
        ("lag_entries",): 2,
        ("outputs_total", "Rises"): 7,
        ("dropped_outputs_total", "Rises"): 5,
        ("errors_total", "S"): 4,
        ("dropped_errors_total",): 6,
        ("source_messages_total", "S", "S-kafka-1", "kafka"): 9,
        ("source_rejected_total", "S", "S-kafka-1", "kafka"): 2,
        ("source_lag", "S", "S-kafka-1", "kafka", "t-0"): 1_200,
        ("source_lag", "S", "S-kafka-1", "kafka", "t-1"): 0,
        ("source_away", "S", "S-kafka-1", "kafka"): 0,
        ("source_away", "S", "S-http-1", "http"): 1,
        ("micro_batch_seconds", "0.5"): 0.1,
        ("micro_batch_seconds", "0.99"): 0.3,
        ("micro_batch_seconds_sum",): 4,
        ("micro_batch_seconds_count",): 3,
        ("clock_seconds",): 1_717_236_000.5,
        ("disk_bytes", "outputs"): 2,
        ("node_events_total", "node-1"): 10,
        ("node_micro_batch_seconds", "node-2"): 1.5,
        ("state_bytes", "node-2", "rise", "query"): 80,
        ("state_rows", "node-2", "rise", "query"): 3,
        ("state_bytes", "node-1", "Totals", "aggregation"): 10,
        ("sink_sent_events_total", "Rises", "Rises-http-1", "http"): 6,
        ("sink_pending_events", "Rises", "Rises-http-1", "http"): 1,
    }
    assert {key: values.get(key) for key in expected} == expected
    assert ("state_rows", "node-1", "Totals", "aggregation") not in values
    assert not any("http://" in str(s.labels) for own in found.values() for s in own)


def test_a_metric_is_told_of_once_for_all_apps() -> None:
    text = prometheus_text([stats("A"), stats("B")])
    assert text.count("# TYPE sparkstream_lag_events gauge") == 1
    assert [(s.labels, s.value) for s in samples(text)["sparkstream_lag_events"]] == [
        ({"app": "A"}, 5),
        ({"app": "B"}, 5),
    ]
    assert prometheus_text([]) == ""
