"""Runs an app with a source that polls a table, and kills itself, with its JVM, at a given place. A program for tests.

cdc_crashing.py HOME ADDRESS PLACE: ADDRESS is the database as a grant has it, its password is in DB_PASSWORD. PLACE is
one of: before (rows are read and not in the inbox), after (they are in the inbox, and nothing else knows it).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.apps.crashing import die


def source(address: str, options: str = "") -> str:
    """The source of table `trades`, polled by its `id`."""
    return (
        f"@source(type='cdc', mode='polling', url='jdbc:{address}', username='siddhi', "
        f"password='${{sec:db.password}}', table.name='trades', polling.column='id'{options}, @map(type='keyvalue'))"
    )


def app_text(address: str) -> str:
    return f"""
    {source(address)}
    define stream S (id long, k string, v long);
    @info(name = 'q') from S select id, k, v, count() as n insert into O;
    """


def deployed(address: str) -> dict[str, Any]:
    """What an app with this source is deployed with."""
    return {"allow": [f"jdbc={address}"], "allow_env": ["DB_PASSWORD"]}


def main(home: str, address: str, place: str) -> None:
    from sparkstream_nb.app import deploy
    from sparkstream_nb.sources.cdc import CdcReader
    from sparkstream_nb.sources.intake import SourceThread
    from tests.apps.programs import master

    enter, kept = SourceThread._enter, CdcReader.confirm

    def entering(self: Any, taken: Any, ending: Any) -> Any:
        if place == "before" and taken.received > 0:
            die()
        return enter(self, taken, ending)

    def keeping(self: Any, taken: Any, refused: Any) -> None:
        if place == "after" and taken.received > 0:
            die()
        kept(self, taken, refused)

    SourceThread._enter = entering  # type: ignore[method-assign]
    CdcReader.confirm = keeping  # type: ignore[method-assign]
    app = deploy(app_text(address), name="crash", home=Path(home), master=master(), **deployed(address))
    print("begun", flush=True)
    with app.runtime.progress.changed:
        app.runtime.progress.changed.wait_for(lambda: False, 120)


if __name__ == "__main__":
    main(*sys.argv[1:])
