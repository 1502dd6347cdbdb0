"""Unit tests over loops that run as plain Python: which lines each reaches, and whether some of them fail.

Plain Python is slow: random tests try fewer examples than they say, and tests with some marks are left out.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from reached_lines import LineTrace, Place

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, SURVEY_EXAMPLES = 50, 2
"""The most examples that a random test tries, to notice a fault and to see which lines it reaches."""
_LEFT_OUT = frozenset({"rotates", "timed", "spark", "server", "browser", "notebook"})
"""Marks of tests that take long, or measure time."""
SURVEY_SECONDS = 60
"""Seconds after which a survey leaves a test out."""
STOP_SECONDS = 30
"""Seconds for which a survey tries to stop a test, each second once; then its process ends."""
ENOUGH = 1200
"""Seconds after which unit tests are taken for endless."""


class _Selection:
    """A plugin of pytest that runs the tests of these ids alone."""

    def __init__(self, ids: Collection[str]) -> None:
        self._ids = ids

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._ids]


class _Reach:
    """A plugin of pytest that notes which lines each test reaches that passes."""

    def __init__(self, trace: LineTrace) -> None:
        self._trace = trace
        self._failed_ids: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _LEFT_OUT.isdisjoint(mark.name for mark in item.iter_markers())]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed_ids.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        _stop_after(SURVEY_SECONDS)
        self._trace.start()
        try:
            return (yield)  # type: ignore[misc]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._trace.stop(None if item.nodeid in self._failed_ids else item.nodeid)


def survey(files: Sequence[Path], paths: Sequence[Path]) -> dict[Place, frozenset[str]]:
    """By line of `paths`, the ids of the tests of `files` that reach it, without those that fail or take long without a
    fault. Ends the process where a test cannot be stopped."""
    trace = LineTrace(paths)
    _run([str(file.resolve()) for file in files], _Reach(trace), SURVEY_EXAMPLES)
    return trace.reach()


def _stop_after(seconds: float) -> None:
    """Stops the test then, again and again: what catches every error, or is called from C, goes on after the first."""
    tries = 0

    def stop(*_: Any) -> None:
        nonlocal tries
        tries += 1
        if tries > STOP_SECONDS:
            os._exit(1)
        pytest.skip("takes long")  # any other error hypothesis would take for a failure, and try again

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)


def run(ids: Collection[str]) -> str:
    """Runs tests until one fails. Returns how they notice a fault; nothing if all of them pass."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
    signal.alarm(ENOUGH)
    files = sorted({str(ROOT / name.partition("::")[0]) for name in ids})
    status = _run(["-x", *files], _Selection(ids), EXAMPLES)
    return {0: "", 1: "tests"}.get(status, f"pytest answers {status}")


def _run(words: Sequence[str], plugin: object, most_examples: int) -> int:
    from hypothesis import Phase, settings

    os.environ.setdefault("SPARKSTREAM_PROFILE", "merge")
    import profiles  # noqa: F401  (loads its own profile, here, and not once pytest runs)

    _limit_examples(settings, most_examples)
    settings.register_profile(
        "mutation", max_examples=most_examples, phases=[Phase.generate], derandomize=True, database=None
    )
    settings.load_profile("mutation")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    args = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={ROOT}", "--import-mode=importlib"]
    return int(pytest.main([*args, *words], plugins=[plugin]))


def _limit_examples(settings: Any, most: int) -> None:
    original = settings.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        if "max_examples" in options:
            options["max_examples"] = min(options["max_examples"], most)
        original(self, *args, **options)

    settings.__init__ = init
