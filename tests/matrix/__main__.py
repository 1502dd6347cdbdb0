"""The versions of Spark and of Python that apps run on, each pair in an environment of its own.

    python -m tests.matrix                     all pairs, and the table in docs/spark-versions.md
    python -m tests.matrix --only 4.0.0 3.13   pairs with one of these versions, and their rows
    python -m tests.matrix --one TEXT          one pair, chosen by a hash of the text, a commit's id, and a third of
                                               the contract

In each: what installing the wheel beside a pyspark that is there changes of it, the contract of the runners on Spark,
kills at random moments, the first notebook, a report that has the same bytes in each; and of Spark's oldest patches a
standalone cluster and Connect.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from sparkstream_nb.runners.spark.versions import STATE_OVER_CONNECT

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "spark-versions.md"
WORK = ROOT / ".work" / "matrix"
SPARKS = ("4.0.0", "4.0.5", "4.1.0", "4.1.4", "4.2.0", "4.2.1")
"""The first and a late patch of each version of Spark; the one of constraints.txt is tried with each Python."""
EXTRAS = "all,test"
CONTRACT = [
    "tests/app", "tests/runners", "tests/sources", "tests/sinks", "tests/operators",
    "-m", "contract and spark and not (server or thorough)", "-n", "2", "--dist", "loadgroup",
]  # fmt: skip
NOTEBOOK = [
    "-p", "nbval", "-p", "tests.notebooks", "--nbval", "--nbval-current-env", "--nbval-sanitize-with",
    "conf/nbval-sanitize.cfg", "--timeout", "600", "notebooks/01_first_query.ipynb",
]  # fmt: skip
REPORTS = ["tests/app/results/test_repeated_reports.py"]
# With the profile `night`, which has both of them in one run.
CLUSTERS = ["tests/runners/test_masters.py", "tests/operators/test_masters.py"]
KILLS = 4
KILLS_OF_ONE = 2
BEGIN, END = "<!-- what `make matrix` found -->\n", "<!-- end -->"


@dataclass(frozen=True)
class Pair:
    """A Python, by its command and version, and a pyspark."""

    python: str
    version: str
    spark: str

    @property
    def folder(self) -> Path:
        return WORK / f"python{self.version}-spark{self.spark}"


@dataclass
class Found:
    """What one pair gave: a short text for each column of the table, and what failed."""

    pair: Pair
    texts: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def locked(name: str) -> str:
    """The version of a package in constraints.txt."""
    found = re.search(rf"^{name}==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def pythons() -> dict[str, str]:
    """The Pythons of this machine from 3.11 on, by their versions."""
    places = [sys.executable, *(f"python3.{minor}" for minor in range(11, 16))]
    places += [str(p) for p in sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))]
    found: dict[str, str] = {}
    for place in places:
        say = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
        with_it = shutil.which(place)
        asked = with_it and subprocess.run([with_it, "-c", say], capture_output=True, text=True, check=False)
        if asked and asked.returncode == 0:
            version, own = asked.stdout.split(maxsplit=1)
            if tuple(map(int, version.split("."))) >= (3, 11):
                found.setdefault(version, own.strip())
    return found


def pairs() -> list[Pair]:
    """All: each Spark with this Python, each other Python with the Spark of constraints.txt."""
    found, own = pythons(), "{}.{}".format(*sys.version_info[:2])
    sparks = [Pair(found[own], own, spark) for spark in SPARKS]
    return sparks + [Pair(p, v, locked("pyspark")) for v, p in sorted(found.items()) if v != own]


def wheel() -> Path:
    """The project's wheel, built now."""
    shutil.rmtree(WORK / "wheel", ignore_errors=True)
    words = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(WORK / "wheel"), "."]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
    (built,) = (WORK / "wheel").glob("*.whl")
    return built


def installed(python: Path) -> dict[str, str]:
    """Versions of the packages that an environment has."""
    words = [str(python), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def make(pair: Pair, built: Path) -> tuple[Path, str]:
    """The pair's environment: its Python, and what installing the wheel changed of what was there.

    Raises AssertionError where that is anything.
    """
    python = pair.folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
    if not python.exists():
        subprocess.run([pair.python, "-m", "venv", str(pair.folder)], check=True)
        subprocess.run([*pip, "setuptools", "wheel"], check=True)
        subprocess.run([*pip, f"pyspark=={pair.spark}"], check=True)
    before = installed(python)
    # Not those of Spark: an environment that has it keeps it. Nor what has no version for all Pythons.
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    kept = pair.folder / "constraints.txt"
    kept.write_text("".join(line for line in lines if not line.startswith(("pyspark==", "py4j=="))))
    subprocess.run([*pip, "-c", str(kept), f"sparkstream-nb[{EXTRAS}] @ {built.as_uri()}"], check=True)
    after = installed(python)
    changed = {name for name, version in before.items() if after.get(name) != version}
    assert after["pyspark"] == pair.spark, after["pyspark"]
    assert not changed & {"pyspark", "py4j"}, changed
    return python, f"{after['pyspark']} stays"


def environment(pair: Pair, profile: str = "merge") -> dict[str, str]:
    """The variables that its processes get: nothing of another Spark, the checkout's package for kernels too, and what
    is compiled stays with the pair."""
    kept = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "PYSPARK_PYTHON", "PYTHONPATH")}
    own = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(pair.folder / "cache"), "SPARKSTREAM_PROFILE": profile}
    return {**kept, **own}


def run(pair: Pair, python: Path, name: str, words: Sequence[str]) -> tuple[bool, str]:
    """Runs a module of Python's in the pair's environment. Whether it passed, and how many tests did."""
    log, report = pair.folder / f"{name}.log", pair.folder / f"{name}.xml"
    report.unlink(missing_ok=True)
    pytest = ["pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(report)] if words[0] != "tests.chaos" else []
    with log.open("wb") as out:
        done = subprocess.run(
            [str(python), "-m", *pytest, *words], cwd=ROOT, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
            env=environment(pair, "night" if name == "clusters" else "merge"), check=False,
        )  # fmt: skip
    if not report.exists():
        return done.returncode == 0, "passed" if done.returncode == 0 else f"failed: see {log}"
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    bad = count["failures"] + count["errors"]
    passed = count["tests"] - bad - count["skipped"]
    return done.returncode == 0 and passed > 0, f"{passed} passed" + (f", {bad} failed: see {log}" if bad else "")


def tried(pair: Pair, built: Path, *, clusters: bool) -> Found:
    """What a pair gives."""
    found, start = Found(pair), time.monotonic()
    try:
        python, found.texts["pyspark"] = make(pair, built)
        for module in ("engine.warm", "app.warm_spark"):  # as `make setup` does
            subprocess.run([str(python), "-m", f"sparkstream_nb.{module}"], cwd=ROOT, env=environment(pair), check=True)
    except (subprocess.CalledProcessError, AssertionError) as error:
        found.failed.append(f"installing: {error}")
        return found
    steps: list[tuple[str, Sequence[str]]] = [
        ("contract", CONTRACT if clusters else [*CONTRACT, "--third"]),
        ("kills", ["tests.chaos", "--kills", str(KILLS if clusters else KILLS_OF_ONE), "--seed", "1"]),
        ("notebook", NOTEBOOK),
        ("reports", REPORTS),
    ]
    if clusters:
        connect = STATE_OVER_CONNECT.in_(pair.spark)
        steps.append(("clusters", [*CLUSTERS, "-k", f"standalone{' or connect' if connect else ''}"]))
    for name, words in steps:
        passed, found.texts[name] = run(pair, python, name, words)
        if not passed:
            found.failed.append(f"{name}: {found.texts[name]}")
        print(f"Python {pair.version}, Spark {pair.spark}, {name}: {found.texts[name]}", flush=True)
    print(f"Python {pair.version}, Spark {pair.spark}: {time.monotonic() - start:.0f} s", flush=True)
    return found


def write(results: Sequence[Found]) -> None:
    """Puts what was found into the table of its page, in place of the rows of the same pairs."""
    head, _, rest = TABLE.read_text().partition(BEGIN)
    table, _, rest = rest.partition(END)
    rows = {tuple(cells[:2]): cells for line in table.splitlines()[2:] if (cells := line.strip("| ").split(" | "))}
    for found in results:
        names = ("pyspark", "contract", "kills", "notebook", "clusters")
        cells = [found.pair.spark, found.pair.version, *(found.texts.get(name, "–") for name in names)]
        rows[tuple(cells[:2])] = cells
    lines = [
        "| Spark | Python | beside it | contract on Spark | kills | first notebook | standalone, Connect |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *("| " + " | ".join(rows[key]) + " |" for key in sorted(rows)),
    ]
    TABLE.write_text(head + BEGIN + "\n".join(lines) + "\n" + END + rest)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("--one", metavar="TEXT", help="one pair, chosen by a hash of the text")
    parser.add_argument("--only", nargs="+", metavar="VERSION", help="pairs with one of these versions")
    given = parser.parse_args()
    chosen = pairs()
    if given.one is not None:
        digest = hashlib.sha256(given.one.encode()).digest()
        chosen = [chosen[int.from_bytes(digest[:8]) % len(chosen)]]
    elif given.only:
        chosen = [pair for pair in chosen if pair.version in given.only or pair.spark in given.only]
    WORK.mkdir(parents=True, exist_ok=True)
    built, results = wheel(), []
    for pair in chosen:
        results.append(tried(pair, built, clusters=given.one is None))
        if given.one is None:
            write(results[-1:])
    for found in results:
        for line in found.failed:
            print(f"FAILED Python {found.pair.version}, Spark {found.pair.spark}: {line}")
    return int(any(found.failed for found in results) or not results)


if __name__ == "__main__":
    sys.exit(main())
