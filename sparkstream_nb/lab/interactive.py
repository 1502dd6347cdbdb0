"""Results that are interactive in a notebook while its kernel lives; static where a view cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from IPython.display import display

from ..app import (
    AppGraph,
    Chart,
    Cluster,
    Displayed,
    DistributedFailover,
    Divergence,
    Failover,
    FailoverStudy,
    Feed,
    Moment,
    Overview,
    PatternTrace,
    Profile,
    RuleSweep,
    Selection,
    Stats,
    Study,
    Tail,
    WindowTrace,
)
from ..app.pictures.costs_picture import costs_picture
from ..app.pictures.study_picture import study_picture
from ..app.pictures.sweep_picture import sweep_picture
from ..charts.picture import Picture
from . import display as looks
from .progress_bar import show_live
from .traces_shown import trace_picture

_PICTURES: Mapping[type, Callable[[Any], list[Picture]]] = {
    DistributedFailover: lambda failover: [failover.picture()],
    Failover: lambda failover: [failover.picture()],
    FailoverStudy: lambda study: [costs_picture(study)],
    Profile: lambda profile: [profile.picture()],
    PatternTrace: lambda trace: [trace_picture(trace)],
    RuleSweep: lambda sweep: [sweep_picture(sweep)],
    Study: lambda study: [study_picture(study)],
    WindowTrace: lambda trace: [trace_picture(trace)],
}
"""The pictures of results that do not change, in the order in which their HTML has them."""


def register_interactive(shell: Any) -> None:
    """Makes `shell`, one of a kernel, show these results so. Again without effect."""
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.for_type(Feed, _show_feed)
    formatter.for_type(Divergence, _show_timeline)
    formatter.for_type(Moment, lambda moment: _show(moment, "moment_widget", "MomentView"))
    formatter.for_type(Cluster, lambda cluster: _show(cluster, "cluster_widget", "ClusterView"))
    formatter.for_type(Selection, lambda selection: _show(selection, "selection_widget", "SelectionView"))
    formatter.for_type(Stats, _show_stats)
    formatter.for_type(Overview, _show_overview)
    formatter.for_type(AppGraph, _show_graph)
    formatter.for_type(Tail, lambda tail: _show(tail, "tail", "TailView"))
    formatter.for_type(Chart, lambda chart: _show(chart, "chart", "ChartView"))
    for kind in _PICTURES:
        formatter.for_type(kind, _show_result)


def _show_feed(feed: Feed) -> None:
    view = _widget("feed", "FeedView")
    if view is None:
        show_live(feed)
    else:
        view(feed).display()


def _show_timeline(divergence: Divergence) -> None:
    if divergence.matches:
        _show(divergence, "divergence_widget", "DivergenceView")
    else:
        _show_static(divergence)


def _show_stats(stats: Stats) -> None:
    _show_live_value(stats, stats.live, "stats_widget", "StatsView")


def _show_overview(overview: Overview) -> None:
    _show_live_value(overview, overview.read, "overview_widget", "OverviewView")


def _show_graph(graph: AppGraph) -> None:
    _show_live_value(graph, graph.flow, "graph_widget", "GraphView")


def _show_live_value(value: Displayed, source: Any, module: str, name: str) -> None:
    """Shows a value that `source` renews, in a view of `widgets`; without a source static."""
    view = None if source is None else _widget(module, name)
    if view is None:
        _show_static(value)
    else:
        view(value, source).display()


def _show_result(result: Displayed) -> None:
    view = _widget("result", "ResultView")
    if view is None:
        _show_static(result)
    else:
        view(result, lambda width: _PICTURES[type(result)](result)).display()


def _show(value: Displayed, module: str, name: str) -> None:
    """Shows a value in a view of `widgets`, or static."""
    view = _widget(module, name)
    if view is None:
        _show_static(value)
    else:
        view(value).display()


def _widget(module: str, name: str) -> Any:
    """A class of `widgets`; None if anywidget or Plotly cannot be loaded."""
    try:
        import_module(".widgets.live", __package__)  # views load it when the first one is made
        return getattr(import_module(f".widgets.{module}", __package__), name)
    except ImportError:
        return None


def _show_static(value: Displayed) -> None:
    display(looks.bundle(value), raw=True)
