"""The protocol of all peers: a program that runs one query several times, and prints one JSON line for each.

    PROGRAM QUERY FILE REPETITIONS

The first repetition is the warm-up: its output is compared, its time is not counted.
"""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
QUERIES = Path(__file__).with_name("queries.toml")
SCHEMA = "symbol string, price double, quantity long, timestamp long"


@dataclass(frozen=True)
class Result:
    """One repetition. `sum` is that of the query's column over `rows` output rows; `cpu` the user and system seconds of
    the process and what it started; `part` those of a part of the work, which the peer names (`Peer.part`)."""

    query: str
    rows: int
    sum: float
    cpu: float
    wall: float
    part: float | None = None

    def line(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of(line: str) -> Result:
        """The inverse of `line`. Raises ValueError for a line that is no result."""
        found = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError(line)
        try:
            return Result(**found)
        except TypeError as e:
            raise ValueError(line) from e


@dataclass(frozen=True)
class Difference:
    """A known difference between outputs, with its largest size: in rows, and relative to our sum."""

    reason: str
    rows: int = 0
    sum: float = 0.0


@dataclass(frozen=True)
class Query:
    """A query with its text for each engine that takes one, and the known differences and gaps by peer."""

    name: str
    title: str
    column: str
    texts: Mapping[str, str]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def app(self) -> str:
        """The SiddhiQL app."""
        return f"define stream Trades ({SCHEMA}); {self.texts['ours']}"


@dataclass(frozen=True)
class Peer:
    """An engine as the comparison runs it.

    `file` is the kind of file that it reads (`files.py`). `bring` fetches what it needs at the first use and returns
    its version; it raises `MissingPeer` where that is not possible. `command` is the program of a query, without its
    three arguments; `env` what its environment has besides. `queries` are the names of those that it has.
    """

    name: str
    title: str
    file: str
    bring: Callable[[], str]
    command: Callable[[Query], list[str]]
    queries: frozenset[str]
    env: Callable[[], Mapping[str, str]] = dict
    part: str | None = None


class MissingPeer(Exception):
    """A peer that this machine does not have and cannot fetch."""


def read_queries(file: Path = QUERIES) -> dict[str, Query]:
    """The queries of the table, by name."""
    found = {}
    for row in tomllib.loads(file.read_text(encoding="utf-8"))["queries"]:
        differences = {peer: Difference(**d) for peer, d in row.pop("differences", {}).items()}
        name, title, column, without = row.pop("name"), row.pop("title"), row.pop("column"), row.pop("without", {})
        found[name] = Query(name, title, column, row, differences, without)
    return found


def with_text(engine: str) -> frozenset[str]:
    """The names of the queries that have a text for an engine."""
    return frozenset(q.name for q in read_queries().values() if engine in q.texts)


def python_module(name: str) -> list[str]:
    """The command that runs a module of this folder."""
    return [sys.executable, "-m", f"tests.bench.peers.{name}"]


def tree_cpu() -> float:
    """User and system seconds of this process and of all that it started, those that ended too."""
    import psutil

    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            t = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += t.user + t.system + t.children_user + t.children_system
    return total


def repeat(
    once: Callable[[Query, str], tuple[Any, float | None]],
    total: Callable[[Query, Any], tuple[int, float]],
    cpu: Callable[[], float] = time.process_time,
) -> None:
    """The main program of a peer in Python. `once` runs a query over a file and returns its output and the CPU of the
    peer's part; `total` gives rows and sum of an output, outside of the time that is measured."""
    name, file, repetitions = sys.argv[1:4]
    query = read_queries()[name]
    for _ in range(int(repetitions)):
        before, began = cpu(), time.perf_counter()
        output, part = once(query, file)
        wall, used = time.perf_counter() - began, cpu() - before
        rows, summed = total(query, output)
        print(Result(name, rows, summed, round(used, 4), round(wall, 4), part).line(), flush=True)
