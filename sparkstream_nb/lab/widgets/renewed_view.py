"""A view that is read again regularly, and drawn as its static form is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...app.results.listeners import Followed
from .following import FollowingView
from .view_scripts import read_script


class RenewedView(FollowingView):
    """The forms that `render` gives by MIME type, with `text/html`, whose texts are escaped."""

    def __init__(self, target: Followed, render: Callable[[], dict[str, str]]) -> None:
        super().__init__(target, read_script("renewed_view.js"))
        self._render = render
        self._forms_read = render()

    def read(self) -> None:
        self._forms_read = self._render()

    def state(self) -> dict[str, Any]:
        return {"html": self._forms_read["text/html"]}

    def static(self) -> dict[str, str]:
        return self._forms_read
