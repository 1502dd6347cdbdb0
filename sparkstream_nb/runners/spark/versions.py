"""The differences between the versions of Spark that apps run on, one entry for each.

Code with two ways asks an entry here which of them a version wants, and compares no numbers itself. The version means
the Spark that does the work: over Connect, the server's, unless an entry says otherwise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...errors import SparkUnavailable

TESTED = ((4, 0), (4, 1), (4, 2), (4, 3))
"""The versions that the tests of apps on Spark run on (`docs/spark-versions.md`)."""


@dataclass(frozen=True)
class Difference:
    """`what` holds since a version; before it, `instead` is done."""

    what: str
    since: tuple[int, int]
    instead: str

    def in_(self, version: str) -> bool:
        """True if it applies to a version of Spark, such as `4.1.1`."""
        return number(version) >= self.since


TOLD_START = Difference(
    "Spark tells a source in Python where a micro-batch begins, and how many rows it may take",
    (4, 2),
    "the source continues from the last offset that it named, or that the checkpoint has, and limits rows itself",
)
MOVED_CHECKPOINTS = Difference(
    "the classes that write checkpoints are in the package streaming.checkpointing",
    (4, 1),
    "they are named where they were, in the package streaming",
)
NEW_SESSION_OVER_CONNECT = Difference(
    "a session of Connect makes a further one, with settings of its own, by newSession (of the client's version)",
    (4, 3),
    "a further session is made with the first one's channel",
)
STATE_OVER_CONNECT = Difference(
    "Spark Connect has stateful operators in Python (of the client's and the server's version)",
    (4, 1),
    "sc://... is refused, with this reason",
)
DIFFERENCES = (NEW_SESSION_OVER_CONNECT, TOLD_START, MOVED_CHECKPOINTS, STATE_OVER_CONNECT)


def has_state_over_connect(version: str) -> bool:
    """True if Spark of a version has stateful operators in Python over Connect. Databricks has them since its runtime
    16.3, before Spark 4.1 (https://docs.databricks.com/aws/en/stateful-applications)."""
    return STATE_OVER_CONNECT.in_(version) or "DATABRICKS_RUNTIME_VERSION" in os.environ


def number(version: str) -> tuple[int, int]:
    """Major and minor number of a version such as `4.1.1` or `4.0.0-SNAPSHOT`; (0, 0) for other texts."""
    major, minor, *_ = [*version.split("."), "", ""]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def checkpoint_manager(version: str) -> str:
    """The class by which Spark writes checkpoints into a folder of this machine without checking each file's type."""
    where = ".checkpointing" if MOVED_CHECKPOINTS.in_(version) else ""
    return f"org.apache.spark.sql.execution.streaming{where}.FileSystemBasedCheckpointFileManager"


def check_version(version: str) -> str | None:
    """A warning for an untested version; None for a tested one. Raises SparkUnavailable for one that is too old for any
    app.
    """
    version_number = number(version)
    if version_number < TESTED[0]:
        raise SparkUnavailable(
            f"Spark {version} cannot run apps: it lacks stateful operators and streaming sources in Python, which came "
            f"with 4.0. Apps run on Spark {describe_tested()}; master='inline' runs them without Spark"
        )
    if version_number in TESTED:
        return None
    return f"Apps were not tested on Spark {version}. They were on {describe_tested()}."


def check_connect(version: str, whose: str) -> None:
    """Raise SparkUnavailable if a version, such as the server's, cannot run apps over Spark Connect."""
    if not has_state_over_connect(version):
        raise SparkUnavailable(
            f"Apps run over Spark Connect since Spark 4.1, and {whose} has {version}. Use 4.1 or newer, or the address "
            "of the cluster itself (spark://...)"
        )


def check_installed() -> None:
    """Raise SparkUnavailable if the pyspark of this process is too old, and ModuleNotFoundError if it is not installed.
    """
    from pyspark import __version__

    check_version(__version__)


def describe_tested() -> str:
    """The versions in `TESTED`, in words."""
    *first, last = (f"{major}.{minor}" for major, minor in TESTED)
    return f"{', '.join(first)} and {last}"
