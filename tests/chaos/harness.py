"""Kills an app at random moments, again and again, and holds what comes out against an undisturbed run.

Everything is a function of the seed but the moments themselves, which the machine's speed shifts: a kill is told by
what was killed, and how long (s) after the program began.

    python -m tests.chaos --kills 200 --seed 1 [--master inline|local|standalone|connect] [--kafka EVENTS]
                                                   [--nodes 64 --rows 1000000]

With `--kafka`, events come from a topic of a real broker, which is killed too, and some of what comes out goes to
another: each message at least once, and without a hit once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import psutil

from tests.bench.streams import produce
from tests.broker import Broker, kafka
from tests.masters import Masters, masters

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "chaos" / "victim.py"
LATEST = 14.0
"""s after its beginning in which a program is hit; one that is not killed takes about as long."""
KINDS = ("driver", "group", "jvm", "worker", "host", "forks", "full disk", "torn line", "second process")
_OF_SPARK = ("jvm", "worker", "host", "forks")
"""What is hit of Spark's: an app without it has only its own process."""
KAFKA_KINDS = ("broker", "driver", "group", "jvm", "worker", "reader")
KAFKA_LATEST = 45.0
_PATIENCE = 600.0
"""s that a program may take; a standalone cluster on a busy machine is slow."""


@dataclass(frozen=True)
class Victim:
    """A program that is killed: it takes HOME MASTER NODES and then `arguments`. It is hit up to `latest` s after its
    beginning, on one of these numbers of `nodes`."""

    program: Path = PROGRAM
    arguments: tuple[str, ...] = ()
    latest: float = LATEST
    nodes: tuple[int, ...] = (1, 3)
    broker: Broker | None = None


@dataclass
class Hit:
    """What was done to a program, and when (s after it began)."""

    kind: str
    after: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.after:.1f} s"


@dataclass
class Report:
    """`kills`: hits by kind. `differing`: what differed, with the hits that led to it."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    runs: int = 0
    differing: list[str] = field(default_factory=list)
    repeats: int = 0
    """Messages that a sink sent again."""
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kills.items()))
        return (
            f"seed {self.seed}: {sum(self.kills.values())} hits ({kinds}) in {self.runs} runs; "
            f"{len(self.differing)} runs differ; {self.repeats} messages were sent again"
        )


class Chaos:
    """Runs of `victim` in folders under `folder`, on the Sparks of `sparks`."""

    def __init__(
        self, folder: Path, sparks: Masters, seed: int, say: Callable[[str], None] = print, victim: Victim | None = None
    ) -> None:
        self.folder, self.sparks, self.say, self.victim = folder, sparks, say, victim or Victim()
        self.random, self.report = random.Random(seed), Report(seed)
        self._undisturbed: dict[int, dict[str, pd.DataFrame]] = {}
        self._lasts: dict[int, float] = {}

    def run(self, kills: int, kinds: tuple[str, ...] = KINDS) -> Report:
        """Hits programs until there were so many hits, each kind in turn; or three times as many were too late."""
        if self.sparks.kind == "inline":
            kinds = tuple(k for k in kinds if k not in _OF_SPARK)
        elif self.sparks.kind != "local":  # elsewhere Spark starts its Python processes itself
            kinds = tuple(k for k in kinds if k not in ("host", "forks"))
        wanted = [kinds[i % len(kinds)] for i in range(kills)]
        self.random.shuffle(wanted)
        while wanted and self.report.missed < 3 * kills:
            nodes = self.random.choice(self.victim.nodes)
            batch = [wanted.pop() for _ in range(min(len(wanted), self.random.randint(1, 4)))]
            wanted[:0] = self._one(nodes, batch)
        return self.report

    def undisturbed(self, nodes: int) -> dict[str, pd.DataFrame]:
        """What comes out of an app on so many nodes that nothing happens to."""
        if nodes not in self._undisturbed:
            home = self._home(f"undisturbed-{nodes}")
            began = time.monotonic()
            process = self._start(home, nodes)
            assert process.wait(_PATIENCE) == 0, self._log(home)
            self._lasts[nodes] = time.monotonic() - began
            self._undisturbed[nodes], repeats = self._found(home)
            assert repeats == 0
        return self._undisturbed[nodes]

    def _one(self, nodes: int, kinds: list[str]) -> list[str]:
        """Hits one app, and compares; the kinds that came too late."""
        expected = self.undisturbed(nodes)
        latest = min(self.victim.latest, self._lasts[nodes])
        home = self._home(f"run-{self.report.runs}")
        hits, late = list[Hit](), list[str]()
        for kind in kinds:
            hit = Hit(kind, round(self.random.uniform(0.5, latest), 2))
            if self._hit(home, nodes, hit):
                hits.append(hit)
                self.report.kills[kind] += 1
            else:
                self.report.missed += 1
                late.append(kind)
        self._finish(home, nodes)
        self.report.runs += 1
        found, repeats = self._found(home)
        self.report.repeats += repeats
        differing = [name for name, frame in expected.items() if not frame.equals(found[name])]
        if differing:
            self.report.differing.append(f"{home.name} on {nodes} nodes: {', '.join(differing)} differ after {hits}")
        again = f", {repeats} messages sent again" if repeats else ""
        what = f"{', '.join(map(str, hits)) or 'no hit'}: {differing or 'the same'}{again}"
        self.say(f"{home.name}, {nodes} nodes: {what}")
        if not differing:
            shutil.rmtree(home)
        return late

    def _home(self, name: str) -> Path:
        """A folder for an app, and a topic for its sink."""
        if self.victim.broker is not None:
            self.victim.broker.topic(name)
        return self.folder / name

    def _found(self, home: Path) -> tuple[dict[str, pd.DataFrame], int]:
        """What came out of an app, and how many messages its sink sent again."""
        found = pickle.loads((home / "found").read_bytes())
        if self.victim.broker is None:
            return found, 0
        records = self.victim.broker.records(home.name)
        first = {dict(r.headers)["Idempotency-Key"]: r.value for r in reversed(records)}
        found["sent"] = pd.DataFrame({"value": sorted(first.values())})
        return found, len(records) - len(first)

    def _start(self, home: Path, nodes: int) -> subprocess.Popen[bytes]:
        home.parent.mkdir(parents=True, exist_ok=True)
        with (home.parent / f"{home.name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(self.victim.program), str(home), self.sparks.address(), str(nodes),
                 *self.victim.arguments],
                start_new_session=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def _log(self, home: Path) -> str:
        return (home.parent / f"{home.name}.log").read_text(errors="replace")[-3000:]

    def _hit(self, home: Path, nodes: int, hit: Hit) -> bool:
        """Starts the program, and hits it; whether it was there to be hit. It has ended when this returns."""
        if (home / "found").exists():
            return False
        process = self._start(home, nodes)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(hit.after)
                return False
            done = self._strike(home, nodes, hit.kind, process)
            if hit.kind in ("driver", "group", "torn line"):
                process.wait(_PATIENCE)
            else:  # the app goes on by itself, or its program says why it cannot
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(self.random.uniform(0.5, 5.0))
            return done
        finally:
            self._end(process)

    def _strike(self, home: Path, nodes: int, kind: str, process: subprocess.Popen[bytes]) -> bool:
        match kind:
            case "driver":
                process.kill()
            case "group":
                os.killpg(process.pid, signal.SIGKILL)
            case "torn line":
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(_PATIENCE)
                for journal in sorted(home.glob("life-*/inbox/journal/*"))[-1:]:
                    with journal.open("ab") as file:
                        file.write(b'[{"seq": 99, "step": 12')
            case "full disk":  # a file of the driver's cannot grow beyond what it has, for a while
                with contextlib.suppress(ProcessLookupError):
                    limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1_000, limits[1]))
                    time.sleep(self.random.uniform(0.1, 1.5))
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
            case "broker":
                assert self.victim.broker is not None
                self.victim.broker.stop()
                time.sleep(self.random.uniform(0.1, 3.0))
                self.victim.broker.start()
            case "second process":
                other = self._start(home, nodes)
                try:
                    other.wait(_PATIENCE)
                finally:
                    self._end(other)
                return other.returncode != 0 or process.poll() is not None
            case _:
                return self._kill_one(kind, process)
        return True

    def _kill_one(self, kind: str, process: subprocess.Popen[bytes]) -> bool:
        if kind == "jvm" and self.sparks.kind == "connect":
            self.sparks.restart()
            return True
        while not (victims := [p for p in self._family(process) if _kind_of(p) == kind]):
            try:  # workers come with the first task, late in a short program
                process.wait(0.05)
                return False
            except subprocess.TimeoutExpired:
                continue
        with contextlib.suppress(psutil.NoSuchProcess):
            self.random.choice(sorted(victims, key=lambda p: p.pid)).kill()
        return True

    def _family(self, process: subprocess.Popen[bytes]) -> Iterator[psutil.Process]:
        roots = [process.pid, *self.sparks.processes()]
        for root in roots:
            with contextlib.suppress(psutil.NoSuchProcess):
                yield from psutil.Process(root).children(recursive=True)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a program with all that it started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for p in [*psutil.Process(process.pid).children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    p.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_PATIENCE)

    def _finish(self, home: Path, nodes: int) -> None:
        """Lets the program come to its end, by itself."""
        for _ in range(3):
            if (home / "found").exists():
                return
            began = time.monotonic()
            process = self._start(home, nodes)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{home} does not come to its end: {self._log(home)}") from None
            finally:
                self._end(process)
            self.report.seconds.append(time.monotonic() - began)
            assert process.returncode == 0, self._log(home)


def _kind_of(process: psutil.Process) -> str:
    """What a process is to the app."""
    with contextlib.suppress(psutil.NoSuchProcess):
        words = " ".join(process.cmdline())
        if process.name() == "java":
            return "jvm"
        if "sparkstream_nb.runners.spark.forks" in words:
            parent = process.parent()
            own = parent is not None and "sparkstream_nb.runners.spark.forks" in " ".join(parent.cmdline())
            return ("host" if _is_host(process) else "worker") if own else "forks"
        if "sparkstream_nb.sources.kafka_process" in words:
            return "reader"
        if "pyspark" in words:
            return "worker"
    return ""


def _is_host(process: psutil.Process) -> bool:
    """True if a process listens as engine hosts do."""
    return any(Path(c.laddr).name.startswith("h") for c in process.net_connections(kind="unix") if c.laddr)


def main(words: list[str] | None = None) -> int:
    """The command; 1 where a run differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", choices=("inline", "local", "standalone", "connect"), default="local")
    parser.add_argument("--kafka", type=int, default=0, metavar="EVENTS")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--rows", type=int, default=0, help="of a window and a table that are filled first")
    options = parser.parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    with contextlib.ExitStack() as stack:
        sparks = stack.enter_context(masters(options.master, folder))
        large = (str(options.rows),) if options.rows else ()
        victim, kinds = Victim(arguments=large, nodes=tuple(options.nodes)), KINDS
        if options.kafka:
            victim, kinds = fed_by(stack.enter_context(kafka()), options.kafka), KAFKA_KINDS
        chaos = Chaos(folder, sparks, options.seed, lambda line: print(line, flush=True), victim)
        report = chaos.run(options.kills, kinds)
    print(report, *report.differing, sep="\n")
    if not report.differing:
        shutil.rmtree(folder)
    return 1 if report.differing else 0


def fed_by(broker: Broker, events: int) -> Victim:
    """The program whose events come from a topic with so many."""
    topic = broker.topic(partitions=2)
    produce(broker, topic, 2, events)
    program = PROGRAM.with_name("kafka_victim.py")
    return Victim(program, (broker.address, topic, str(events)), KAFKA_LATEST, broker=broker)
