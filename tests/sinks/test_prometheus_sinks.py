"""Metrics of sinks of type prometheus, read over HTTP."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from servers import free_port
from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.mapping import Message
from sparkstream_nb.sinks.prometheus_sink import PrometheusTarget, SinkMetric
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable, Undeliverable


def read(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return [line for line in lines if not line.startswith("#")]


def app_with(*options: str) -> str:
    sinks = "\n".join(f"@sink(type='prometheus', {o}, @map(type='keyvalue'))" for o in options)
    return (
        f"define stream S (k string, v double);\n{sinks}\ndefine stream Sizes (k string, value double);\n"
        "from S select k, v as value insert into Sizes;"
    )


def test_metrics_over_a_restart(run: Callable[..., App], tmp_path: Path) -> None:
    """A redeployed app goes on with its metrics, and serves them before the first event."""
    url = f"http://localhost:{free_port()}"
    kinds = ["counter", "gauge", "histogram", "summary"]
    options = [f"server.url='{url}', metric.type='{t}', metric.name='m_{t}'" for t in kinds]
    text = app_with(*(o + ", buckets='1.5,3'" if "histogram" in o else o for o in options))
    app = run(text, allow=[f"http={url}"])
    app.send("S", [['a"b', 1.5], ["c", 2.0]])
    app.send("S", ["c", 4.0])
    assert app.drain(60) == 0
    expected = [
        'm_counter{k="a\\"b"} 1.5',
        'm_counter{k="c"} 6',
        'm_gauge{k="a\\"b"} 1.5',
        'm_gauge{k="c"} 6',
        'm_histogram_bucket{k="a\\"b",le="1.5"} 1',
        'm_histogram_bucket{k="a\\"b",le="3.0"} 1',
        'm_histogram_bucket{k="a\\"b",le="+Inf"} 1',
        'm_histogram_count{k="a\\"b"} 1',
        'm_histogram_sum{k="a\\"b"} 1.5',
        'm_histogram_bucket{k="c",le="1.5"} 0',
        'm_histogram_bucket{k="c",le="3.0"} 1',
        'm_histogram_bucket{k="c",le="+Inf"} 2',
        'm_histogram_count{k="c"} 2',
        'm_histogram_sum{k="c"} 6',
        'm_summary_count{k="a\\"b"} 1',
        'm_summary_sum{k="a\\"b"} 1.5',
        'm_summary_count{k="c"} 2',
        'm_summary_sum{k="c"} 6',
    ]
    assert sorted(read(url)) == sorted(expected)
    assert app.stats().sinks[0].target == f"{url}/metrics m_counter"
    app.stop()
    with pytest.raises(OSError):
        read(url)
    app.start()
    app = run(text, allow=[f"http={url}"])
    app.send("S", ["c", -1.0])
    assert app.drain(60) == 0
    found = read(url)
    assert 'm_counter{k="c"} 6' in found
    assert 'm_gauge{k="c"} 5' in found
    assert any("a counter does not go down: value is -1.0" in line for line in app.logs)


def test_what_a_page_in_a_browser_gets() -> None:
    port = free_port()
    target = PrometheusTarget(SinkMetric("m", "counter", "help", "v", ()), "localhost", port)
    other = PrometheusTarget(SinkMetric("m", "gauge", "help", "v", ()), "localhost", port)
    target.open({})
    try:
        for host, path, status in (
            ("localhost", "/metrics", 200),
            ("evil.example", "/metrics", 404),
            ("localhost", "/x", 404),
        ):
            connection = http.client.HTTPConnection("localhost", port, timeout=30)
            connection.request("GET", path, headers={"Host": f"{host}:{port}"})
            assert connection.getresponse().status == status
            connection.close()
        with pytest.raises(TargetUnavailable, match="another sink serves a metric m"):
            other.open({})
    finally:
        target.close()


def test_what_a_metric_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkstream_nb.sinks.prometheus_sink.MOST_SERIES", 2)
    target = PrometheusTarget(SinkMetric("m", "counter", "help", "v", ("k",)), "localhost", free_port())

    def send(*bodies: bytes) -> int:
        return target.send(
            [Message(b, (i,)) for i, b in enumerate(bodies)], [OutputPlace(0, i) for i in range(len(bodies))]
        )

    assert send(b"k=a&v=1", b"k=b&v=2", b"k=c&v=3") == 2
    with pytest.raises(Undeliverable, match="has 2 combinations of labels already"):
        send(b"k=c&v=3")
    with pytest.raises(Undeliverable, match="v is null"):
        send(b"k=a")
    assert send(b"k=a&v=0.5") == 1
    assert target.text().splitlines()[2:] == ['m{k="a"} 1.5', 'm{k="b"} 2']
    again = PrometheusTarget(target.metric, "localhost", free_port())
    again.open(target.state())
    assert again.text() == target.text()
    again.close()


REFUSED = [
    ("server.url='http://localhost:9', metric.type='counter'", "metrics at http://localhost:9, which is not allowed"),
    ("server.url='http://example.org:9081', metric.type='counter'", "server.url is an address of this machine"),
    ("metric.name='m'", "has no 'metric.type'"),
    ("metric.type='meter'", "metric.type is one of counter, gauge, histogram, summary"),
    ("metric.type='counter', metric.name='a b'", "metric.name is letters, digits"),
    ("metric.type='counter', value.attribute='size'", "the stream has no attribute 'size'"),
    ("metric.type='counter', value.attribute='k'", "value.attribute is a number, and 'k' is a string"),
    ("metric.type='gauge', buckets='1,2'", "buckets are for a histogram, not a gauge"),
    ("metric.type='histogram', buckets='2,1'", "buckets are finite numbers, ascending"),
    ("metric.type='summary', quantiles='0.5'", "'quantiles' of a sink of type 'prometheus'"),
    ("metric.type='gauge', publish.mode='pushgateway'", "publish.mode='pushgateway' of a sink of type 'prometheus'"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_sinks_that_are_refused(run: Callable[..., App], options: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(options), allow=["http=http://localhost:9080", "http=http://example.org:9081"])
    assert message in str(raised.value)
    assert str(raised.value).startswith("line 2, ")


def test_messages_are_keys_and_values(run: Callable[..., App]) -> None:
    text = app_with("metric.type='gauge'").replace("keyvalue", "json")
    with pytest.raises(SparkStreamError, match="a sink of type 'prometheus' with mapping 'json'"):
        run(text, allow=["http=http://localhost:9080"])
    twice = app_with("metric.type='gauge'", "metric.type='counter'")
    with pytest.raises(SparkStreamError, match=r"give each a metric\.name of its own"):
        run(twice, allow=["http=http://localhost:9080"])
