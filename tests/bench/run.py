"""`make bench`: the reference engine, the node engine and Spark over the same trades, one after the other.

Prints a table of ratios and the growth curves, and writes both into docs/performance.md, between its two marks. The
reference engine needs a JDK 17 and Maven, the picture a Chromium. A quarter of an hour on two quiet cores; figures of a
busy machine mean nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import growth, latency, picture

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "tests" / "reference"
PAGE = ROOT / "docs" / "performance.md"
CURVES = ROOT / "docs" / "images" / "growth.svg"
SETS = (REFERENCE / "workloads.json", Path(__file__).with_name("variety.json"))
MARKS = ("<!-- figures -->\n", "<!-- end of figures -->\n")
HEAP = "3g"
RUNS, SPARK_RUNS = 3, 2
Figures = dict[str, dict[str, Any]]


def siddhi(workloads: Path, events: Path) -> Figures:
    """Events a second in the second half of a run, the best of `RUNS`, and what came out, by workload."""
    line = re.compile(r"(\S+)\s+\d+ ev/s whole\s+(\d+) ev/s second half\s+out=(\d+)")
    # A heap whose pages are there before the clock starts: on a virtual machine a fresh one can take longer than the
    # work itself.
    env = {
        **os.environ, "SIDDHI_WORKLOADS": str(workloads), "SIDDHI_HEAP": HEAP,
        "JAVA_TOOL_OPTIONS": f"-Xms{HEAP} -XX:+AlwaysPreTouch",
    }  # fmt: skip
    found: Figures = {}
    for _ in range(RUNS):
        for text in _lines([str(REFERENCE / "siddhi"), "bench", str(events)], env):
            if m := line.search(text):
                row = {"events_per_second": int(m[2]), "out": int(m[3])}
                _better(found, m[1], row)
    return found


def ours(workloads: Path, events: Path, on: str, runs: int) -> Figures:
    """What `workloads.py` says, the best of so many runs, by workload; each in a process of its own, as its peak
    of memory asks for."""
    found: Figures = {}
    for w in json.loads(workloads.read_text()) * runs:
        command = [sys.executable, "-m", "tests.bench.workloads", str(workloads), str(events), "--on", on]
        for text in _lines([*command, "--only", w["name"]], {**os.environ, "PYTHONPATH": str(ROOT)}):
            if text.startswith("{"):
                row = json.loads(text)
                _better(found, row["name"] if row["on"] == on else f"{row['name']} {row['on']}", row)
    return found


def _better(found: Figures, name: str, row: dict[str, Any]) -> None:
    found[name] = max(row, found.get(name, row), key=lambda x: x["events_per_second"])


def _lines(command: list[str], env: Mapping[str, str]) -> Iterator[str]:
    with subprocess.Popen(command, env=dict(env), stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None
        for text in p.stdout:
            print("  " + text, end="", flush=True)
            yield text
    if p.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... ended with {p.returncode}")


def starts(workloads: Path) -> dict[str, tuple[float, float]]:
    """Seconds from an app's text to its first result in a new process: kernels in the cache; the first time ever."""
    code = (
        "import json, sys, time; from sparkstream_nb.plan import compile_app; "
        "from sparkstream_nb.engine.node import NodeEngine; from bench.growth import trades; "
        "from bench.engine_bench import batches; "
        "fed = next(batches(trades(2000, 10), 'Trades', 2000)); "
        "began = time.perf_counter(); NodeEngine(compile_app(sys.argv[1])).step(fed); "
        "print(time.perf_counter() - began)"
    )
    found = {}
    for w in json.loads(workloads.read_text()):
        with tempfile.TemporaryDirectory() as empty:
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))}
            command = [sys.executable, "-c", code, w["app"]]
            cached = float(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)
            env["NUMBA_CACHE_DIR"] = empty
            first = float(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)
        found[w["name"]] = (cached, first)
        print(f"  {w['name']}: {cached:.2f} s with compiled loops, {first:.1f} s the first time", flush=True)
    return found


def machine() -> str:
    """Processor, cores, memory and versions, without names of hosts."""
    import numba
    import pyspark

    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = m[1] if (m := re.search(r"model name\s*: (.*)", info)) else "unknown processor"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()[0]
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB; Python {sys.version.split()[0]}, "
        f"numba {numba.__version__}, Spark {pyspark.__version__}, {java}, Siddhi 5.1.30; {date.today()}"
    )


def _millions(row: Mapping[str, Any] | None) -> str:
    return f"{row['events_per_second'] / 1e6:.2f}" if row else "—"


def ratios(reference: Figures, engine: Figures, spark: Figures) -> list[str]:
    """The table: millions of events a second, and the ratio to the reference engine's second half."""
    lines = [
        "| workload | Siddhi | engine | ratio | Spark | ratio | bare Spark | state, bytes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    logs = []
    for name, peer in reference.items():
        node, on_spark, bare = engine[name], spark.get(name), spark.get(f"{name} bare")
        if node["out"] != peer["out"]:
            raise SystemExit(f"{name}: Siddhi put out {peer['out']} events, the engine {node['out']}")
        ratio = node["events_per_second"] / peer["events_per_second"]
        logs.append(math.log(ratio))
        of_spark = f"{on_spark['events_per_second'] / peer['events_per_second']:.1f}" if on_spark else "—"
        lines.append(
            f"| {name} | {_millions(peer)} | {_millions(node)} | {ratio:.1f} | {_millions(on_spark)} | {of_spark} | "
            f"{_millions(bare)} | {node['state_bytes']:,} |"
        )
    lines.append(f"| geometric mean | | | {math.exp(sum(logs) / len(logs)):.1f} | | | | |")
    return lines


def main() -> int:
    """Runs everything and rewrites the figures of the page."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--events", type=int, default=1_000_000, help="for the reference engine and the node engine")
    p.add_argument("--spark-events", type=int, default=10_000_000, help="for Spark; 0: leave Spark out")
    options = p.parse_args()
    if picture.CHROMIUM is None:
        p.error("the curves are drawn by a browser, and none was found as chromium or google-chrome: install one")
    text = ["", f"On {machine()}.", ""]
    with tempfile.TemporaryDirectory() as folder:
        files = {n: Path(folder, f"{n}.csv") for n in {options.events, options.spark_events} - {0}}
        for n, file in files.items():
            subprocess.run([sys.executable, str(REFERENCE / "trades.py"), str(n), str(file)], check=True)
        for workloads in SETS:
            first = workloads is SETS[0]
            began = time.perf_counter()
            print(f"{workloads.stem}: Siddhi, {options.events:,} events", flush=True)
            reference = siddhi(workloads, files[options.events])
            print("engine", flush=True)
            engine = ours(workloads, files[options.events], "engine", RUNS)
            spark = {}
            if first and options.spark_events:
                print(f"Spark, {options.spark_events:,} events", flush=True)
                spark = ours(workloads, files[options.spark_events], "spark", SPARK_RUNS)
            title = "The ten workloads" if first else "Other windows, joins and patterns"
            text += [f"### {title}", "", *ratios(reference, engine, spark), ""]
            print("\n".join(text[-len(reference) - 5 :]), f"{time.perf_counter() - began:.0f} s", flush=True)
    print("starting", flush=True)
    text += ["### From the text of an app to its first result", ""]
    text += ["| workload | compiled loops in the cache, s | empty cache, s |", "| --- | ---: | ---: |"]
    text += [f"| {name} | {a:.2f} | {b:.1f} |" for name, (a, b) in starts(SETS[0]).items()]
    if options.spark_events:
        print("latency", flush=True)
        text += ["", "### Waiting times in a notebook", "", "| | s |", "| --- | ---: |"]
        text += [f"| {what} | {seconds:.2f} |" for what, seconds in latency.waits().items()]
    print("growth", flush=True)
    curves = [(c, growth.measured(c)) for c in growth.CURVES]
    text += ["", "### Nanoseconds per event as the load grows", "", f"![Four curves](images/{CURVES.name})", ""]
    for curve, points in curves:
        text.append(f"- {curve.axis}: " + ", ".join(f"{size:,}: {ns:.1f} ns" for size, ns in points))
        print(text[-1], flush=True)
    picture.save(curves, CURVES)
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    figures = "\n".join([*text, "", ""])
    PAGE.write_text(before + MARKS[0] + figures + MARKS[1] + rest.split(MARKS[1])[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
