"""A pytest plugin: test files (`.siddhitest`) are collected as tests, and the fixture `siddhi` deploys apps in Python.

pytest loads it in every run where the package is installed, so that it imports nothing of the package at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .pytest_items import SiddhiFile
    from .python_api import AppFactory

_SUFFIX = ".siddhitest"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the setting that lets script functions of apps run."""
    parser.addini(
        "siddhi_allow_scripts", "Script functions of tested SiddhiQL apps may run.", type="bool", default=False
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SiddhiFile | None:
    """Collects test files."""
    if file_path.suffix != _SUFFIX:
        return None
    from .pytest_items import SiddhiFile

    return SiddhiFile.from_parent(parent, path=file_path)


@pytest.fixture
def siddhi(request: pytest.FixtureRequest) -> Iterator[AppFactory]:
    """Deploys apps for a test: `app = siddhi("fraud.siddhi")`, a path from the test's folder; or the text itself.

    The apps have `send`, `wait`, `expect`, `expect_nothing`, `expect_table`, `expect_query` and `expect_errors`, and
    are closed after the test, which fails if an app could not process an event that no `expect_errors` names.
    """
    from .pytest_items import apps_of_test

    yield from apps_of_test(request)
