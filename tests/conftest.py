"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.broker import Broker


# What a run draws, and the option --case.
pytest_plugins = ["profiles", "case_option"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run. A test that asks for it is marked `spark`, and leaves it running."""
    from sparkstream_nb.spark.session import spark_session

    session = spark_session("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A Kafka broker that all tests of a process share: each makes topics of its own, and leaves it running."""
    from tests.broker import kafka, skip_without_kafka

    skip_without_kafka()
    with kafka() as found:
        yield found


_SERVERS = frozenset({"broker", "breaking", "fed", "mariadb"})
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
