"""The display of reports on tests of apps."""

from __future__ import annotations

import html as markup

from ..charts.value_texts import WholeText
from ..testing.suite_results import AppTestReport, AppTestResult, CoveredPart, Failure, describe_test_error
from .display import html, text
from .drawings.text_tables import Grid, escaped_lines, paragraph

_COLORS = {"-": "#c62828", "+": "#2e7d32", " ": "inherit"}


@text.register
def _(report: AppTestReport) -> str:
    return "\n".join(report.lines())


@html.register
def _(report: AppTestReport) -> str:
    parts = [paragraph(f"<b>{markup.escape(report.headline())}</b>")]
    results = [r for r in report.results if not (report.quiet and r.has_passed)]
    if results:
        rows = [[_state(r), str(r.file), r.name, f"{r.seconds * 1000:.0f} ms"] for r in results]
        parts.append(Grid(["", "file", "test", "time"], rows, what="test").html(footer=False))
    for result in report.problems:
        parts += [_failure(f) for f in result.failures]
        if result.error is not None:
            parts.append(escaped_lines("\n".join(describe_test_error(result.error, result.file, result.line))))
    parts += [escaped_lines("\n".join(describe_test_error(f.error, f.file, 1))) for f in report.wrong_files]
    parts += [paragraph(markup.escape(f"{path}: updated")) for path in report.updated]
    if report.coverage is not None:
        parts.append(_coverage(report.coverage.parts))
    return "".join(parts)


def _state(result: AppTestResult) -> str:
    return "✓" if result.has_passed else "✗ failed" if result.error is None else "✗ wrong"


def _failure(failure: Failure) -> str:
    """A difference as a list of its rows: red ones are missing, green ones unexpected."""
    head, *table = failure.lines()
    signs = [" ", *(r.sign for r in failure.rows)]
    lines = [
        f'<span style="color:{_COLORS[sign]}">{markup.escape(line)}</span>'
        for sign, line in zip(signs, table, strict=bool(table))
    ]
    return paragraph(markup.escape(head)) + f"<pre>{chr(10).join(lines)}</pre>"


def _coverage(parts: tuple[CoveredPart, ...]) -> str:
    reached_parts = sum(p.reached for p in parts)
    rows = [[p.app, p.line, WholeText(p.name)] for p in parts if not p.reached]
    head = paragraph(f"{reached_parts} of {len(parts)} parts of the apps reached")
    return head + (Grid(["app", "line", "not reached"], rows, what="part").html(footer=False) if rows else "")
