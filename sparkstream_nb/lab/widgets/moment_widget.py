"""The view of a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...app import Moment
from .live import LiveOutput
from .moment_controls import MomentControls
from .view_scripts import read_script


class MomentView:
    """A moment that is interactive while the kernel lives; its pictures and tables are saved."""

    def __init__(self, moment: Moment) -> None:
        self.controls = MomentControls(moment, self._draw)
        script = read_script("moment_controls.js", "moment_widget.js")
        self._output = LiveOutput(self.controls.forms, script, self._handle_message)

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def _handle_message(self, message: Mapping[str, Any]) -> None:
        """Handle an action in the page. Runs in the thread in which Jupyter handles messages."""
        if message["do"] == "gone":
            return
        self.controls.handle(message)
        self._draw()
        if message["do"] != "here":
            self._output.keep()

    def _draw(self) -> None:
        self._output.show(self.controls.state())
