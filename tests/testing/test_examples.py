"""The example tests that ship with the package: all pass, and each fails when an event is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkstream_nb.testing.command import EXAMPLES
from sparkstream_nb.testing.model import SUFFIX, AppTest, AppTestFile, Send, Wait
from sparkstream_nb.testing.suite_runner import RunOptions, read_test_file, run_test

FILES = sorted(EXAMPLES.glob(f"*{SUFFIX}"))


def test_there_are_thirty() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_an_example_passes_and_notices_a_change(path: Path) -> None:
    file = read_test_file(path)
    for test in file.tests:
        for run in test.active_runs:
            result = run_test(file, test, run, RunOptions()).result
            assert result.has_passed, "\n".join(result.details())
    test = file.tests[0]
    assert any(not _passes(file, changed) for changed in _changes(test)), "no change of an event is noticed"


def _passes(file: AppTestFile, test: AppTest) -> bool:
    return run_test(file, test, test.active_runs[0], RunOptions()).result.has_passed


def _changes(test: AppTest) -> Iterator[AppTest]:
    """The test without one of its events, or, if none is sent, without a wait."""
    for number, step in enumerate(test.steps):
        others = test.steps[:number], test.steps[number + 1 :]
        if isinstance(step, Wait) and not any(isinstance(s, Send) for s in test.steps):
            yield replace(test, steps=(*others[0], *others[1]))
        if isinstance(step, Send):
            rows = step.table.rows
            for row in reversed(rows):
                kept = tuple(r for r in rows if r is not row)
                fewer = (replace(step, table=replace(step.table, rows=kept)),) if kept else ()
                yield replace(test, steps=(*others[0], *fewer, *others[1]))
