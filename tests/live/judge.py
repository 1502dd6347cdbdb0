"""Random retrievals of live clusters counted: those that are as ours, and those that follow from the servers' source.

    python -m tests.live.judge --kind killed --seed 7 --count 100 --queries 10
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.servers import postgresql as server

from .answers import differing_queries, unexplained_queries
from .cluster import h2, missing, postgresql, with_answers, with_answers_of_processes
from .random_cases import KINDS, case

Case = dict[str, Any]


def count_differences(cases: list[Case], differing: Callable[[Case], Iterator[str]]) -> str:
    """How many of the cases' retrievals differ, in words."""
    retrievals = sum("query" in step for one in cases for step in one["steps"])
    queries = [[*differing(one)] for one in cases]
    different = f"{sum(map(len, queries))} differ, in {sum(map(bool, queries))} clusters"
    return f"{len(cases)} clusters, {retrievals} retrievals, {different}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.judge", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="playback")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--queries", type=int, default=10, help="retrievals at each place where there are some")
    parser.add_argument("--postgresql", action="store_true", help="on PostgreSQL, not on H2")
    parser.add_argument("--processes", action="store_true", help="nodes are processes, which are killed; on PostgreSQL")
    options = parser.parse_args()
    if missing():
        sys.exit(f"needs {missing()}")
    kind = KINDS[options.kind]
    cases = [case(options.seed, number, kind, options.queries) for number in range(options.count)]
    with server() if options.postgresql or options.processes else nullcontext() as database:
        stores = h2 if database is None else postgresql(database)
        if options.processes:
            with tempfile.TemporaryDirectory() as folder:
                answered = [
                    with_answers_of_processes(one, stores(number), Path(folder) / str(number))
                    for number, one in enumerate(cases)
                ]
        else:
            threads = 1 if not kind.is_alive else 3 if options.postgresql else 16
            answered = with_answers(cases, stores, threads)
    if kind.is_partitioned:
        as_wso2 = "alive" if kind.is_alive else None
        print("ours:", count_differences(answered, lambda one: differing_queries(one, as_wso2)))
    print("the servers' source:", count_differences(answered, unexplained_queries))


if __name__ == "__main__":
    main()
