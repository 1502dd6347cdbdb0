"""An aggregation by shard and merged: a plotly chart with controls for duration, group and measure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import ipywidgets
import numpy as np
import plotly.graph_objects as go

from ...cluster.frontend import Fetch
from ...errors import Misuse, nearest
from ...plan.nodes import AggDuration, AggregationDef
from ..charts import (
    COLOURS,
    MOST_BUCKETS,
    MOST_NAMED,
    PLURAL,
    Series,
    group_label,
    group_names,
    groups_of,
    image,
    measures,
    series,
)
from ..tables import MUTED, Grid

Frames = tuple[Any, Any]
ALL = "all groups"
# A menu longer than this cannot be read.
MOST_GROUPS = 500


class AggregationView:
    """The view of an aggregation by shard and merged, by duration.

    `fetch(per)` gives the merged frame and the one by shard; it is called once per duration, on first use, and again
    after `refresh`. Raises `Misuse` for a duration or measure that the aggregation does not have.
    """

    def __init__(
        self,
        aggregation: AggregationDef,
        fetch: Fetch,
        *,
        shards: Sequence[str] = (),
        per: str | None = None,
        measure: str | None = None,
    ) -> None:
        self.aggregation = aggregation
        self._fetch = fetch
        self._shards = list(shards)
        self._frames: dict[AggDuration, Frames] = {}
        self.measures = measures(aggregation)
        if not self.measures:
            raise Misuse(f"{aggregation.id} selects no numeric attribute to draw")
        self.per = self._duration(per)
        additive = [m for m in self.measures if m.additive]
        self.measure = self._measure(measure) if measure is not None else (additive or self.measures)[0]
        self.group: tuple[Any, ...] | None = None
        self.start: int | None = None
        self._settle_group()

    def _duration(self, per: str | None) -> AggDuration:
        known = self.aggregation.durations
        if per is None:  # the coarsest that still has more than one bar, else the coarsest of all
            return next((d for d in reversed(known) if self._count(d) > 1), known[-1])
        wanted = per.lower().rstrip("s") if per.lower() not in ("sec", "secs") else "sec"
        wanted = {"second": "sec", "minute": "min"}.get(wanted, wanted)
        for d in known:
            if d == wanted:
                return d
        raise Misuse(nearest(f"{self.aggregation.id} has no duration '{per}'", per, known))

    def _measure(self, name: str) -> Any:
        for m in self.measures:
            if m.name == name:
                return m
        raise Misuse(
            nearest(f"{self.aggregation.id} selects no number '{name}'", name, [m.name for m in self.measures])
        )

    def frames(self, per: AggDuration) -> Frames:
        """The merged frame and the one by shard, of one duration."""
        if per not in self._frames:
            self._frames[per] = self._fetch(per)
        return self._frames[per]

    def _count(self, per: AggDuration) -> int:
        return int(self.frames(per)[0]["AGG_TIMESTAMP"].nunique())

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """The groups that the chosen duration has, at most `MOST_GROUPS`."""
        return group_names(self.frames(self.per)[0], groups_of(self.aggregation))[:MOST_GROUPS]

    def _settle_group(self) -> None:
        """Keeps the group valid: all of them only where they add up, or where there are none."""
        groups = self.groups
        free = self.measure.additive or not groups
        if (self.group is not None and self.group not in groups) or (self.group is None and not free):
            self.group = None if free else groups[0]

    def series(self) -> Series:
        """The chart data of the current selection."""
        return series(
            self.aggregation,
            self.per,
            self.measure,
            self.frames(self.per),
            shards=self._shards,
            group=self.group,
            start=self.start,
        )

    # ------------------------------------------------------------------------------------------ without widgets

    def grid(self) -> Grid:
        """The chart's numbers: a row per bucket, a column per shard, and the merged value; the latest twelve
        buckets."""
        s = self.series()
        value = s.measure.value
        rows = [[n, *map(value, s.parts[:, b]), value(s.merged[b])] for b, n in enumerate(s.names)]
        return Grid([s.per, *s.shards, "merged"], rows[-12:], total=s.of[2], what=s.per)

    def text(self) -> str:
        s = self.series()
        return f"{self.aggregation.id}: {s.title}\n{self.grid().text()}"

    def html(self) -> str:
        s = self.series()
        head = f'<b>{html.escape(self.aggregation.id)}</b> <span style="{MUTED}">{html.escape(s.note)}</span>'
        return f"<div>{head}</div>{image(s)}<details><summary>the numbers</summary>{self.grid().html()}</details>"

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {"text/plain": self.text(), "text/html": self.html()}
        shown = self.widget._repr_mimebundle_() or {}
        view = shown[0] if isinstance(shown, tuple) else shown
        kind = "application/vnd.jupyter.widget-view+json"
        return {**bundle, kind: view[kind]} if kind in view else bundle

    # --------------------------------------------------------------------------------------------- with widgets

    @cached_property
    def widget(self) -> ipywidgets.VBox:
        """The controls and the figure, created when first shown."""
        return self._build()

    def _build(self) -> ipywidgets.VBox:
        self._per = ipywidgets.ToggleButtons(
            options=list(self.aggregation.durations),
            value=self.per,
            style={"button_width": "auto"},
            tooltips=[f"one bar for each of the {PLURAL[d]}" for d in self.aggregation.durations],
        )
        self._measures = ipywidgets.Dropdown(
            options=[(m.name, m) for m in self.measures], value=self.measure, layout={"width": "170px"}
        )
        self._groups = ipywidgets.Dropdown(layout={"width": "190px"})
        self._place = ipywidgets.IntSlider(
            min=0, max=0, continuous_update=False, readout=False, layout={"width": "98%"}
        )
        self._note = ipywidgets.HTML()
        self._refresh = ipywidgets.Button(
            icon="refresh", tooltip="read the aggregation again", layout={"width": "38px"}
        )
        self.figure = go.FigureWidget(layout=_layout())
        self.figure._config = {**self.figure._config, "responsive": True, "displaylogo": False}
        self._choices: list[tuple[Any, ...] | None] = []
        self._busy = False
        self._per.observe(self._chosen, "value")
        self._measures.observe(self._chosen, "value")
        self._groups.observe(self._chosen, "value")
        self._place.observe(self._moved, "value")
        self._refresh.on_click(lambda _: self.refresh())
        self._draw()
        controls = [self._per, self._measures, self._groups, self._refresh]
        if len(self.measures) == 1:
            controls.remove(self._measures)
        if not groups_of(self.aggregation):
            controls.remove(self._groups)
        row = ipywidgets.HBox(controls, layout={"flex_flow": "row wrap", "align_items": "center", "grid_gap": "6px"})
        box = ipywidgets.VBox([row, self.figure, self._place, self._note])
        box.add_class("sparkstream-aggregation")
        return box

    def refresh(self) -> None:
        """Reads the aggregation again and redraws it."""
        self._frames.clear()
        self._settle_group()
        if "widget" in self.__dict__:
            self._draw()

    def _chosen(self, change: Any) -> None:
        if self._busy:
            return
        self.per, self.measure = self._per.value, self._measures.value
        self.group = self._choices[self._groups.value]
        self.start = None
        self._settle_group()
        self._draw()

    def _moved(self, change: Any) -> None:
        if not self._busy:
            self.start = int(change["new"])
            self._draw()

    def _draw(self) -> None:
        s = self.series()
        self._busy = True  # what follows sets the controls; that is no choice of the user's
        try:
            # Places in `choices`, since a menu takes None for no choice at all.
            self._choices = [None] if self.measure.additive or not self.groups else []
            self._choices += self.groups
            self._groups.options = [(ALL if g is None else group_label(g), i) for i, g in enumerate(self._choices)]
            self._groups.value = self._choices.index(self.group)
            furthest = max(0, s.of[2] - MOST_BUCKETS)
            self._place.max = furthest
            self._place.value = s.of[0]
            self._place.layout.display = None if furthest else "none"
            self._note.value = f'<span style="{MUTED}">{html.escape(s.note)}</span>'
        finally:
            self._busy = False
        fill(self.figure, s)


def _layout() -> dict[str, Any]:
    grey = "rgba(128,128,128,0.25)"
    return {
        "template": "none",
        "height": 380,
        "autosize": True,
        "hovermode": "x unified",
        "bargap": 0.28,
        "margin": {"l": 64, "r": 18, "t": 64, "b": 48},
        # Middle grey reads on JupyterLab's light and dark themes; the background is the page's.
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#6b7280"},
        "xaxis": {"gridcolor": "rgba(0,0,0,0)", "linecolor": grey, "tickangle": 0, "automargin": True},
        "yaxis": {
            "gridcolor": grey,
            "zerolinecolor": "rgba(128,128,128,0.6)",
            "rangemode": "tozero",
            "automargin": True,
        },
        "legend": {
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.02,
            "xanchor": "left",
            "x": 0,
            "traceorder": "normal",
        },
        "title": {"x": 0.01, "xanchor": "left", "y": 0.97, "font": {"size": 15}},
        "hoverlabel": {"font": {"size": 12}},
    }


def fill(figure: Any, s: Series) -> None:
    """Puts `s` into a plotly figure in one update: a bar trace per shard, and a line for the merged answer."""
    named = len(s.buckets) <= MOST_NAMED
    x: Any = s.names if named else np.asarray(s.buckets, "datetime64[ms]")
    few, fewest = len(s.buckets) <= 14, len(s.buckets) <= 6
    traces: list[Any] = [
        go.Bar(
            name=shard,
            x=x,
            y=s.parts[i],
            marker={"color": COLOURS[i % len(COLOURS)], "line": {"width": 0}},
            hovertemplate="%{y:,.6~g}",
            text=s.parts[i] if fewest else None,
            texttemplate="%{text:.4~s}" if fewest else None,
            textposition="inside",
            insidetextanchor="middle",
            textfont={"color": "white"},
        )
        for i, shard in enumerate(s.shards)
    ]
    traces.append(
        go.Scatter(
            name="merged",
            x=x,
            y=s.merged,
            mode=_line_mode(few, named),
            line={"color": "#6b7280", "width": 1.8},
            marker={"size": 8, "color": "#6b7280"},
            hovertemplate="<b>%{y:,.6~g}</b>",
            cliponaxis=False,
            text=s.merged if few else None,
            texttemplate="<b>%{text:.3~s}</b>" if few else None,
            textposition="top center",
        )
    )
    with figure.batch_update():
        figure.data = ()
        figure.add_traces(traces)
        figure.layout.barmode = "relative" if s.measure.additive else "group"
        figure.layout.xaxis.type = "category" if named else "date"
        figure.layout.xaxis.nticks = 8
        figure.layout.bargap = max(0.28, 1 - 0.22 * len(s.buckets)) if named else 0.1
        figure.layout.title.text = s.title
        figure.layout.uirevision = f"{s.per}/{s.measure.name}/{s.group}"


def _line_mode(few: bool, named: bool) -> str:
    if few:
        return "lines+markers+text"
    return "lines+markers" if named else "lines"
