"""Runs cases on real Siddhi nodes that share a database."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.found import program

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
WORK = ROOT / ".work" / "live"
STORE = "SPARKSTREAM_LIVE_STORE"
"""The variable that names the jar of the RDBMS store."""
DATABASE = (
    "@store(type='rdbms', jdbc.url='jdbc:h2:mem:case_{number};DB_CLOSE_DELAY=-1', username='sa', password='', "
    "jdbc.driver.name='org.h2.Driver') @PartitionById"
)


def store_jar() -> Path | None:
    """The jar of the RDBMS store, if there is one."""
    named = os.environ.get(STORE)
    jars = [Path(named)] if named else sorted((ROOT.parent / "shared" / "live").glob("siddhi-store-rdbms-*.jar"))
    return next((jar for jar in jars if jar.is_file()), None)


def missing() -> str:
    """What is missing to run a cluster; nothing if all is there."""
    if program("java", "javac") is None or program("maven", "mvn") is None:
        return "a JDK and Maven"
    return "" if store_jar() else f"the RDBMS store of Siddhi, a jar that {STORE} names"


def class_path() -> str:
    """The classes of the cluster, compiled once, and the jars that they need."""
    WORK.mkdir(parents=True, exist_ok=True)
    jars = WORK / "lib"
    if not jars.is_dir():
        copy = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
        subprocess.run([*copy, f"-DoutputDirectory={jars}"], check=True, timeout=540)
    path = os.pathsep.join(map(str, [store_jar(), *sorted(jars.glob("*.jar"))]))
    compile_ = ["javac", "-proc:none", "-cp", path, "-d", str(WORK / "classes"), str(HERE / "Live.java")]
    subprocess.run(compile_, check=True, timeout=200)
    return os.pathsep.join([str(WORK / "classes"), path])


def with_answers(cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases that a cluster could run, each retrieval with the `rows` of its answer."""
    cases = list(cases)
    lines = []
    for number, case in enumerate(cases):
        app = case["app"].replace("@PartitionById", DATABASE.format(number=number))
        lines.append(json.dumps({"id": number, "app": app, "nodes": case["nodes"], "steps": case["steps"]}))
    command = ["java", f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}", "-cp", class_path(), "Live"]
    run = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line[1:]) for line in run.stdout.splitlines() if line.startswith("@")]
    return [_answered(cases[a["id"]], a["results"]) for a in answers if "error" not in a]


def _answered(case: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
    rows = iter(results)
    steps = [{**step, "rows": sorted(next(rows), key=str)} if "query" in step else step for step in case["steps"]]
    return {**case, "steps": steps}
