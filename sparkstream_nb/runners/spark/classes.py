"""An archive of the classes that Spark's JVM loads, for the next JVM to begin with: a JVM spends most of its start on
reading jars and checking their classes.

`app.warm_spark` has it made, once. It belongs to one Java and one Spark; without one that fits, a JVM starts in the
usual way.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from ...caches import cache_folder
from .java import Java

_MOST = 3
"""Number of archives, each of some 180 MB, that are kept for the Javas and Sparks of this machine."""
_AOT = 25
"""From this Java on an archive also holds profiles, and does without one that the Java comes with."""


def archive(java: Java, spark: Path) -> Path:
    """Path of the archive for `java` and the Spark whose home is `spark`, whether or not it exists.

    Its name has two parts, to find the archives of one Spark with other Javas, or before its jars changed.
    """
    parts = ((spark,), (java.home, java.build, (spark / "jars").stat().st_mtime_ns))
    digests = (hashlib.sha256("\n".join(map(str, part)).encode()).hexdigest()[:12] for part in parts)
    return cache_folder() / f"classes-{'-'.join(digests)}"


def use(java: Java, spark: Path, settings: Mapping[str, str]) -> list[str]:
    """Options for a JVM to begin with the archive; none if there is no archive, or a user chose the options."""
    try:
        archive_file = archive(java, spark)
    except OSError:  # a Spark of another shape
        return []
    if not archive_file.exists() or any(name.startswith("spark.driver.extra") for name in settings):
        return []
    with contextlib.suppress(OSError):  # another user's
        os.utime(archive_file)
    return _options(java, "AOTCache" if java.version >= _AOT else "SharedArchiveFile", archive_file)


def forget_others(archive_file: Path) -> None:
    """Remove archives other than `archive_file`: all of the same Spark, which it supersedes, and all of the others
    except the ones used last.
    """
    others = [f for f in archive_file.parent.glob("classes-*") if f != archive_file]
    same_spark = [f for f in others if f.name.startswith(f"{archive_file.name.rpartition('-')[0]}-")]
    rest = sorted(set(others).difference(same_spark), key=lambda f: f.stat().st_mtime, reverse=True)
    for file in (*same_spark, *rest[_MOST - 1 :]):
        file.unlink(missing_ok=True)


def record(java: Java, archive: Path) -> list[str]:
    """Options for a JVM to write an archive when it ends."""
    return _options(java, "AOTCacheOutput" if java.version >= _AOT else "ArchiveClassesAtExit", archive)


def _options(java: Java, name: str, file: Path) -> list[str]:
    """Options quoted for Spark. The JVM does not report parts of an archive that it cannot use."""
    return [f'"-XX:{name}={file}"', f"-Xlog:{'aot' if java.version >= _AOT else 'cds'}*=error"]
