"""The options of `prometheus` sinks as metrics that this machine's Prometheus may read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ...errors import Misuse, nearest, shown
from ...sinks.prometheus_sink import BUCKETS, MetricType, PrometheusTarget, SinkMetric
from ...sinks.target import Target
from ...types import Schema
from ..config.grants import Grants
from .typed_options import OptionValues

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class PrometheusGate:
    """Makes targets of the options of `what`, a sink of `stream` in words, within its `grants`."""

    grants: Grants
    what: str
    stream: str
    schema: Schema

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(address and metric as they may be shown, the target). Raises `Misuse` for options that are wrong, and
        NotAllowed if the address is not granted."""
        if any("${" in value for value in options.values()):
            raise Misuse(f"{self.what}: a reference such as ${{sec:...}} has no place in a metric, which is shown")
        o = OptionValues.of("sink", "prometheus", options, self.what)
        url = self.grants.check_url(o.raw("server.url"), f"{self.what} serves metrics at")
        if url.scheme != "http" or url.host not in _LOOPBACK:
            example = o.specs["server.url"].default
            raise Misuse(f"{self.what}: server.url is an address of this machine, such as {example}")
        type_, types = o.raw("metric.type").lower(), o.specs["metric.type"].values
        if type_ not in types:
            raise Misuse(nearest(f"{self.what}: metric.type is one of {', '.join(types)}", type_, types))
        name = o.raw("metric.name") if o.has("metric.name") else self.stream
        if not _NAME.fullmatch(name):
            raise Misuse(f"{self.what}: metric.name is letters, digits, '_' and ':', not {shown(name)}")
        value = o.trim("value.attribute")
        column = self.schema.find(value)
        if column is None:
            raise Misuse(f"{self.what}: the stream has no attribute '{value}': write value.attribute='...'")
        if not self.schema[column].type.numeric:
            raise Misuse(f"{self.what}: value.attribute is a number, and '{value}' is a {self.schema[column].type}")
        labels = tuple(n for n in self.schema.names if n != value)
        reserved_label = {"histogram": "le", "summary": "quantile"}.get(type_)
        for label in labels:
            if not _LABEL.fullmatch(label) or label == reserved_label:
                raise Misuse(f"{self.what}: '{label}' cannot be a label of a {type_}: give the attribute another name")
        metric = SinkMetric(
            name,
            cast(MetricType, type_),
            o.raw("metric.help") if o.has("metric.help") else f"help for {type_} {name}",
            value,
            labels,
            self._buckets(o.raw("buckets"), type_),
        )
        return f"{url.base}/metrics {name}", PrometheusTarget(metric, url.host, url.port)

    def _buckets(self, text: str, type: str) -> tuple[float, ...]:
        if text.strip() and type != "histogram":
            raise Misuse(f"{self.what}: buckets are for a histogram, not a {type}")
        if type != "histogram":
            return ()
        if not text.strip():
            return BUCKETS
        try:
            bounds = tuple(float(part) for part in text.split(","))
        except ValueError:
            raise Misuse(f"{self.what}: buckets are numbers such as '0.1,1,10', not {shown(text)}") from None
        if list(bounds) != sorted(set(bounds)) or not all(abs(b) < float("inf") for b in bounds):
            raise Misuse(f"{self.what}: buckets are finite numbers, ascending, not {shown(text)}")
        return bounds
