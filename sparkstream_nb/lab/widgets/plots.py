"""What views with a live picture share: Plotly's script, and figures as the page takes them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from functools import cache

from plotly.offline import get_plotlyjs

from ...charts.picture import INK, Picture
from ...charts.plotly_picture import figure_of


@cache
def read_plotly() -> bytes:
    """Plotly's script, compressed with gzip."""
    return gzip.compress(get_plotlyjs().encode())


PLOT_FILES: Mapping[str, Callable[[], bytes]] = {"plotly": read_plotly}
"""The files that `plot.js` asks for."""


_PAGE_INK = "rgb(1,2,3)"  # Plotly refuses the words for the page's own colour


def figure_json(picture: Picture, width: int) -> str:
    """A picture as `plot.js` draws it, laid out for `width` px, with the page's ink."""
    figure = figure_of(picture, width, _PAGE_INK)
    figure.update_layout(template=None)
    return str(figure.to_json()).replace(f'"{_PAGE_INK}"', f'"{INK}"')
