"""The view of an aggregation, by shard and merged: a picture with controls for duration, measure, group and time."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cluster.buckets import AggregationReader, BucketQuery, InputStream
from ...errors import Misuse, SparkStreamError, nearest
from ...plan.nodes import AggDuration
from ...types import Type
from ..charts import Measure, Series, group_label, measures, series
from ..drawing import WIDTH, Scales, image, scales_of, svg
from ..tables import MUTED, Grid

if TYPE_CHECKING:
    from .live import LiveOutput

# More buckets than this cannot be told apart in one picture.
MOST_BUCKETS = 400
# A menu longer than this cannot be read.
MOST_GROUPS = 500
_SECONDS: dict[str, AggDuration] = {"secs": "sec", "second": "sec", "seconds": "sec", "minute": "min", "minutes": "min"}


@dataclass(frozen=True)
class Choice:
    """What is shown. `group` None: all groups, or the aggregation has none. The buckets from `start` (ms) to `end`,
    exclusive; None: from the first, to the last. Where these are too many, the latest of them, or the earliest."""

    per: AggDuration
    measure: Measure
    group: tuple[Any, ...] | None = None
    start: int | None = None
    end: int | None = None
    latest: bool = True

    @property
    def moved(self) -> bool:
        """Whether other buckets than the latest are shown."""
        return self.start is not None or self.end is not None


class AggregationView:
    """A view of an aggregation. In a notebook it is interactive while the kernel lives, and follows what is committed;
    elsewhere, and in what is saved, it is a picture, a table and text.

    `per` None: the coarsest duration of which there are several buckets. Raises `Misuse` for a duration or a measure
    that the aggregation does not have.
    """

    def __init__(
        self,
        reader: AggregationReader,
        *,
        per: str | None = None,
        measure: str | None = None,
    ) -> None:
        self.reader = reader
        self.aggregation = reader.definition
        self.measures = measures(self.aggregation)
        if not self.measures:
            raise Misuse(f"{self.aggregation.id} selects no numeric attribute to draw")
        additive = [m for m in self.measures if m.additive]
        chosen = self._measure(measure) if measure is not None else (additive or self.measures)[0]
        self._lock = threading.RLock()
        self._groups: list[tuple[Any, ...]] = []
        self._undecided = per is None
        self._failed = ""
        self._width = WIDTH
        self._leave: Callable[[], None] | None = None
        self._behind = False
        duration = self._duration(per)
        reader.settle()
        self.choice = Choice(duration, chosen)
        self._read()
        self._scales = scales_of(self._series)

    def _duration(self, per: str | None) -> AggDuration:
        known = self.aggregation.durations
        if per is None:
            return known[-1]
        wanted = _SECONDS.get(per.lower(), per.lower().rstrip("s"))
        for d in known:
            if d == wanted:
                return d
        raise Misuse(nearest(f"{self.aggregation.id} has no duration '{per}'", per, known))

    def _measure(self, name: str) -> Measure:
        for m in self.measures:
            if m.name == name:
                return m
        raise Misuse(
            nearest(f"{self.aggregation.id} selects no number '{name}'", name, [m.name for m in self.measures])
        )

    @property
    def groups(self) -> list[tuple[Any, ...] | None]:
        """What the menu of groups offers: None for all of them, where the measure has a value over all, and each."""
        return [*([None] if self.choice.measure.over_groups or not self._groups else []), *self._groups]

    def series(self) -> Series:
        """What is shown."""
        return self._series

    def _read(self) -> None:
        """Reads what the choice shows from the store. Raises StoreError where that is closed."""
        if self._undecided:
            self._decide()
        c, many = self.choice, bool(self.aggregation.select.group_by)
        self._groups = self.reader.groups(c.per, MOST_GROUPS) if many else []
        if c.group not in self.groups:
            c = self.choice = replace(c, group=self.groups[0])
        query = BucketQuery(c.per, c.measure.name, c.group, c.start, c.end, MOST_BUCKETS, c.latest)
        label = group_label(c.group) if many else ""
        self._series = series(self.reader, c.per, c.measure, label, self.reader.read(query))

    def _decide(self) -> None:
        """The coarsest duration that has more than one bucket, else the coarsest of all."""
        known = self.aggregation.durations
        per = next((d for d in reversed(known) if self.reader.count(d) > 1), None)
        self._undecided = per is None and not self.reader.count(known[-1])
        self.choice = replace(self.choice, per=per or known[-1])

    def refresh(self) -> None:
        """Reads the aggregation again, and draws what it holds now."""
        self.reader.settle()
        with self._lock:
            self._draw()
        self._keep()

    # ----------------------------------------------------------------------------------------------- the static form

    def grid(self) -> Grid:
        """The chart's numbers: a row per bucket, a column per shard, and the merged value; the latest twelve."""
        s = self._series
        value = s.measure.value
        rows = [[n, *map(value, s.parts[:, b]), value(s.merged[b])] for b, n in enumerate(s.names)]
        return Grid([s.per, *s.shards, "merged"], rows[-12:], total=s.total, what=s.per)

    def text(self) -> str:
        s = self._series
        if not len(s.buckets):
            return "\n".join([f"{s.aggregation}: nothing here yet. Send an event:", *_ways_in(self.reader.source)])
        return f"{s.aggregation}: {s.title}\n{self.grid().text()}"

    def html(self) -> str:
        s = self._series
        head = f"<div><b>{html.escape(s.aggregation)}</b>"
        if not len(s.buckets):
            return f"{head}</div>{self._nothing()}"
        note = f'<span style="{MUTED}">{html.escape(s.note)}</span>'
        return f"{head} {note}</div>{image(s)}<details><summary>the numbers</summary>{self.grid().html()}</details>"

    def _nothing(self) -> str:
        """What stands in the place of a picture that would be empty."""
        if self.choice.moved:
            return "<div>Nothing in this stretch of time.</div>"
        ways = "\n".join(_ways_in(self.reader.source))
        return f'<div>Nothing here yet. Send an event:</div><pre style="margin:.5em 0">{html.escape(ways)}</pre>'

    def __repr__(self) -> str:
        return self.text()

    def _forms(self) -> dict[str, str]:
        with self._lock:
            return {"text/plain": self.text(), "text/html": self.html()}

    # ------------------------------------------------------------------------------------------- the interactive form

    @cached_property
    def _output(self) -> LiveOutput | None:
        """None where ipywidgets or anywidget cannot be loaded."""
        try:
            from .live import LiveOutput  # takes a second to load
        except ImportError:
            return None
        script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        return LiveOutput(self._forms, script, self._received)

    def _ipython_display_(self) -> None:
        if self._output is not None:
            self._output.display()
        else:
            from IPython.display import display

            display(self._forms(), raw=True)

    def _received(self, message: Mapping[str, Any]) -> None:
        """What a person does in the page. Runs in whatever thread Jupyter handles messages."""
        do = message["do"]
        if do == "gone":
            self._stop_following()
            return
        if do == "here":
            with self._lock:
                self._width = max(320, int(message["width"]))
            self._start_following()
        elif do == "refresh":
            self.reader.settle()
        with self._lock:
            if do not in ("here", "refresh"):
                self._choose(do, message)
            self._draw()
        if do != "here":
            self._keep()

    def _choose(self, do: str, message: Mapping[str, Any]) -> None:
        c, s = self.choice, self._series
        match do:
            case "choose":
                self._undecided = False
                c = replace(c, start=None, end=None, latest=True) if "per" in message else c
                c = replace(c, per=self._duration(message.get("per", c.per)))
                c = replace(c, measure=self._measure(message.get("measure", c.measure.name)))
                self.choice = c if "group" not in message else replace(c, group=self.groups[int(message["group"])])
            case "range":
                self.choice = replace(c, start=int(message["start"]), end=int(message["end"]), latest=True)
            case "earlier" if s.before:
                self.choice = replace(c, start=None, end=int(s.buckets[0]), latest=True)
            case "later" if s.before + len(s.buckets) < s.total - MOST_BUCKETS:
                self.choice = replace(c, start=int(s.ends[-1]), end=None, latest=False)
            case "later" | "latest":
                self.choice = replace(c, start=None, end=None, latest=True)

    def _draw(self, former: Scales | None = None) -> None:
        """Reads and draws. `former`: the scales of a picture that is carried on, which only grow."""
        try:
            self._read()
            self._failed = ""
        except SparkStreamError as e:
            self._failed = f"{e} Run the cell again."
            self._stop_following()
        self._scales = scales_of(self._series, former)
        if self._output is not None:
            self._output.show(self._state())

    def _state(self) -> dict[str, Any]:
        c, s = self.choice, self._series
        some = len(s.buckets) > 0
        return {
            "durations": list(self.aggregation.durations),
            "per": c.per,
            "measures": [m.name for m in self.measures],
            "measure": c.measure.name,
            "groups": [group_label(g) for g in self.groups] if self._groups else [],
            "group": self.groups.index(c.group),
            "earlier": some and s.before > 0,
            "later": some and s.before + len(s.buckets) < s.total,
            "moved": c.moved,
            "picture": svg(s, self._scales, width=self._width, live=True) if some else self._nothing(),
            "note": s.note if some else "",
            "numbers": self.grid().html() if some else "",
            "failed": self._failed,
        }

    def _keep(self) -> None:
        """Makes the static form, which is what the notebook saves, that of what is shown."""
        if self._output is not None:
            self._output.keep()

    # ----------------------------------------------------------------------------------------------------- following

    def _start_following(self) -> None:
        """Draws what is committed from now on, as long as the page shows it."""
        with self._lock:
            if self._leave is None:
                from .live import Follower

                self._leave = self.reader.follow(Follower(self._follow, self._rest))

    def _stop_following(self) -> None:
        with self._lock:
            if self._leave is not None:
                self._leave()
                self._leave = None

    def _follow(self) -> None:
        """Draws what was committed, unless the page cannot keep up."""
        with self._lock:
            self._behind = self._output is not None and self._output.lags
            if self._leave is not None and not self._behind:
                self._draw(None if self._undecided else self._scales)

    def _rest(self) -> None:
        """Draws the last commits where that was put off, and keeps the static form of them."""
        with self._lock:
            if self._leave is not None and self._behind:
                self._draw(self._scales)
        self._keep()


_EXAMPLES: dict[Type, Any] = {
    Type.STRING: "text", Type.INT: 1, Type.LONG: 1, Type.FLOAT: 1.5, Type.DOUBLE: 1.5, Type.BOOL: True,
}  # fmt: skip


def _ways_in(source: InputStream) -> list[str]:
    """Lines that send an event, and feed a data frame, as a person would type them."""
    values = [
        1_717_236_000_000 if a.name == source.time and a.type is Type.LONG else _EXAMPLES.get(a.type)
        for a in source.schema
    ]
    time = f" --time {source.time}" if source.time else ""
    name = f"{source.app}.{source.stream}"
    return [f"%siddhi send {name} '{json.dumps(values)}'", f"%siddhi feed {name} frame{time}"]
