"""The selection of an app in one of its views: a line that says what is selected, and what a person selects there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...app.results.selection_criteria import Criteria, SharedSelection
from ...charts.picture import LaneAxis, Picture
from ...charts.picture_layout import lay_out


class SelectionLink:
    """The `shared` selection of a view's app (None: it has none), which the view follows while a page shows it:
    `redraw` is called after each change."""

    def __init__(self, shared: SharedSelection | None, redraw: Callable[[], None]) -> None:
        self._shared, self._redraw = shared, redraw
        self._leave: Callable[[], None] | None = None

    @property
    def criteria(self) -> Criteria:
        """The criteria now."""
        return Criteria() if self._shared is None else self._shared.criteria

    def choose(self, criteria: Criteria) -> None:
        """Selects by `criteria`. Hold no lock of a view's."""
        if self._shared is not None:
            self._shared.choose(criteria)

    def handle(self, message: Mapping[str, Any]) -> bool:
        """Follows the selection while the page is there; true if the message was for the selection alone."""
        match message["do"]:
            case "here" if self._shared is not None and self._leave is None:
                self._leave = self._shared.follow(self._redraw)
                if not self.criteria.is_empty:
                    self._redraw()
            case "gone" if self._leave is not None:
                self._leave()
                self._leave = None
            case "unselect":
                self.choose(Criteria())
                return True
        return False

    def state(self) -> dict[str, Any]:
        """The line for the page: empty if everything is selected."""
        return {"selection": "" if self.criteria.is_empty else str(self.criteria)}


def lanes_between(picture: Picture, width: int, low: float, high: float) -> list[str]:
    """The lanes of the first panel of a picture that lie between two heights (px), as a figure of `width` px has them:
    those whose middle does, or else those that it touches. Empty if all do."""
    panel = lay_out(picture, width).panels[0]
    axis = panel.panel.y
    if not isinstance(axis, LaneAxis):
        return []
    low, high = min(low, high), max(low, high)
    places = [(lane.name, panel.y.place(i), panel.y.place(i + 1)) for i, lane in enumerate(axis.lanes)]
    names = [name for name, top, bottom in places if low <= (top + bottom) / 2 <= high]
    names = names or [name for name, top, bottom in places if top < high and bottom > low]
    return names if len(names) < len(places) else []
