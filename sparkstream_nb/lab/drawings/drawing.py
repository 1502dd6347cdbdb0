"""The picture of a `Series` as one SVG element: the saved picture and the interactive one are both this.

Bars of each shard, stacked or side by side, and a mark for the merged value of each bucket; lines where the
buckets are too narrow for that. The x axis is time. It is broken where one long gap would leave no room for the rest,
and says so.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...charts.colours import COLOURS
from ...charts.value_texts import text_of
from .axes import PlotArea, TickRow, ValueMark, cut, draw_value_axis, draw_x_title
from .charts import Series, bucket_name, short, ticks, time_ticks
from .pictures import INK, WIDTH, embed_svg, text_width

_DARK = frozenset({"#0072B2", "#009E73", "#D55E00"})  # white text reads better on these, black on the others
_PLOT_HEIGHT = 230
_ROOM = 0.15  # of the time shown, that an axis which grows adds at its end
_NARROW = 6.0  # px: buckets below this are a reason to break the axis
_LINES_BELOW = 5.0  # px: the merged value is a line where buckets are narrower
_BREAK = 40.0  # px
_BREAKS = 4


@dataclass(frozen=True)
class Scales:
    """The ranges of the axes: stretches of time (ms, ascending; the axis is broken between them), and values, from the
    first of the marks to the last."""

    spans: tuple[tuple[int, int], ...]
    marks: tuple[float, ...]

    @property
    def low(self) -> float:
        """The value at the bottom."""
        return self.marks[0]

    @property
    def high(self) -> float:
        """The value at the top."""
        return self.marks[-1]


def scales_of(s: Series, previous: Scales | None = None) -> Scales:
    """The scales for `s`. The scales of a `previous` picture stay if `s` fits, and only grow if it does not."""
    low, high = _extent(s)
    if previous is None:
        marks = tuple(ticks(low, high))
    elif previous.low <= low and high <= previous.high:
        marks = previous.marks
    else:
        marks = tuple(ticks(min(low, previous.low), max(high, previous.high)))
    if not len(s.buckets):
        return Scales((), marks)
    start, end = int(s.buckets[0]), int(s.ends[-1])
    if previous is None or not previous.spans:
        return Scales(_spans(s), marks)
    inside = all(any(a <= b and e <= z for a, z in previous.spans) for b, e in zip(s.buckets, s.ends, strict=True))
    if inside and start - previous.spans[0][0] <= 0.5 * (previous.spans[-1][1] - previous.spans[0][0]):
        return Scales(previous.spans, marks)
    # What follows comes at the end: some room there, so that the axis does not change with every micro-batch.
    return Scales(((start, end + int(_ROOM * (end - start))),), marks)


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
    if s.stacked:
        points += [np.where(parts > 0, parts, 0).sum(0), np.where(parts < 0, parts, 0).sum(0)]
    else:
        points += [*parts]
    every = np.concatenate(points)
    return float(every.min()), float(every.max())


def svg(s: Series, scales: Scales | None = None, *, width: int = WIDTH, live: bool = False) -> str:
    """The picture, `width` px wide. `live`: with an area for each bucket that carries its values, for a pointer."""
    return _ChartDrawing(s, scales or scales_of(s), width, live).markup()


def image(s: Series) -> str:
    """`svg` as an HTML image."""
    return embed_svg(svg(s), s.title)


class _ChartDrawing:
    """One picture: where things are, and the elements of each kind."""

    def __init__(self, s: Series, scales: Scales, width: int, live: bool) -> None:
        self.s, self.scales, self.width, self.live = s, scales, width, live
        self.legend_rows = self._legend_rows()
        self.mark_labels = [short(m, max(abs(scales.low), abs(scales.high))) for m in scales.marks]
        self.left = 34 + max(map(text_width, self.mark_labels))
        self.right = width - 18.0
        self.top = 34.0 + 20 * len(self.legend_rows) + 18
        self.bottom = self.top + _PLOT_HEIGHT
        self.plot = PlotArea(self.left, self.right, self.top, self.bottom)
        self.height = self.bottom + 56
        spans = scales.spans or ((0, 1),)
        self.per_ms = (self.right - self.left - _BREAK * (len(spans) - 1)) / sum(b - a for a, b in spans)
        self.spans: list[tuple[int, int, float]] = []
        x = self.left
        for a, b in spans:
            self.spans.append((a, b, x))
            x += (b - a) * self.per_ms + _BREAK

    def x(self, ms: int) -> float:
        a, _, left = next((p for p in reversed(self.spans) if p[0] <= ms), self.spans[0])
        return left + (ms - a) * self.per_ms

    def y(self, value: float) -> float:
        low, high = self.scales.low, self.scales.high
        return round(self.top + _PLOT_HEIGHT * (high - value) / (high - low), 1)

    @cached_property
    def centres(self) -> list[float]:
        """The middle of each bucket (px)."""
        return [(self.x(int(a)) + self.x(int(b) - 1)) / 2 for a, b in zip(self.s.buckets, self.s.ends, strict=True)]

    @cached_property
    def slot(self) -> float:
        """The width of the narrowest bucket (px), more where buckets lie far apart."""
        if not len(self.s.buckets):
            return 1.0
        bucket_width = float((self.s.ends - self.s.buckets).min()) * self.per_ms
        near = min((b - a for a, b in zip(self.centres, self.centres[1:], strict=False)), default=bucket_width)
        return max(bucket_width, min(10.0, near))

    @property
    def wide(self) -> float:
        """The width of a bucket's bars (px)."""
        return min(max(self.slot * 0.74, 1.0), 90.0)

    @property
    def as_lines(self) -> bool:
        """True if shards are lines: they are drawn side by side, and there is no room for bars."""
        return not self.s.stacked and self.wide / max(1, len(self.s.shards)) < 3

    def markup(self) -> str:
        s = self.s
        title = html.escape(s.title)
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height:.0f}" '
            f'width="{self.width}" height="{self.height:.0f}" role="img" aria-label="{title}" '
            f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">',
            f'<text x="4" y="18" font-size="14" font-weight="600">{title}</text>',
            *self.legend(),
            *self.value_axis(),
            *self.time_axis(),
        ]
        if self.as_lines:
            for i in range(len(s.shards)):
                out += self.line(s.parts[i], f'stroke="{_colour(i)}" stroke-width="1.2" stroke-opacity=".75"', 1.6)
        else:
            out += self.bars()
        out += self.merged_marks()
        if s.as_wso2 is not None:
            out += self.unseen(s.as_wso2)
        if self.live:
            out += self.areas()
        return "".join([*out, "</svg>"])

    # ------------------------------------------------------------------------------------------------------------ axes

    def _legend_rows(self) -> list[list[str]]:
        """Names of the legend, as many in a row as fit."""
        rows: list[list[str]] = [[]]
        x = 0.0
        notes = zip(self.s.shards, self.s.shard_notes, strict=True)
        shards = [s.id if note is None else f"{s.id} ({note.flag})" for s, note in notes]
        for name in [*shards, *(["merged"] if len(shards) > 1 else [])]:
            wide = 34 + text_width(name)
            if rows[-1] and x + wide > self.width - 20:
                rows.append([])
                x = 0.0
            rows[-1].append(name)
            x += wide
        return rows

    def legend(self) -> list[str]:
        """A square for each shard, hollow if it has a note, and the mark of the merged value."""
        out, i = [], 0
        notes = self.s.shard_notes
        for row, names in enumerate(self.legend_rows):
            x, y = 4.0, 34 + 20 * row
            for name in names:
                style = ""
                if i == len(notes):
                    out.append(f'<rect x="{x:.0f}" y="{y + 4}" width="13" height="3"/>')
                    style = ' font-weight="600"'
                elif notes[i] is None:
                    out.append(f'<rect x="{x:.0f}" y="{y}" width="11" height="11" fill="{_colour(i)}"/>')
                else:
                    style = ' font-style="italic"'
                    out.append(
                        f'<rect x="{x + 1:.0f}" y="{y + 1}" width="9" height="9" fill="none" stroke="{_colour(i)}" '
                        'stroke-width="2" stroke-dasharray="3 1.5"/>'
                    )
                out.append(
                    f'<text x="{x + 17:.0f}" y="{y + 10}"{style} class="legend">{html.escape(cut(name, 60))}</text>'
                )
                x += 34 + text_width(name)
                i += 1
        return out

    def value_axis(self) -> list[str]:
        mark_pairs = zip(self.scales.marks, self.mark_labels, strict=True)
        marks = [ValueMark(m, label, self.y(m)) for m, label in mark_pairs]
        return draw_value_axis(self.plot, cut(self.s.measure.label, 34), marks)

    def time_axis(self) -> list[str]:
        out = [draw_x_title(self.plot, f"time (UTC), by {self.s.per}")]
        if not self.scales.spans:
            return out
        row = TickRow(self.plot)
        for i, (a, b, left) in enumerate(self.spans):
            room = 86 if self.s.per == "sec" else 62
            if i:
                out += self._break(left - _BREAK / 2, a - self.spans[i - 1][1])
                row.restart_context()
            for tick in time_ticks(a, b, self.s.per, (b - a) * self.per_ms / room):
                # A label names the bucket that starts there, and stands under its middle.
                x = left + (tick.ms - a) * self.per_ms + self._half_bucket(tick.ms, b)
                out += row.draw(x, tick.label, tick.context)
        return out

    def _half_bucket(self, ms: int, end: int) -> float:
        """Half of the width of the buckets around `ms` (px)."""
        at = min(int(np.searchsorted(self.s.buckets, ms)), len(self.s.buckets) - 1)
        return min(float(self.s.ends[at] - self.s.buckets[at]), end - ms) * self.per_ms / 2

    def _break(self, x: float, gap: int) -> list[str]:
        y = self.bottom
        return [
            f'<path d="M{x - 6:.1f} {y + 6:.0f}l5 -12M{x + 1:.1f} {y + 6:.0f}l5 -12" fill="none" '
            'stroke="currentColor"/>'
            f'<text x="{x:.1f}" y="{y - 10:.0f}" text-anchor="middle" font-size="10" fill-opacity=".8" class="gap">'
            f"{_length(gap)}</text>"
        ]

    # ---------------------------------------------------------------------------------------------------------- values

    def bars(self) -> list[str]:
        """One shape for all bars of a shard, and values inside those that are large enough."""
        s = self.s
        is_stacked = s.stacked
        each = self.wide if is_stacked else self.wide / max(1, len(s.shards))
        shapes: list[list[str]] = [[] for _ in s.shards]
        labels: list[str] = []
        for b, centre in enumerate(self.centres):
            above = below = 0.0
            for i in range(len(s.shards)):
                v = float(s.parts[i, b])
                if not math.isfinite(v):
                    continue
                base = (above if v >= 0 else below) if is_stacked else 0.0
                if is_stacked and v >= 0:
                    above += v
                elif is_stacked:
                    below += v
                top, bottom = sorted((self.y(base), self.y(base + v)))
                x = centre - self.wide / 2 + (0 if is_stacked else each * i)
                shapes[i].append(f"M{x:.1f} {top:.1f}h{each:.1f}v{bottom - top:.1f}h-{each:.1f}z")
                label = short(v)
                if bottom - top >= 16 and each >= text_width(label) + 2:
                    ink = "#fff" if _colour(i) in _DARK else "#111"
                    labels.append(
                        f'<text x="{x + each / 2:.1f}" y="{(top + bottom) / 2 + 4:.1f}" text-anchor="middle" '
                        f'fill="{ink}" class="value">{label}</text>'
                    )
        bars = [f'<path d="{"".join(d)}" fill="{_colour(i)}" class="bars"/>' for i, d in enumerate(shapes) if d]
        return [*bars, *labels]

    def merged_marks(self) -> list[str]:
        """A mark for each bucket, with its value above if there is room; a line if buckets are narrow."""
        s = self.s
        if len(s.shards) > 1 and self.slot < _LINES_BELOW:
            return self.line(s.merged, 'stroke="currentColor" stroke-width="1.5"', 1.8)
        out: list[str] = []
        half = self.wide / 2 + (3 if self.slot > 12 else 0)
        free = -math.inf
        for b, centre in enumerate(self.centres):
            v = float(s.merged[b])
            if not math.isfinite(v):
                continue
            if len(s.shards) > 1:
                out.append(
                    f'<rect x="{centre - half:.1f}" y="{self.y(v) - 1.25:.2f}" width="{2 * half:.1f}" height="2.5" '
                    f'class="merged"/>'
                )
            label = short(v)
            if self.slot >= 24 and centre - text_width(label) / 2 > free:
                parts = [float(p) for p in s.parts[:, b] if math.isfinite(p)]
                top = max([v, 0.0, *([] if s.stacked else parts)])
                out.append(
                    f'<text x="{centre:.1f}" y="{self.y(top) - 6:.1f}" text-anchor="middle" font-weight="600" '
                    f'class="merged-value">{label}</text>'
                )
                free = centre + text_width(label) / 2
        return out

    def unseen(self, server_values: Sequence[float]) -> list[str]:
        """A hatched area from the value that WSO2's servers would show to the merged one, where they differ."""
        out = [
            '<defs><pattern id="unseen" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff" fill-opacity=".55"/>'
            '<rect width="2" height="6" fill="#b00"/></pattern></defs>'
        ]
        half = max(3.0, self.wide / 2 + 1)
        for b, centre in enumerate(self.centres):
            v, server_value = float(self.s.merged[b]), float(server_values[b])
            if not math.isfinite(v) or server_value == v:
                continue
            top, bottom = sorted((self.y(v), self.y(server_value if math.isfinite(server_value) else 0.0)))
            out.append(
                f'<rect x="{centre - half:.1f}" y="{top:.1f}" width="{2 * half:.1f}" '
                f'height="{max(3.0, bottom - top):.1f}" fill="url(#unseen)" stroke="#b00" class="unseen"/>'
            )
        return out

    def line(self, values: Sequence[float], style: str, radius: float) -> list[str]:
        """A line through buckets that follow on one another; a bucket without neighbours is a dot."""
        runs: list[list[str]] = []
        end = None
        for b, centre in enumerate(self.centres):
            v = float(values[b])
            if not math.isfinite(v):
                end = None
                continue
            if end != int(self.s.buckets[b]):
                runs.append([])
            runs[-1].append(f"{centre:.1f},{self.y(v)}")
            end = int(self.s.ends[b])
        out = []
        for run in runs:
            if len(run) > 1:
                out.append(f'<polyline points="{" ".join(run)}" fill="none" {style}/>')
            else:
                x, y = run[0].split(",")
                out.append(f'<circle cx="{x}" cy="{y}" r="{radius}" {style}/>')
        return out

    def areas(self) -> list[str]:
        """For each bucket an area from half the way to its neighbours, with its values as a title."""
        s, out = self.s, []
        value = s.measure.value
        for b, centre in enumerate(self.centres):
            near = [abs(self.centres[n] - centre) / 2 for n in (b - 1, b + 1) if 0 <= n < len(self.centres)]
            half = max(1.0, self.wide / 2, min([*near, 40.0]))
            rows = [f"{shard.id}: {text_of(value(v))}" for shard, v in zip(s.shards, s.parts[:, b], strict=True)]
            if len(s.shards) > 1:
                rows.append(f"merged: {text_of(value(s.merged[b]))}")
            if s.as_wso2 is not None:
                rows.append(f"as WSO2: {text_of(value(s.as_wso2[b]))}")
            lines = "\n".join([bucket_name(int(s.buckets[b]), s.per), *rows])
            out.append(
                f'<path d="M{centre - half:.1f} {self.top:.0f}h{2 * half:.1f}v{_PLOT_HEIGHT}h-{2 * half:.1f}z" '
                f'class="bucket" data-start="{s.buckets[b]}" data-end="{s.ends[b]}" '
                f'data-values="{html.escape(lines)}"/>'
            )
        return ['<g fill="transparent">', *out, "</g>"]


def _colour(shard: int) -> str:
    return COLOURS[shard % len(COLOURS)]


def _length(ms: int) -> str:
    """A length of time in one unit: `30 min`."""
    units = ((31_557_600_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
    size, name = next((u for u in units if ms >= u[0]), (1000, "s"))
    return f"{ms / size:.3g} {name}"
