"""Fixtures of apps in this process, or on a Spark session that all tests share, each in a folder of its own.

Rooms whose tests run apps import them in their `conftest.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from profiles import one_of_these
from sparkstream_nb.app import App, deploy, stop_all
from sparkstream_nb.runners.choice import INLINE
from tests.broker import Broker, kafka, skip_without_kafka
from tests.run_servers import ServerOf

from . import crashing
from .feeds import Fed, fed_to, reached
from .odd_folders import tmp_path

__all__ = [
    "breaking", "fed", "master", "pytest_collection_modifyitems", "pytest_generate_tests", "run", "tmp_path",
    "undisturbed",
]  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests marked `contract` run on both runners, and must find the same on each: on Spark only in `make thorough`
    where the mark says `thorough=True`."""
    contract = metafunc.definition.get_closest_marker("contract")
    if "master" in metafunc.fixturenames and contract is not None:
        marks = [pytest.mark.spark, *([pytest.mark.thorough] if contract.kwargs.get("thorough") else [])]
        metafunc.parametrize("master", [INLINE, pytest.param("spark", marks=marks)], indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test of the contract with several parameters, `make test` runs one on Spark, which the commit draws."""
    by_function: dict[tuple[Path, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and marks >= {"contract", "spark"}:
            by_function[item.path, item.originalname].append(item)
    for tests in by_function.values():
        drawn = one_of_these(tests)
        for item in tests:
            if item is not drawn:
                item.add_marker(pytest.mark.thorough)


@pytest.fixture
def master(request: pytest.FixtureRequest) -> str | None:
    """Where the apps of a test run: in this process, or on Spark where the test asks for the fixture `spark`."""
    if "spark" in request.fixturenames or getattr(request, "param", INLINE) == "spark":
        request.getfixturevalue("spark")
        return None
    return INLINE


@pytest.fixture
def run(master: str | None, tmp_path: Path) -> Iterator[Callable[..., App]]:
    """`deploy` into a temporary folder; what it deployed is stopped after the test."""

    def start(text: str, **arguments: Any) -> App:
        return deploy(text, **{"name": "app", "home": tmp_path / "home", "master": master, **arguments})

    yield start
    stop_all()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[pd.DataFrame, ...]]:
    """What the app of `crashing` makes of its feeds when nothing happens to it."""
    app = deploy(crashing.APP, home=tmp_path_factory.mktemp("undisturbed"), master=INLINE, **crashing.DEPLOYED)
    crashing.work(app)
    yield crashing.found(app)
    app.stop()


@pytest.fixture(scope="module")
def breaking() -> Iterator[Broker]:
    """A broker that tests may kill."""
    skip_without_kafka()
    with kafka() as found:
        yield found


@pytest.fixture(scope="session")
def fed(
    spark: Any, broker: Broker, server_of: ServerOf, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fed]:
    """A feed in a topic and a folder, and a PostgreSQL for the apps that read it."""
    server = server_of("postgresql").apart()
    with pytest.MonkeyPatch.context() as environment:
        for name, value in reached(server, "expected", ("file:",)).items():
            environment.setenv(name, value)
        yield fed_to(broker, server, tmp_path_factory.mktemp("fed"))
