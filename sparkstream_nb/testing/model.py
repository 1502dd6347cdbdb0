"""Test files as data: settings, steps and tables, each with its place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Span
from .step_times import Time

SUFFIX = ".siddhitest"
"""The suffix of test files. Not `.siddhi`: WSO2's servers deploy every `.siddhi` file of a folder."""
ONE = "one"
"""The name of the run on one node, which every test has."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table, or a word of a step. `in_quotes`: it was written in double quotes."""

    text: str
    in_quotes: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class TableRow:
    """A row of a table; `line` is its line in the file, from 1."""

    cells: tuple[Cell, ...]
    line: int = field(compare=False)


@dataclass(frozen=True)
class Table:
    """A table of a step: the cells of its first line, `columns`, and its rows. Each row has a cell for each column."""

    columns: tuple[Cell, ...]
    rows: tuple[TableRow, ...]
    line: int = field(compare=False)


@dataclass(frozen=True)
class Send:
    """Sends events to a stream. `together`: at once, as one chunk, or one after the other."""

    stream: Cell
    table: Table
    together: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Wait:
    """Moves the clock: to `until`, or by `by` ms."""

    by: int | None
    until: Time | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class OfStream:
    """The outputs of a stream."""

    stream: Cell


@dataclass(frozen=True)
class OfTable:
    """The rows of a table or a named window."""

    table: Cell


@dataclass(frozen=True)
class OfQuery:
    """The answer to a retrieval query."""

    query: Cell


@dataclass(frozen=True)
class OfErrors:
    """The events that the app could not process."""


Target = OfStream | OfTable | OfQuery | OfErrors


@dataclass(frozen=True)
class Expect:
    """Compares outputs with a table. `table` is None with `nothing`, and before `--update` has written it.

    `within` (ms): the clock moves on by this first. `runs`: names of the runs that it is for; empty: all.
    """

    target: Target
    table: Table | None
    any_order: bool
    nothing: bool
    within: int | None
    runs: tuple[str, ...]
    span: Span = field(compare=False, repr=False)

    @property
    def title(self) -> str:
        """The expectation as it is named in reports."""
        match self.target:
            case OfStream(cell):
                return f"expect {cell.text}"
            case OfTable(cell):
                return f"expect table {cell.text}"
            case OfQuery(cell):
                return f"expect query {cell.text}"
        return "expect errors"

    def is_for(self, run: str) -> bool:
        """True if it is checked in the run of this name."""
        return not self.runs or run in self.runs


Step = Send | Wait | Expect


@dataclass(frozen=True)
class AppSource:
    """The app of a test: its `text`, or the `path` of its file. `lines_before`: lines above the text in the file."""

    path: Path | None = None
    text: str | None = None
    lines_before: int = 0
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Run:
    """A deployment that a test runs on. None: the default of `deploy`."""

    name: str = ONE
    nodes: int | None = None
    routing: str | None = None
    mode: str | None = None
    alerts: str | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of a test: the start of its clock (ms since 1970; None: the first event), its time zone, and the values
    of `${NAME}`."""

    start: int | None = None
    timezone: str = "UTC"
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AppTest:
    """A test: its app, its settings, its runs (the first on one node), and its steps."""

    name: str
    app: AppSource
    settings: Settings
    runs: tuple[Run, ...]
    steps: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)

    @property
    def active_runs(self) -> tuple[Run, ...]:
        """The runs for which something is expected."""
        expectations = [s for s in self.steps if isinstance(s, Expect)]
        return tuple(r for r in self.runs if any(e.is_for(r.name) for e in expectations))


@dataclass(frozen=True)
class AppTestFile:
    """A test file: its path, its text, and its tests."""

    path: Path
    text: str = field(repr=False)
    tests: tuple[AppTest, ...] = ()
