"""The view of the end of a stream: a table or a number that follows the stream, with a button that pauses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...app.results.listeners import Followed
from ...app.results.stream_tail import Tail, TailCursor
from .. import display
from ..tail_shown import grid, headline, note, number_text
from .following import FollowingView
from .view_scripts import read_script


class TailView(FollowingView):
    """The end of a stream, which follows it while the kernel lives; the last shown events are saved."""

    def __init__(self, tail: Tail) -> None:
        super().__init__(Followed(tail.app, tail.follow, tail.state), read_script("tail.js"))
        self.tail = tail
        self.cursor = TailCursor(tail)
        self.snapshot = self.cursor.advance()

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
