"""A pytest plugin: test files (`.siddhitest`) are collected as tests, and the fixture `siddhi` deploys apps in Python.

pytest loads it in every run where the package is installed, so that it imports nothing of the package at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .model import AppTest, AppTestFile, Run
    from .python_api import AppFactory

_SUFFIX = ".siddhitest"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the setting that lets script functions of apps run."""
    parser.addini(
        "siddhi_allow_scripts", "Script functions of tested SiddhiQL apps may run.", type="bool", default=False
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SiddhiFile | None:
    """Collects test files."""
    return SiddhiFile.from_parent(parent, path=file_path) if file_path.suffix == _SUFFIX else None


class SiddhiFile(pytest.File):
    """A test file: an item for each test in each of its runs."""

    def collect(self) -> Iterable[SiddhiItem]:
        """Raises `CollectError` for a file that is wrong."""
        from ..errors import SparkStreamError
        from .suite_runner import read_test_file

        try:
            file = read_test_file(self.path)
        except SparkStreamError as error:
            raise self.CollectError(str(error)) from None
        for test in file.tests:
            for run in test.active_runs:
                name = test.name if run.name == "one" else f"{test.name} [{run.name}]"
                yield SiddhiItem.from_parent(self, name=name, of=(file, test, run))


class SiddhiItem(pytest.Item):
    """A test of a test file in one of its runs."""

    def __init__(self, *, of: tuple[AppTestFile, AppTest, Run], **how: Any) -> None:
        super().__init__(**how)
        self._of = of

    def runtest(self) -> None:
        """Raises `_Failed` with the report of what is different."""
        from .suite_runner import RunOptions, run_test

        _compile_ahead(self.config)
        result = run_test(*self._of, RunOptions(allow_scripts=self.config.getini("siddhi_allow_scripts"))).result
        if not result.has_passed:
            raise _Failed("\n".join(result.details()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report alone, without a traceback through pytest."""
        if isinstance(excinfo.value, _Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the test in its file."""
        return self.path, self._of[1].span.line - 1, self.name


class _Failed(Exception):
    """A test did not pass."""


def _compile_ahead(config: pytest.Config) -> None:
    """Compiles the engine's loops unless they are compiled. pytest's capture is off meanwhile: the first test would be
    silent for minutes."""
    from ..app.results.first_use import prepare

    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        prepare(["engine.warm"])


@pytest.fixture
def siddhi(request: pytest.FixtureRequest) -> Iterator[AppFactory]:
    """Deploys apps for a test: `app = siddhi("fraud.siddhi")`, a path from the test's folder; or the text itself.

    The apps have `send`, `wait`, `expect`, `expect_nothing`, `expect_table`, `expect_query` and `expect_errors`, and
    are closed after the test, which fails if an app could not process an event that no `expect_errors` names.
    """
    from .python_api import AppFactory

    _compile_ahead(request.config)
    factory = AppFactory(request.path.parent, request.config.getini("siddhi_allow_scripts"))
    try:
        yield factory
        factory.check_errors()
    finally:
        factory.close()
