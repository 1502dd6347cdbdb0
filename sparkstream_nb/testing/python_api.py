"""Tests in Python: apps that are sent events and compared with rows, as test files do it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..app.deployment.deployment import milliseconds
from ..app.running.sent import row_of
from ..durations import parse_duration
from ..errors import Misuse, SiddhiError, SparkStreamError, nearest, shown
from ..options import read_text
from ..types import Schema, Type
from .app_under_test import AppUnderTest, AppUnderTestSetup, OutputRows, SentEvent
from .cell_values import is_equal, write_value
from .comparison import compare_rows, count_signs, has_differences
from .expectations import absolute_time
from .model import Run, Settings
from .step_times import parse_time
from .suite_results import DiffLine, Failure

Event = Sequence[Any] | Mapping[str, Any]
"""An event or a row: values in the stream's order, or by attribute. Attributes that are not named are null in an event
that is sent, and not compared in a row that is expected."""


class TestedApp:
    """An app in a test of Python's. Times: ms since 1970, a datetime, or texts as in test files: "+500", "5 sec"."""

    __test__ = False  # pytest collects classes by this name

    def __init__(self, app: AppUnderTest, name: str) -> None:
        self._app, self.name = app, name

    @property
    def now(self) -> int:
        """The app's clock in ms since 1970."""
        return self._app.now

    def send(
        self,
        stream: str,
        events: Event | Sequence[Event],
        *,
        at: int | str | datetime | None = None,
        node: str | None = None,
        together: bool = False,
    ) -> None:
        """Sends an event, or a list of them 1 ms apart, and waits for their effects.

        `at`: the time of the first; without it, 1 ms after the latest. `node`: the shard id of the node that takes
        them. `together`: at once, as one chunk. Raises `Misuse` for an unknown stream, SparkStreamError for values that
        do not fit.
        """
        schema = self._app.input_schema(stream)
        first = self._app.now + 1 if at is None else self._time(at)
        rows = [_whole_row(stream, schema, e) for e in _as_list(events)]
        sent_events = [SentEvent(first + (0 if together else i), row, node) for i, row in enumerate(rows)]
        if not sent_events:
            raise Misuse(f"no event is sent to {stream}: give an event, or a list of events")
        self._app.send(stream, sent_events, together=together)

    def wait(self, duration: int | str) -> None:
        """Moves the clock on by ms or a text such as "5 sec", so that windows and timers run. Raises `Misuse` for
        another text."""
        ms = parse_duration(duration) if isinstance(duration, str) else duration
        if ms is None:
            raise Misuse(f"'{duration}' is not a duration such as '5 sec' or '1 min 30 sec'")
        self._app.move_clock(self._app.now + ms)

    def wait_until(self, time: int | str | datetime) -> None:
        """Moves the clock on to a time. Raises `Misuse` for an earlier one."""
        self._app.move_clock(self._time(time))

    def expect(self, stream: str, rows: Sequence[Event], *, any_order: bool = False) -> None:
        """Compares the outputs of a stream since the last `expect` with `rows`. Raises AssertionError with a table of
        the differences, `Misuse` for unknown names."""
        output_rows = self._app.take_outputs(stream)
        attributes = Schema(output_rows.schema.attributes[:-2])
        _compare(f"expect {stream}", _as_list(rows), output_rows, attributes, any_order=any_order)

    def expect_nothing(self, stream: str) -> None:
        """Raises AssertionError for outputs of a stream since the last `expect`."""
        self.expect(stream, [])

    def expect_table(self, table: str, rows: Sequence[Event]) -> None:
        """Compares the rows of a table or named window, in any order. Raises AssertionError for differences."""
        table_rows = self._app.table(table)
        _compare(f"expect table {table}", _as_list(rows), table_rows, table_rows.schema, any_order=True)

    def expect_query(self, query: str, rows: Sequence[Event], *, any_order: bool = False) -> None:
        """Compares the answer to a retrieval query. Raises AssertionError for differences."""
        answer_rows = self._app.query(query)
        _compare(f"expect query {query}", _as_list(rows), answer_rows, answer_rows.schema, any_order=any_order)

    def expect_errors(self, rows: Sequence[Event]) -> None:
        """Compares the events that the app could not process since the last call: stream, reason, at, values."""
        error_rows = self._app.take_errors()
        _compare("expect errors", _as_list(rows), error_rows, error_rows.schema, any_order=False)

    def outputs(self, stream: str) -> list[dict[str, Any]]:
        """The outputs of a stream since the last `expect`, each with its time `at` and its `node`; they count as
        taken."""
        output_rows = self._app.take_outputs(stream)
        return [dict(zip(output_rows.schema.names, row, strict=True)) for row in output_rows.rows]

    def check_errors(self) -> None:
        """Raises AssertionError if the app could not process an event, and no `expect_errors` names it."""
        error_rows = self._app.take_errors()
        if error_rows.rows:
            lines = "\n".join(f"  {row[0]}: {row[1]}" for row in error_rows.rows[:10])
            count = f"{len(error_rows.rows)} {'event was' if len(error_rows.rows) == 1 else 'events were'}"
            raise AssertionError(f"{self.name}: {count} not processed:\n{lines}")

    def close(self) -> None:
        """Stops the app and removes its folder."""
        self._app.close()

    def _time(self, at: int | str | datetime) -> int:
        if not isinstance(at, str):
            return milliseconds(at, "at")
        time = parse_time(at)
        if time is not None:
            return absolute_time(time, self._app.begin, self._app.now)
        raise Misuse(f"at: {shown(at)} is not a time such as 1000, '2024-06-03T10:00:00', '5 sec' or '+500'")


class AppFactory:
    """Deploys apps for one test of Python's, and closes them."""

    def __init__(self, folder: Path, allow_scripts: bool = False) -> None:
        """`folder`: where paths of apps begin."""
        self._folder, self._allow_scripts = folder, allow_scripts
        self._apps: list[TestedApp] = []

    def __call__(
        self,
        path: str | Path | None = None,
        *,
        text: str | None = None,
        nodes: int | None = None,
        routing: str | None = None,
        mode: str | None = None,
        start: int | str | datetime | None = None,
        timezone: str = "UTC",
        variables: Mapping[str, str] | None = None,
    ) -> TestedApp:
        """Deploys the app of a file, or a `text`, without its sources, sinks and databases.

        A path with a semicolon or a line break in it is taken for a text.

        The other arguments are as in `deploy`. Raises SiddhiError for a wrong app, `Misuse` for wrong arguments.
        """
        if (path is None) == (text is None):
            raise Misuse("which app? Write siddhi('FILE.siddhi') or siddhi(text='...')")
        if isinstance(path, str) and any(sign in path for sign in ";\n"):
            path, text = None, path
        file = None if path is None else self._folder / path
        try:
            setup = AppUnderTestSetup(
                read_text(str(file)) if file is not None else str(text),
                Run("python", nodes, routing, mode),
                Settings(None if start is None else milliseconds(start, "start"), timezone, variables or {}),
                self._allow_scripts,
            )
            app = TestedApp(AppUnderTest(setup), "the app" if file is None else str(file))
        except SiddhiError as error:
            error.file = None if file is None else str(file)
            raise
        self._apps.append(app)
        return app

    def check_errors(self) -> None:
        """Raises AssertionError if an app could not process an event that was not expected to fail."""
        for app in self._apps:
            app.check_errors()

    def close(self) -> None:
        """Closes all apps."""
        while self._apps:
            self._apps.pop().close()


def _as_list(rows: Event | Sequence[Event]) -> Sequence[Event]:
    """Rows, or one row in a list."""
    if isinstance(rows, Mapping):
        return [rows]
    several = bool(rows) and not isinstance(rows[0], list | tuple | Mapping)
    return [rows] if several else rows


def _whole_row(stream: str, schema: Schema, event: Event) -> list[Any]:
    """The values of an event that is sent; attributes that a dict lacks are null."""
    if isinstance(event, Mapping):
        event = {**dict.fromkeys(schema.names), **event}
    return row_of(stream, schema, event)


def _compare(
    title: str, rows: Sequence[Event], actual_rows: OutputRows, attributes: Schema, *, any_order: bool
) -> None:
    """Raises AssertionError with the differences. Rows in lists have the `attributes`, in order."""
    names = _compared_names(title, rows, actual_rows.schema, attributes)
    positions = [actual_rows.schema.names.index(name) for name in names]
    types = [actual_rows.schema[p].type for p in positions]
    expected_rows = [_expected_row(title, row, names, attributes) for row in rows]

    def equal(i: int, j: int) -> bool:
        row = actual_rows.rows[j]
        values = zip(expected_rows[i], positions, types, strict=True)
        return all(_is_equal(value, row[p], type) for value, p, type in values)

    lines = compare_rows(len(expected_rows), len(actual_rows.rows), equal, any_order=any_order)
    if not has_differences(lines):
        return
    shown_rows = tuple(
        DiffLine(
            d.sign,
            tuple(
                map(
                    _text,
                    found_row(actual_rows, d.actual, positions) if d.expected is None else expected_rows[d.expected],
                    types,
                )
            ),
        )
        for d in lines
    )
    failure = Failure(Path(), 0, title, count_signs(lines), tuple(names), shown_rows)
    head, *table = failure.lines()
    raise AssertionError("\n".join([head.partition(": ")[2], *table]))


def found_row(actual_rows: OutputRows, number: int | None, positions: Sequence[int]) -> list[Any]:
    """The values of the compared columns in a row that the app gave."""
    return [actual_rows.rows[number or 0][p] for p in positions]


def _compared_names(title: str, rows: Sequence[Event], schema: Schema, attributes: Schema) -> list[str]:
    """The columns that are compared: those that dicts name, or all attributes."""
    names = list(dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row))
    for name in names:
        if name not in schema.names:
            raise Misuse(nearest(f"{title}: there is no column '{name}'", name, schema.names))
    return names or list(attributes.names)


def _expected_row(title: str, row: Event, names: Sequence[str], attributes: Schema) -> list[Any]:
    if isinstance(row, Mapping):
        missing = [n for n in names if n not in row]
        if missing:
            raise Misuse(f"{title}: a row lacks {', '.join(missing)}, which another row has")
        return [row[n] for n in names]
    if isinstance(row, str) or len(row) != len(attributes) or list(names) != list(attributes.names):
        raise Misuse(f"{title}: a row is a list of {len(attributes)} values {attributes}, or a dict by attribute")
    return list(row)


def _is_equal(expected: Any, actual: Any, type: Type) -> bool:
    """`is_equal` for values of Python's, which may be of another type."""
    if type in (Type.FLOAT, Type.DOUBLE) and not isinstance(expected, int | float | None):
        return False
    if type is not Type.OBJECT and isinstance(expected, bool) != isinstance(actual, bool):
        return False
    return is_equal(expected, actual, type)


def _text(value: Any, type: Type) -> str:
    try:
        return write_value(value, type)
    except (TypeError, ValueError, OverflowError):
        return json.dumps(value, default=str)


__all__ = ["AppFactory", "SparkStreamError", "TestedApp"]
