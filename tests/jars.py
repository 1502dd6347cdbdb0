"""Java programs and libraries that tests run, from Maven: brought once, and kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

from .found import hidden, program, skip_unless


def home_of(name: str) -> Path:
    """Where jars are kept: `$SPARKSTREAM_NAME_HOME`, or the user's cache folder."""
    return Path(os.environ.get(f"SPARKSTREAM_{name.upper()}_HOME") or Path.home() / ".cache" / f"sparkstream-{name}")


def fetch(pom: Path, home: Path) -> Path:
    """The folder with the jars of a Maven project without code, in `home`.

    Maven runs on the Java of the path: `JAVA_HOME` is Spark's, which may have no certificates of the machine.
    """
    if not (home / "ok").exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="jars-", dir=home) as folder:
            jars = Path(folder) / "jars"
            subprocess.run(
                [_maven() or "mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies",
                 f"-DoutputDirectory={jars}"],
                check=True, stdin=subprocess.DEVNULL, env={k: v for k, v in os.environ.items() if k != "JAVA_HOME"},
            )  # fmt: skip
            with contextlib.suppress(OSError):  # another process was first
                jars.rename(home / "jars")
        (home / "ok").touch()
    return home / "jars"


def skip_without(what: str, home: Path) -> None:
    """Skips the test where there is no Maven for jars that are not there."""
    there = _maven() is not None or (not hidden("maven") and (home / "ok").exists())
    skip_unless(there, "maven", f"Maven, which brings {what}: mvn is not on the PATH")


def skip_without_java(what: str) -> None:
    """Skips the test where there is no Java that runs them."""
    skip_unless(_java(), "java", f"Java for {what}: java is not on the PATH")


def java() -> str:
    """The Java that runs them."""
    found = _java()
    assert found is not None, "Java of 17 or newer has to be on the PATH"
    return found


def _java() -> str | None:
    return program("java", "java")


def _maven() -> str | None:
    return program("maven", "mvn")
