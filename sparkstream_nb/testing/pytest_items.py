"""Test files as items of pytest, and the fixture's apps: what the plugin needs once there is something to test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ..app.results.first_use import prepare
from ..errors import SparkStreamError
from .model import AppTest, AppTestFile, Run
from .python_api import AppFactory
from .suite_runner import RunOptions, read_test_file, run_test


class SiddhiFile(pytest.File):
    """A test file: an item for each test in each of its runs."""

    def collect(self) -> Iterable[SiddhiItem]:
        """Raises `CollectError` for a file that is wrong."""
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
        compile_ahead(self.config)
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


def compile_ahead(config: pytest.Config) -> None:
    """Compiles the engine's loops unless they are compiled. pytest's capture is off meanwhile: the first test would be
    silent for minutes."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        prepare(["engine.warm"])


def apps_of_test(request: pytest.FixtureRequest) -> Iterator[AppFactory]:
    """The fixture `siddhi`: deploys apps for a test, and closes them."""
    compile_ahead(request.config)
    factory = AppFactory(request.path.parent, request.config.getini("siddhi_allow_scripts"))
    try:
        yield factory
        factory.check_errors()
    finally:
        factory.close()
