"""Measures queries on other engines in turn with ours, compares the outputs, and prints Markdown tables.

    python -m tests.bench.peers [--events 1000000] [--rounds 2] [--only filter pattern] [--peers duckdb flink]

DuckDB and Polars read a parquet file on one thread; Esper takes events in memory on one thread; Flink SQL and Spark's
own streaming go from files to outputs. What a peer needs comes from PyPI and Maven at the first use, into the user's
cache folder; a peer that cannot be brought is skipped. Ends with 1 where outputs differ in a way that `queries.toml`
does not declare, or where a peer fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from . import files, registry, tables
from .compare import Verdict, compare
from .protocol import MissingPeer, Peer, Query, Result, read_queries
from .turns import PeerFailed, Turn, measure, run, turns

CHECKED = 200_000
"""Events over which outputs are compared."""


def tell(text: str) -> None:
    """Prints progress beside the tables."""
    print(text, file=sys.stderr, flush=True)


def brought(asked: Sequence[Turn]) -> tuple[list[Turn], list[str]]:
    """The turns whose peers are here, and the versions; says which are skipped."""
    there, versions = [], []
    for turn in asked:
        try:
            versions.append(turn.peer.bring())
        except MissingPeer as e:
            tell(f"Skipped: {turn.peer.title}. {e}")
            continue
        there.append(turn)
    return there, versions


def of_query(query: Query, asked: Iterable[Turn]) -> list[Turn]:
    """The turns of those peers that have the query."""
    return [t for t in asked if query.name in t.peer.queries]


@dataclass(frozen=True)
class Bench:
    """Options of a run."""

    queries: Sequence[Query]
    repetitions: int
    rounds: int
    limit: float

    def verdicts(self, asked: Sequence[Turn], made: dict[str, Path]) -> dict[str, dict[str, Verdict]]:
        """The comparison of the first repetition of each peer, and of each form of ours, with ours in memory."""
        found: dict[str, dict[str, Verdict]] = {}
        for query in self.queries:
            peers = dict.fromkeys(p for t in of_query(query, asked) for p in (t.peer, t.ours))
            if not peers:
                continue
            first: Result | None = None
            for peer in (registry.MEMORY, *(p for p in peers if p is not registry.MEMORY)):
                try:
                    (result,) = run(peer, query, made[peer.file], 1, self.limit)
                except PeerFailed as e:
                    verdict = Verdict(f"**{e}**", True)
                else:
                    first = first or result
                    verdict = compare(query, peer.name, first, result)
                tell(f"  {query.name}, {peer.title}: {verdict.text}")
                found.setdefault(query.name, {})[peer.name] = verdict
        return found

    def measured(self, asked: Sequence[Turn], made: dict[str, Path]) -> dict[str, dict[str, Result | str]]:
        """The best of each peer, in turn with ours."""

        def one(peer: Peer, query: Query) -> list[Result]:
            return run(peer, query, made[peer.file], self.repetitions + 1, self.limit)

        found = {}
        for query in self.queries:
            found[query.name] = dict(measure(query, turns(of_query(query, asked), self.rounds), one, tell))
        return found

    def measured_text(self, found: tables.Measured, asked: Sequence[Turn], events: int) -> list[str]:
        """The tables of what was measured."""
        text: list[str] = []
        for title, group in (("In process", registry.IN_PROCESS), ("End to end", registry.END_TO_END)):
            here = [t for t in group if t in asked]
            if here:
                text += [f"### {title}: seconds of CPU; seconds elapsed, for {events:,} events", ""]
                text += [
                    f"The best in CPU of {self.rounds} rounds of {self.repetitions} repetitions after a warm-up.",
                    "",
                ]
                text += [*tables.table(found, self.queries, here), ""]
        return text

    def verdicts_text(self, found: Mapping[str, Mapping[str, Verdict]], asked: Sequence[Turn]) -> list[str]:
        """The table of the comparison; a column each for peers and forms of ours."""
        peers = dict.fromkeys([*(t.peer for t in asked), *(t.ours for t in asked)])
        shown = [p for p in peers if p is not registry.MEMORY]
        title = f"### Outputs of {CHECKED:,} events, compared with ours in memory"
        return [title, "", *tables.outputs(found, self.queries, shown), ""]


def options() -> argparse.Namespace:
    """Reads the command line."""
    by_name = [t.peer.name for t in (*registry.IN_PROCESS, *registry.END_TO_END)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000, help="trades that are measured")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each peer, in turn with ours")
    parser.add_argument("--repetitions", type=int, default=3, help="in each run, after a warm-up")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is ended")
    parser.add_argument("--only", nargs="+", choices=list(read_queries()), metavar="QUERY", help="these queries only")
    parser.add_argument("--peers", nargs="+", choices=by_name, default=by_name, metavar="PEER", help="these peers only")
    parser.add_argument("--no-comparison", action="store_true", help="measure only")
    parser.add_argument("--no-measuring", action="store_true", help="compare outputs only")
    return parser.parse_args()


def main() -> int:
    """Measures, compares and prints; returns the exit code."""
    given = options()
    queries = [q for q in read_queries().values() if not given.only or q.name in given.only]
    bench = Bench(queries, given.repetitions, given.rounds, given.limit)
    asked, versions = brought([t for t in (*registry.IN_PROCESS, *registry.END_TO_END) if t.peer.name in given.peers])
    if not asked:
        tell("No peer is here: nothing is measured.")
        return 0
    load = os.getloadavg()[0]
    wrong = False
    text: list[str] = []
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        if not given.no_measuring:
            found = bench.measured(asked, files.make(Path(folder, "measured"), given.events))
            text += bench.measured_text(found, asked, given.events)
            wrong |= any(isinstance(r, str) for by_peer in found.values() for r in by_peer.values())
        if not given.no_comparison:
            verdicts = bench.verdicts(asked, files.make(Path(folder, "compared"), CHECKED))
            text += bench.verdicts_text(verdicts, asked)
            wrong |= any(v.error for by_peer in verdicts.values() for v in by_peer.values())
    cores, now = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    machine = f"{cores} cores, load {load:.1f} at the beginning and {now:.1f} at the end"
    print(f"{registry.MEMORY.bring()}, {', '.join(versions)}; {date.today()}; {machine}.\n")
    print("\n".join(text))
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
