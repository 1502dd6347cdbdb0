"""Runs cases on real Siddhi nodes that share a database."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.found import program
from tests.servers import RunServer, Server

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
WORK = ROOT / ".work" / "live"
Case = dict[str, Any]
STORE = "SPARKSTREAM_LIVE_STORE"
"""The variable that names the jar of the RDBMS store."""
AGGREGATION, TABLE = "@PartitionById", "@stored"
"""The annotations of an app behind its store, and in the place of one."""
Stores = Callable[[int], str]
"""The options of a store by the number of the case, which has the database for itself."""


def h2(number: int) -> str:
    """A database in memory."""
    return (
        f"jdbc.url='jdbc:h2:mem:case_{number};DB_CLOSE_DELAY=-1', username='sa', password='', "
        "jdbc.driver.name='org.h2.Driver'"
    )


def postgresql(server: Server | RunServer) -> Stores:
    """Databases of a server."""

    def options(number: int) -> str:
        database = server.made(f"case_{number}")
        assert database.password is not None
        return (
            f"jdbc.url='jdbc:postgresql://{database.host}:{database.port}/{database.name}', "
            f"username='{database.user}', password='{database.password.reveal()}', "
            "jdbc.driver.name='org.postgresql.Driver'"
        )

    return options


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


def with_answers(cases: Iterable[Case], stores: Stores = h2) -> list[Case]:
    """The cases that a cluster could run: each retrieval with the `rows` of its answer, and with `events` if the case
    watches streams: `[node, stream, values]` of each."""
    cases = list(cases)
    lines = []
    for number, case in enumerate(cases):
        store = f"@store(type='rdbms', {stores(number)})"
        app = case["app"].replace(AGGREGATION, f"{store} {AGGREGATION}").replace(TABLE, store)
        lines.append(json.dumps({"watch": [], **case, "id": number, "app": app}))
    command = ["java", f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}", "-cp", class_path(), "Live"]
    run = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line[1:]) for line in run.stdout.splitlines() if line.startswith("@")]
    return [_answered(cases[a["id"]], a) for a in answers if "error" not in a]


def _answered(case: Case, answer: dict[str, Any]) -> Case:
    rows = iter(answer["results"])
    steps = [{**step, "rows": sorted(next(rows), key=str)} if "query" in step else step for step in case["steps"]]
    events = {"events": sorted(answer["events"], key=str)} if "watch" in case else {}
    return {**case, "steps": steps, **events}
