"""The picture of an aggregation: bars of each shard by time bucket, and a mark for each merged value.

Where buckets are too narrow for bars or marks there are lines. The axis of time is broken where one long gap would
leave no room for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...charts.picture import (
    Bars,
    Line,
    Mark,
    NumberAxis,
    Panel,
    Picture,
    Segments,
    Style,
    Texts,
    TimeAxis,
    Values,
    floats,
)
from ...charts.style import COLOURS, WIDTH
from ...charts.ticks import number_ticks, short
from ...charts.value_texts import text_of
from .bucket_series import Series, bucket_name

_ROOM = 0.15  # of the time is_finite, that an axis which grows adds at its end
_NARROW = 6.0  # px: buckets below this are a reason to break the axis
_LINES_BELOW = 5.0  # px: the merged value is a line where buckets are narrower
_BREAKS = 4
_WIDEST = 90.0  # px
_LABELLED = 20.0  # px: no value has room on a bar where buckets are narrower


@dataclass(frozen=True)
class Scales:
    """The ranges of the axes: stretches of time (ms, ascending; the axis is broken between them), and values, from the
    first of the ticks to the last."""

    spans: tuple[tuple[int, int], ...]
    ticks: tuple[float, ...]


def scales_of(s: Series, previous: Scales | None = None) -> Scales:
    """The scales for `s`. The scales of a `previous` picture stay if `s` fits, and only grow if it does not."""
    low, high = _extent(s)
    if previous is None:
        ticks = tuple(number_ticks(low, high))
    elif previous.ticks[0] <= low and high <= previous.ticks[-1]:
        ticks = previous.ticks
    else:
        ticks = tuple(number_ticks(min(low, previous.ticks[0]), max(high, previous.ticks[-1])))
    if not len(s.buckets):
        return Scales((), ticks)
    start, end = int(s.buckets[0]), int(s.ends[-1])
    if previous is None or not previous.spans:
        return Scales(_spans(s), ticks)
    inside = all(any(a <= b and e <= z for a, z in previous.spans) for b, e in zip(s.buckets, s.ends, strict=True))
    if inside and start - previous.spans[0][0] <= 0.5 * (previous.spans[-1][1] - previous.spans[0][0]):
        return Scales(previous.spans, ticks)
    # What follows comes at the end: some room there, so that the axis does not change with every micro-batch.
    return Scales(((start, end + int(_ROOM * (end - start))),), ticks)


def _spans(s: Series) -> tuple[tuple[int, int], ...]:
    """The time from the first bucket to the last, broken at gaps that would leave no room for the buckets."""
    total_ms = int(s.ends[-1] - s.buckets[0])
    shortest = int((s.ends - s.buckets).min())
    gaps = s.buckets[1:] - s.ends[:-1]
    break_indexes: list[int] = []
    for i in np.argsort(-gaps, kind="stable")[:_BREAKS].tolist():
        if shortest / total_ms * WIDTH >= _NARROW or gaps[i] < 0.25 * total_ms:
            break
        break_indexes.append(i)
        total_ms -= int(gaps[i])
    starts = [0, *(i + 1 for i in sorted(break_indexes))]
    lasts = [*sorted(break_indexes), len(s.buckets) - 1]
    return tuple((int(s.buckets[a]), int(s.ends[b])) for a, b in zip(starts, lasts, strict=True))


def _extent(s: Series) -> tuple[float, float]:
    """Lowest and highest point drawn; zero is among them."""
    parts = np.nan_to_num(s.parts, posinf=0, neginf=0)
    points = [np.zeros(1), np.nan_to_num(s.merged, posinf=0, neginf=0)]
    if s.is_stacked:
        points += [np.where(parts > 0, parts, 0).sum(0), np.where(parts < 0, parts, 0).sum(0)]
    else:
        points += [*parts]
    every = np.concatenate(points)
    return float(every.min()), float(every.max())


def buckets_picture(s: Series, scales: Scales | None = None, *, width: int = WIDTH) -> Picture:
    """The picture, for `width` px. `scales`: of a picture that it carries on."""
    return _BucketsPicture(s, scales or scales_of(s), width).picture()


class _BucketsPicture:
    """One picture: the places of the bars, and the marks of each kind."""

    def __init__(self, s: Series, scales: Scales, width: int) -> None:
        self.s, self.scales, self._labels = s, scales, s.shard_labels
        total_ms = sum(b - a for a, b in scales.spans) or 1
        px_by_ms = (width - 80) / total_ms
        starts, ends = floats(s.buckets), floats(s.ends)
        self.middles = (starts + ends) / 2
        lengths = ends - starts
        near = np.diff(self.middles).min(initial=math.inf)
        shortest = float(lengths.min()) if len(lengths) else 1.0
        self.slot = max(shortest * px_by_ms, min(10.0, float(near) * px_by_ms))
        """The width of the narrowest bucket (px), more where buckets lie far apart."""
        wide = min(max(self.slot * 0.74, 1.0), _WIDEST)
        self.width_ms = wide / px_by_ms
        self.as_lines = not s.is_stacked and wide / max(1, len(s.shards)) < 3

    def picture(self) -> Picture:
        s = self.s
        marks: list[Mark]
        if self.as_lines:
            marks = [self._line(s.parts[i], self._style(i), self._labels[i], i) for i in range(len(s.shards))]
        else:
            marks = list(self._bars())
        marks += self._merged_marks()
        if s.as_wso2 is not None:
            marks.append(self._unseen(floats(s.as_wso2)))
        marks.append(self._areas())
        time = TimeAxis(f"time (UTC), by {s.per}", self.scales.spans, s.per, buckets=(s.buckets, s.ends))
        ticks = self.scales.ticks
        values = NumberAxis(s.measure.label, ticks[0], ticks[-1], ticks)
        return Picture(s.title, [Panel(time, values, marks)])

    def _style(self, shard: int) -> Style:
        return Style(COLOURS[shard % len(COLOURS)])

    def _bars(self) -> Iterator[Mark]:
        """The bars of each shard, with their values in those that are large enough."""
        s, count = self.s, max(1, len(self.s.shards))
        width = self.width_ms if s.is_stacked else self.width_ms / count
        above, below = np.zeros(len(s.buckets)), np.zeros(len(s.buckets))
        for i in range(len(s.shards)):
            values = floats(s.parts[i])
            is_finite = np.isfinite(values)
            base = np.where(values >= 0, above, below) if s.is_stacked else np.zeros(len(values))
            heights = np.where(is_finite, values, 0)
            above, below = above + np.maximum(heights, 0), below + np.minimum(heights, 0)
            first = self.middles - self.width_ms / 2 + (0 if s.is_stacked else width * i)
            rows = np.flatnonzero(is_finite)
            yield Bars(
                x0=first[rows], x1=first[rows] + width, y0=base[rows], y1=(base + heights)[rows], part="bars",
                style=self._style(i), name=self._labels[i], is_quiet=True,
                labels=[short(v) for v in values[rows].tolist()] if self.slot >= _LABELLED else (),
            )  # fmt: skip

    def _title(self, bucket: int) -> str:
        """The values of a bucket: of each shard, merged, and as WSO2's servers show it."""
        s, value = self.s, self.s.measure.value
        rows = [f"{shard.id}: {text_of(value(v))}" for shard, v in zip(s.shards, s.parts[:, bucket], strict=True)]
        if len(s.shards) > 1:
            rows.append(f"merged: {text_of(value(s.merged[bucket]))}")
        if s.as_wso2 is not None:
            rows.append(f"as WSO2: {text_of(value(s.as_wso2[bucket]))}")
        return "\n".join([bucket_name(int(s.buckets[bucket]), s.per), *rows])

    def _merged_marks(self) -> list[Mark]:
        """A mark for each bucket, with its value above if there is room; a line if buckets are narrow."""
        s = self.s
        if len(s.shards) > 1 and self.slot < _LINES_BELOW:
            return [self._line(s.merged, Style(), "merged", len(s.shards))]
        rows = np.flatnonzero(np.isfinite(s.merged))
        half = self.width_ms / 2
        merged_values = floats(s.merged)[rows]
        marks: list[Mark] = []
        if len(s.shards) > 1 and len(rows):
            marks.append(
                Segments(
                    x0=self.middles[rows] - half, x1=self.middles[rows] + half, y0=merged_values, y1=merged_values,
                    style=Style(width=2.5), overhang=3 if self.slot > 12 else 0, name="merged", part="merged",
                    is_quiet=True,
                )
            )
        if self.slot >= 24:
            tops = np.maximum(merged_values, 0.0)
            if not s.is_stacked and len(s.shards):
                tops = np.maximum(tops, np.nanmax(np.where(np.isfinite(s.parts), s.parts, -np.inf)[:, rows], axis=0))
            labels = [short(v) for v in merged_values.tolist()]
            marks.append(
                Texts(x=self.middles[rows], y=tops, texts=labels, shift=-6, is_bold=True, part="merged-value")
            )
        return marks

    def _line(self, values: Values, style: Style, name: str, number: int) -> Line:
        """A line through buckets that follow on one another."""
        s = self.s
        gaps = np.flatnonzero(s.ends[:-1] != s.buckets[1:]) + 1
        x, y = np.insert(self.middles, gaps, self.middles[gaps]), np.insert(floats(values), gaps, np.nan)
        is_merged = number == len(s.shards)
        return Line(
            x=x, y=np.where(np.isfinite(y), y, np.nan), name=name, part="line", is_quiet=True,
            style=style if is_merged else Style(style.colour, opacity=0.75, width=1.2),
        )  # fmt: skip

    def _unseen(self, server_values: Values) -> Mark:
        """Hatched areas from the values that WSO2's servers would show to the merged ones, where they differ."""
        merged_values = floats(self.s.merged)
        rows = np.flatnonzero(np.isfinite(merged_values) & (server_values != merged_values))
        seen = np.where(np.isfinite(server_values), server_values, 0.0)[rows]
        half = self.width_ms / 2
        middles = self.middles[rows]
        return Bars(
            x0=middles - half, x1=middles + half, y0=merged_values[rows], y1=seen, least=6, part="unseen",
            style=Style("#b00", is_hatched=True), is_quiet=True,
        )  # fmt: skip

    def _areas(self) -> Mark:
        """An area over each bucket, from half the way to its neighbours, with its values for a pointer."""
        middles, ticks = self.middles, self.scales.ticks
        half = np.full(len(middles), max(self.width_ms / 2, 1.0))
        if len(middles) > 1:
            gaps = np.diff(middles) / 2
            half = np.minimum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0]))
        return Bars(
            x0=middles - half, x1=middles + half, y0=np.full(len(middles), ticks[0]), part="bucket",
            y1=np.full(len(middles), ticks[-1]), style=Style(opacity=0.0),
            titles=[self._title(b) for b in range(len(middles))],
        )  # fmt: skip
