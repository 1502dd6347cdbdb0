"""Tables of pandas frames."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from ...charts.value_texts import CountCell
from ...outputs.output_files import frame_rows
from .text_tables import Grid


def grid_of_frame(
    frame: pd.DataFrame, *, limit: int | None = None, counts: Iterable[str] = (), what: str = "row"
) -> Grid:
    """The rows of a frame, of which the columns `counts` have numbers of something."""
    head = frame if limit is None else frame.head(limit)
    cells = {c: pd.Series([CountCell(n) for n in head[c]], head.index, dtype=object) for c in counts}
    head = head.assign(**cells)
    return Grid(list(frame.columns), frame_rows(head), total=len(frame), what=what)
