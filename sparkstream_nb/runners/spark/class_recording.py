"""A session whose JVM leaves an archive of its classes for those to come (`classes.py`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from pyspark import SparkContext

from ...system import put_in_place
from . import classes
from .java import find_java
from .settings import own_spark
from .shared_session import spark_session

_SECONDS = 300


def has_archive() -> bool:
    """True if there is an archive for the Java and the Spark of this machine."""
    return classes.archive(find_java(), own_spark()).exists()


@contextlib.contextmanager
def record_archive() -> Iterator[None]:
    """Runs a session of its own, whose JVM writes the archive when the block ends. Archives that it supersedes go.

    A Java that writes none leaves none; it is not an error. Raises SparkUnavailable as `spark_session` does.
    """
    java = find_java()
    archive = classes.archive(java, own_spark())
    new = archive.with_name(f"new-{os.getpid()}-{archive.name}")
    try:
        session = spark_session("local[2]", conf={"spark.driver.extraJavaOptions": " ".join(classes.record(java, new))})
        process = SparkContext._gateway.proc  # type: ignore[union-attr]  # there is a session
        try:
            yield
        finally:
            session.stop()
            process.stdin.close()
            process.wait(_SECONDS)
        if new.exists():
            put_in_place(new, archive)
            classes.forget_others(archive)
    finally:
        new.unlink(missing_ok=True)
