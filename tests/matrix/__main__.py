"""The versions of Spark and of Python that apps run on, each pair in an environment of its own.

    python -m tests.matrix                     all pairs, and the tables in docs/spark-versions.md
    python -m tests.matrix --only 4.0.0 emr-8  pairs with one of these versions or platforms, and their rows
    python -m tests.matrix --one TEXT          one pair, chosen by a hash of the text, a commit's id, and a sixth of
                                               the contract; of platforms one that passed by its row

In each: what installing the wheel beside a pyspark, and beside a platform's packages, changes of them, the contract of
the runners on Spark, kills at random moments, the first notebook, a report that has the same bytes in each; and of
Spark's oldest patches and of platforms a standalone cluster and Connect.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from xml.etree import ElementTree

from sparkstream_nb.runners.spark.versions import STATE_OVER_CONNECT
from tests.matrix.pair_environment import PairEnvironment, build_wheel, make_environment, process_variables
from tests.matrix.pairs import ROOT, WORK, Pair, list_pairs
from tests.matrix.version_tables import PAGE, PairResult, describe_packages, passed_platforms, write_rows

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


def run_step(environment: PairEnvironment, name: str, words: Sequence[str]) -> tuple[bool, str]:
    """Runs a module of Python's in a pair's environment. True if it passed, and the number of tests in words."""
    folder = environment.pair.folder
    log, report = folder / f"{name}.log", folder / f"{name}.xml"
    report.unlink(missing_ok=True)
    pytest = ["pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(report)] if words[0] != "tests.chaos" else []
    variables = process_variables(environment, "night" if name == "clusters" else "merge")
    with log.open("wb") as out:
        process = subprocess.run(
            [str(environment.python), "-m", *pytest, *words], cwd=ROOT, stdout=out, stderr=out,
            stdin=subprocess.DEVNULL, env=variables, check=False,
        )  # fmt: skip
    if not report.exists():
        return process.returncode == 0, "passed" if process.returncode == 0 else f"failed: see {log}"
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    bad = count["failures"] + count["errors"]
    passed = count["tests"] - bad - count["skipped"]
    return process.returncode == 0 and passed > 0, f"{passed} passed" + (f", {bad} failed: see {log}" if bad else "")


def run_pair(pair: Pair, wheel: Path, *, complete: bool) -> PairResult:
    """The result of a pair; `complete`: with the whole contract and clusters."""
    result, start = PairResult(pair), time.monotonic()
    try:
        environment = make_environment(pair, wheel)
        result.texts["pyspark"] = environment.stays
        if pair.platform is not None:
            result.texts["packages"] = describe_packages(pair.platform, environment.versions)
        for module in ("engine.warm", "app.warm_spark"):  # as `make setup` does
            words = [str(environment.python), "-m", f"sparkstream_nb.{module}"]
            subprocess.run(words, cwd=ROOT, env=process_variables(environment), check=True)
    except (subprocess.CalledProcessError, AssertionError) as error:
        result.failures.append(f"installing: {error}")
        return result
    steps: list[tuple[str, Sequence[str]]] = [
        ("contract", CONTRACT if complete else [*CONTRACT, "--sixth"]),
        ("kills", ["tests.chaos", "--kills", str(KILLS if complete else KILLS_OF_ONE), "--seed", "1"]),
        ("notebook", NOTEBOOK),
        ("reports", REPORTS),
    ]
    if complete:
        connect = STATE_OVER_CONNECT.in_(pair.spark)
        steps.append(("clusters", [*CLUSTERS, "-k", f"standalone{' or connect' if connect else ''}"]))
    for name, words in steps:
        passed, result.texts[name] = run_step(environment, name, words)
        if not passed:
            result.failures.append(f"{name}: {result.texts[name]}")
        print(f"{pair.title}, {name}: {result.texts[name]}", flush=True)
    print(f"{pair.title}: {time.monotonic() - start:.0f} s", flush=True)
    return result


def choose_one(pairs: Sequence[Pair], text: str, platforms: Collection[str]) -> Pair:
    """One of the pairs, by a hash of the text; `platforms`: names of those that it may be."""
    choices = [pair for pair in pairs if pair.platform is None or pair.platform.name in platforms]
    return choices[int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % len(choices)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("--one", metavar="TEXT", help="one pair, chosen by a hash of the text")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="pairs with one of these versions or platforms")
    arguments = parser.parse_args()
    pairs = list_pairs()
    if arguments.one is not None:
        pairs = [choose_one(pairs, arguments.one, passed_platforms(PAGE.read_text(encoding="utf-8")))]
    elif arguments.only:
        pairs = [pair for pair in pairs if pair.has_one_of(arguments.only)]
    WORK.mkdir(parents=True, exist_ok=True)
    wheel, results = build_wheel(), []
    for pair in pairs:
        results.append(run_pair(pair, wheel, complete=arguments.one is None))
        if arguments.one is None:
            write_rows(results[-1:])
    for result in results:
        for line in result.failures:
            print(f"FAILED {result.pair.title}: {line}")
    return int(any(result.failures for result in results) or not results)


if __name__ == "__main__":
    sys.exit(main())
