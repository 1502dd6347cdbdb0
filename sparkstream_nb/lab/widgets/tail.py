"""The view of the end of a stream: a table or a number that follows the stream, with a button that pauses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...app.results.selected_ends import SelectedEnds
from ...app.results.selection_criteria import Criteria
from ...app.results.stream_tail import Tail, TailCursor
from ...errors import Misuse
from .. import display
from ..tail_shown import grid, headline, note, number_text
from .following import FollowingView
from .view_scripts import read_script


class TailView(FollowingView):
    """The end of a stream, which follows it while the kernel lives; the last shown events are saved."""

    def __init__(self, tail: Tail) -> None:
        super().__init__(tail.target, read_script("tail.js"))
        self.tail = tail
        self.cursor = TailCursor(tail)
        self.snapshot = self.cursor.advance()

    def criteria_of(self, message: Mapping[str, Any]) -> Criteria:
        """The value of a cell: a node, or a value of an attribute; the page says what it showed there."""
        s, row, column = self.snapshot, int(message["row"]), int(message["column"])
        if row >= len(s.rows) or grid(s).cells[row][column] != message["text"]:
            raise Misuse("the rows have moved on: pause, then select")
        criteria, value = replace(self.link.criteria, alerts=None), s.rows[row][column]
        if column == 0:
            return criteria.toggle_node(str(value))
        if column == 1:
            raise Misuse("a time is selected in a chart: draw a rectangle")
        if not _is_key(value):
            raise Misuse(f"{s.columns[column]} is no text and no whole number: select another attribute")
        return criteria.toggle_key(s.columns[column], value)

    def redraw_selection(self) -> None:
        criteria = self.link.criteria
        ends = self.tail.ends if criteria.is_empty else SelectedEnds(self.tail.ends, self.tail.stream, criteria)
        with self.lock:
            self.cursor = TailCursor(replace(self.tail, ends=ends))
            self._draw()
        self._output.keep()

    def read(self) -> None:
        self.snapshot = self.cursor.advance()

    def act(self, message: Mapping[str, Any]) -> None:
        if message["do"] == "pause":
            self.read()  # the events present when the button is pressed
            self.cursor.pause()
        elif message["do"] == "resume":
            self.cursor.resume()

    def state(self) -> dict[str, Any]:
        """Texts, which the script puts into the page as texts: none of them is HTML."""
        s = self.snapshot
        number = s.shape.number
        table = grid(s)
        return {
            "name": f"{s.app}.{s.stream}",
            "head": headline(s),
            "note": note(s),
            "paused": s.paused is not None,
            "number": None if number is None else {"name": number, "value": number_text(s) if s.rows else "–"},
            "columns": table.columns if number is None and s.rows else [],
            "right": table.right if number is None else [],
            "rows": table.cells if number is None else [],
        }

    def static(self) -> dict[str, str]:
        return display.bundle(self.snapshot)


def _is_key(value: Any) -> bool:
    """True for a value that events may be selected by."""
    return value is None or isinstance(value, str | int)
