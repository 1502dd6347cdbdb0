"""Prometheus' text exposition format 0.0.4.

Not prometheus-client's, as that renames counters (`alarms` to `alarms_total`), and siddhi-io-prometheus does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Sample:
    """A value of a metric. `suffix` is added to the metric's name, as `_sum` of a summary."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


def format_metric(name: str, type_: str, help_: str, samples: Iterable[Sample]) -> str:
    """A metric with its samples, as lines."""
    lines = [f"# HELP {name} {_escape_text(help_)}", f"# TYPE {name} {type_}"]
    for s in samples:
        labels = ",".join(f'{key}="{_escape_text(value, quotes=True)}"' for key, value in s.labels.items())
        lines.append(f"{name}{s.suffix}{'{' + labels + '}' if labels else ''} {_number(s.value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escape_text(text: str, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
