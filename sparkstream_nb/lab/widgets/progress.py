"""A progress bar of a running feed, removed when the feed ends."""

from __future__ import annotations

from typing import Any

import ipywidgets
from IPython.display import display

from ...cluster import FeedProgress

_VIEW = "application/vnd.jupyter.widget-view+json"


class FeedBar:
    """Shown with the first progress report; `close` removes it from the cell."""

    def __init__(self) -> None:
        self.box: Any = None

    def __call__(self, progress: FeedProgress) -> None:
        if self.box is None:
            self.bar = ipywidgets.FloatProgress(max=1.0, layout=ipywidgets.Layout(width="16em"))
            self.words = ipywidgets.Label()
            self.box = ipywidgets.HBox([self.bar, self.words])
            # The view alone: a text beside it would stay in the notebook when the bar has gone.
            display({_VIEW: self.box._repr_mimebundle_()[_VIEW]}, raw=True)
        self.bar.value = progress.done / progress.total if progress.total else 0.0
        self.words.value = str(progress)

    def close(self) -> None:
        """Removes the bar."""
        if self.box is not None:
            for widget in (self.box, self.bar, self.words):
                widget.close()
