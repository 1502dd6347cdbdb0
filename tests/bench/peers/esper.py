"""Esper in a process of its own, events in memory: `Esper.java` says how."""

from __future__ import annotations

import functools
from pathlib import Path

from .bring import cache_folder, compiled, jars_of_maven, java
from .protocol import Peer, Query, with_text

VERSION = "9.0.0"
_HERE = Path(__file__).parent


@functools.cache
def _program() -> list[str]:
    home = cache_folder("esper")
    libraries = jars_of_maven(_HERE / "esper.pom.xml", home / VERSION)
    return java(compiled(_HERE / "Esper.java", libraries, home), libraries, "Esper")


def bring() -> str:
    """Fetches the jars and compiles the program."""
    _program()
    return f"Esper {VERSION}"


def command(query: Query) -> list[str]:
    return [*_program(), query.column, query.texts["esper"]]


PEER = Peer("esper", "Esper", "csv", bring, command, with_text("esper"), part="sending thread")
