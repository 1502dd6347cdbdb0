"""The picture of a sweep: for each setting, its outputs beside the outputs of the app's own text, and its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...charts.picture import Bars, Lane, LaneAxis, NumberAxis, Panel, Picture, Style, Texts, Values, floats
from ...charts.style import GREY, ORANGE, SKY
from ...charts.ticks import short

if TYPE_CHECKING:
    from ..results.rule_sweep import RuleSweep

MOST_SETTINGS = 40
_SCORES = ("precision", "recall", "f1")


def sweep_picture(sweep: RuleSweep) -> Picture:
    """A row for each setting: a bar of the outputs that are the same and new, one of the outputs that are gone, and
    with labels one for precision, recall and f1 each. The best setting is bold. Many settings are cut to those with
    the highest f1, or to the first ones."""
    numbers = _shown_settings(sweep)
    settings, frame = [sweep.settings[i] for i in numbers], sweep.frame.iloc[numbers]
    names = [", ".join(f"{name} {value}" for name, value in setting.items()) for setting in settings]
    best = sweep.best
    lanes = LaneAxis([Lane(name, 22, is_bold=setting == best) for name, setting in zip(names, settings, strict=True)])
    rows = np.arange(len(settings), dtype=np.float64)
    zeros = np.zeros(len(rows))
    same, new, lost = (floats(frame[column]) for column in ("same", "new", "gone"))
    most = max(1.0, float((same + new).max(initial=0.0)), float(lost.max(initial=0.0)))

    def bars(begins: Values, ends: Values, colour: str, name: str) -> Bars:
        titles = [f"{setting}: {int(n):,} {name}" for setting, n in zip(names, (ends - begins).tolist(), strict=True)]
        return Bars(x0=begins, x1=ends, y0=rows, y1=rows + 1, inset=3, style=Style(colour), name=name, titles=titles)

    def words(ends: Values, texts: list[str]) -> Texts:
        return Texts(x=ends, y=rows + 0.5, texts=texts, anchor="beside")

    axis = NumberAxis("", 0.0, 1.35 * most)
    outputs = [
        bars(zeros, same, SKY, "same"), bars(same, same + new, ORANGE, "new"),
        words(same + new, [short(n) for n in (same + new).tolist()]),
    ]  # fmt: skip
    panels = [
        Panel(axis, lanes, outputs, "outputs"),
        Panel(axis, lanes, [bars(zeros, lost, GREY, "gone"), words(lost, [short(n) for n in lost.tolist()])], "gone"),
    ]
    for score in _SCORES if "f1" in frame else ():
        values = np.nan_to_num(floats(frame[score]))
        texts = [f"{v:.2f}" if v == v else "" for v in frame[score]]
        titles = [f"{setting}: {score} {text}" for setting, text in zip(names, texts, strict=True)]
        marks = Bars(x0=zeros, x1=values, y0=rows, y1=rows + 1, inset=3, style=Style(SKY, 0.5), titles=titles)
        panels.append(Panel(NumberAxis("", 0.0, 1.35), lanes, [marks, words(values, texts)], score))
    more = len(sweep.settings) - len(settings)
    notes = [*sweep.notes, *([f"{more:,} further settings are in the table"] if more else [])]
    title = f"{sweep.app}: {len(sweep.settings):,} settings over {sweep.events:,} events"
    return Picture(title, panels, notes, columns=len(panels))


def _shown_settings(sweep: RuleSweep) -> list[int]:
    """The numbers of the settings that are shown, in their order."""
    scores = [row.get("f1", float("nan")) for row in sweep.rows]
    ranking = sorted(range(len(scores)), key=lambda i: -scores[i] if scores[i] == scores[i] else 1.0)
    return sorted(ranking[:MOST_SETTINGS])
