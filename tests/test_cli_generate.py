"""`sparkstream generate`, and `--random` of `sparkstream run`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb import cli

APP = """@app:name('Rooms')
define stream Readings (room string, temp double, at long);
define stream Doors (room string, open bool);
from Readings[temp > 20.0] select room, temp insert into Warm;
from Doors[open] select room insert into Open;
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    (tmp_path / "rooms.siddhi").write_text(APP, encoding="utf-8")
    return str(tmp_path / "rooms.siddhi")


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_a_file_of_events_is_that_of_python(
    app: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    words = ["generate", app, "--stream", "Readings", "--rows", "50", "--seed", "7", "--rate", "2", "--out", str(out)]
    assert cli.main([*words, "--start", "2024-06-01", "--arrivals", "steady"]) == 0
    assert capsys.readouterr().out == f"{out}: 50 events\n"
    found = pd.read_csv(out) if out.suffix == ".csv" else pd.read_parquet(out)
    expected = sparkstream_nb.generate(
        APP, stream="Readings", n=50, seed=7, rate=2, start="2024-06-01", arrivals="steady"
    )
    pd.testing.assert_frame_equal(found, expected)
    assert found["at"].to_list()[:2] == [1_717_200_000_000, 1_717_200_000_500]


def test_a_run_is_fed_with_generated_events(app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "run",
        app,
        "--master",
        "inline",
        "--home",
        str(tmp_path / "home"),
        "--fresh",
        "--last",
        "2",
        "--seed",
        "7",
    ]
    outputs = []
    for _ in range(2):
        assert cli.main([*words, "--random", "Readings=200", "--random", "Doors=20"]) == 0
        told = capsys.readouterr()
        assert "Readings, Doors: 220 events" in told.out
        outputs.append(told.out.partition("\n")[2])
    assert "Warm, the last 2 of" in outputs[0]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--random", "Reading=5"], "--random: Rooms has no stream 'Reading'. Did you mean 'Readings'?"),
        (
            ["run", "--random", "Doors=5", "--random", "Doors=6"],
            "--random Doors=6 and --random Doors=5 both feed Doors",
        ),
        (["run", "--random", "Doors=0"], "--random: 'Doors=0' is not STREAM=N, a stream and a number of events"),
        (["generate", "--rows", "5", "--out", "x.csv"], "which stream of Rooms? Name it as stream='...'"),
        (["generate", "--rows", "5", "--out", "x.txt"], "--out: x.txt is neither a .csv nor a .parquet file"),
        (["generate", "--rows", "-5", "--out", "x.csv"], "'-5' is not a whole number above 0"),
    ],
)
def test_mistakes(app: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([words[0], app, *words[1:]]) == 2
    assert message in capsys.readouterr().err
