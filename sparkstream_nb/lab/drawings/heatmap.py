"""The heat map of a study: by number of nodes and routing, how many outputs are lost, and how many are spurious."""

from __future__ import annotations

import html

from ...app.running.study import Study
from .charts import short
from .pictures import INK, WIDTH, embed_svg, text_width

_ROW, _TOP = 24.0, 54.0
_PANELS = (
    ("lost", "lost: one node has them, these nodes do not"),
    ("spurious", "spurious and duplicated: one node does not have them"),
)


def svg(study: Study, width: int = WIDTH) -> str:
    """A panel for lost outputs above one for spurious ones; a row for each routing, the best one first."""
    frame = study.frame
    nodes = sorted(set(frame.nodes))
    ranking = [r.route for r in study.routings]
    routes = [*ranking, *(r for r in dict.fromkeys(frame.routing) if r not in ranking)]
    left = 24 + max(text_width(r) for r in routes)
    wide = min(70.0, (width - left - 8) / len(nodes))
    tall = _ROW * len(routes)
    height = _TOP + 2 * (tall + 58)
    title = html.escape(f"{study.app}: outputs that differ from one node's, by number of nodes and routing")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
        f'height="{height:.0f}" role="img" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">'
        f'<text x="4" y="18" font-size="14" font-weight="600">{title}</text>'
    ]
    row_by_cell = {(r.routing, r.nodes): r for r in frame.itertuples()}
    for panel, (what, words) in enumerate(_PANELS):
        top = _TOP + panel * (tall + 58)
        out.append(f'<text x="4" y="{top - 10:.0f}" font-weight="600">{words}</text>')
        for i, route in enumerate(routes):
            y = top + _ROW * i
            out.append(f'<text x="8" y="{y + 16:.0f}" class="routing">{html.escape(route)}</text>')
            for j, n in enumerate(nodes):
                row = row_by_cell.get((route, n))
                if row is None:
                    continue
                wrong = int(row.lost if what == "lost" else row.spurious + row[frame.columns.get_loc("duplicated") + 1])
                out.append(_cell(left + wide * j, y, wide, wrong, int(row.same + row.lost)))
        for j, n in enumerate(nodes):
            x = left + wide * (j + 0.5)
            out.append(f'<text x="{x:.1f}" y="{top + tall + 15:.0f}" text-anchor="middle">{n}</text>')
        out.append(
            f'<text x="{left + wide * len(nodes) / 2:.0f}" y="{top + tall + 30:.0f}" text-anchor="middle">nodes</text>'
        )
    return "".join([*out, "</svg>"])


_PALE, _FULL, _NONE = (251, 230, 216), (213, 94, 0), "#d5efe6"
"""Colours of few and of all outputs (red, green, blue), and of none. They cover the page's own, light or dark."""
_CELL_INK = "#111"
"""Reads better than white on each of them."""


def _cell(x: float, y: float, wide: float, wrong: int, of: int) -> str:
    """Orange by the share of one node's outputs; none is a point."""
    share = min(1.0, wrong / of) if of else float(wrong > 0)
    fill = _NONE
    if wrong:
        fill = "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(_PALE, _FULL, strict=True))
    label = "·" if wrong == 0 else f"{wrong:,}" if wrong < 10_000 else short(wrong)
    return (
        f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:.1f}" height="{_ROW - 2:.0f}" rx="2" fill="{fill}"/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + 16:.0f}" text-anchor="middle" fill="{_CELL_INK}" '
        f'class="cell">{label}</text>'
    )


def image(study: Study) -> str:
    """`svg` as an HTML image."""
    return embed_svg(svg(study), f"{study.app}: outputs lost and spurious by number of nodes and routing")
