"""Sources of type prometheus, against a real server, and the text format that they read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary, generate_latest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.sources.prometheus_source import WantedMetric, list_samples
from tests.apps.waiting import rows, until
from tests.processes import free_port

Run = Callable[..., App]


class Metrics:
    """A server of metrics on loopback, by Prometheus' own library."""

    def __init__(self) -> None:
        self.port = free_port()
        self.registry = CollectorRegistry()
        self.power = Counter("power_watts", "Power\nof a device", ["deviceID", "roomID"], registry=self.registry)
        self.status = 200
        self.authorizations: list[str | None] = []
        self._http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/metrics"

    @property
    def allow(self) -> list[str]:
        return [f"http=http://localhost:{self.port}"]

    def start(self) -> None:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                metrics.authorizations.append(self.headers.get("Authorization"))
                body = generate_latest(metrics.registry)
                self.send_response(metrics.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    server = Metrics()
    server.start()
    yield server
    server.stop()


def source_app(url: str, more: str = "", attributes: str = "deviceID string, roomID string, value int") -> str:
    return f"""
    @source(type='prometheus', target.url='{url}', metric.type='counter', metric.name='power_watts_total',
            scrape.interval='1', {more} @map(type='keyvalue'))
    define stream S ({attributes});
    from S select * insert into O;
    """


def test_samples_are_events_when_they_change(run: Run, metrics: Metrics) -> None:
    metrics.power.labels("a", "one").inc(3.7)
    metrics.power.labels("b", "two").inc(10)
    app = run(source_app(metrics.url), allow=metrics.allow)
    until(app, lambda: rows(app, "O") == 2)
    frame = app.output("O").frame
    assert frame[["deviceID", "roomID", "value"]].values.tolist() == [["a", "one", 3], ["b", "two", 10]]
    asked = len(metrics.authorizations)
    until(app, lambda: len(metrics.authorizations) > asked + 1)
    assert rows(app, "O") == 2
    metrics.power.labels("b", "two").inc()
    until(app, lambda: rows(app, "O") == 4)
    assert app.output("O").frame["value"].tolist() == [3, 10, 3, 11]


def test_a_server_that_goes_away_and_comes_back(run: Run, metrics: Metrics) -> None:
    metrics.power.labels("a", "one").inc()
    app = run(source_app(metrics.url), allow=metrics.allow)
    until(app, lambda: rows(app, "O") == 1)
    metrics.stop()
    until(app, lambda: "cannot be reached" in (app.stats().sources[0].last_error or ""))
    metrics.start()
    until(app, lambda: app.stats().sources[0].last_error is None)
    assert rows(app, "O") == 1
    metrics.status = 503
    until(app, lambda: "answers 503" in (app.stats().sources[0].last_error or ""))
    metrics.status = 200
    metrics.power.labels("a", "one").inc()
    until(app, lambda: rows(app, "O") == 2)


def test_a_metric_that_is_not_there_yet(run: Run, metrics: Metrics) -> None:
    app = run(source_app(metrics.url, "job='mill',"), allow=metrics.allow)
    reason = "no sample of power_watts_total has the job, instance and grouping key that are asked for"
    until(app, lambda: reason in (app.stats().sources[0].last_error or ""))


def test_a_password_is_a_reference_and_is_not_shown(
    run: Run, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_PASSWORD", "s3cret")
    metrics.power.labels("a", "one").inc()
    app = run(
        source_app(metrics.url, "username='me', password='${env:PROMETHEUS_PASSWORD}',"),
        allow=metrics.allow, allow_env=["PROMETHEUS_PASSWORD"],
    )  # fmt: skip
    until(app, lambda: rows(app, "O") == 1)
    assert metrics.authorizations[0] == "Basic bWU6czNjcmV0"
    assert "s3cret" not in " ".join([str(app), str(app.stats()), *app.logs, repr(app.plan)])


def test_a_row_that_does_not_fit_is_an_error(run: Run, metrics: Metrics) -> None:
    metrics.power.labels("a", "one").inc()
    app = run(source_app(metrics.url, attributes="deviceID string, site string, value double"), allow=metrics.allow)
    until(app, lambda: len(app.errors) == 1)
    assert app.errors.frame["reason"].tolist() == ["it has no value in column 'site' for site"]


def texts_of(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def test_keys_of_a_counter(metrics: Metrics) -> None:
    metrics.power.labels('a"}\\x', "1, 2").inc(2.5)
    assert list_samples(texts_of(metrics.registry), WantedMetric("power_watts_total", "counter", {})) == [
        {
            "metric_name": "power_watts_total", "metric_type": "counter", "help": "Power\nof a device",
            "subtype": "null", "deviceID": 'a"}\\x', "roomID": "1, 2", "value": 2.5,
        }
    ]  # fmt: skip


def test_keys_of_histograms_and_summaries() -> None:
    registry = CollectorRegistry()
    Histogram("h", "", ["k"], buckets=(1.0,), registry=registry).labels("x").observe(0.5)
    Summary("s", "", registry=registry).observe(4.0)
    text = texts_of(registry)
    samples = list_samples(text, WantedMetric("h", "histogram", {"k": "X"}))
    assert [(s["subtype"], s["le"], s["value"]) for s in samples] == [
        ("bucket", "1.0", 1.0), ("bucket", "+Inf", 1.0), ("count", "", 1.0), ("sum", "", 0.5),
    ]  # fmt: skip
    samples = list_samples(text, WantedMetric("s", "summary", {}))
    assert [(s["subtype"], s["quantile"], s["value"]) for s in samples] == [("count", "", 1.0), ("sum", "", 4.0)]


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (WantedMetric("power", "counter", {}), "there is no metric power"),
        (WantedMetric("power_watts_total", "gauge", {}), "the metric power_watts_total is a 'counter', not a gauge"),
        (WantedMetric("power_watts_total", "counter", {"roomID": "two"}), "no sample of power_watts_total has the job"),
    ],
)
def test_a_text_without_the_metric(metrics: Metrics, metric: WantedMetric, reason: str) -> None:
    metrics.power.labels("a", "one").inc()
    with pytest.raises(ValueError, match=reason):
        list_samples(texts_of(metrics.registry), metric)


@pytest.mark.parametrize(
    ("options", "mapping", "message"),
    [
        ("metric.type='counter',", "keyvalue", "has no 'target.url'"),
        ("target.url='http://localhost:1/m',", "keyvalue", "has no 'metric.type'"),
        ("target.url='http://h:1/m', metric.type='counter',", "keyvalue", "which is not allowed. Add --allow http="),
        ("target.url='http://localhost:1/m', metric.type='count',", "keyvalue", "is one of counter, gauge"),
        ("target.url='http://localhost:1/m', metric.type='counter',", "json", "Write @map(type='keyvalue')"),
        ("target.url='http://localhost:1/m', metric.type='counter', scheme='https',", "keyvalue", "begins with http://"),
        ("target.url='http://localhost:1/m', metric.type='gauge', metric.name='a-b',", "keyvalue", "'metric.name' is"),
        ("target.url='http://localhost:1/m', metric.type='gauge', grouping.key='x',", "keyvalue", "'grouping.key' is"),
        ("target.url='http://localhost:1/m', metric.type='gauge', username='me',", "keyvalue", "go together"),
        (
            "target.url='http://localhost:1/m', metric.type='gauge', username='me', password='s3cret',",
            "keyvalue",
            "write password='${sec:NAME}'",
        ),
        ("target.url='http://localhost:1/m', metric.type='gauge', headers='Host:x',", "keyvalue", "the header Host"),
    ],
)
def test_what_is_refused(run: Run, options: str, mapping: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as error:
        run(
            f"""
            @source(type='prometheus', {options} @map(type='{mapping}')) define stream S (value int);
            from S select value insert into O;
            """,
            allow=["http=http://localhost:1"],
        )
    assert message in str(error.value)
    assert "s3cret" not in str(error.value)
