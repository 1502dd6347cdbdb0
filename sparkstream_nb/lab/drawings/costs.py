"""The chart of a failover study: for each setting, the costs of failovers in the median, and at worst in 19 of 20."""

from __future__ import annotations

import html

from ...app.results.failover_study import FailoverStudy
from ...charts.failover_costs import FAILOVER_COSTS
from .charts import short
from .pictures import INK, WIDTH, embed_svg, text_width

_ROW, _TOP = 22.0, 78.0
MOST_SETTINGS = 40
_BAR, _MEDIAN = "#56B4E9", "#D55E00"


def svg(study: FailoverStudy, width: int = WIDTH) -> str:
    """A row for each setting; by cost a bar to the 95th percentile, with a mark at the median."""
    settings = study.settings.head(MOST_SETTINGS).to_dict("records")
    names = [", ".join(f"{n} {row[n]}" for n in study.varied) or "as it is" for row in settings]
    left = 20 + max(map(text_width, names))
    wide = (width - left - 8) / len(FAILOVER_COSTS)
    height = _TOP + _ROW * len(names) + 12
    title = html.escape(f"{study.app}: what {len(study.runs):,} failovers cost")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
        f'height="{height:.0f}" role="img" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">'
        f'<text x="4" y="18" font-size="14" font-weight="600">{title}</text>'
        f'<rect x="8" y="30" width="12" height="12" fill="{_MEDIAN}"/><text x="25" y="41">median</text>'
        f'<rect x="88" y="30" width="12" height="12" fill="{_BAR}"/><text x="105" y="41">19 of 20 cost no more</text>'
    ]
    for i, name in enumerate(names):
        out.append(f'<text x="8" y="{_TOP + _ROW * i + 15:.0f}" class="setting">{html.escape(name)}</text>')
    for p, (cost, label, unit) in enumerate(FAILOVER_COSTS):
        x = left + wide * p
        out.append(f'<text x="{x:.0f}" y="{_TOP - 12:.0f}" font-weight="600">{label}</text>')
        most = max(1e-9, *(row[f"{cost}_p95"] / unit for row in settings))
        room = wide - 52
        for i, row in enumerate(settings):
            median, high = row[f"{cost}_median"] / unit, row[f"{cost}_p95"] / unit
            y, long = _TOP + _ROW * i + 3, room * high / most
            at = x + room * median / most - 1
            out.append(
                f'<rect x="{x:.1f}" y="{y:.0f}" width="{long:.1f}" height="{_ROW - 6:.0f}" fill="{_BAR}"/>'
                f'<rect x="{at:.1f}" y="{y - 1:.0f}" width="3" height="{_ROW - 4:.0f}" fill="{_MEDIAN}"/>'
                f'<text x="{x + long + 5:.1f}" y="{y + 12:.0f}">{short(median)}</text>'
            )
    return "".join([*out, "</svg>"])


def image(study: FailoverStudy) -> str:
    """`svg` as an HTML image."""
    return embed_svg(svg(study), f"{study.app}: {study.said}")
