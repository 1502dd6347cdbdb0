"""Plotly's script, and figures as the page takes them, for all views with a live picture."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from ...charts.picture import Picture
from ...charts.plotly_picture import plotly_figure


@cache
def read_plotly() -> bytes:
    """Plotly's script, compressed with gzip."""
    return gzip.compress(get_plotlyjs().encode())


PLOT_FILES: Mapping[str, Callable[[], bytes]] = {"plotly": read_plotly}
"""The files that `plot.js` asks for."""


def figure_json(picture: Picture, width: int) -> str:
    """A picture as `plot.js` draws it, laid out for `width` px, with the page's ink."""
    figure = plotly_figure(picture, width)
    return json.dumps({"data": figure.data, "layout": figure.layout}, default=_encode, separators=(",", ":"))


def _encode(values: Any) -> Any:
    """Arrays as Plotly's script takes them: moments as texts no longer than they must be, numbers as base64."""
    if not isinstance(values, np.ndarray):
        return values.item() if isinstance(values, np.generic) and values.dtype.kind != "M" else str(values)
    if values.dtype.kind != "M":
        return {"dtype": "f8", "bdata": base64.b64encode(values.astype("<f8").tobytes()).decode()}
    unit: Any = next(u for u, ms in (("m", 60_000), ("s", 1000), ("ms", 1)) if not (values.astype(np.int64) % ms).any())
    return np.datetime_as_string(values, unit=unit).tolist()
