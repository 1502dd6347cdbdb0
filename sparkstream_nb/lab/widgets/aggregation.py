"""The view of an aggregation, by shard and merged: a picture and a table with controls."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from IPython.display import display

from ...app.pictures.bucket_series import Measure, Series, group_label, keys_of, measures, series
from ...app.pictures.buckets_picture import Scales, buckets_picture, scales_of
from ...app.results.buckets import AggregationReader, BucketQuery, Group, InputStream
from ...app.results.selection_criteria import Criteria
from ...charts.focus import with_focus
from ...charts.loading import draw_figure
from ...charts.style import WIDTH
from ...errors import Misuse, SparkStreamError, nearest
from ...plan.nodes import AggDuration
from ...stores import EVERY
from ...types import Type
from ..drawings.image import image
from ..drawings.text_tables import MUTED, Grid, escaped_lines
from .choices import KeyMenu, key_menu, parse_token, parse_value
from .following import INTERVAL, Following
from .view_scripts import read_script

if TYPE_CHECKING:
    from ...charts.loading import Figure
    from .live import LiveOutput

# More buckets than this cannot be told apart in one picture.
MOST_BUCKETS = 400
# Rows of the table that a notebook saves.
_SAVED_ROWS = 12
_SECONDS: dict[str, AggDuration] = {"secs": "sec", "second": "sec", "seconds": "sec", "minute": "min", "minutes": "min"}


@dataclass(frozen=True)
class AggregationChoice:
    """The choices of a view. The buckets from `start` (ms) to `end`, exclusive; None: from the first, to the last. If
    these are more than `most`, the latest of them, or the earliest. `stacked`: bars that add up are stacked. `as_wso2`:
    parts that WSO2's servers would not show are hatched. `table`: the table is open.
    """

    per: AggDuration
    measure: Measure
    group: Group = ()
    start: int | None = None
    end: int | None = None
    latest: bool = True
    most: int = MOST_BUCKETS
    stacked: bool = True
    as_wso2: bool = False
    table: bool = False

    @property
    def is_moved(self) -> bool:
        """True if other buckets than the latest are shown."""
        return self.start is not None or self.end is not None or self.most < MOST_BUCKETS

    def latest_buckets(self) -> AggregationChoice:
        """The same with the latest buckets."""
        return replace(self, start=None, end=None, latest=True, most=MOST_BUCKETS)


class AggregationView(Following):
    """A view of an aggregation. In a notebook it is interactive while the kernel lives, and follows the commits;
    elsewhere, and when saved, it is a picture, a table and text.

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
        super().__init__(reader.target, INTERVAL)
        self.reader = reader
        self.aggregation = reader.definition
        self.measures = measures(self.aggregation)
        if not self.measures:
            raise Misuse(f"{self.aggregation.id} selects no numeric attribute to draw")
        additive = [m for m in self.measures if m.additive]
        first_measure = self._measure(measure) if measure is not None else (additive or self.measures)[0]
        self.keys = keys_of(self.aggregation)
        self._menus: list[KeyMenu] = []
        self._typed_texts = [""] * len(self.keys)
        self._own_group: Group | None = None
        """The groups that were chosen here, while the selection shows another."""
        self._is_undecided = per is None
        self._failure = ""
        self._width = WIDTH
        duration = self._duration(per)
        reader.settle()
        self.choice = AggregationChoice(duration, first_measure, (EVERY,) * len(self.keys), most=MOST_BUCKETS)
        self._read()
        self._scales = scales_of(self._series)

    def _duration(self, per: str | None) -> AggDuration:
        durations = self.aggregation.durations
        if per is None:
            return durations[-1]
        duration = _SECONDS.get(per.lower(), per.lower().rstrip("s"))
        for d in durations:
            if d == duration:
                return d
        raise Misuse(nearest(f"{self.aggregation.id} has no duration '{per}'", per, durations))

    def _measure(self, name: str) -> Measure:
        for m in self.measures:
            if m.name == name:
                return m
        raise Misuse(
            nearest(f"{self.aggregation.id} selects no number '{name}'", name, [m.name for m in self.measures])
        )

    def series(self) -> Series:
        """The choices of the view."""
        return self._series

    def _read(self) -> None:
        """Read the chosen values from the store. Raises StoreError if the store is closed."""
        if self._is_undecided:
            self._decide()
        c = self.choice = replace(self.choice, group=self._readable_group())
        self._menus = [self._menu(i) for i in range(len(self.keys))]
        query = BucketQuery(c.per, c.measure.name, c.group, c.start, c.end, c.most, c.latest, c.as_wso2)
        label = group_label(self.keys, c.group)
        self._series = series(self.aggregation, c.per, c.measure, label, self.reader.read(query), is_stacked=c.stacked)

    def _readable_group(self) -> Group:
        """The groups chosen. Where the measure has no value over several groups, each attribute gets the first value
        that goes with those before it, unless it has one."""
        group = self.choice.group
        if self.choice.measure.over_groups:
            return group
        for i in range(len(group)):
            if group[i] is EVERY or not self.reader.key_values(i, _open_after(group, i), 1):
                first = self.reader.key_values(i, _open_after(group, i - 1), 1)
                group = (*group[:i], *(first or [EVERY]), *group[i + 1 :])
        return group

    def _menu(self, key: int) -> KeyMenu:
        """The values of a group-by attribute that go with the other ones chosen, or with those before it where each
        must have a value."""
        group, over_groups = self.choice.group, self.choice.measure.over_groups
        others = (*group[:key], EVERY, *group[key + 1 :]) if over_groups else _open_after(group, key - 1)

        def values(most: int, containing: str) -> list[Any]:
            return self.reader.key_values(key, others, most, containing)

        return key_menu(self.keys[key], group[key], values, typed_text=self._typed_texts[key], every=over_groups)

    def _decide(self) -> None:
        """The coarsest duration that has more than one bucket, else the coarsest of all."""
        durations = self.aggregation.durations
        per = next((d for d in reversed(durations) if self.reader.count(d) > 1), None)
        self._is_undecided = per is None and not self.reader.count(durations[-1])
        self.choice = replace(self.choice, per=per or durations[-1])

    def refresh(self) -> None:
        """Read the aggregation again, and draw its present values."""
        self.reader.settle()
        with self.lock:
            self._draw()
        self._keep()

    # ----------------------------------------------------------------------------------------------- the static form

    def grid(self, most: int | None = _SAVED_ROWS) -> Grid:
        """The chart's numbers: a row per bucket, a column per shard, and the merged value; the latest `most`."""
        s = self._series
        value = s.measure.value
        rows = [[n, *map(value, s.parts[:, b]), value(s.merged[b])] for b, n in enumerate(s.names)]
        flags = ["" if note is None else f"({note.flag})" for note in s.shard_notes]
        return Grid(
            [s.per, *(shard.id for shard in s.shards), "merged"],
            rows if most is None else rows[-most:],
            total=s.total,
            notes=["", *flags, ""],
            what=s.per,
        )

    @property
    def figure(self) -> Figure:
        """The picture as a Plotly figure. Raises SparkStreamError where Plotly is not installed."""
        s = self._series
        if not len(s.buckets):
            raise Misuse(f"there is nothing to draw: {s.aggregation} has no bucket in this choice")
        return draw_figure(buckets_picture(s))

    def _absent(self) -> str:
        """A line about shards that lack rows or belong to no node."""
        return "; ".join(note.text for note in self._series.shard_notes if note is not None)

    def text(self) -> str:
        s = self._series
        if not len(s.buckets):
            if self._is_narrowed:
                return f"{s.aggregation}: {s.title}\nNothing in this choice."
            return "\n".join([f"{s.aggregation}: nothing here yet. Send an event:", *_ways_in(self.reader.source)])
        lines = [f"{s.aggregation}: {s.title}", self.grid().text(), self._absent()]
        return "\n".join(line for line in lines if line)

    def html(self) -> str:
        s = self._series
        head = f"<div><b>{html.escape(s.aggregation)}</b>"
        if not len(s.buckets):
            return f"{head}</div>{self._empty_message()}"
        note = f'<span style="{MUTED}">{html.escape(s.note)}</span>'
        absent = f'<div style="{MUTED}">{html.escape(self._absent())}</div>' if self._absent() else ""
        open_attribute = " open" if self.choice.table else ""
        table = f"<details{open_attribute}><summary>table</summary>{self.grid().html()}</details>"
        return f"{head} {note}</div>{image(buckets_picture(s))}{absent}{table}"

    @property
    def _is_narrowed(self) -> bool:
        """True if only some buckets or groups are shown."""
        return self.choice.is_moved or any(v is not EVERY for v in self.choice.group)

    def _empty_message(self) -> str:
        """The text in place of an empty picture."""
        if self._is_narrowed:
            return f"<div>{html.escape(self._series.title)}: nothing in this choice.</div>"
        ways = escaped_lines("\n".join(_ways_in(self.reader.source)))
        return f"<div>Nothing here yet. Send an event:</div>{ways}"

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """The static form, for notebooks without IPython, such as marimo."""
        return self._forms()["text/html"]

    def _forms(self) -> dict[str, str]:
        with self.lock:
            return {"text/plain": self.text(), "text/html": self.html()}

    # ------------------------------------------------------------------------------------------- the interactive form

    def _made(self) -> LiveOutput | None:
        """None if ipywidgets, anywidget or Plotly cannot be loaded."""
        try:
            from .live import LiveOutput  # takes a second to load
            from .plots import PLOT_FILES
        except ImportError:
            return None
        return LiveOutput(self._forms, read_script("plot.js", "aggregation.js"), self._handle_message, PLOT_FILES)

    def _figure_json(self) -> str:
        from .plots import figure_json

        picture = buckets_picture(self._series, self._scales, width=self._width)
        criteria, s = self.link.criteria, self._series
        labels = [label for shard, label in zip(s.shards, s.shard_labels, strict=True) if shard.id in criteria.nodes]
        return figure_json(with_focus(picture, criteria.focus(labels)), self._width)

    def _ipython_display_(self) -> None:
        if self._output is None:
            self._output = self._made()
        if self._output is not None:
            self._output.display()
        else:
            display(self._forms(), raw=True)

    def resize(self, width: int) -> None:
        self._width = max(320, width)

    def criteria_of(self, message: Mapping[str, Any]) -> Criteria:
        criteria = replace(self.link.criteria, alerts=None)
        if "name" in message:
            shards = zip(self._series.shards, self._series.shard_labels, strict=True)
            node = next((shard.id for shard, label in shards if label == message["name"] and shard.is_node), None)
            if node is None or not self.aggregation.partitioned:
                raise Misuse(f"{message['name']} is no node of this app")
            return criteria.toggle_node(node)
        buckets = self._buckets_between(float(message["start"]), float(message["end"]))
        if buckets is None:
            raise Misuse("no bucket's middle lies in this rectangle")
        return replace(criteria, start=buckets[0], end=buckets[1] - 1)

    def show_failure(self, text: str) -> None:
        with self.lock:
            self._failure = text
            self._show()

    def redraw_selection(self) -> None:
        with self.lock:
            values_by_key = [self.link.criteria.keys.get(name, ()) for name in self.keys]
            own_group = self.choice.group if self._own_group is None else self._own_group
            pairs = zip(own_group, values_by_key, strict=True)
            group = tuple(values[0] if len(values) == 1 else choice for choice, values in pairs)
            self._own_group = None if group == own_group else own_group
            self.choice = replace(self.choice, group=group)
            self._draw()

    def _buckets_between(self, start: float, end: float) -> tuple[int, int] | None:
        """The time of the buckets whose middle lies between two times (ms), their end excluded."""
        s = self._series
        middles = (s.buckets + s.ends) / 2
        numbers = np.flatnonzero((middles >= start) & (middles <= end))
        return (int(s.buckets[numbers[0]]), int(s.ends[numbers[-1]])) if len(numbers) else None

    def _handle_action(self, do: str, message: Mapping[str, Any]) -> None:
        if do == "refresh" and not self.is_closed:
            self.reader.settle()
        with self.lock:
            if self.is_closed:
                self._show()
                return
            if do == "suggest":
                self._suggest(int(message["key"]), str(message["text"]))
                return
            try:
                if do not in ("here", "refresh"):
                    self._choose(do, message)
            except Misuse as e:  # for the user's input
                self._failure = str(e)
                self._show()
                return
            self._draw()
        if do != "here":
            self._keep()

    def _choose(self, do: str, message: Mapping[str, Any]) -> None:
        c, s = self.choice, self._series
        page = len(s.buckets) if c.start is not None and c.end is not None else c.most
        match do:
            case "choose":
                self._is_undecided = False
                c = c.latest_buckets() if "per" in message else c
                c = replace(c, per=self._duration(message.get("per", c.per)))
                c = replace(c, measure=self._measure(message.get("measure", c.measure.name)))
                c = replace(c, stacked=bool(message.get("stacked", c.stacked)))
                c = replace(c, as_wso2=bool(message.get("asWso2", c.as_wso2)))
                self.choice = replace(c, table=bool(message.get("table", c.table)))
            case "key":
                self._choose_key(int(message["key"]), message)
            case "range":
                buckets = self._buckets_between(float(message["start"]), float(message["end"]))
                if buckets is not None:
                    self.choice = replace(c.latest_buckets(), start=buckets[0], end=buckets[1])
            case "earlier" if s.before:
                self.choice = replace(c, start=None, end=int(s.buckets[0]), latest=True, most=page)
            case "later" if len(s.buckets) and s.total - s.before - len(s.buckets) > len(s.buckets):
                self.choice = replace(c, start=int(s.ends[-1]), end=None, latest=False, most=page)
            case "later":
                self.choice = replace(c, start=None, end=None, latest=True, most=page)
            case "latest":
                self.choice = c.latest_buckets()
            case "all":
                self._is_undecided = False
                durations = self.aggregation.durations
                finest = durations[durations.index(c.per) :]
                per = next((d for d in finest if self.reader.count(d) <= MOST_BUCKETS), durations[-1])
                self.choice = replace(c.latest_buckets(), per=per)

    def _choose_key(self, key: int, message: Mapping[str, Any]) -> None:
        """Choose a value of a group-by attribute: a `token` of a menu, or a `text` that the user typed."""
        self._typed_texts[key] = ""
        if "token" in message:
            value = parse_token(message["token"])
        else:
            value = parse_value(message["text"], self._menus[key], self.aggregation.select.group_by[key].type)
        group = self.choice.group
        self.choice = replace(self.choice, group=(*group[:key], value, *group[key + 1 :]))

    def _suggest(self, key: int, text: str) -> None:
        """Shows the values of a group-by attribute that contain `text`."""
        self._typed_texts[key] = text
        self._menus[key] = self._menu(key)
        self._show()

    def _draw(self, previous_scales: Scales | None = None) -> None:
        """Reads and draws. `previous_scales`: the scales of a picture that is carried on, which only grow."""
        try:
            self._read()
            self._failure = ""
        except SparkStreamError as e:
            self._failure = f"{e} Run the cell again."
            self._stop_following()
        self._scales = scales_of(self._series, previous_scales)
        self._show()

    def _show(self) -> None:
        if self._output is not None:
            self._output.show(self._state())

    def _draw_on(self) -> None:
        self._draw(None if self._is_undecided else self._scales)

    def _state(self) -> dict[str, Any]:
        c, s = self.choice, self._series
        some = len(s.buckets) > 0
        return {
            "durations": list(self.aggregation.durations),
            "per": c.per,
            "measures": [m.name for m in self.measures],
            "measure": c.measure.name,
            "keys": [menu.state() for menu in self._menus],
            "stacked": s.is_stacked,
            "asWso2": c.as_wso2,
            "open": self.aggregation.partitioned,
            "stacks": s.measure.additive and len(s.shards) > 1,
            "table": c.table,
            "earlier": some and s.before > 0,
            "later": some and s.before + len(s.buckets) < s.total,
            "moved": c.is_moved,
            "figure": self._figure_json() if some else "",
            "namesSelect": self.aggregation.partitioned and len(s.shards) > 1,
            "empty": "" if some else self._empty_message(),
            "note": s.note if some else "",
            "absent": self._absent(),
            "numbers": self.grid(None).html() if some and c.table else "",
            "failed": self._failure,
            "standing": self.status_note(),
            **self.link.state(),
        }

    def _keep(self) -> None:
        """Update the static form, which the notebook saves, to the present view."""
        if self._output is not None:
            self._output.keep()


def _open_after(group: Group, key: int) -> Group:
    """`group` with all attributes after number `key` left open."""
    return (*group[: key + 1], *(EVERY for _ in group[key + 1 :]))


_EXAMPLES: dict[Type, Any] = {
    Type.STRING: "text", Type.INT: 1, Type.LONG: 1, Type.FLOAT: 1.5, Type.DOUBLE: 1.5, Type.BOOL: True,
}  # fmt: skip


def _ways_in(source: InputStream) -> list[str]:
    """Lines that send an event, and feed a data frame, as a user would type them."""
    values = [
        1_717_236_000_000 if a.name == source.time and a.type is Type.LONG else _EXAMPLES.get(a.type)
        for a in source.schema
    ]
    time = f" --time {source.time}" if source.time else ""
    name = f"{source.app}.{source.stream}"
    return [f"%siddhi send {name} '{json.dumps(values)}'", f"%siddhi feed {name} frame{time}"]
