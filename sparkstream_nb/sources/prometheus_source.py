"""Asks a server for the samples of a metric, in Prometheus' text format, again and again.

As in siddhi-io-prometheus, a sample is an event where the server's answer is another one than before. Samples between
two answers are not seen.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import shown
from ..plan.connectors.mapping import SourceMapping
from ..types import Schema, Type
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable
from .row_decoding import RowDecoder

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(?P<labels>.*)\})?[ \t]*(?P<value>[^\s{}]+)(?:[ \t]+-?\d+)?[ \t]*"
)
_LABEL = re.compile(r'(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_SUBTYPES = {"": "null", "_bucket": "bucket", "_count": "count", "_sum": "sum"}
"""The `subtype` of a sample, by what follows the metric's name in its own."""
_OWN_LABEL = {"histogram": "le", "summary": "quantile"}
VALUE = "value"


@dataclass(frozen=True)
class WantedMetric:
    """A metric, and the values that labels of its samples must have, in any case of letters."""

    name: str
    type: str
    labels: Mapping[str, str]


class MetricPage(Protocol):
    """A page of a server with metrics. `str()` names it without secrets."""

    def read(self) -> str:
        """The text of the page. Raises SourceUnavailable."""

    def close(self) -> None:
        """End the connection; `read` may follow."""

    def cancel(self) -> None:
        """End a call that is under way, from another thread."""


def list_samples(text: str, metric: WantedMetric) -> Sequence[Mapping[str, Any]]:
    """The samples of a metric in a text, with siddhi-io-prometheus' keys and their labels. Raises ValueError, with the
    reason, for a text without them, and for a metric of another type."""
    lines = text.splitlines()
    type_line = next((line for line in lines if line.startswith(f"# TYPE {metric.name} ")), None)
    if type_line is None:
        raise ValueError(f"there is no metric {metric.name}")
    type_ = type_line.rpartition(" ")[2]
    if type_ != metric.type:
        raise ValueError(f"the metric {metric.name} is a {shown(type_)}, not a {metric.type}")
    help_head = f"# HELP {metric.name} "
    help_text = next((_unescape(line[len(help_head) :]) for line in lines if line.startswith(help_head)), "")
    head = {"metric_name": metric.name, "metric_type": metric.type, "help": help_text}
    samples = [{**head, **sample} for line in lines for sample in _sample_of(line, metric)]
    if not samples:
        raise ValueError(f"no sample of {metric.name} has the job, instance and grouping key that are asked for")
    return samples


def _sample_of(line: str, metric: WantedMetric) -> Iterator[Mapping[str, Any]]:
    """The sample of a line, if it is one of the metric."""
    if not line.startswith(metric.name):
        return
    match = _SAMPLE.fullmatch(line)
    subtype = _SUBTYPES.get("" if match is None else match["name"].removeprefix(metric.name))
    if match is None or subtype is None:
        return
    labels = {m["name"]: _unescape(m["value"]) for m in _LABEL.finditer(match["labels"] or "")}
    if any(labels.get(name, "").lower() != value.lower() for name, value in metric.labels.items()):
        return
    own_label = _OWN_LABEL.get(metric.type)
    if own_label is not None:
        labels.setdefault(own_label, "")
    yield {"subtype": subtype, **labels, VALUE: float(match["value"])}


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], text)


class PrometheusReader(SourceReader):
    """A `Reader` of the samples of a metric, which are asked for every `every` seconds. `mapping` names the keys of the
    attributes of `schema`; by default they are the attributes' names."""

    def __init__(
        self, page: MetricPage, metric: WantedMetric, mapping: SourceMapping, schema: Schema, every: float
    ) -> None:
        self._page, self._metric, self._every = page, metric, every
        self._rows = RowDecoder(schema, mapping)
        self._is_whole = tuple(a.type in (Type.INT, Type.LONG) for a in schema)
        self._text = ""
        self._due = 0.0
        self._cancel_event = threading.Event()

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self._cancel_event.clear()
        self._due = time.monotonic()
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        pause = self._due - time.monotonic()
        if self._cancel_event.wait(min(max(pause, 0.0), seconds)) or pause > seconds:
            return None
        self._due = time.monotonic() + self._every
        text = self._page.read()
        if text == self._text:
            return None
        try:
            samples = list_samples(text, self._metric)
        except ValueError as error:
            raise SourceUnavailable(f"{self._page}: {error}") from None
        rows = [
            [_value_of(sample, key, is_whole) for key, is_whole in zip(self._rows.keys, self._is_whole, strict=True)]
            for sample in samples
        ]
        return ReadMessages(self._rows.decode(rows), len(rows), token=text)

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        self._text = str(messages.token)

    def behind(self) -> Behind | None:
        return Behind(time.monotonic(), {"samples": 0})

    def close(self) -> None:
        self._page.close()

    def cancel(self) -> None:
        self._cancel_event.set()
        self._page.cancel()


def _value_of(sample: Mapping[str, Any], key: str, is_whole: bool) -> Any:
    """The value of a key; None if the sample lacks it. siddhi-io-prometheus cuts the fraction of a value that becomes a
    whole number."""
    value = sample.get(key)
    if key == VALUE and is_whole and isinstance(value, float) and abs(value) < 2**63:
        return int(value)
    return value
