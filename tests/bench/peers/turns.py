"""Runs peers as processes, one at a time and in turn with ours, and keeps the best repetition of each."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .protocol import ROOT, Peer, Query, Result


class PeerFailed(Exception):
    """A peer that ended with an error, printed no result, or was ended by its time limit."""


def run(peer: Peer, query: Query, file: Path, repetitions: int, limit: float) -> list[Result]:
    """Runs a query on a peer so many times. Raises `PeerFailed`."""
    command = [*peer.command(query), query.name, str(file), str(repetitions)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **peer.env()}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        ) as process,
    ):  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as e:
            raise PeerFailed(f"not finished after {limit:.0f} s") from e
        finally:
            _end(process.pid)
        errors.seek(0)
        said = errors.read()
    results = [Result.of(line) for line in output.splitlines() if line.startswith("{")]
    if process.returncode or len(results) != repetitions:
        lines = [line.strip() for line in said.splitlines() if "rror" in line or "xception" in line]
        raise PeerFailed(f"ended with {process.returncode}: {lines[-1][:200] if lines else said[-200:].strip()}")
    return results


def _end(group: int) -> None:
    """Ends what a process of a session of its own has left running."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


@dataclass(frozen=True)
class Turn:
    """A peer with that form of ours that it is measured against."""

    peer: Peer
    ours: Peer


def turns(asked: Iterable[Turn], rounds: int) -> Iterator[Peer]:
    """The order of a query's runs: in each round every peer is followed by ours."""
    asked = list(asked)
    for _ in range(rounds):
        for turn in asked:
            yield turn.peer
            yield turn.ours


def measure(
    query: Query, order: Iterable[Peer], runner: Callable[[Peer, Query], Sequence[Result]], tell: Callable[[str], None]
) -> Mapping[str, Result | str]:
    """The repetition with the least CPU for each peer, by its name, the warm-ups left out; for a peer that failed, why.
    It is not run again in later rounds."""
    best: dict[str, Result | str] = {}
    for peer in order:
        so_far = best.get(peer.name)
        if isinstance(so_far, str):
            continue
        try:
            found = min(runner(peer, query)[1:], key=lambda r: r.cpu)
        except PeerFailed as e:
            best[peer.name] = str(e)
            tell(f"  {query.name}, {peer.title}: {e}")
            continue
        best[peer.name] = found if so_far is None else min(so_far, found, key=lambda r: r.cpu)
        tell(f"  {query.name}, {peer.title}: {found.cpu:.3f} CPU-s, {found.wall:.3f} s")
    return best
