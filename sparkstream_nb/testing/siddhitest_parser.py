"""The parser of test files.

    file      = line*                    a line is empty, a setting, a step, or of the table of the step above it
    setting   = "app:" PATH | "app:" indented lines | "start:" TIME | "timezone:" ZONE
              | "param" NAME ":" VALUE | "run" [NAME] ":" [KEY ":" VALUE ("," KEY ":" VALUE)*]
    test      = "test:" NAME             begins a test, to which the settings and steps below belong
    step      = "send" STREAM ["together"] table
              | "wait" (DURATION | "until" TIME)
              | "expect" target ["any order"] ["nothing"] ["within" DURATION] ["on" RUN ("," RUN)*] [table]
    target    = STREAM | "table" NAME | "query" TEXT | "errors"
    table     = cells of the columns' names, then the cells of a row on each line
    cells     = cell ("|" cell)*         a cell in double quotes has the escapes of JSON

Settings above the first test are for all tests. A file without `test:` is one test. `#` at the beginning of a
line, or after a space, begins a comment, except in quotes and in an app's text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from ..durations import parse_duration
from ..errors import Span, nearest
from ..request import ALERTS, MODES
from .model import (
    ONE,
    AppSource,
    AppTest,
    AppTestFile,
    Cell,
    Expect,
    OfErrors,
    OfQuery,
    OfStream,
    OfTable,
    Run,
    Send,
    Settings,
    Step,
    Table,
    TableRow,
    Target,
    Wait,
)
from .siddhitest_errors import AppTestError
from .step_times import DURATIONS, TIMES, Origin, Time, parse_time

SETTINGS = ("app", "start", "timezone", "param", "run", "test")
STEPS = ("send", "wait", "expect")
RUN_KEYS = ("nodes", "routing", "mode", "alerts")
_KEYWORD = re.compile(
    r"\s*(?:(?P<setting>app|start|timezone|test)\s*:|(?P<named>run|param)\b(?P<name>[^:|\"]*):|(?P<step>send|wait|expect)\b(?!\s*\|))"
)
_COLON = re.compile(r"\s*(\w+)\s*:")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"[\w.-]+")


def parse_test_file(path: Path, text: str) -> AppTestFile:
    """The tests of a file. Paths of apps are relative to its folder.

    Raises AppTestError, with file, line and column, for a text that is no test file, and for a test that expects
    nothing.
    """
    parser = _Parser(path, text)
    try:
        return AppTestFile(path, text, parser.parse())
    except AppTestError as error:
        error.file = str(path)
        raise error.with_source(text) from None


def is_keyword(text: str) -> bool:
    """True if a line that begins with this text is a step or a setting."""
    return _KEYWORD.match(text) is not None


@dataclass(frozen=True)
class _FileLine:
    """A line of a file: its number from 1, the offset of its first character, and its text without a comment."""

    number: int
    offset: int
    text: str
    full_text: str

    def span(self, start: int, end: int) -> Span:
        """The span of the characters from `start` to `end`."""
        return Span(self.offset + start, self.offset + max(end, start + 1), self.number, start)

    @property
    def own(self) -> Span:
        """The span of its text, without spaces around."""
        start = len(self.text) - len(self.text.lstrip())
        return self.span(start, len(self.text.rstrip()))


@dataclass
class _Draft:
    """A test, or the head of a file, as far as it was read."""

    name: str
    span: Span
    app: AppSource | None = None
    start: int | None = None
    timezone: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


class _Parser:
    """Reads a file line by line."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines: list[_FileLine] = []
        offset = 0
        for number, file_line in enumerate(text.split("\n"), 1):
            plain = file_line.rstrip("\r")
            self._lines.append(_FileLine(number, offset, plain[: comment_start(plain)], plain))
            offset += len(file_line) + 1
        self._next = 0

    def parse(self) -> tuple[AppTest, ...]:
        head = _Draft(self._path.stem, Span(0, 1, 1, 0))
        drafts: list[_Draft] = []
        while (line := self._take()) is not None:
            keyword = _KEYWORD.match(line.text)
            if keyword is None:
                self._refuse(line)
            draft = drafts[-1] if drafts else head
            if keyword["setting"] == "test":
                if head.steps:
                    raise AppTestError(
                        "a test begins below steps that belong to no test",
                        line.own,
                        hint="Write a line 'test: NAME' above the first step too.",
                    )
                name = line.text[keyword.end() :].strip()
                if not name:
                    raise AppTestError("a test needs a name", line.own, hint="Write test: NAME.")
                if any(d.name == name for d in drafts):
                    raise AppTestError(f"two tests are called '{name}'", line.own, hint="Give each a name of its own.")
                drafts.append(_Draft(name, line.own))
            elif keyword["step"]:
                draft.steps.append(self._read_step(line, keyword["step"], keyword.end()))
            else:
                self._read_setting(draft, line, keyword)
        return tuple(_finish(head, draft) for draft in (drafts or [head]))

    def _take(self) -> _FileLine | None:
        """The next line that is not empty; None at the end."""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            if line.text.strip():
                return line
        return None

    def _refuse(self, line: _FileLine) -> NoReturn:
        word = next(iter(line.text.split("|")[0].split(":")[0].split()), line.text.split()[0])
        keywords = [*STEPS, *(f"{s}:" for s in SETTINGS)]
        if "|" in line.text:
            message, hint = "a table row without a step above it", "Write send STREAM or expect STREAM above the table."
            raise AppTestError(message, line.own, hint=hint)
        raise AppTestError(nearest(f"a line cannot begin with '{word}'", word, keywords), line.own)

    # ------------------------------------------------------------------------------------------------------ settings

    def _read_setting(self, draft: _Draft, line: _FileLine, keyword: re.Match[str]) -> None:
        if draft.steps:
            raise AppTestError("a setting below a step", line.own, hint="Settings are above the steps of their test.")
        name = keyword["setting"] or keyword["named"]
        value = line.text[keyword.end() :].strip()
        if name == "app":
            self._only_once(draft.app, line, name)
            draft.app = self._read_app(line, keyword.end())
        elif name == "start":
            self._only_once(draft.start, line, name)
            time = parse_time(value)
            if time is None or time.origin is Origin.LAST:
                raise AppTestError(f"'{value}' is not a time to start at", line.own, hint=f"A time is {TIMES}.")
            draft.start = time.ms
        elif name == "timezone":
            self._only_once(draft.timezone, line, name)
            draft.timezone = value
        elif name == "param":
            variable = keyword["name"].strip()
            if not variable:
                raise AppTestError("a parameter needs a name", line.own, hint="Write param NAME: VALUE.")
            draft.variables[variable] = _unquote(line, keyword.end()).text
        else:
            draft.runs.append(_read_run(line, keyword, len(draft.runs) + 2))

    def _only_once(self, before: object, line: _FileLine, name: str) -> None:
        if before is not None:
            raise AppTestError(f"a second '{name}:'", line.own, hint="Leave one of them.")

    def _read_app(self, line: _FileLine, at: int) -> AppSource:
        """A path behind `app:`, or the indented lines below it."""
        if line.text[at:].strip():
            path_cell = _unquote(line, at)
            return AppSource(path=self._path.parent / path_cell.text, span=path_cell.span)
        first = self._next
        while self._next < len(self._lines):
            full_text = self._lines[self._next].full_text
            if full_text.strip() and not full_text[0].isspace():
                break
            self._next += 1
        text = "\n".join(app_line.full_text for app_line in self._lines[first : self._next]).rstrip()
        if not text.strip():
            raise AppTestError("an app is missing", line.own, hint="Write app: FILE, or its text below, indented.")
        return AppSource(text=text + "\n", lines_before=first, span=line.own)

    # --------------------------------------------------------------------------------------------------------- steps

    def _read_step(self, line: _FileLine, step: str, at: int) -> Step:
        words = _LineWords(line, at)
        if step == "wait":
            return _read_wait(line, words)
        if step == "send":
            stream = words.take("the stream is missing", "Write send STREAM.")
            together = words.skip("together")
            words.end("send STREAM, or send STREAM together")
            table = self._read_table()
            if table is None or not table.rows:
                hint = "Write the columns' names in the line below, and a line for each event."
                raise AppTestError(f"the events for {stream.text} are missing", line.own, hint=hint)
            return Send(stream, table, together, line.own)
        return self._read_expect(line, words)

    def _read_expect(self, line: _FileLine, words: _LineWords) -> Expect:
        target = _read_target(words)
        any_order = nothing = False
        within: int | None = None
        runs: tuple[str, ...] = ()
        while (word := words.take_word()) is not None:
            if word.text == "any" and words.skip("order"):
                any_order = True
            elif word.text == "nothing":
                nothing = True
            elif word.text == "within":
                within = words.duration(stop=("any", "nothing", "on"))
            elif word.text == "on":
                runs = words.names()
            else:
                words_here = ("any order", "nothing", "within", "on")
                raise AppTestError(nearest(f"'{word.text}' is unknown here", word.text, words_here), word.span)
        table = self._read_table()
        if nothing and table is not None:
            hint = "Leave out 'nothing', or the table."
            raise AppTestError("rows below an expectation of nothing", line.own, hint=hint)
        return Expect(target, table, any_order, nothing, within, runs, line.own)

    def _read_table(self) -> Table | None:
        """The table below a step; None if the next line is a step or a setting, or there is none."""
        lines: list[_FileLine] = []
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if _KEYWORD.match(line.text):
                break
            self._next += 1
            if line.text.strip():
                lines.append(line)
        if not lines:
            return None
        columns = tuple(_read_cells(lines[0]))
        for i, column in enumerate(columns):
            if any(c.text == column.text for c in columns[:i]):
                hint = "Each column has a name of its own."
                raise AppTestError(f"two columns are called '{column.text}'", column.span, hint=hint)
        rows = []
        for line in lines[1:]:
            cells = tuple(_read_cells(line))
            if len(cells) != len(columns):
                has = f"the row has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}"
                column_count = f"{len(columns)} {'column' if len(columns) == 1 else 'columns'}"
                hint = "Cells are divided by |; a text with | in it is in double quotes."
                raise AppTestError(f"{has}, and the table {column_count}", line.own, hint=hint)
            rows.append(TableRow(cells, line.number))
        return Table(columns, tuple(rows), lines[0].number)


class _LineWords:
    """The words of a step. A word ends before a space or a comma, or is in double quotes."""

    def __init__(self, line: _FileLine, at: int) -> None:
        self._line, self._at = line, at

    def take_word(self) -> Cell | None:
        """The next word, or a comma; None at the end of the line."""
        text = self._line.text
        while self._at < len(text) and text[self._at].isspace():
            self._at += 1
        if self._at >= len(text):
            return None
        if text[self._at] == '"':
            cell, self._at = _read_quoted(self._line, self._at)
            return cell
        match = re.compile(r",|[^\s,]+").match(text, self._at)
        assert match is not None
        self._at = match.end()
        return Cell(match[0], False, self._line.span(match.start(), match.end()))

    def take(self, missing: str, hint: str) -> Cell:
        """The next word. Raises AppTestError if there is none."""
        word = self.take_word()
        if word is None:
            raise AppTestError(missing, self._line.own, hint=hint)
        return word

    def skip(self, text: str) -> bool:
        """Takes the next word if it is this `text`; returns whether it was."""
        before = self._at
        word = self.take_word()
        if word is not None and word.text == text and not word.in_quotes:
            return True
        self._at = before
        return False

    def end(self, usage: str) -> None:
        """Raises AppTestError if there is another word."""
        word = self.take_word()
        if word is not None:
            raise AppTestError(f"'{word.text}' is unknown here", word.span, hint=f"Write {usage}.")

    def rest(self) -> str:
        """The rest of the line."""
        rest, self._at = self._line.text[self._at :].strip(), len(self._line.text)
        return rest

    def duration(self, stop: Sequence[str] = ()) -> int:
        """The duration of the next words, up to one of `stop`, in ms. Raises AppTestError for another text."""
        words: list[str] = []
        before = self._at
        while (word := self.take_word()) is not None:
            if word.text in stop:
                self._at = word.span.column
                break
            words.append(word.text)
        ms = parse_duration(" ".join(words))
        if ms is None:
            raise _no_duration(" ".join(words), self._line.span(before, max(self._at, before)))
        return ms

    def names(self) -> tuple[str, ...]:
        """Names with commas between them."""
        out = [self.take("the name of a run is missing", "Write on RUN, or on RUN, RUN.").text]
        while self.skip(","):
            out.append(self.take("the name of a run is missing", "Write on RUN, or on RUN, RUN.").text)
        return tuple(out)


def _no_duration(text: str, span: Span) -> AppTestError:
    return AppTestError(f"'{text}' is not a duration", span, hint=f"A duration is such as {DURATIONS}.")


def _read_wait(line: _FileLine, words: _LineWords) -> Wait:
    if words.skip("until"):
        text = words.rest()
        time: Time | None = parse_time(text)
        if time is None:
            raise AppTestError(f"'{text}' is not a time", line.own, hint=f"A time is {TIMES}.")
        return Wait(None, time, line.own)
    return Wait(words.duration(), None, line.own)


def _read_target(words: _LineWords) -> Target:
    first = words.take("nothing is named that is expected", "Write expect STREAM, expect table NAME or expect errors.")
    if not first.in_quotes and first.text == "table":
        return OfTable(words.take("the table is missing", "Write expect table NAME."))
    if not first.in_quotes and first.text == "query":
        query = words.take("the query is missing", 'Write expect query "from ... select ...".')
        if not query.in_quotes:
            raise AppTestError("a query is in double quotes", query.span, hint='expect query "from ... select ...".')
        return OfQuery(query)
    return OfErrors() if not first.in_quotes and first.text == "errors" else OfStream(first)


def _read_run(line: _FileLine, keyword: re.Match[str], number: int) -> Run:
    """A line such as `run three: nodes: 3, routing: hash:card`."""
    name = keyword["name"].strip() or str(number)
    if not _NAME.fullmatch(name):
        raise AppTestError(f"'{name}' is not the name of a run", line.own, hint="A name has letters and digits.")
    run = Run(name)
    at = keyword.end()
    for part in line.text[at:].split(","):
        if part.strip():
            run = _set_of_run(run, line, at, part)
        at += len(part) + 1
    return run


def _set_of_run(run: Run, line: _FileLine, at: int, part: str) -> Run:
    key = _COLON.match(part)
    span = line.span(at + len(part) - len(part.lstrip()), at + len(part.rstrip()))
    if key is None:
        hint = "Write nodes: 3, routing: hash:ATTRIBUTE."
        raise AppTestError(f"'{part.strip()}' is no setting of a run", span, hint=hint)
    name, value = key[1], part[key.end() :].strip()
    if name not in RUN_KEYS:
        raise AppTestError(nearest(f"a run has no setting '{name}'", name, RUN_KEYS), span)
    if name == "nodes":
        if not re.fullmatch(r"[1-9]\d{0,3}", value):
            raise AppTestError(f"nodes is a number from 1 on, not '{value}'", span, hint="Write nodes: 3.")
        return replace(run, nodes=int(value))
    if name == "routing":
        return replace(run, routing=value)
    values = MODES if name == "mode" else ALERTS
    if value not in values:
        raise AppTestError(nearest(f"{name} cannot be '{value}'", value, values), span)
    return replace(run, mode=value) if name == "mode" else replace(run, alerts=value)


def _finish(head: _Draft, draft: _Draft) -> AppTest:
    """A test with the settings of the file's head, checked."""
    app = draft.app or head.app
    if app is None:
        raise AppTestError("the test has no app", draft.span, hint="Write app: FILE above it, or the app's text.")
    test_runs = [] if draft is head else draft.runs
    runs = (Run(), *head.runs, *test_runs)
    names = [r.name for r in runs]
    for name in names:
        if names.count(name) > 1:
            more = ", which is the run on one node that every test has" if name == ONE else ""
            raise AppTestError(f"two runs are called '{name}'{more}", draft.span, hint="Give each a name of its own.")
    expectations = [s for s in draft.steps if isinstance(s, Expect)]
    if not expectations:
        hint = "Write what the app is to put out, as expect STREAM and a table, or expect STREAM nothing."
        raise AppTestError(f"the test '{draft.name}' expects nothing", draft.span, hint=hint)
    for step in expectations:
        for name in step.runs:
            if name not in names:
                raise AppTestError(nearest(f"the test has no run '{name}'", name, names), step.span)
    settings = Settings(
        head.start if draft.start is None else draft.start,
        draft.timezone or head.timezone or "UTC",
        {**head.variables, **draft.variables},
    )
    return AppTest(draft.name, app, settings, runs, tuple(draft.steps), draft.span)


def comment_start(text: str) -> int:
    """The position of the comment of a line, or its end."""
    at, cell_begins = 0, True
    while at < len(text):
        c = text[at]
        if c == "#" and (at == 0 or text[at - 1].isspace()):
            return at
        if c == '"' and cell_begins:
            match = _QUOTED.match(text, at)
            at = len(text) if match is None else match.end()
            cell_begins = False
            continue
        cell_begins = c.isspace() or c in "|:,"
        at += 1
    return len(text)


def _read_cells(line: _FileLine) -> list[Cell]:
    """The cells of a table's line. Raises AppTestError for an empty one."""
    cells: list[Cell] = []
    at, text = 0, line.text
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at < len(text) and text[at] == '"':
            cell, at = _read_quoted(line, at)
            while at < len(text) and text[at].isspace():
                at += 1
            if at < len(text) and text[at] != "|":
                hint = "A | comes behind a cell in quotes, or the end of the line."
                raise AppTestError("more text behind a quoted cell", line.span(at, len(text)), hint=hint)
        else:
            end = text.find("|", at)
            end = len(text) if end < 0 else end
            cell_text = text[at:end].rstrip()
            if not cell_text:
                hint = 'Write null for a missing value, or "" for an empty text.'
                raise AppTestError("an empty cell", line.span(at, at + 1), hint=hint)
            cell, at = Cell(cell_text, False, line.span(at, at + len(cell_text))), end
        cells.append(cell)
        if at >= len(text):
            return cells
        at += 1


def _read_quoted(line: _FileLine, at: int) -> tuple[Cell, int]:
    """The quoted text that begins at `at`, and the position behind it."""
    match = _QUOTED.match(line.text, at)
    if match is None:
        raise AppTestError("a quote is not closed", line.span(at, len(line.text)), hint='Write " at its end.')
    try:
        text = json.loads(match[0], strict=False)
    except ValueError:
        hint = r"Escapes are \" \\ \n \t and \u0041: write \\ for a backslash."
        raise AppTestError("an unknown escape", line.span(at, match.end()), hint=hint) from None
    return Cell(text, True, line.span(at, match.end())), match.end()


def _unquote(line: _FileLine, at: int) -> Cell:
    """The value of a setting: the rest of the line, which may be in quotes."""
    while at < len(line.text) and line.text[at].isspace():
        at += 1
    if line.text[at : at + 1] == '"':
        return _read_quoted(line, at)[0]
    text = line.text[at:].rstrip()
    return Cell(text, False, line.span(at, at + len(text)))
