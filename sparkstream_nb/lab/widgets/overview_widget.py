"""The view of all apps at a glance, which is read again every two seconds while a page shows it.

It does not follow commits: apps that are deployed later belong to it, and rates fall when nothing is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...app.results.listeners import Followed
from ...app.results.overview import Overview
from .. import display
from .following import FollowingView, every
from .view_scripts import read_script

SECONDS = 2.0
"""Between two readings."""


class OverviewView(FollowingView):
    """All apps while the kernel lives; the last figures are saved."""

    def __init__(self, overview: Overview, read: Callable[[], Overview]) -> None:
        super().__init__(Followed("", every(SECONDS)), read_script("renewed_view.js"))
        self.overview = overview
        self._read_overview = read
        self._kept_apps = overview.apps

    def read(self) -> None:
        self.overview = self._read_overview()

    def state(self) -> dict[str, Any]:
        return {"html": display.html(self.overview)}

    def static(self) -> dict[str, str]:
        return display.bundle(self.overview)

    def _rest(self) -> None:
        """Keep the static form where the apps' figures changed: a notebook whose apps rest can be saved."""
        if self.overview.apps != self._kept_apps:
            self._kept_apps = self.overview.apps
            super()._rest()
