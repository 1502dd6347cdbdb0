"""Runs cases on real Siddhi nodes that share a database."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

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
    """Databases of a server, which no other call makes."""
    name = f"live_{uuid4().hex}"

    def options(number: int) -> str:
        database = server.made(f"{name}_{number}")
        assert database.password is not None
        return (
            f"jdbc.url='jdbc:postgresql://{database.host}:{database.port}/{database.name}', "
            f"username='{database.user}', password='{database.password.reveal()}', "
            "jdbc.driver.name='org.postgresql.Driver', pool.properties='maximumPoolSize:1'"
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
    compile_ = ["javac", "-XDsuppressNotes", "-proc:none", "-cp", path, "-d", str(WORK / "classes")]
    subprocess.run([*compile_, str(HERE / "Live.java")], check=True, timeout=200)
    return os.pathsep.join([str(WORK / "classes"), path])


def with_answers(cases: Iterable[Case], stores: Stores = h2, threads: int = 1) -> list[Case]:
    """The cases that a cluster could run: each retrieval with the `rows` of its answer, each step with the `clock` of
    the wall where that is the nodes', and with `events` if the case watches streams: `[node, stream, values]` of each.
    So many `threads` run them."""
    cases = list(cases)
    lines = [json.dumps({**_with_store(case, stores(number)), "id": number}) for number, case in enumerate(cases)]
    run = subprocess.run(_command(threads), input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = sorted(
        (json.loads(line[1:]) for line in run.stdout.splitlines() if line.startswith("@")), key=itemgetter("id")
    )
    return [_answered(cases[a["id"]], a) for a in answers if "error" not in a]


def with_answers_of_processes(case: Case, store: str, folder: Path) -> Case:
    """The same of nodes in processes of their own, which are killed where the case starts a node again. They save their
    states in `folder`."""
    command, shards, results = _command(1), list(case["nodes"]), []
    nodes: list[subprocess.Popen[str] | None] = [None for _ in shards]
    try:
        for step in case["steps"]:
            number = step["node"]
            if "restart" in step:
                _kill(nodes[number])
                nodes[number], shards[number] = None, step["restart"]
                continue
            node = nodes[number]
            if node is None:
                node = nodes[number] = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            states = {"id": 0, "nodes": [shards[number]], "folder": str(folder / str(number)), "open": True}
            answer = _ask(node, {**_with_store(case, store), **states, "steps": [{**step, "node": 0}]})
            results += answer["results"]
    finally:
        for process in nodes:
            _kill(process)
    return _answered(case, {"results": results})


def _ask(node: subprocess.Popen[str], line: Case) -> Case:
    assert node.stdin is not None
    assert node.stdout is not None
    node.stdin.write(json.dumps(line) + "\n")
    node.stdin.flush()
    answer: Case = json.loads(next(text for text in node.stdout if text.startswith("@"))[1:])
    assert "error" not in answer, answer
    return answer


def _kill(node: subprocess.Popen[str] | None) -> None:
    if node is not None:
        node.kill()
        node.communicate()


def _with_store(case: Case, options: str) -> Case:
    store = f"@store(type='rdbms', {options})"
    app = case["app"].replace(TABLE, store).replace(AGGREGATION, f"{store} {AGGREGATION}")
    return {"watch": [], **case, "app": app}


@cache
def _command(threads: int) -> list[str]:
    start = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # a node starts sooner
    return [*start, f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}", "-cp", class_path(), "Live", str(threads)]


def _answered(case: Case, answer: dict[str, Any]) -> Case:
    rows = iter(answer["results"])
    steps = [{**step, "rows": sorted(next(rows), key=str)} if "query" in step else step for step in case["steps"]]
    if "playback" not in case["app"]:
        steps = [{**step, "clock": clock} for step, clock in zip(steps, answer["times"], strict=True)]
    events = {"events": sorted(answer["events"], key=str)} if "watch" in case else {}
    return {**case, "steps": steps, **events}
