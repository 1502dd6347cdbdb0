"""Case files in parts: a test run lists these without reading the files, and a test runs all cases of one and names
each that fails."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

Case = dict[str, Any]

CASES = Path(__file__).resolve().parents[1] / "cases"
OURS = CASES / "differences"
"""Cases where the manual speaks against the reference engine; all others have its answers."""
REPORTS = CASES / "reports"
"""Public reports and questions, with the right answer (`tests/engine/test_reports.py`)."""
LIVE = CASES / "live"
"""Retrievals from live clusters (`tests/outputs/test_live_clusters.py`)."""
MOST = 150
"""A part has no more lines than that."""
FRAMES = 4
"""So many of an exception's last places are told."""


def read(path: Path) -> Iterator[Case]:
    """The cases of a file that have an answer: one JSON object a line."""
    return (case for case in read_lines(path) if case is not None)


def read_lines(path: Path) -> Iterator[Case | None]:
    """For each line of a file its case, or None where it has no case with an answer."""
    for line in path.read_text("utf-8").split("\n"):
        case = json.loads(line) if line.strip() else {}
        yield case if "app" in case and "expect" in case else None


def siddhi_files() -> list[Path]:
    """The files with Siddhi's answers; some hold facts about single expressions, and no case."""
    others = {OURS, REPORTS, LIVE}
    return [p for p in sorted(CASES.glob("**/*.jsonl")) if not others & {*p.parents} and p.name != "found.jsonl"]


def our_files() -> list[Path]:
    """The files with the answers of the manual, where they are not Siddhi's."""
    return sorted(OURS.glob("*.jsonl"))


@dataclass(frozen=True)
class Part:
    """The lines of a case file from `first` until before `end`, counted from 0."""

    path: Path
    first: int
    end: int
    name: str

    def numbered(self) -> Iterator[tuple[int, Case]]:
        """The part's cases with an answer, each with the number of its line."""
        for i, case in enumerate(_lines(self.path)[self.first : self.end], self.first):
            if case is not None:
                yield i, case

    def cases(self) -> list[Case]:
        return [case for _, case in self.numbered()]


@lru_cache(maxsize=16)
def _lines(path: Path) -> tuple[Case | None, ...]:
    return tuple(read_lines(path))


def parts(paths: Iterable[Path], most: int = MOST) -> list[Part]:
    """Case files in parts of about equal length, the longest first. Files without any case are left out."""
    found = []
    for path in paths:
        text = path.read_bytes()
        if b'"app"' not in text or b'"expect"' not in text:
            continue
        name, lines = str(path.relative_to(CASES).with_suffix("")), text.count(b"\n") + 1
        n = -(-lines // most)
        for i in range(n):
            found.append(Part(path, lines * i // n, lines * (i + 1) // n, name if n == 1 else f"{name}:{i + 1}of{n}"))
    return sorted(found, key=lambda p: (p.first - p.end, p.name))


def failing(cases: Iterable[Case], check: Callable[[Case], str | None]) -> None:
    """Runs `check` on each case and fails with all that it says of them: what is wrong, or None. An exception is wrong
    too; the only case of a run is let fail by itself, with its whole traceback.
    """
    cases = list(cases)
    wrong: dict[str, str] = {}
    for case in cases:
        try:
            told = check(case)
        except (Exception, pytest.fail.Exception) as e:
            if len(cases) == 1:
                raise
            told = _told(e)
            if "pytest-timeout" in told:  # the test's time is over, and nobody limits what comes next
                wrong[case["id"]] = told
                break
        if told is not None:
            wrong[case["id"]] = told
    if wrong:
        lines = "\n".join(f"{i}: {what}" for i, what in wrong.items())
        pytest.fail(f"{len(wrong)} of {len(cases)} cases: {', '.join(wrong)}\n{lines}", pytrace=False)


def _told(e: BaseException) -> str:
    """An exception in words, with its last places."""
    places = traceback.extract_tb(e.__traceback__)[-FRAMES:]
    return f"{type(e).__name__}: {e}" + "".join(f"\n    {p.filename}:{p.lineno} in {p.name}: {p.line}" for p in places)
