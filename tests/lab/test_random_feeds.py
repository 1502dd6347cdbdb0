"""`%siddhi feed App.Stream --random N`: generated events of a running app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse

from .test_completion import in_shell

TEXT = """define stream Readings (room string, temp double, at long);
from Readings[temp > 20.0] select room, temp, at insert into Warm;
"""


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[App]:
    app = sparkstream_nb.deploy(TEXT, name="Rooms", master="inline", home=str(tmp_path / "home"))
    yield app
    app.stop()
    app.close()


def line(shell: Any, text: str) -> Any:
    return shell.run_line_magic("siddhi", text)


def test_generated_events_are_fed(shell: Any, rooms: App) -> None:
    report = line(shell, "feed Rooms.Readings --random 300 --seed 7 --rate 5 -o fed")
    assert report.rows == 300
    assert shell.user_ns["fed"] is report
    sent = sparkstream_nb.generate("Rooms.Readings", n=300, seed=7, rate=5)
    pd.testing.assert_frame_equal(sent, sparkstream_nb.generate((rooms, "Readings"), n=300, seed=7, rate=5))
    warm = sent[sent["temp"] > 20.0]
    found = rooms.output("Warm").frame
    assert found["room"].to_list() == warm["room"].to_list()
    assert found["timestamp"].to_list() == found["at"].to_list() == warm["at"].to_list()
    assert not rooms.errors.frame.size


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Rooms.Readings frame --random 5", "--random generates the events, and frame has some too: leave one out"),
        ("Rooms --from Readings=frame --random 5", "and Readings=frame has some too: leave one out"),
        ("Rooms.Readings --random 5 --time at", "--time says how a source is read, and --random has none"),
        ("Rooms.Readings frame --seed 5", "--seed is the seed of generated events: add --random N"),
        ("Rooms.Readings --random 0", "--random: '0' is not a whole number above 0"),
        ("Rooms.Reading --random 5", "Rooms has no stream 'Reading'. Did you mean 'Readings'?"),
    ],
)
def test_mistakes(shell: Any, rooms: App, words: str, message: str) -> None:
    with pytest.raises(Misuse) as told:
        line(shell, f"feed {words}")
    assert message in str(told.value)


def test_the_options_are_completed(shell: Any, rooms: App) -> None:
    assert in_shell(shell, "%siddhi feed Rooms.Readings --ra|") == ["--random", "--rate"]
    assert in_shell(shell, "%siddhi feed Rooms.Readings --random 5 --se|") == ["--seed"]
