"""A metric that Prometheus reads from this process, computed from a stream's outputs.

The metric's state is kept with the sink's position: after a crash it continues, and no event is in it twice. The rules
follow siddhi-io-prometheus: a counter and a gauge grow by the value, a histogram and a summary observe it, and all
other attributes are labels.
"""

from __future__ import annotations

import json
import math
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import parse_qsl

from ..errors import has_surrogate, printable
from ..mapping import Message
from ..prometheus_format import CONTENT_TYPE, Sample, format_metric
from ..serving import Answer, Listener, Request, ServerLimits, SharedListener
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

MetricType = Literal["counter", "gauge", "histogram", "summary"]
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""The upper bounds of a histogram's buckets by default, as Prometheus' client for Java has them."""
MOST_SERIES = 10_000
"""Combinations of labels that one metric has at most: each is kept with the sink's position."""
_LIMITS = ServerLimits(connections=32, seconds=10.0, body=0)


@dataclass(frozen=True)
class SinkMetric:
    """A metric: `labels` are the attributes beside the one called `value`, `buckets` the upper bounds of a histogram's
    buckets, ascending, without infinity."""

    name: str
    type: MetricType
    help: str
    value: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


class PrometheusTarget(Target):
    """Keeps one metric, and serves it at (`host`, `port`) with others that are served there."""

    at_start = True
    at_once = 5_000

    def __init__(self, metric: SinkMetric, host: str, port: int) -> None:
        self.metric, self._place = metric, (host, port)
        self._series: dict[tuple[str, ...], list[float]] = {}
        self._lock = threading.Lock()
        self._is_served = False

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        if state.get("of") == self._kind():
            self._series = {tuple(labels): list(numbers) for labels, numbers in state["series"]}
        else:
            self._series = {}
        if not self._is_served:
            _serve(self, *self._place)
            self._is_served = True
        return self.state()

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        for i, message in enumerate(messages):
            try:
                self._take(dict(parse_qsl(message.body.decode(), keep_blank_values=True)))
            except Undeliverable:
                if i == 0:
                    raise
                return i
        return len(messages)

    def state(self) -> Mapping[str, Any]:
        return {"of": self._kind(), "series": [[list(k), list(v)] for k, v in self._series.items()]}

    def close(self) -> None:
        if self._is_served:
            self._is_served = False
            _withdraw(self, *self._place)

    def text(self) -> str:
        """The metric in Prometheus' text format, version 0.0.4."""
        m = self.metric
        with self._lock:
            series = [(labels, list(numbers)) for labels, numbers in self._series.items()]
        samples: list[Sample] = []
        for values, numbers in series:
            labels = dict(zip(m.labels, values, strict=True))
            if m.type in ("counter", "gauge"):
                samples.append(Sample(labels, numbers[0]))
                continue
            count, total, *below = numbers
            for bound, number in zip((*m.buckets, math.inf), below, strict=False):
                samples.append(Sample({**labels, "le": _bound(bound)}, number, "_bucket"))
            samples += [Sample(labels, count, "_count"), Sample(labels, total, "_sum")]
        return format_metric(m.name, m.type, m.help, samples)

    def _kind(self) -> str:
        """Definition that a kept state must match to be continued."""
        m = self.metric
        return json.dumps([m.type, m.value, m.labels, m.buckets])

    def _take(self, event: Mapping[str, str]) -> None:
        """Adds an event. Raises Undeliverable for one that the metric cannot have."""
        m = self.metric
        if m.value not in event:
            raise Undeliverable(f"{m.value} is null")
        value = float(event[m.value])
        if m.type == "counter" and not value >= 0:
            raise Undeliverable(f"a counter does not go down: {m.value} is {printable(event[m.value])}")
        labels = tuple(event.get(name, "") for name in m.labels)
        if any(map(has_surrogate, labels)):
            raise Undeliverable("a label has half of a surrogate pair in it, which is no character")
        with self._lock:
            numbers = self._series.get(labels)
            if numbers is None:
                if len(self._series) >= MOST_SERIES:
                    raise Undeliverable(f"metric {m.name} has {MOST_SERIES:,} combinations of labels already")
                buckets = len(m.buckets) + 1 if m.type == "histogram" else 0
                numbers = self._series[labels] = [0.0] * (1 if m.type in ("counter", "gauge") else 2 + buckets)
            if len(numbers) == 1:
                numbers[0] += value
                return
            numbers[0] += 1
            numbers[1] += value
            if m.type == "histogram" and not math.isnan(value):
                for i in range(2 + bisect_left(m.buckets, value), len(numbers)):
                    numbers[i] += 1


def _bound(value: float) -> str:
    """The bound of a bucket as Prometheus' client for Java writes it."""
    return "+Inf" if math.isinf(value) else repr(float(value))


# ------------------------------------------------------------------------------------------------------------- server


class _MetricsSite:
    """Answers `GET /metrics` with the metrics of all sinks of this process that are served at its place."""

    def __init__(self, host: str) -> None:
        self.targets: list[PrometheusTarget] = []
        self._hosts = {host, "localhost", "127.0.0.1"}

    def check(self, request: Request) -> Answer | None:
        # A page in a browser can reach this machine by a name of its own in DNS; Prometheus uses the server's.
        host = request.headers.get("Host", "").rsplit(":", 1)[0].strip("[]").lower()
        is_metrics_request = request.target.partition("?")[0] in ("/metrics", "/") and host in self._hosts
        if not is_metrics_request or request.method not in ("GET", "HEAD"):
            return self.refusal(request, HTTPStatus.NOT_FOUND, "")
        return None

    def answer(self, request: Request) -> Answer:
        return Answer(HTTPStatus.OK, "".join(t.text() for t in list(self.targets)).encode(), CONTENT_TYPE)

    def refusal(self, request: Request | None, status: HTTPStatus, text: str) -> Answer:
        return Answer(status, text.encode(), CONTENT_TYPE)


_servers: dict[tuple[str, int], SharedListener[_MetricsSite]] = {}
_serving = threading.Lock()


def _serve(target: PrometheusTarget, host: str, port: int) -> None:
    """Raises TargetUnavailable if the port is another program's, or the name another sink's."""
    name = target.metric.name
    with _serving:
        server = _servers.get((host, port))
        if server is None:
            site = _MetricsSite(host)
            try:
                listener = Listener(site, "127.0.0.1" if host == "localhost" else host, port, _LIMITS)
            except OSError as error:
                raise TargetUnavailable(f"http://{host}:{port} cannot be served: {error.strerror or error}") from None
            server = _servers[host, port] = SharedListener(site, listener)
            listener.start()
        if any(t.metric.name == name for t in server.site.targets):
            raise TargetUnavailable(f"another sink serves a metric {name} at http://{host}:{port}")
        server.site.targets.append(target)


def _withdraw(target: PrometheusTarget, host: str, port: int) -> None:
    with _serving:
        server = _servers[host, port]
        server.site.targets.remove(target)
        if server.site.targets:
            return
        del _servers[host, port]
    server.listener.close()
