"""Results whose pictures are live while the kernel lives: studies, failovers, traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...app import Displayed
from ...charts.picture import Picture
from ..display import bundle
from .live import LiveOutput
from .plots import PLOT_FILES, figure_json
from .view_scripts import read_script

_NARROWEST = 320
_IMAGE = re.compile(r'(<img src=")data:image/svg\+xml;base64,[\w+/=]+("[^>]*class="sparkstream-picture">)')


class ResultView:
    """A result with the `pictures` that its HTML has as images, in their order: in the page they are plots."""

    def __init__(self, result: Displayed, pictures: Callable[[int], list[Picture]]) -> None:
        """`pictures` gives them for a width in px."""
        self._forms, self._pictures = bundle(result), pictures
        script = read_script("plot.js", "picture.js")
        self._output = LiveOutput(lambda: self._forms, script, self._handle_message, PLOT_FILES)

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def _handle_message(self, message: Mapping[str, Any]) -> None:
        if message["do"] == "here":
            self._output.show(self.state(max(_NARROWEST, int(message["width"]))))

    def state(self, width: int) -> dict[str, Any]:
        """The HTML, whose images have no data, and the figures in their place."""
        markup = _IMAGE.sub(r"\1\2", self._forms["text/html"])
        return {"html": markup, "figures": [figure_json(p, width) for p in self._pictures(width)]}
