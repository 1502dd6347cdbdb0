"""Java programs and libraries that tests run, from Maven: brought once, and kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def home_of(name: str) -> Path:
    """Where jars are kept: `$SPARKSTREAM_NAME_HOME`, or the user's cache folder."""
    return Path(os.environ.get(f"SPARKSTREAM_{name.upper()}_HOME") or Path.home() / ".cache" / f"sparkstream-{name}")


def fetch(pom: Path, home: Path) -> Path:
    """The folder with the jars of a Maven project without code, in `home`."""
    if not (home / "ok").exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="jars-", dir=home) as folder:
            jars = Path(folder) / "jars"
            subprocess.run(
                ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"],
                check=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            with contextlib.suppress(OSError):  # another process was first
                jars.rename(home / "jars")
        (home / "ok").touch()
    return home / "jars"


def skip_without(what: str, home: Path) -> None:
    """Skips the test where there is no Maven for jars that are not there, but not in continuous integration."""
    if shutil.which("mvn") is None and not (home / "ok").exists() and "CI" not in os.environ:
        pytest.skip(f"there is no Maven on this machine, which brings {what}")


def java() -> str:
    """The Java that runs them."""
    found = shutil.which("java")
    assert found is not None, "Java of 17 or newer has to be on the PATH"
    return found
