"""Results of tests: plain, typed data, their form as text, and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from ..app.results.frontend import Displayed
from ..errors import SparkStreamError, printable
from .comparison import Sign
from .model import ONE

OK, FAILED, WRONG = 0, 1, 2
"""Exit codes: all tests passed; a test found a difference; a test file or an app is wrong."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference and the text of its cells: expected and there (` `), missing (`-`) or unexpected (`+`)."""

    sign: Sign
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """An expectation that does not hold, at a line of a file: its title, what is different, and the rows of both."""

    file: Path
    line: int
    title: str
    description: str
    columns: tuple[str, ...] = ()
    rows: tuple[DiffLine, ...] = ()

    def lines(self) -> list[str]:
        """The failure as text: `FILE:LINE: expect S: 1 row missing`, then a table with + and − rows. Of a long one the
        first differences are shown, with the equal rows beside them.
        """
        out = [f"{self.file}:{self.line}: {self.title}: {self.description}"]
        row_numbers = self._rows_to_show() if self.columns else []
        cells = [self.columns, *(self.rows[i].cells for i in row_numbers)] if self.columns else []
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        out += [f"    {head}".rstrip() for head in table[:1]]
        for before, i, row in zip([-1, *row_numbers], row_numbers, table[1:], strict=False):
            if i > before + 1:
                out.append(f"    … {_count(i - before - 1, 'equal row')}")
            out.append(f"  {_SIGNS[self.rows[i].sign]} {row}".rstrip())
        rest = [r.sign != " " for r in self.rows[row_numbers[-1] + 1 :]] if row_numbers else []
        if any(rest):
            out.append(f"    … and {_count(sum(rest), 'more difference')}")
        elif rest:
            out.append(f"    … {_count(len(rest), 'equal row')}")
        return [printable(line) for line in out]

    def _rows_to_show(self) -> list[int]:
        """The numbers of the rows that are shown, in order."""
        if len(self.rows) <= _MOST_WHOLE:
            return list(range(len(self.rows)))
        differences = [i for i, r in enumerate(self.rows) if r.sign != " "]
        first_differences = differences[:_MOST_DIFFERENCES]
        end = differences[_MOST_DIFFERENCES] if len(differences) > _MOST_DIFFERENCES else len(self.rows)
        near = {j for i in first_differences for j in range(i - _BESIDE, i + _BESIDE + 1) if 0 <= j < end}
        return sorted(near)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' if number > 1 else ''}"


_SIGNS = {" ": " ", "-": "−", "+": "+"}
_MOST_WHOLE = 50
"""Rows of a difference that is shown whole."""
_MOST_DIFFERENCES = 20
"""Missing and unexpected rows that are shown of a longer one."""
_BESIDE = 3
"""Equal rows that are shown on each side of a difference."""


@dataclass(frozen=True)
class AppTestResult:
    """The result of a test in one run: its `failures`, or the `error` that ended it; `seconds` that it took."""

    file: Path
    test: str
    run: str
    line: int
    seconds: float
    failures: tuple[Failure, ...] = ()
    error: SparkStreamError | None = None

    @property
    def has_passed(self) -> bool:
        return self.error is None and not self.failures

    @property
    def name(self) -> str:
        """The test, and its run if that is not the one on one node."""
        return self.test if self.run == ONE else f"{self.test} (run {self.run})"

    def details(self) -> list[str]:
        """The lines that say why it did not pass."""
        lines = [line for failure in self.failures for line in failure.lines()]
        if self.error is not None:
            lines += describe_test_error(self.error, self.file, self.line)
        return lines


def describe_test_error(error: SparkStreamError, file: Path, line: int) -> list[str]:
    """An error as lines, which begin with FILE:LINE."""
    text = str(error)
    has_place = getattr(error, "file", None) is not None or text.startswith((str(file), f"file not found: {file}"))
    return (text if has_place else f"{file}:{line}: {text}").splitlines()


@dataclass(frozen=True)
class FileError:
    """A test file that cannot be read, or is wrong."""

    file: Path
    error: SparkStreamError


@dataclass(frozen=True)
class CoveredPart:
    """A query, pattern state or filter branch of an app: its name, its line in the app's file, and whether a test
    reached it."""

    app: str
    line: int
    name: str
    reached: bool


@dataclass(frozen=True)
class Coverage:
    """The parts of all apps that were tested, in the order of their texts. `uncounted`: tests that cannot be counted,
    as their app or a step is wrong."""

    parts: tuple[CoveredPart, ...]
    uncounted: tuple[str, ...] = ()

    @property
    def unreached_parts(self) -> tuple[CoveredPart, ...]:
        """The parts that no test reached."""
        return tuple(p for p in self.parts if not p.reached)

    def lines(self) -> list[str]:
        """The coverage of each app, and the parts that no test reached."""
        out: list[str] = []
        for app in dict.fromkeys(p.app for p in self.parts):
            app_parts = [p for p in self.parts if p.app == app]
            reached_count = sum(p.reached for p in app_parts)
            out.append(f"{app}: {reached_count} of {len(app_parts)} parts reached")
            out += [f"  {app}:{p.line}: not reached: {p.name}" for p in app_parts if not p.reached]
        out += [f"not counted, as it is wrong: {test}" for test in self.uncounted]
        return [printable(line) for line in out]


@dataclass(frozen=True, repr=False)
class AppTestReport(Displayed):
    """The results of test files. `updated`: files into which actual results were written. `quiet`: only what did not
    pass is shown."""

    results: tuple[AppTestResult, ...]
    wrong_files: tuple[FileError, ...] = ()
    seconds: float = 0.0
    coverage: Coverage | None = None
    updated: tuple[Path, ...] = ()
    quiet: bool = field(default=False, compare=False)

    @property
    def problems(self) -> tuple[AppTestResult, ...]:
        """The results that did not pass."""
        return tuple(r for r in self.results if not r.has_passed)

    @property
    def exit_code(self) -> int:
        """0 where all passed; 2 where a file, an app or a step is wrong; else 1."""
        if self.wrong_files or any(r.error is not None for r in self.results):
            return WRONG
        return FAILED if self.problems else OK

    def headline(self) -> str:
        """`3 passed, 1 failed, in 0.4 s`."""
        failures = sum(r.error is None for r in self.problems)
        wrong = len(self.problems) - failures + len(self.wrong_files)
        words = [f"{len(self.results) - len(self.problems)} passed"]
        words += [f"{n} {what}" for n, what in ((failures, "failed"), (wrong, "wrong")) if n]
        return f"{', '.join(words)}, in {self.seconds:.1f} s"

    def lines(self) -> list[str]:
        """The report as text."""
        out: list[str] = []
        for file in dict.fromkeys([*(r.file for r in self.results), *(f.file for f in self.wrong_files)]):
            out += self._lines_of(file)
        out += [f"{path}: updated" for path in self.updated]
        out.append(self.headline())
        if self.coverage is not None:
            out += ["", *self.coverage.lines()]
        return out

    def _lines_of(self, file: Path) -> list[str]:
        file_results = [r for r in self.results if r.file == file]
        if self.quiet:
            file_results = [r for r in file_results if not r.has_passed]
        out = [str(file)] if file_results else []
        for r in file_results:
            state = "ok   " if r.has_passed else "FAIL " if r.error is None else "WRONG"
            out.append(f"  {state} {printable(r.name)}  {r.seconds * 1000:.0f} ms")
            out += [f"    {line}" for line in r.details()]
        for f in self.wrong_files:
            if f.file == file:
                out += describe_test_error(f.error, file, 1)
        return out

    def summary(self) -> str:
        return "\n".join(self.lines())


_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def to_junit(report: AppTestReport) -> str:
    """The report as JUnit XML: a suite for each file, a case for each test and run."""
    root = ElementTree.Element(
        "testsuites", {"name": "sparkstream test", **_counts(report.results, report.wrong_files)}
    )
    for file in dict.fromkeys([*(r.file for r in report.results), *(f.file for f in report.wrong_files)]):
        file_results = [r for r in report.results if r.file == file]
        wrong = [f for f in report.wrong_files if f.file == file]
        suite = ElementTree.SubElement(root, "testsuite", {"name": xml_text(str(file)), **_counts(file_results, wrong)})
        for r in file_results:
            name = xml_text(str(file))
            place = {"classname": name, "name": xml_text(r.name), "time": f"{r.seconds:.3f}"}
            case = ElementTree.SubElement(suite, "testcase", {**place, "file": name, "line": str(r.line)})
            if not r.has_passed:
                details = r.details()
                kind = "failure" if r.error is None else "error"
                element = ElementTree.SubElement(case, kind, {"message": xml_text(details[0]), "type": kind})
                element.text = xml_text("\n".join(details))
        for f in wrong:
            case = ElementTree.SubElement(
                suite, "testcase", {"classname": xml_text(str(file)), "name": "file", "time": "0.000"}
            )
            details = describe_test_error(f.error, file, 1)
            ElementTree.SubElement(case, "error", {"message": xml_text(details[0]), "type": "error"}).text = xml_text(
                "\n".join(details)
            )
    return xml_document(root)


def xml_document(root: ElementTree.Element) -> str:
    """A tree as an indented XML document."""
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counts(results: Sequence[AppTestResult], wrong: Sequence[FileError]) -> dict[str, str]:
    return {
        "tests": str(len(results) + len(wrong)),
        "failures": str(sum(not r.has_passed and r.error is None for r in results)),
        "errors": str(sum(r.error is not None for r in results) + len(wrong)),
        "time": f"{sum(r.seconds for r in results):.3f}",
    }


def xml_text(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return _NOT_IN_XML.sub("�", text)
