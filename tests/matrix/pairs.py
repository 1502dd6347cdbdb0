"""Pairs of a Python and a Spark that apps are tried on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.matrix.platforms import PLATFORMS, Platform

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".work" / "matrix"
SPARKS = ("4.0.0", "4.0.5", "4.1.0", "4.1.4", "4.2.0", "4.2.1")
"""The first and a late patch of each version of Spark; the one of constraints.txt is tried with each Python."""


@dataclass(frozen=True)
class Pair:
    """A Python, by its command and version, and a pyspark; `platform`: the one whose versions these are."""

    python: str
    version: str
    spark: str
    platform: Platform | None = None

    @property
    def folder(self) -> Path:
        """The folder of its environment."""
        name = self.platform.key if self.platform else f"spark{self.spark}"
        return WORK / f"python{self.version}-{name}"

    @property
    def title(self) -> str:
        """Its name in what the run prints."""
        versions = f"Python {self.version}, Spark {self.spark}"
        return f"{self.platform.name} ({versions})" if self.platform else versions

    def has_one_of(self, words: Sequence[str]) -> bool:
        """True if one of the words is its Python, its Spark or the key of its platform."""
        return not {self.version, self.spark, self.platform.key if self.platform else ""}.isdisjoint(words)


def pinned_version(name: str) -> str:
    """The version of a package in constraints.txt."""
    line = re.search(rf"^{name}==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert line is not None
    return line[1]


def list_pythons() -> dict[str, str]:
    """The Pythons of this machine from 3.11 on: their commands by their versions."""
    places = [sys.executable, *(f"python3.{minor}" for minor in range(11, 16))]
    places += [str(p) for p in sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))]
    commands: dict[str, str] = {}
    for place in places:
        program = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
        path = shutil.which(place)
        answer = path and subprocess.run([path, "-c", program], capture_output=True, text=True, check=False)
        if answer and answer.returncode == 0:
            version, command = answer.stdout.split(maxsplit=1)
            if tuple(map(int, version.split("."))) >= (3, 11):
                commands.setdefault(version, command.strip())
    return commands


def list_pairs() -> list[Pair]:
    """All: each Spark with this Python, each other Python with the Spark of constraints.txt, each platform whose Python
    this machine has."""
    commands, this = list_pythons(), "{}.{}".format(*sys.version_info[:2])
    sparks = [Pair(commands[this], this, spark) for spark in SPARKS]
    newest = [Pair(c, v, pinned_version("pyspark")) for v, c in sorted(commands.items()) if v != this]
    platforms = [Pair(commands[p.python], p.python, p.spark, p) for p in PLATFORMS if p.python in commands]
    return sparks + newest + platforms
