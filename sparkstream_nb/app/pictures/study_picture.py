"""The heat map of a study: by number of nodes and routing, how many outputs are lost, and how many are spurious."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...charts.picture import Bars, Lane, LaneAxis, Panel, Picture
from ...charts.ticks import short

if TYPE_CHECKING:
    from ..running.study import Study

_PANELS = (
    ("lost: one node has them, these nodes do not", ("lost",)),
    ("spurious and duplicated: one node does not have them", ("spurious", "duplicated")),
)
_ROW, _COLUMN = 24.0, 70.0
_PALE, _FULL, _NONE = (251, 230, 216), (213, 94, 0), "#d5efe6"
"""Colours of few and of all outputs (red, green, blue), and of none. They cover the page's own, light or dark."""


def study_picture(study: Study) -> Picture:
    """A panel for lost outputs above one for spurious ones; a row for each routing, the best one first."""
    frame = study.frame
    nodes = sorted(set(frame["nodes"]))
    ranking = [r.route for r in study.routings]
    routings = [*ranking, *(r for r in dict.fromkeys(frame["routing"]) if r not in ranking)]
    x = LaneAxis([Lane(str(n), _COLUMN) for n in nodes], "nodes")
    y = LaneAxis([Lane(r, _ROW) for r in routings])
    order = {(r, n): i for i, (r, n) in enumerate((r, n) for r in routings for n in nodes)}
    cells = sorted(frame.to_dict("records"), key=lambda c: order[c["routing"], c["nodes"]])
    columns = np.array([nodes.index(c["nodes"]) for c in cells], np.float64)
    rows = np.array([routings.index(c["routing"]) for c in cells], np.float64)
    panels = []
    for title, verdicts in _PANELS:
        wrong = [int(sum(c[v] for v in verdicts)) for c in cells]
        of = [int(c["same"] + c["lost"]) for c in cells]
        marks = Bars(
            x0=columns + 0.02, x1=columns + 0.98, y0=rows, y1=rows + 1, inset=1, rounding=2, part="cell",
            colours=[_colour(w, n) for w, n in zip(wrong, of, strict=True)],
            labels=["·" if not w else f"{w:,}" if w < 10_000 else short(w) for w in wrong],
            titles=[
                f"{c['routing']} on {c['nodes']} nodes: {w:,} of {n:,} outputs"
                for c, w, n in zip(cells, wrong, of, strict=True)
            ],
        )  # fmt: skip
        panels.append(Panel(x, y, [marks], title))
    return Picture(f"{study.app}: outputs that differ from one node's, by number of nodes and routing", panels)


def _colour(wrong: int, of: int) -> str:
    """Orange by the share of one node's outputs."""
    if not wrong:
        return _NONE
    share = min(1.0, wrong / of) if of else 1.0
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(_PALE, _FULL, strict=True))


