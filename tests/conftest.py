"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.broker import Broker


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what uses the `spark` fixture, so that none is forgotten."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
