"""Charts of an aggregation: the values of each shard per time bucket, and the merged values.

`Series` is the data of one chart; `svg` draws it without JavaScript (for saved notebooks, exported pages, mail).
`widgets.aggregation` draws the same data with plotly.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..plan.nodes import Agg, AggDuration, AggregationDef, Ref
from ..types import Type
from .tables import text_of

# Okabe and Ito's colours, which the colour-blind tell apart; black is kept for the merged answer.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
SHARD = "SHARD_ID"
TIME = "AGG_TIMESTAMP"
# More bars than this cannot be told apart.
MOST_BUCKETS = 400
# Up to this many buckets stand side by side under their names; more lie on an axis of time.
MOST_NAMED = 60

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
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(_FORMATS[per])


@dataclass(frozen=True)
class Measure:
    """A number that an aggregation selects. Values of shards and groups can be added only if `additive`.

    `whole`: it is an integer.
    """

    name: str
    additive: bool
    whole: bool = False

    def value(self, v: float) -> float | int | None:
        """One point of a `Series` as it is shown."""
        if math.isnan(v):
            return None
        return int(v) if self.whole else v


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
        out.append(Measure(item.name, additive, item.expr.type in (Type.INT, Type.LONG)))
    return out


def groups_of(aggregation: AggregationDef) -> list[str]:
    """Names under which the group-by attributes are selected."""
    keys = set(aggregation.select.group_by)
    return [i.name for i in aggregation.select.items if isinstance(i.expr, Ref) and i.expr in keys]


def group_label(group: tuple[Any, ...]) -> str:
    """The name of a group in menus and titles: `UA, EWR`."""
    return ", ".join("null" if v is None or v != v else str(v) for v in group)


@dataclass(frozen=True)
class Series:
    """The data of one chart.

    `buckets` int64[n]: starts of the buckets in ms, ascending; `parts` float64[shards, n] and `merged` float64[n], NaN
    where there is nothing; `of` says which of how many buckets are here (first, behind the last, how many).
    """

    aggregation: str
    per: AggDuration
    measure: Measure
    group: str
    shards: tuple[str, ...]
    buckets: Any
    parts: Any
    merged: Any
    of: tuple[int, int, int]

    @property
    def names(self) -> list[str]:
        """The buckets' names."""
        return [bucket_name(int(b), self.per) for b in self.buckets]

    @property
    def title(self) -> str:
        """`total per hour, wso2`."""
        return f"{self.measure.name} per {self.per}" + (f" · {self.group}" if self.group else "")

    @property
    def note(self) -> str:
        """A note for the reader: how many of the buckets are shown, and whether values can be added."""
        first, last, count = self.of
        many = f"{count:,} {self.per if count == 1 else PLURAL[self.per]}"
        cut = many if last - first == count else f"showing {first + 1:,} to {last:,} of {many}"
        if not count:
            return "Nothing here yet."
        adds = (
            "the shards' bars add up to the merged answer"
            if self.measure.additive
            else (f"{self.measure.name} does not add up: the merged answer is computed from what the shards stored")
        )
        return f"{cut} · {adds}" if len(self.shards) > 1 else cut


def group_names(merged: Any, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """The distinct groups of a merged frame, in order of their texts."""
    if not keys or not len(merged):
        return []
    distinct = merged[list(keys)].drop_duplicates()
    return sorted((tuple(r) for r in distinct.itertuples(index=False, name=None)), key=lambda g: [str(v) for v in g])


def series(
    aggregation: AggregationDef,
    per: AggDuration,
    measure: Measure,
    frames: tuple[Any, Any],
    *,
    shards: Sequence[str] = (),
    group: tuple[Any, ...] | None = None,
    start: int | None = None,
    most: int = MOST_BUCKETS,
) -> Series:
    """The chart data of one measure.

    `frames` are the merged frame and the one by shard, as `App.aggregation` gives them. `group` None adds up all
    groups, which only an additive measure allows. `start` is the first bucket shown, by default such that the latest
    are shown. `shards` fixes the order and includes shards without values.
    """
    merged, by_shard = frames
    keys = groups_of(aggregation)
    if group is not None:
        merged, by_shard = _only(merged, keys, group), _only(by_shard, keys, group)
    seen = {str(s) for s in by_shard[SHARD].tolist()} if SHARD in by_shard.columns else set()
    order = [*shards, *sorted(seen - set(shards))]
    all_buckets = np.unique(merged[TIME].to_numpy(dtype=np.int64)) if len(merged) else np.zeros(0, np.int64)
    count = len(all_buckets)
    first = max(0, count - most) if start is None else max(0, min(start, count - 1))
    buckets = all_buckets[first : first + most]
    parts = np.full((len(order), len(buckets)), np.nan)
    if SHARD in by_shard.columns:
        names = by_shard[SHARD].astype(str)
        for i, s in enumerate(order):
            parts[i] = _spread(by_shard[names == s], measure.name, buckets)
    return Series(
        aggregation.id,
        per,
        measure,
        "" if group is None else group_label(group),
        tuple(order),
        buckets,
        parts,
        _spread(merged, measure.name, buckets),
        (first, first + len(buckets), count),
    )


def _only(frame: Any, keys: Sequence[str], group: tuple[Any, ...]) -> Any:
    for key, value in zip(keys, group, strict=True):
        missing = value is None or value != value
        frame = frame[frame[key].isna()] if missing else frame[frame[key] == value]
    return frame


def _spread(frame: Any, measure: str, buckets: Any) -> Any:
    """float64 per bucket: the sum of the frame's values in it, NaN where it has none."""
    out = np.full(len(buckets), np.nan)
    if not len(frame) or not len(buckets):
        return out
    times = frame[TIME].to_numpy(dtype=np.int64)
    values = frame[measure].astype("float64").to_numpy()
    at = np.searchsorted(buckets, times)
    here = (at < len(buckets)) & ~np.isnan(values)
    here[here] &= buckets[at[here]] == times[here]
    sums = np.bincount(at[here], weights=values[here], minlength=len(buckets))
    filled = np.bincount(at[here], minlength=len(buckets)) > 0
    out[filled] = sums[filled]
    return out


# ------------------------------------------------------------------------------------------------------------ drawing

_WIDTH, _HEIGHT = 760, 330
_INK = "#6b7280"  # reads on light and on dark
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 58, 46


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round tick values that cover `low` to `high`."""
    if not high > low:
        high = low + 1
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw)
    return [i * step for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def short(value: float) -> str:
    """A number for an axis: `12`, `1.5k`, `3M`."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if sign == 'k' else limit):.4g}{sign}"
    return f"{value:.4g}"


def svg(s: Series) -> str:
    """The chart as one SVG element: bars per shard, stacked if additive, and a line for the merged values."""
    bars = len(s.shards) > 0 and not np.isnan(s.parts).all()
    stacked = s.measure.additive
    up, down = _extent(s, stacked)
    marks = ticks(min(0.0, down), max(0.0, up))
    low, high = marks[0], marks[-1]
    height = _HEIGHT - _TOP - _BOTTOM
    slot = (_WIDTH - _LEFT - _RIGHT) / max(1, len(s.buckets))

    def y(value: float) -> float:
        return round(_TOP + height * (high - value) / (high - low), 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" style="font:12px sans-serif;color:{_INK}" '
        f'role="img" aria-label="{html.escape(s.title)}">',
        f'<text x="{_LEFT}" y="18" font-size="14" font-weight="bold" fill="currentColor">{html.escape(s.title)}</text>',
    ]
    out += _legend(s)
    for m in marks:
        out.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(m)}" y2="{y(m)}" stroke="currentColor" '
            f'stroke-opacity="{0.5 if m == 0 else 0.12}"/><text x="{_LEFT - 8}" y="{y(m) + 4}" text-anchor="end" '
            f'fill="currentColor" fill-opacity="0.7">{short(m)}</text>'
        )
    if bars:
        out += _bars(s, stacked, slot, y)
    out += _merged(s, slot, y)
    out += _bucket_names(s, slot)
    return "".join([*out, "</svg>"])


def image(s: Series) -> str:
    """`svg` as an HTML image, because untrusted notebooks are stripped of SVG elements."""
    data = base64.b64encode(svg(s).encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(s.title)}" style="max-width:100%">'


def _extent(s: Series, stacked: bool) -> tuple[float, float]:
    """Highest and lowest point drawn."""
    if not len(s.buckets):
        return 1.0, 0.0
    parts = np.nan_to_num(s.parts)
    tops = [np.nan_to_num(s.merged)]
    if parts.size:
        tops += [np.where(parts > 0, parts, 0).sum(0), np.where(parts < 0, parts, 0).sum(0)] if stacked else [*parts]
    points = np.concatenate(tops)
    return float(points.max()), float(points.min())


def _legend(s: Series) -> list[str]:
    out, x = [], float(_LEFT)
    for i, name in enumerate(s.shards):
        out.append(
            f'<rect x="{x:.0f}" y="30" width="11" height="11" fill="{COLOURS[i % len(COLOURS)]}"/>'
            f'<text x="{x + 16:.0f}" y="40" fill="currentColor">{html.escape(name)}</text>'
        )
        x += 34 + 6.6 * len(name)
    out.append(
        f'<line x1="{x:.0f}" x2="{x + 16:.0f}" y1="36" y2="36" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{x + 8:.0f}" cy="36" r="3.5" fill="currentColor"/>'
        f'<text x="{x + 22:.0f}" y="40" fill="currentColor" font-weight="bold">merged</text>'
    )
    return out


def _bars(s: Series, stacked: bool, slot: float, y: Any) -> list[str]:
    out = []
    wide = min(slot * 0.72, 90.0)
    each = wide if stacked else wide / max(1, len(s.shards))
    for b in range(len(s.buckets)):
        left = _LEFT + slot * b + (slot - wide) / 2
        above = below = 0.0
        for i, name in enumerate(s.shards):
            v = float(s.parts[i, b])
            if math.isnan(v):
                continue
            base = (above if v >= 0 else below) if stacked else 0.0
            if stacked and v >= 0:
                above += v
            elif stacked:
                below += v
            top, bottom = sorted((y(base), y(base + v)))
            x = left if stacked else left + each * i
            out.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{each:.1f}" height="{bottom - top:.1f}" '
                f'fill="{COLOURS[i % len(COLOURS)]}">'
                f'<title>{html.escape(name)}: {text_of(s.measure.value(v))}</title></rect>'
            )
            if stacked and bottom - top >= 16 and each >= 34:
                out.append(
                    f'<text x="{x + each / 2:.1f}" y="{(top + bottom) / 2 + 4:.1f}" text-anchor="middle" '
                    f'fill="#fff">{short(v)}</text>'
                )
    return out


def _merged(s: Series, slot: float, y: Any) -> list[str]:
    points = [(_LEFT + slot * (b + 0.5), y(float(v)), float(v)) for b, v in enumerate(s.merged) if not math.isnan(v)]
    if not points:
        return []
    path = " ".join(f"{x:.1f},{top:.1f}" for x, top, _ in points)
    out = (
        [f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.6"/>'] if len(points) > 1 else []
    )
    if len(points) <= MOST_NAMED:
        out += [
            f'<circle cx="{x:.1f}" cy="{top:.1f}" r="3.5" fill="currentColor">'
            f"<title>merged: {text_of(s.measure.value(v))}</title></circle>"
            for x, top, v in points
        ]
    if len(points) <= 14:
        out += [
            f'<text x="{x:.1f}" y="{top - 9:.1f}" text-anchor="middle" font-weight="bold" '
            f'fill="currentColor">{short(v)}</text>'
            for x, top, v in points
        ]
    return out


def _bucket_names(s: Series, slot: float) -> list[str]:
    names = s.names
    longest = max((len(n) for n in names), default=0) * 6.6 + 14
    every = max(1, math.ceil(longest / slot)) if names else 1
    base = _HEIGHT - _BOTTOM
    return [
        f'<text x="{_LEFT + slot * (b + 0.5):.1f}" y="{base + 20}" text-anchor="middle" fill="currentColor" '
        f'fill-opacity="0.8">{html.escape(n)}</text>'
        for b, n in enumerate(names)
        if b % every == 0
    ]
