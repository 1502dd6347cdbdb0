"""Flink SQL, a cluster in a process of its own, from a CSV without a header: `Flink.java` says how."""

from __future__ import annotations

import functools
from pathlib import Path

from .bring import cache_folder, compiled, jars_of_wheel, java
from .protocol import Peer, Query, with_text

VERSION = "2.3.0"
_SOURCE = Path(__file__).with_name("Flink.java")


@functools.cache
def _program() -> list[str]:
    home = cache_folder("flink")
    libraries = jars_of_wheel(home / VERSION, f"apache-flink-libraries=={VERSION}", "lib")
    classes = compiled(_SOURCE, libraries, home)
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True, exist_ok=True)
    (services / "org.apache.flink.table.factories.Factory").write_text("Flink$Factory\n")
    (classes / "log4j2.properties").write_text("rootLogger.level = OFF\n")
    return java(classes, libraries, "Flink", ["--add-opens=java.base/java.util=ALL-UNNAMED"])


def bring() -> str:
    """Fetches the jars and compiles the program."""
    _program()
    return f"Flink {VERSION}"


def command(query: Query) -> list[str]:
    return [*_program(), query.column, query.texts["flink"]]


PEER = Peer("flink", "Flink SQL", "csv", bring, command, with_text("flink"))
