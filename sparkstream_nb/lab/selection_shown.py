"""The display of a selection: how many events of each stream it has, and the last of them."""

from __future__ import annotations

from collections.abc import Iterator

from ..app.results.selected_events import Selection, frame_of_streams
from ..charts.value_texts import CountCell
from ..outputs.output_files import frame_rows
from .display import blocks_of
from .drawings.result_blocks import Block, Heading
from .drawings.text_tables import Grid

_LAST = 10
"""Events that are shown: outputs, and as many that came in."""


@blocks_of(Selection)
def _(selection: Selection) -> list[Block]:
    if selection.criteria.is_empty:
        draw = "draw a rectangle in a picture, or click a value of a table twice"
        return [
            Heading(f"{selection.app}: everything is selected"),
            f"To select: {draw}; or app.select(start=..., end=..., nodes=..., where=...).",
        ]
    is_empty = not any(s.ends.total() for s in selection.streams)
    notes = ["Nothing is selected: no event meets all of this."] if is_empty else []
    return [Heading(f"{selection.app}: {selection.criteria}"), *notes, _counts(selection), *_last_events(selection)]


def _counts(selection: Selection) -> Grid:
    rows = [
        [s.name, "in" if s.is_input else "out", CountCell(s.ends.total()), CountCell(s.ends.stream_total())]
        for s in selection.streams
    ]
    return Grid(["stream", "", "selected", "of"], rows, what="stream")


def _last_events(selection: Selection) -> Iterator[Block]:
    for is_input, title in ((False, "The last outputs:"), (True, "The last events behind them:")):
        streams = [s for s in selection.streams if s.is_input == is_input]
        frame = frame_of_streams([s.last_events(_LAST) for s in streams])
        if len(frame):
            frame = frame.sort_values(frame.columns[2], kind="stable").tail(_LAST)
            total = sum(s.ends.total() for s in streams)
            yield title
            yield Grid(list(map(str, frame.columns)), frame_rows(frame), total=total, what="event")
