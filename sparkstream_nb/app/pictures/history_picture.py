"""The time line of an app's input: how many events and outputs each stream and each node had when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...charts.picture import INK, Bars, Lane, LaneAxis, Mark, Panel, Picture, Rules, Style, TimeAxis, Values, floats
from ...charts.style import WIDTH
from ...charts.value_texts import format_count, when
from .trace_labels import BLUE, ORANGE

if TYPE_CHECKING:
    from ...replay.input_history import InputHistory, StepRows
    from ..results.moment import Moment

POSITION = "position"
"""The part of the picture that marks the moment."""
MOST_LANES = 12
"""Input streams, nodes and output streams that have a lane at most."""
_BIN = 3.0
"""The width of a bin (px), about."""
_MARGIN = 130.0
"""The width (px) of the names of lanes, about."""
_ROW, _NODE_ROW = 24.0, 36.0
_LEAST = 0.2
"""The height of the lowest bar, as a share of the highest."""


def history_picture(moment: Moment, width: int = WIDTH) -> Picture:
    """A lane for each input stream, for each node with its outputs in the lower half, for each output stream, and for
    the commits of several micro-batches. The moment is marked."""
    history, node_names = moment.source.history(), list(moment.nodes)
    bins = _Bins(history, max(20, int((width - _MARGIN) / _BIN)))
    drawing = _Drawing(bins)
    for stream, rows in list(history.events.items())[:MOST_LANES]:
        drawing.add_stream(stream, rows, "event", BLUE)
    for node, name in enumerate(node_names[:MOST_LANES]):
        drawing.add_node(name, bins.counts(history.events, node), bins.counts(history.outputs, node))
    for stream, rows in list(history.outputs.items())[:MOST_LANES]:
        drawing.add_stream(f"→ {stream}", rows, "output", ORANGE)
    commits = moment.source.commits()
    if len(commits.positions) > 1:
        drawing.add_stream("commits", commits, "commit", INK)
    clock = history.clock_at(moment.position)
    rule = Rules(x=floats([clock]), part=POSITION, style=Style(INK, width=2), name="this moment")
    room = 0.01 * (bins.end - bins.start)
    time = TimeAxis("the app's clock (UTC)", [(bins.start - room, bins.end + room)], "sec")
    events, outputs = (sum(len(r.positions) for r in rows.values()) for rows in (history.events, history.outputs))
    return Picture(
        f"{moment.app}: {format_count(events, 'event')} and {format_count(outputs, 'output')}",
        [Panel(time, LaneAxis(drawing.lanes), [*drawing.marks, rule])],
        _notes(history, node_names),
        f"From {when(bins.start)} to {when(bins.end)}; the moment is at {when(clock)}",
    )


def _notes(history: InputHistory, node_names: Sequence[str]) -> list[str]:
    streams = sum(max(0, len(rows) - MOST_LANES) for rows in (history.events, history.outputs))
    counts = (streams, "further stream"), (max(0, len(node_names) - MOST_LANES), "further node")
    return [f"Not drawn: {format_count(count, noun)}" for count, noun in counts if count]


class _Bins:
    """`count` spans of the same length from the first clock to the last (ms)."""

    def __init__(self, history: InputHistory, count: int) -> None:
        self.start = history.clock_at(0)
        self.end = max(history.clock_at(len(history.clock)), self.start + 1)
        self.count = count
        edges = np.linspace(self.start, self.end, count + 1)
        self.firsts, self.ends = edges[:-1], edges[1:]
        span = (self.end - self.start) / count
        self._numbers = np.minimum(((history.clock - self.start) / span).astype(np.int64), count - 1)

    def counts(self, rows_by_stream: Mapping[str, StepRows], node: int | None = None) -> Values:
        """The number of rows of each bin, of one node if it is given."""
        counts = np.zeros(self.count)
        for rows in rows_by_stream.values():
            positions = rows.positions if node is None else rows.positions[rows.nodes == node]
            counts += np.bincount(self._numbers[positions - 1], minlength=self.count)
        return counts


class _Drawing:
    """Lanes from above, and their bars."""

    def __init__(self, bins: _Bins) -> None:
        self._bins = bins
        self.lanes: list[Lane] = []
        self.marks: list[Mark] = []

    def add_stream(self, name: str, rows: StepRows, noun: str, colour: str) -> None:
        """Adds the lane of a stream."""
        self._add_bars(self._bins.counts({name: rows}), (0.08, 0.92), colour, noun)
        self.lanes.append(Lane(name, _ROW, is_bold=True, title=format_count(len(rows.positions), noun)))

    def add_node(self, name: str, events: Values, outputs: Values) -> None:
        """Adds the lane of a node, by the numbers of its events and outputs in each bin."""
        self._add_bars(events, (0.06, 0.5), BLUE, "event")
        self._add_bars(outputs, (0.54, 0.96), ORANGE, "output")
        title = f"{format_count(int(events.sum()), 'event')}, {format_count(int(outputs.sum()), 'output')}"
        self.lanes.append(Lane(name, _NODE_ROW, shade=0.05, title=title))

    def _add_bars(self, counts: Values, between: tuple[float, float], colour: str, noun: str) -> None:
        """Bars for the bins with rows, `between` two shares of the lane that comes next."""
        rows = np.flatnonzero(counts)
        if not len(rows):
            return
        top, bottom = len(self.lanes) + between[0], len(self.lanes) + between[1]
        heights = np.maximum(_LEAST, counts[rows] / counts.max()) * (bottom - top)
        self.marks.append(
            Bars(
                x0=self._bins.firsts[rows], x1=self._bins.ends[rows], y0=bottom - heights,
                y1=np.full(len(rows), bottom), least=2, style=Style(colour), name=f"{noun}s", is_quiet=True,
            )
        )  # fmt: skip
