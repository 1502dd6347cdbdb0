"""Versions of Spark: which of two ways each gets, what is said of those that were not tried, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark.versions import (
    DIFFERENCES,
    MOVED_CHECKPOINTS,
    TOLD_START,
    check_connect,
    check_version,
    checkpoint_manager,
    number,
)


@pytest.mark.parametrize(
    ("version", "found"),
    [("4.1.1", (4, 1)), ("4.0.0-SNAPSHOT", (4, 0)), ("4.3.0.dev1", (4, 3)), ("5.0", (5, 0)), ("x.1", (0, 0))],
)
def test_numbers_of_versions(version: str, found: tuple[int, int]) -> None:
    assert number(version) == found


def test_each_version_gets_its_way() -> None:
    assert [TOLD_START.in_(v) for v in ("4.0.1", "4.1.1", "4.2.0", "4.10.0")] == [False, False, True, True]
    assert [MOVED_CHECKPOINTS.in_(v) for v in ("4.0.1", "4.1.0")] == [False, True]
    package = "org.apache.spark.sql.execution.streaming"
    assert checkpoint_manager("4.0.2") == f"{package}.FileSystemBasedCheckpointFileManager"
    assert checkpoint_manager("4.1.0") == f"{package}.checkpointing.FileSystemBasedCheckpointFileManager"


def test_versions_that_were_tried_or_not() -> None:
    assert [check_version(v) for v in ("4.0.0", "4.1.4", "4.2.1", "4.3.0")] == [None] * 4
    assert check_version("4.4.0") == "Apps were not tested on Spark 4.4.0. They were on 4.0, 4.1, 4.2 and 4.3."
    with pytest.raises(SparkUnavailable, match=r"Spark 3\.5\.8 cannot run apps: .* came with 4\.0\. Apps run on"):
        check_version("3.5.8")


def test_connect_is_refused_where_it_has_no_state() -> None:
    check_connect("4.1.0", "this pyspark")
    with pytest.raises(SparkUnavailable, match=r"Connect since Spark 4\.1, and the server at sc://h has 4\.0\.1\."):
        check_connect("4.0.1", "the server at sc://h")


def test_the_documentation_lists_each_difference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark-versions.md").read_text()
    rows = [tuple(cell.strip().replace("`", "") for cell in line.split("|")[1:-1]) for line in page.splitlines()]
    for each in DIFFERENCES:
        assert (f"{each.since[0]}.{each.since[1]}", each.what, each.instead) in rows


def test_databricks_has_state_over_connect_before_spark_4_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    with pytest.raises(SparkUnavailable, match=r"since Spark 4\.1, and it has 4\.0\.0"):
        check_connect("4.0.0", "it")
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    check_connect("4.0.0", "it")
