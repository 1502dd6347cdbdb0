"""Fixtures for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.run_servers import broker, run_folder, server_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Before the package is loaded, and for Spark's processes too: what a node saves by change is compared with all of it.
os.environ.setdefault("SPARKSTREAM_NB_CHECK_STATE", "1")

__all__ = ["broker", "run_folder", "server_of"]  # fixtures

# What a run draws, the option --case, and which process has which test.
pytest_plugins = ["profiles", "case_option", "distribution"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run. A test that asks for it is marked `spark`, and leaves it running."""
    from sparkstream_nb.runners.spark.shared_session import spark_session

    session = spark_session("local[2]")
    yield session
    session.stop()


@pytest.fixture(autouse=True, scope="module")
def _no_apps_of_other_modules() -> Iterator[None]:
    """Apps that a module's tests leave are stopped and forgotten, so that the lists of the next module have its own.

    What has not imported the package, so that nothing is loaded that a test checks to be absent, has none."""
    yield
    if deploying := sys.modules.get("sparkstream_nb.app.deploying"):
        deploying.stop_all()


_SERVERS = frozenset({"broker", "breaking", "fed", "mariadb", "mosquitto", "rabbitmq"})
"""Fixtures that start a broker or a database server; and the parameters of others that do."""
_DATABASES = frozenset({"mariadb", "postgresql"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what uses Spark, a broker or a database server by a fixture, so that none is forgotten."""
    for item in items:
        fixtures = frozenset(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if fixtures & _SERVERS or any(isinstance(p, str) and p in _DATABASES for p in parameters):
            item.add_marker(pytest.mark.server)
