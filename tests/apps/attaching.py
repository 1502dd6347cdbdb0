"""Deploys an app with a source and a sink of files, and kills itself when some of it is through. A program for tests.

attaching.py HOME IN OUT EVENTS: it ends as soon as EVENTS events came in and some outputs are delivered.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.apps.crashing import die

EVENTS, FILES = 600, 6
DEPLOYED: dict[str, Any] = {
    "name": "attached",
    "nodes": 2,
    "mode": "active-active",
    "routing": "hash:k",
    "shard_ids": ["a", "b"],
    "retention": "recording=50MB",
    "rows_per_micro_batch": 60,
    "allow_env": ["SOMETHING"],
    "variables": {"N": "3", "UNUSED_TOKEN": "not kept"},
}


def app_text(came: Path, out: Path) -> str:
    return f"""
@source(type='file', dir.uri='{came}', mode='line', dir.polling.interval='50', @map(type='csv'))
define stream S (k string, v long);
@sink(type='file', file.uri='{out}/sums.csv', @map(type='csv'))
define stream Sums (k string, v long, total long);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec, min;
@info(name='q') from S#window.length(${{N}}) select k, v, sum(v) as total insert into Sums;
"""


def write_files(came: Path, numbers: range) -> None:
    """Files number `numbers`, each there whole or not at all."""
    each = EVENTS // FILES
    for number in numbers:
        lines = "".join(f"k{i % 5},{i}\n" for i in range(number * each, (number + 1) * each))
        (came / f".{number}").write_text(lines)
        (came / f".{number}").rename(came / f"{number}.csv")


def main(home: str, came: str, out: str, events: str) -> None:
    from sparkstream_nb.app import deploy
    from tests.apps.programs import master

    os.chdir(out)
    allow = [f"file={came}", "file=."]
    app = deploy(app_text(Path(came), Path(out)), home=Path(home), allow=allow, master=master(), **DEPLOYED)
    written = Path(out) / "sums.csv"
    with app.runtime.progress.changed:
        while app.stats().sources[0].events < int(events) or not written.exists() or not written.stat().st_size:
            app.runtime.progress.changed.wait(0.05)
    die()


if __name__ == "__main__":
    main(*sys.argv[1:])
