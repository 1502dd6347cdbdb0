"""Expectations compared with the outputs of an app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import Misuse, nearest
from ..types import Schema, Type
from .app_under_test import AppUnderTest, OutputRows
from .cell_values import is_equal, read_value, write_value
from .comparison import DiffRow, compare_rows, count_signs, has_differences
from .model import Cell, Expect, OfErrors, OfQuery, OfStream, OfTable, TableRow
from .siddhitest_errors import AppTestError
from .step_times import TIMES, Origin, Time, parse_time
from .suite_results import DiffLine, Failure


@dataclass(frozen=True)
class ComparedColumn:
    """A column that is compared: its name, type, and position in the app's rows. `is_time`: cells are times."""

    name: str
    type: Type
    position: int
    is_time: bool = False


@dataclass(frozen=True)
class CheckedExpect:
    """An expectation, the rows that the app gave, and their comparison. `columns`: the ones compared."""

    expect: Expect
    columns: tuple[ComparedColumn, ...]
    actual: Sequence[Sequence[Any]]
    rows: tuple[DiffRow, ...]

    @property
    def holds(self) -> bool:
        """True if the expectation holds."""
        return not has_differences(self.rows) and (self.expect.nothing or self.expect.table is not None)

    def cells_of(self, number: int) -> tuple[str, ...]:
        """The text of the cells of actual row `number`."""
        row = self.actual[number]
        return tuple(write_value(row[c.position], c.type, first=i == 0) for i, c in enumerate(self.columns))

    def failure(self, file: Path) -> Failure:
        """The difference as it is reported."""
        table_rows = () if self.expect.table is None else self.expect.table.rows
        lines = tuple(
            DiffLine(
                r.sign, self.cells_of(r.actual or 0) if r.expected is None else _written_cells(table_rows[r.expected])
            )
            for r in self.rows
        )
        description = count_signs(self.rows)
        if self.expect.table is None and not self.expect.nothing:
            description = f"no rows are written; --update writes {len(self.actual)}"
        names = tuple(c.name for c in self.columns)
        return Failure(file, self.expect.span.line, self.expect.title, description, names if lines else (), lines)


def _written_cells(row: TableRow) -> tuple[str, ...]:
    return tuple(c.text for c in row.cells)


def check_expect(app: AppUnderTest, expect: Expect) -> CheckedExpect:
    """Compares an expectation with an app's outputs, which count as taken then. Raises AppTestError, at the place, for
    unknown names and values of other types."""
    output_rows = _take_rows(app, expect)
    names = output_rows.schema.names
    table_rows = () if expect.table is None else expect.table.rows
    if expect.table is None:
        hidden_names = ("at", "node", "@at", "@node") if isinstance(expect.target, OfStream) else ()
        count = len(names) - (2 if hidden_names else 0)
        columns = [ComparedColumn(n, output_rows.schema[i].type, i) for i, n in enumerate(names[:count])]
    else:
        columns = [_find_column(cell, output_rows.schema) for cell in expect.table.columns]
        if isinstance(expect.target, OfStream):
            columns = [replace(c, is_time=c.position == len(names) - 2) for c in columns]
    expected_rows = [
        [_read_cell(cell, c, app) for cell, c in zip(row.cells, columns, strict=True)] for row in table_rows
    ]

    def equal(i: int, j: int) -> bool:
        return all(
            is_equal(v, output_rows.rows[j][c.position], c.type) for v, c in zip(expected_rows[i], columns, strict=True)
        )

    any_order = expect.any_order or isinstance(expect.target, OfTable)
    rows = compare_rows(len(expected_rows), len(output_rows.rows), equal, any_order=any_order)
    return CheckedExpect(expect, tuple(columns), output_rows.rows, rows)


def _take_rows(app: AppUnderTest, expect: Expect) -> OutputRows:
    target = expect.target
    try:
        match target:
            case OfStream(cell):
                return app.take_outputs(cell.text)
            case OfTable(cell):
                return app.table(cell.text)
            case OfErrors():
                return app.take_errors()
    except Misuse as error:
        raise AppTestError(str(error), _span_of(expect)) from None
    assert isinstance(target, OfQuery)
    return app.query(target.query.text)


def _span_of(expect: Expect) -> Any:
    match expect.target:
        case OfStream(cell) | OfTable(cell) | OfQuery(cell):
            return cell.span
    return expect.span


def _find_column(cell: Cell, schema: Schema) -> ComparedColumn:
    """The column that a name in a table's first line means; `@at` and `@node` may be written where `at` and `node`
    do."""
    position = schema.find(cell.text)
    if position is None and cell.text in ("@at", "@node"):
        position = schema.find(cell.text[1:])
    if position is None:
        raise AppTestError(nearest(f"there is no column '{cell.text}'", cell.text, schema.names), cell.span)
    return ComparedColumn(cell.text, schema[position].type, position)


def _read_cell(cell: Cell, column: ComparedColumn, app: AppUnderTest) -> Any:
    if not column.is_time:
        return read_value(cell, column.type)
    time = read_time(cell)
    if time.origin is Origin.LAST:
        hint = "Write the whole time, or leave the column out."
        raise AppTestError("a time with + is for events that are sent", cell.span, hint=hint)
    return absolute_time(time, app.begin)


def read_time(cell: Cell) -> Time:
    """The time in a cell. Raises AppTestError for a text that is none."""
    time = parse_time(cell.text)
    if time is None:
        raise AppTestError(f"'{cell.text}' is not a time", cell.span, hint=f"A time is {TIMES}.")
    return time


def absolute_time(time: Time, begin: int, last: int | None = None) -> int:
    """A time in ms since 1970. `begin`: the start of the test; `last`: the last event's time, where there is one."""
    origins = {Origin.EPOCH: 0, Origin.START: begin, Origin.LAST: begin if last is None else last}
    return origins[time.origin] + time.ms
