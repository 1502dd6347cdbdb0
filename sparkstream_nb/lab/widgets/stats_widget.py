"""The view of an app's figures: numbers with sparklines, and tables, which follow the app."""

from __future__ import annotations

from typing import Any

from ...app.results.answers import LiveStats, Stats
from ...app.results.listeners import Followed
from .. import display
from ..stats_shown import head_html, tables_html, tiles_html
from .following import FollowingView
from .view_scripts import read_script


class StatsView(FollowingView):
    """Figures that follow an app while the kernel lives; the last shown ones are saved."""

    def __init__(self, stats: Stats, live: LiveStats) -> None:
        super().__init__(Followed(stats.app, live.follow, live.state), read_script("stats_widget.js"))
        self.stats = stats
        self._live = live

    def read(self) -> None:
        self.stats = self._live.read()

    def state(self) -> dict[str, Any]:
        return {"head": head_html(self.stats), "tiles": tiles_html(self.stats), "tables": tables_html(self.stats)}

    def static(self) -> dict[str, str]:
        return display.bundle(self.stats)
