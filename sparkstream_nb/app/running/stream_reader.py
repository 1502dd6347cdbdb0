"""The events of an app's streams, as they were committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ... import argument_checks
from ...charts.frame_plot import CHART_KINDS, ChartKind
from ...errors import Misuse, nearest, shown
from ...option_values import duration_ms
from ...outputs.output_files import stamps
from ...types import Schema, Type
from ..results.answers import Events, InputCounts
from ..results.stream_chart import Chart, ChartShape
from ..results.stream_cursor import StreamEnds
from ..results.stream_ends import ArrivalEnds, OutputEnds
from ..results.stream_tail import Tail, TailShape
from .runtime import AppRuntime

ARRIVALS = 1_000
"""Default number of events of an input stream that `App.output` reads."""


class StreamReader:
    """Outputs of derived streams, and the last events of input streams."""

    def __init__(self, app: AppRuntime) -> None:
        self._app = app

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> Events:
        """The outputs of a derived stream so far; only the `last` events if given. Events that were sent before are
        waited for, but not a feed in the background, nor anything if the app is stopped: `waiting` counts those.

        Of a stream that no query writes to: its input, the `last` events (by default 1,000). The deployment's
        `retention` says how much of the past is kept; events no longer kept are counted. `limit` is the number of rows
        to show. Raises `Misuse` for an unknown stream.
        """
        app = self._app
        argument_checks.optional_int("last", last, 0)
        argument_checks.optional_int("limit", limit, 0)
        if self._only_comes_in(stream):
            last_arrivals = self._app.input_reader().last(stream, ARRIVALS if last is None else last)
            return Events(
                app.name, stream, last_arrivals.frame, limit, InputCounts(last_arrivals.total, last_arrivals.unreadable)
            )
        if app.state == "running":
            app.waits.settle_briefly()
        arrivals = app.inbox.arrivals
        waiting = arrivals.total - arrivals.through(app.progress.last)
        with app.outputs.tidying:
            frame = app.outputs.frame(stream, app.schema_of(stream).names, app.progress.batch, last)
            dropped_events = 0 if last is not None and len(frame) >= last else app.outputs.dropped_events.get(stream, 0)
        return Events(app.name, stream, frame, limit, dropped=dropped_events, waiting=waiting)

    def tail(
        self,
        stream: str,
        *,
        last: int = 20,
        latest: str | None = None,
        number: str | None = None,
        newest: Literal["first", "last"] = "first",
    ) -> Tail:
        """The end of a stream; in a notebook its display follows the stream, up to the last commit.

        The `last` events (a number), the `newest` of them first or last; or the latest event of each value of the
        attribute `latest`, of `last` values; or the attribute `number` of the newest event. Raises `Misuse` for unknown
        names.
        """
        app = self._app
        app.check_open()
        argument_checks.require_int("last", last, 1)
        schema = app.schema_of(stream)
        if latest is not None and number is not None:
            raise Misuse("a tail shows the latest event of each key or one number: give latest or number, not both")
        if newest not in ("first", "last"):
            raise Misuse(f"newest is 'first' or 'last', not {shown(newest)}")
        for what, name in (("latest", latest), ("number", number)):
            if name is not None and name not in schema.names:
                raise Misuse(nearest(f"{what}: {app.name}.{stream} has no attribute '{name}'", name, schema.names))
        if latest is not None and schema.types[schema.names.index(latest)] is Type.OBJECT:
            raise Misuse(f"latest: '{latest}' of {app.name}.{stream} is an object: give an attribute of another type")
        shape = TailShape(last, newest, latest, number)
        return Tail(app.name, stream, shape, self.ends(stream), app.on_commit, app.view_state, app.selection)

    def chart(
        self,
        stream: str,
        *,
        y: str | Sequence[str] | None = None,
        by: str | None = None,
        x: str | None = None,
        last: int | str | None = None,
        kind: ChartKind = "line",
    ) -> Chart:
        """A chart of a stream's numbers; in a notebook its display follows the stream, up to the last commit.

        `y`: an attribute, or several (default: all numeric ones). `by`: an attribute, or "node": a line for each of its
        values (default: for each node of several that share the events). `x`: an attribute in place of the event time;
        whole numbers between 1980 and 2100 in ms are drawn as times. `last`: only this length of event time, in ms or
        as "10min". `kind`: "line", "bar" or "points". Of more points than can be seen, the lowest and the highest of
        each pixel column are drawn. Raises `Misuse` for unknown names, and attributes that are no numbers.
        """
        app = self._app
        app.check_open()
        if stream in app.plan.aggregations:
            raise Misuse(f"{app.name}.{stream} is an aggregation: %siddhi view {app.name}.{stream} draws it")
        schema = app.schema_of(stream)
        where = f"{app.name}.{stream}"
        if kind not in CHART_KINDS:
            raise Misuse(f"kind is 'line', 'bar' or 'points', not {shown(kind)}")
        node, time = stamps(schema.names)
        if by is None and app.nodes > 1 and app.mode == "active-active":
            by = node
        elif by is not None:
            by = _choose_grouping(where, schema, by, node)
        over = None if x is None or (x in ("time", "timestamp") and x not in schema.names) else x
        if over is not None:
            _check_numeric("x", where, schema, over)
        if last is not None and over is not None:
            raise Misuse(f"last is a length of event time, and x is the attribute '{over}': leave one of them out")
        length = None if last is None else _length(last)
        measures = _choose_measures(where, schema, y, {by, over})
        is_long = over is not None and schema.types[schema.names.index(over)] is Type.LONG
        shape = ChartShape(measures, by, over, length, kind, time, node, is_long)
        return Chart(app.name, stream, shape, self.ends(stream), app.on_commit, app.view_state, app.selection)

    def ends(self, stream: str) -> StreamEnds:
        """Reads the end of a stream. Raises `Misuse` for an unknown one."""
        app = self._app
        if self._only_comes_in(stream):
            return ArrivalEnds(app.input_reader, stream, lambda: app.inbox.position.events.get(stream, 0))
        return OutputEnds(lambda: app.outputs, app.progress, stream, app.schema_of(stream))

    def _only_comes_in(self, stream: str) -> bool:
        """True if a stream has only events that are sent to it. Raises `Misuse` for an unknown stream."""
        self._app.schema_of(stream)
        return stream in self._app.plan.input_streams


def _choose_grouping(where: str, schema: Schema, by: str, node: str) -> str:
    """The column that parts a chart's lines. Raises `Misuse` for a name that is no attribute, and for objects."""
    if by == "node" and by not in schema.names:
        return node
    if by not in schema.names:
        raise Misuse(nearest(f"by: {where} has no attribute '{by}'", by, [*schema.names, "node"]))
    if schema.types[schema.names.index(by)] is Type.OBJECT:
        raise Misuse(f"by: '{by}' of {where} is an object: give an attribute of another type")
    return by


def _check_numeric(what: str, where: str, schema: Schema, name: str) -> None:
    argument_checks.require_str(what, name)
    if name not in schema.names:
        raise Misuse(nearest(f"{what}: {where} has no attribute '{name}'", name, schema.names))
    type_ = schema.types[schema.names.index(name)]
    if not type_.numeric:
        numeric = [n for n, t in zip(schema.names, schema.types, strict=True) if t.numeric]
        hint = f"its numbers are {', '.join(numeric)}" if numeric else "it has no numeric attribute"
        raise Misuse(f"{what}: '{name}' of {where} is a {type_}, which cannot be drawn; {hint}")


def _choose_measures(
    where: str, schema: Schema, y: str | Sequence[str] | None, others: set[str | None]
) -> tuple[str, ...]:
    """The attributes that a chart draws. Raises `Misuse` if there is none, or one is no number."""
    if y is None:
        measures = [n for n, t in zip(schema.names, schema.types, strict=True) if t.numeric and n not in others]
        if not measures:
            raise Misuse(f"{where} has no numeric attribute to draw: its attributes are {', '.join(map(str, schema))}")
        return tuple(measures)
    names = [y] if isinstance(y, str) else list(y)
    if not names:
        raise Misuse("y is an attribute, or several: it is empty")
    for name in names:
        _check_numeric("y", where, schema, name)
    return tuple(dict.fromkeys(names))


def _length(last: int | str) -> int:
    """A length of event time in ms. Raises `Misuse` for anything but a duration above 0."""
    if isinstance(last, str):
        length = duration_ms(last, "last")
    else:
        argument_checks.require_int("last", last, 1, 2**62)
        length = last
    if length < 1:
        raise Misuse(f"last is a duration above 0, such as 10min, not {shown(last)}")
    return length
