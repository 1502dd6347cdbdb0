"""The texts of a picture that have room, and their places (px)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .picture import Panel, Rules, Texts
from .scales import Scale

CHARACTER = 6.7
"""The width (px) of a character, about."""
RIGHT = 18.0
"""The room (px) to the right of a panel."""
WORD_ROW = 13.0
"""The height (px) of a row of texts above a panel, or below the marks of a lane."""
_MOST_WORD_ROWS = 20
_WORD_GAP = 4.0
_LEAST_CUT = 5
"""Characters of a text that is cut, at least; a shorter one says nothing."""


@dataclass(frozen=True)
class PlacedText:
    """A text at (`x`, `y`), the one of `number` among its mark's. `value`: the place on the horizontal axis of what it
    explains."""

    x: float
    y: float
    text: str
    anchor: str = "middle"
    number: int = 0
    value: float = 0.0


def text_width(text: str) -> float:
    """The width of a line of text (px), about."""
    return CHARACTER * len(text)


def cut_text(text: str, room: float) -> str:
    """The beginning of a text that fits into a width (px)."""
    while len(text) > 1 and text_width(text) > room:
        text = text[:-2] + "…"
    return text


def cut_values(text: str, room: float) -> str:
    """The first values of a text, parted by commas, that fit into a width (px); of the first one its beginning."""
    cut = cut_text(text, room)
    comma = cut.rfind(",")
    return cut if cut == text or comma < 0 else f"{cut[:comma]}…"


def place_words(panel: Panel, x: Scale, top: float, left: float, right: float) -> tuple[list[PlacedText], float]:
    """The words of rules in rows above the panel, the lowest first, and the height of the rows."""
    free: list[float] = []
    places: list[tuple[float, int, str, float]] = []
    for mark in panel.marks:
        if not isinstance(mark, Rules):
            continue
        for at, words, value in zip(x.places(mark.x).tolist(), mark.words, mark.x.tolist(), strict=False):
            first = max(4.0, min(at, right + RIGHT - 4 - text_width(words)))
            row = next((i for i, f in enumerate(free) if first > f), len(free))
            if row == _MOST_WORD_ROWS or not left - 1 <= at <= right + 1:
                continue
            free[row:] = [first + text_width(words) + 6, *free[row + 1 :]]
            places.append((first, row, words, value))
    height = WORD_ROW * len(free)
    base = top + height - 5
    placed_texts = [PlacedText(a, base - WORD_ROW * row, words, "start", value=v) for a, row, words, v in places]
    return placed_texts, height


class Lines:
    """The lines of text in the lanes of a panel, by the place of their lane and their height above it, with the
    stretches (px) that have a text."""

    def __init__(self) -> None:
        self._stretches: dict[tuple[float, float], list[tuple[float, float]]] = {}

    def room(self, lane: float, height: float, x: float) -> float:
        """The width (px) that a text around `x` may have, without touching another one."""
        stretches = self._stretches.get((lane, height), ())
        return 2 * min((max(a - x, x - b) for a, b in stretches), default=math.inf)

    def add(self, lane: float, height: float, first: float, last: float) -> None:
        """Takes a stretch for a text."""
        self._stretches.setdefault((lane, height), []).append((first, last))


def place_texts(
    mark: Texts, x: Scale, left: float, right: float, lines: Lines | None
) -> Callable[[Scale], list[PlacedText]]:
    """The texts of a mark that have room: in their lane where there are `lines`, else after the one before. What it
    returns places them once the vertical scale is known."""
    at, share, free = x.places(mark.x).tolist(), mark.size / 12, -math.inf
    spans = None if mark.spans is None else x.places(mark.x + mark.spans / 2) - x.places(mark.x - mark.spans / 2)
    chosen_texts: list[tuple[int, str]] = []
    for i, (place, full_text) in enumerate(zip(at, mark.texts, strict=True)):
        if not left - 20 <= place <= right or not np.isfinite(mark.y[i]):
            continue
        lane, text = float(mark.y[i]), full_text
        if spans is not None:
            room = lines.room(lane, mark.shift, place) if lines else math.inf
            text = cut_text(full_text, min(spans[i] - 2 * _WORD_GAP, room) / share)
        width = text_width(text) * share
        first = place - width * {"middle": 0.5, "end": 1.0}.get(mark.anchor, 0.0)
        has_room = first >= free if lines is None else lines.room(lane, mark.shift, first + width / 2) >= width
        if not text or (len(text) < len(full_text) and len(text) < _LEAST_CUT) or not (has_room or mark.overlap):
            continue
        free = first + width
        if lines is not None:
            lines.add(lane, mark.shift, first, free)
        chosen_texts.append((i, text))

    def places(y: Scale) -> list[PlacedText]:
        heights = y.places(mark.y) + mark.shift
        return [PlacedText(at[i], float(heights[i]), text, mark.anchor, i) for i, text in chosen_texts]

    return places


@dataclass
class _Row:
    """A row of labels, from left to right; `free`: where the last one ends (px)."""

    free: float

    def has_room(self, width: float, x: float, following: float) -> bool:
        """True if a whole label of the mark at `x` fits beside it."""
        return (x + 8 >= self.free and following - x - 16 >= width) or x - self.free - 14 > width

    def place(self, text: str, width: float, x: float, following: float) -> tuple[float, str, str] | None:
        """A label of the mark at `x`, if there is room (x, text, anchor): to its right as far as the `following` mark,
        cut if need be, else to its left."""
        right, left = following - x - 16, x - self.free - 14
        begin, self.free = self.free, max(self.free, x + 5)
        if right < width < left and x - width > begin:
            return x - 8, text, "end"
        label = cut_values(text, right / 0.93)
        if right < 10 or label in ("", "…") or (len(label) < len(text) and right < 40):
            return None
        self.free = x + 8 + 0.93 * text_width(label)
        return x + 8, label, "start"


def place_beside(
    mark: Texts, scale: Scale, bounds: tuple[float, float], rows: dict[int, int], lines: Lines
) -> Callable[[Scale], list[PlacedText]]:
    """The labels beside their marks, within `bounds` (px), each lane for itself; `rows` gets how many rows below a
    lane needs. What it returns places them once the vertical scale is known."""
    left, right = bounds
    at = scale.places(mark.x).tolist()
    placed_texts: list[tuple[PlacedText, float, int]] = []
    for lane in dict.fromkeys(mark.y[np.isfinite(mark.y)].tolist()):
        numbers = np.flatnonzero(mark.y == lane).tolist()
        beside, *below = (_Row(left) for _ in range(1 + mark.rows))
        for i, following in zip(numbers, [*(at[n] for n in numbers[1:]), right], strict=True):
            x, text = at[i], mark.texts[i]
            width = 0.93 * text_width(text)
            roomy = next((r for r, row in enumerate(below) if row.has_room(width, x, right)), None)
            if roomy is None or beside.has_room(width, x, following):
                place, row = beside.place(text, width, x, following), 0
            else:
                place, row = below[roomy].place(text, width, x, right), roomy + 1
                beside.free = max(beside.free, x + 5)  # no label covers the mark
                rows[int(lane)] = max(rows.get(int(lane), 0), row)
            if place is not None and (place[2] == "start" or _takes_left(mark, lines, lane, place[0], width)):
                placed_texts.append((PlacedText(place[0], 0.0, place[1], place[2], i), lane, row))

    def places(y: Scale) -> list[PlacedText]:
        lifts = {"end": mark.lift}
        return [
            replace(text, y=y.place(lane) + mark.shift + WORD_ROW * row - lifts.get(text.anchor, 0.0))
            for text, lane, row in placed_texts
        ]

    return places


def _takes_left(mark: Texts, lines: Lines, lane: float, end: float, width: float) -> bool:
    """True if a label that ends at `end` (px) has its place; a lifted one must not touch other texts there."""
    if not mark.lift:
        return True
    height = mark.shift - mark.lift
    if lines.room(lane, height, end - width / 2) < width + 2 * _WORD_GAP:
        return False
    lines.add(lane, height, end - width, end)
    return True
