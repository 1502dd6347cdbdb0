"""The view of a selection: the selected events of an app, which follow its pictures."""

from __future__ import annotations

from typing import Any

from ...app.results.selected_events import Selection
from .. import display
from .following import FollowingView
from .view_scripts import read_script


class SelectionView(FollowingView):
    """A selection while the kernel lives; the last one is saved."""

    def __init__(self, selection: Selection) -> None:
        super().__init__(selection.target, read_script("renewed_view.js"))
        self.selection = selection

    def read(self) -> None:
        if self.selection.criteria != self.link.criteria:
            self.selection = self.selection.renew()

    def redraw_selection(self) -> None:
        super().redraw_selection()
        self._output.keep()

    def state(self) -> dict[str, Any]:
        return {"html": display.html(self.selection)}

    def static(self) -> dict[str, str]:
        return display.bundle(self.selection)
