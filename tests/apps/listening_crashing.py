"""Runs an app with a source that listens to a table, and kills itself at a given place. A program for tests.

listening_crashing.py HOME ADDRESS PLACE: ADDRESS is the database as a grant has it, its password is in DB_PASSWORD.
PLACE is one of: before (changes are read and not in the inbox), after (they are in the inbox, and nothing else knows
it), middle (a part of a transaction is in the inbox, and another part is read).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.apps.crashing import die

MIDDLE = 70
"""Changes that are read at once where the process is killed in the middle of a transaction."""


def source(address: str, options: str = "") -> str:
    """The source of the changes of table `trades`."""
    return (
        f"@source(type='cdc', url='jdbc:{address}', username='siddhi', password='${{sec:db.password}}', "
        f"table.name='trades', operation='insert,update,delete'{options}, @map(type='keyvalue', @attributes("
        "id='id', v='v', was='before_v', op='trp:operation')))"
    )


def app_text(address: str, options: str = "") -> str:
    return f"""
    {source(address, options)}
    define stream S (id long, v long, was long, op string);
    @info(name = 'q') from S select id, v, was, op, count() as n insert into O;
    """


def deployed(address: str) -> dict[str, Any]:
    """What an app with this source is deployed with."""
    return {"allow": [f"jdbc={address}"], "allow_env": ["DB_PASSWORD"]}


def main(home: str, address: str, place: str) -> None:
    from sparkstream_nb.app import deploy
    from sparkstream_nb.sources import listening
    from sparkstream_nb.sources.intake import SourceThread
    from sparkstream_nb.sources.listening import ListeningReader
    from tests.apps.programs import master

    enter, kept = SourceThread._enter, ListeningReader.confirm
    entered = 0

    def entering(self: Any, taken: Any, ending: Any) -> Any:
        nonlocal entered
        if taken.received > 0 and (place == "before" or entered):
            die()
        entered += place == "middle" and taken.received > 0
        return enter(self, taken, ending)

    def keeping(self: Any, taken: Any, refused: Any) -> None:
        if place == "after" and taken.received > 0:
            die()
        kept(self, taken, refused)

    if place == "middle":
        listening.PORTION = MIDDLE
    SourceThread._enter = entering  # type: ignore[method-assign]
    ListeningReader.confirm = keeping  # type: ignore[method-assign]
    app = deploy(app_text(address), name="crash", home=Path(home), master=master(), **deployed(address))
    print("begun", flush=True)
    with app.runtime.progress.changed:
        app.runtime.progress.changed.wait_for(lambda: False, 120)


if __name__ == "__main__":
    main(*sys.argv[1:])
