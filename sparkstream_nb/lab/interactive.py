"""Results that are interactive in a notebook while its kernel lives; static where anywidget cannot be loaded."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from IPython.display import display

from ..app import Chart, Cluster, Displayed, Divergence, Feed, Stats, Tail
from . import display as looks
from .progress_bar import show_live


def register_interactive(shell: Any) -> None:
    """Makes `shell`, one of a kernel, show these results so. Again without effect."""
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.for_type(Feed, _show_feed)
    formatter.for_type(Divergence, _show_timeline)
    formatter.for_type(Cluster, _show_cluster)
    formatter.for_type(Stats, _show_stats)
    formatter.for_type(Tail, _show_tail)
    formatter.for_type(Chart, _show_chart)


def _show_feed(feed: Feed) -> None:
    view = _widget("feed", "FeedView")
    if view is None:
        show_live(feed)
    else:
        view(feed).display()


def _show_timeline(divergence: Divergence) -> None:
    view = _widget("divergence_widget", "DivergenceView") if divergence.matches else None
    if view is None:
        _show_static(divergence)
    else:
        view(divergence).display()


def _show_cluster(cluster: Cluster) -> None:
    view = _widget("cluster_widget", "ClusterView")
    if view is None:
        _show_static(cluster)
    else:
        view(cluster).display()


def _show_stats(stats: Stats) -> None:
    view = None if stats.live is None else _widget("stats_widget", "StatsView")
    if view is None:
        _show_static(stats)
    else:
        view(stats, stats.live).display()


def _show_tail(tail: Tail) -> None:
    view = _widget("tail", "TailView")
    if view is None:
        _show_static(tail)
    else:
        view(tail).display()


def _show_chart(chart: Chart) -> None:
    view = _widget("chart", "ChartView")
    if view is None:
        _show_static(chart)
    else:
        view(chart).display()


def _widget(module: str, name: str) -> Any:
    """A class of `widgets`; None if anywidget cannot be loaded."""
    try:
        return getattr(import_module(f".widgets.{module}", __package__), name)
    except ImportError:
        return None


def _show_static(value: Displayed) -> None:
    display(looks.bundle(value), raw=True)
