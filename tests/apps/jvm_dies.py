"""An app whose JVM dies: all that a person may call still answers, and it works again. A program for tests.

jvm_dies.py HOME
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from sparkstream_nb.app import apps, deploy
from sparkstream_nb.errors import SparkStreamError

APP = "define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;"


def answers(what: str, call: Callable[[], object]) -> None:
    """What a call says; an error of ours is an answer, of one line."""
    try:
        said = repr(call()).splitlines()[0]
    except SparkStreamError as e:
        said = f"Error: {e}"
    assert "\n" not in said, said
    print(f"{what}: {said}", flush=True)


def main(home: Path) -> None:
    """Kills the JVM twice: before a stop and a start, and before a new deployment."""
    app = deploy(APP, name="first", home=home / "first", nodes=2)
    app.send("S", [1])
    app.flush()
    psutil.Process(app.runtime.session.spark._jvm.java.lang.ProcessHandle.current().pid()).kill()

    for what, call in {
        "repr": lambda: app,
        "state": lambda: app.state,
        "stats": app.stats,
        "apps": apps,
        "send": lambda: app.send("S", [2]),
        "output": lambda: app.output("O"),
        "stop": app.stop,
    }.items():
        answers(what, call)

    other = deploy(APP, name="second", home=home / "second")
    other.send("S", [5])
    other.flush()
    assert other.output("O").frame["s"].tolist() == [5]
    again = deploy(APP, name="first", home=home / "first", nodes=2)
    again.send("S", [3])
    again.flush()
    print("events", again.stats().events, sorted(again.output("O").frame["s"]), flush=True)
    again.stop()
    again.send("S", [4])
    again.flush()
    print("after a stop", again.stats().events, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
