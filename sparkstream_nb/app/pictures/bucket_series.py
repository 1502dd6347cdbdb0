"""The data of an aggregation's picture: a measure by time bucket, of each shard and merged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...charts.ticks import at, bucket_end
from ...charts.value_texts import text_of
from ...plan.nodes import Agg, AggDuration, AggregationDef, Ref
from ...plan.reports.show import show
from ...stores import EVERY
from ...types import Type
from ..results.buckets import BucketValues, Group, Shard, merges_groups

ALL = "all groups"
_FORMATS: dict[AggDuration, str] = {
    "sec": "%Y-%m-%d %H:%M:%S",
    "min": "%Y-%m-%d %H:%M",
    "hour": "%Y-%m-%d %H:%M",
    "day": "%Y-%m-%d",
    "month": "%b %Y",
    "year": "%Y",
}
PLURAL: dict[AggDuration, str] = {
    "sec": "seconds",
    "min": "minutes",
    "hour": "hours",
    "day": "days",
    "month": "months",
    "year": "years",
}


def bucket_name(ms: int, per: AggDuration) -> str:
    """The name of a bucket that starts at `ms`, such as `2013-06-01 05:00` for an hour (UTC)."""
    return at(ms).strftime(_FORMATS[per])


@dataclass(frozen=True)
class Measure:
    """A number that an aggregation selects, as `expression`.

    `additive`: values of shards and groups can be added. `over_groups`: it can be computed over all groups.
    `is_integer`: it is an integer.
    """

    name: str
    expression: str
    additive: bool
    over_groups: bool = True
    is_integer: bool = False

    def value(self, v: float) -> float | int | None:
        """One point of a `Series` as it is shown."""
        if math.isnan(v):
            return None
        return int(v) if self.is_integer and not math.isinf(v) else v

    @property
    def label(self) -> str:
        """`total = sum(quantity)`."""
        return self.name if self.expression == self.name else f"{self.name} = {self.expression}"


def measures(aggregation: AggregationDef) -> list[Measure]:
    """The numeric attributes that are not group-by ones, in the order of the select.

    Sums and counts add up; averages, extremes and expressions over several aggregates do not.
    """
    out = []
    groups = set(groups_of(aggregation))
    for item in aggregation.select.items:
        if item.name in groups or not item.expr.type.numeric:
            continue
        additive = isinstance(item.expr, Agg) and item.expr.function.lower() in ("sum", "count")
        over = merges_groups(aggregation, item.name)
        is_integer = item.expr.type in (Type.INT, Type.LONG)
        out.append(Measure(item.name, show(item.expr), additive, over, is_integer))
    return out


def groups_of(aggregation: AggregationDef) -> list[str]:
    """Names under which the group-by attributes are selected."""
    keys = set(aggregation.select.group_by)
    return [i.name for i in aggregation.select.items if isinstance(i.expr, Ref) and i.expr in keys]


def keys_of(aggregation: AggregationDef) -> list[str]:
    """Names of the group-by attributes, in the order of `group by`."""
    return [k.name for k in aggregation.select.group_by if isinstance(k, Ref)]


def group_label(keys: Sequence[str], group: Group) -> str:
    """The name of the groups chosen, for titles: `UA, EWR`; with some attributes left open `origin EWR`; with all of
    them open `all groups`; empty without `group by`."""
    key_values = [(k, text_of(v)) for k, v in zip(keys, group, strict=True) if v is not EVERY]
    if keys and not key_values:
        return ALL
    return ", ".join(v if len(key_values) == len(keys) else f"{k} {v}" for k, v in key_values)


@dataclass(frozen=True)
class ShardNote:
    """The label of a shard: `flag` in the legend, `text` in a line under the picture."""

    flag: str
    text: str


@dataclass(frozen=True, eq=False)
class Series:
    """The data of one chart.

    `buckets` int64[n]: starts of the buckets in ms, ascending; `ends` likewise, exclusive. `parts` float64[shards, n]
    and `merged` float64[n]: NaN without a value. Of `total` buckets in all, `before` are earlier than these. `group` is
    empty if the aggregation has no groups. `is_stacked`: bars of shards are stacked, else side by side. `as_wso2`
    float64[n]: the values that WSO2's servers would show instead of `merged`; None if they are not shown.
    """

    aggregation: str
    per: AggDuration
    measure: Measure
    group: str
    shards: tuple[Shard, ...]
    buckets: Any
    ends: Any
    parts: Any
    merged: Any
    before: int
    total: int
    is_stacked: bool
    as_wso2: Any = None

    @property
    def shard_notes(self) -> tuple[ShardNote | None, ...]:
        """A note for each shard: that it belongs to no node, has no rows among these buckets, or that
        its last one is older than another shard's by more than a bucket.
        """
        lasts = [s.last for s in self.shards if s.rows and s.last is not None]
        newest = max(lasts, default=None)
        ends_here = self.before + len(self.buckets) == self.total
        return tuple(_shard_note(s, self.per, newest, ends_here) for s in self.shards)

    @property
    def shard_labels(self) -> list[str]:
        """The shards' names in the legend."""
        shards_and_notes = zip(self.shards, self.shard_notes, strict=True)
        return [s.id if note is None else f"{s.id} ({note.flag})" for s, note in shards_and_notes]

    @property
    def names(self) -> list[str]:
        """The buckets' names."""
        return [bucket_name(int(b), self.per) for b in self.buckets]

    @property
    def title(self) -> str:
        """`total per hour · wso2`."""
        return f"{self.measure.name} per {self.per}" + (f" · {self.group}" if self.group else "")

    @property
    def note(self) -> str:
        """A note for the reader: which of the buckets are shown, and whether values can be added."""
        n = len(self.buckets)
        what = self.per if self.total == 1 else PLURAL[self.per]
        text = f"{self.total:,} {what}"
        if n < self.total:
            text = f"showing {self.before + 1:,} to {self.before + n:,} of {text}"
        if self.as_wso2 is not None:
            return f"{text} · hatched: values that WSO2's servers do not show yet, as the bucket is open on a node"
        if len(self.shards) < 2:
            return text
        if self.is_stacked:
            return f"{text} · the shards' bars add up to the merged value"
        if self.measure.additive:
            return f"{text} · the merged value is the sum of the shards' bars"
        return f"{text} · {self.measure.name} cannot be added: it is computed from the rows of all shards"


def _shard_note(shard: Shard, per: AggDuration, newest: int | None, ends_here: bool) -> ShardNote | None:
    """`newest`: the last bucket of all shards. `ends_here`: there are no buckets after those shown."""
    flag, parts = "", []
    if not shard.is_node:
        flag = "not a node"
        parts.append("is not a node of this deployment")
    last = None if shard.last is None else bucket_name(shard.last, per)
    if not shard.rows and last is None:
        flag = flag or "no rows"
        parts.append("has no rows here")
    elif not shard.rows:
        flag = flag or "no rows"
        parts.append(f"has nothing since {last}" if ends_here else f"has no rows here, the last before is {last}")
    elif shard.last is not None and newest is not None and newest > bucket_end(shard.last, per):
        flag = flag or "behind"
        parts.append(f"has nothing since {last}" if ends_here else f"has nothing here after {last}")
    return ShardNote(flag, f"{shard.id} {' and '.join(parts)}") if parts else None


def series(
    aggregation: AggregationDef,
    per: AggDuration,
    measure: Measure,
    group: str,
    values: BucketValues,
    *,
    is_stacked: bool = True,
) -> Series:
    """The chart data of `values`; `group` as in `Series`. Measures that do not add up are not stacked."""
    return Series(
        aggregation.id,
        per,
        measure,
        group,
        values.shards,
        values.starts,
        np.array([bucket_end(int(b), per) for b in values.starts], np.int64),
        values.by_shard,
        values.merged,
        values.before,
        values.total,
        is_stacked and measure.additive,
        values.as_wso2,
    )
