"""The runner of tests: each test in each of its runs, in an app of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from ..errors import Misuse, SiddhiError, SparkStreamError, did_you_mean, nearest
from ..options import read_text
from ..runners.choice import INLINE
from ..types import Attribute, Schema, Type
from .app_under_test import AppUnderTest, AppUnderTestSetup, Instrument, SentEvent, with_stamps
from .cell_values import read_value
from .expectations import CheckedExpect, absolute_time, check_expect, read_time
from .model import SUFFIX, AppSource, AppTest, AppTestFile, Cell, Expect, Run, Send, Step, Wait
from .siddhitest_errors import AppTestError
from .siddhitest_parser import parse_test_file
from .suite_results import AppTestResult, Failure


@dataclass(frozen=True)
class RunOptions:
    """Options of a run of tests: the Spark master (or "inline"), script functions allowed, and the text that the names
    of the tests to run have in them. `watch` looks at each app before it is closed."""

    master: str | None = INLINE
    allow_scripts: bool = False
    only: str = ""
    instrument: Instrument | None = None
    watch: Callable[[AppTest, AppUnderTest], None] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TestedRun:
    """The result of a test in a run, and all its expectations as they were compared."""

    result: AppTestResult
    checked: tuple[CheckedExpect, ...] = ()


def read_test_file(path: Path) -> AppTestFile:
    """Reads and parses a test file. Raises CannotRead, and AppTestError for a text that is no test file."""
    return parse_test_file(path, read_text(str(path)))


def is_wanted(file: AppTestFile, test: AppTest, run: Run, only: str) -> bool:
    """True if the file's name, the test's or the run's has `only` in it, in any case."""
    return only.lower() in f"{file.path.name} {test.name} {run.name}".lower()


def run_file(file: AppTestFile, options: RunOptions) -> Iterator[TestedRun]:
    """Runs the tests of a file, each in each of its runs."""
    for test in file.tests:
        for run in test.active_runs:
            if is_wanted(file, test, run, options.only):
                yield run_test(file, test, run, options)


def run_test(file: AppTestFile, test: AppTest, run: Run, options: RunOptions) -> TestedRun:
    """Runs a test once. Errors of the app, the file and the steps are in the result."""
    began = perf_counter()
    comparisons: list[CheckedExpect] = []
    failures: list[Failure] = []
    error: SparkStreamError | None = None
    try:
        app = open_app(file, test, run, options)
        try:
            _run_steps(app, test, run, file, comparisons)
            if options.watch is not None:
                options.watch(test, app)
        finally:
            app.close()
    except SparkStreamError as caught:
        error = caught
    failures += [c.failure(file.path) for c in comparisons if not c.holds]
    seconds = perf_counter() - began
    result = AppTestResult(file.path, test.name, run.name, test.span.line, seconds, tuple(failures), error)
    return TestedRun(result, tuple(comparisons))


def app_text(source: AppSource) -> str:
    """The text of an app. Raises CannotRead if its file cannot be read, `Misuse` if it is not called *.siddhi: errors
    quote an app's text, and a test file that others wrote may name any file."""
    if source.path is None:
        return str(source.text)
    for path in (source.path, source.path.resolve()):
        if path.suffix.lower() != ".siddhi":
            raise Misuse(f"{path} is not a .siddhi file, and is not read: the name of an app's file ends in .siddhi")
    return read_text(str(source.path))


def open_app(file: AppTestFile, test: AppTest, run: Run, options: RunOptions) -> AppUnderTest:
    """Deploys the app of a test. Raises SiddhiError, with the file that the app is in, for a wrong one."""
    source = test.app
    try:
        text = app_text(source)
    except SparkStreamError as error:
        raise _with_place(AppTestError(str(error), source.span or test.span), file) from None
    setup = AppUnderTestSetup(text, run, test.settings, options.allow_scripts, options.master, options.instrument)
    try:
        return AppUnderTest(setup)
    except AppTestError:
        raise
    except SiddhiError as error:
        error.file = str(file.path if source.path is None else source.path)
        raise error.below(source.lines_before) from None
    except Misuse as error:
        raise _with_place(AppTestError(str(error), test.span), file) from None


def _with_place(error: AppTestError, file: AppTestFile) -> AppTestError:
    error.file = str(file.path)
    error.with_source(file.text)
    return error


def _run_steps(app: AppUnderTest, test: AppTest, run: Run, file: AppTestFile, comparisons: list[CheckedExpect]) -> None:
    """Carries out the steps. Raises SparkStreamError at the first that cannot be; its place is the step's."""
    for step in test.steps:
        try:
            _run_step(app, step, run, comparisons)
        except AppTestError as error:
            raise _with_place(error, file) from None
        except SparkStreamError as error:
            raise _with_place(AppTestError(str(error), step.span), file) from None
    errors = app.take_errors()
    if errors.rows:
        stream, reason = errors.rows[0][:2]
        more = f", and {len(errors.rows) - 1} more" if len(errors.rows) > 1 else ""
        hint = "If that is right, write expect errors and a table, such as stream | reason."
        message = f"the app could not process an event of {stream}: {reason}{more}"
        raise _with_place(AppTestError(message, test.span, hint=hint), file)


def _run_step(app: AppUnderTest, step: Step, run: Run, comparisons: list[CheckedExpect]) -> None:
    match step:
        case Send():
            app.send(step.stream.text, _read_events(app, step), together=step.together)
        case Wait():
            until = None if step.until is None else absolute_time(step.until, app.begin, app.now)
            app.move_clock(app.now + (step.by or 0) if until is None else until)
        case Expect():
            if step.is_for(run.name):
                if step.within is not None:
                    app.move_clock(app.now + step.within)
                comparisons.append(check_expect(app, step))


def _read_events(app: AppUnderTest, step: Send) -> list[SentEvent]:
    """The events of a table. Attributes without a column are null; rows without a time come 1 ms after the last."""
    try:
        schema = app.input_schema(step.stream.text)
    except Misuse as error:
        raise AppTestError(str(error), step.stream.span) from None
    schema_with_stamps = with_stamps(schema)
    positions = [_position(cell, schema_with_stamps) for cell in step.table.columns]
    at, node = len(schema), len(schema) + 1
    now, out = app.now, list[SentEvent]()
    for row in step.table.rows:
        cells = dict(zip(positions, row.cells, strict=True))
        if at in cells and cells[at].text != "null":
            time = absolute_time(read_time(cells[at]), app.begin, now)
        else:
            time = now if step.together and out else now + 1
        now = max(now, time)
        values = [_read_attribute(cells[i], a) if i in cells else None for i, a in enumerate(schema)]
        shard = None if node not in cells else read_value(cells[node], Type.STRING)
        out.append(SentEvent(time, values, shard))
    return out


def _read_attribute(cell: Cell, attribute: Attribute) -> Any:
    try:
        return read_value(cell, attribute.type)
    except AppTestError as error:
        if attribute.name != "at":
            raise
        hint = f"{error.hint} 'at' is an attribute of the stream: the time of an event is in the column '@at'."
        raise AppTestError(error.message, cell.span, hint=hint) from None


def _position(cell: Cell, schema: Schema) -> int:
    name = cell.text
    position = schema.find(name)
    if position is None and name in ("@at", "@node"):
        position = schema.find(name[1:])
    if position is None:
        raise AppTestError(nearest(f"there is no column '{name}'", name, schema.names), cell.span)
    return position


def find_test_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files among `paths`, and the `.siddhitest` files below the folders, in order of their names.

    Raises `Misuse` for a path that does not exist, and where there is no test file.
    """
    files: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            files.update(dict.fromkeys(sorted(p for p in path.rglob(f"*{SUFFIX}") if p.is_file())))
        elif path.exists():
            files[path] = None
        else:
            near = did_you_mean(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else None
            raise Misuse(f"file not found: {path}" + (f". {near}" if near else ""))
    if not files:
        raise Misuse(f"there is no {SUFFIX} file in {', '.join(map(str, paths))}")
    return list(files)
