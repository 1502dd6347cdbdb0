"""`sparkstream store repair`: damaged files of outputs are made again from the journal, as they were."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import App, deploy
from sparkstream_nb.app.stored.repair_outputs import repair_folder
from sparkstream_nb.app.stored.verify_folder import verify_folder
from sparkstream_nb.checksums import is_sealed
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.journal import division
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.query_parts import unrepeatable_functions

APP = """
define stream S (k string, v long, o object);
@info(name='w') from S#window.length(5) select k, v, sum(v) as t, o group by k insert into O;
@info(name='odd') from S[v % 7 == 3] select k, v insert into Odd;
"""
PORTIONS = 70
"""Micro-batches: more than are merged at once."""


def end(app: App) -> None:
    app.stop()
    app.close()


def outputs(app: App) -> list[Any]:
    app.flush()
    return [app.output(s).frame.values.tolist() for s in ("O", "Odd")]


def make(home: Path, **how: Any) -> list[Any]:
    """An app that has ended in a folder; its outputs."""
    app = deploy(APP, name="app", home=home, master="inline", **how)
    for portion in range(PORTIONS):
        rows = [[f"k{i % 7}", i, [i]] for i in range(portion, portion + 10)]
        for i, row in enumerate(rows):
            app.send("S", row, at=1_000 * portion + i)
        app.flush()
    found = outputs(app)
    end(app)
    return found


def read_again(home: Path, **how: Any) -> list[Any]:
    app = deploy(APP, name="app", home=home, master="inline", **how)
    try:
        return outputs(app)
    finally:
        end(app)


def files_of(home: Path) -> list[Path]:
    return sorted(home.glob("life-*/outputs/*/*.arrows"))


def damage(file: Path, draw: random.Random) -> None:
    data = bytearray(file.read_bytes())
    at = draw.randrange(len(data))
    data[at] ^= 1 << draw.randrange(8)
    file.write_bytes(data if draw.random() < 0.5 else data[:at])


@pytest.fixture(scope="module", params=[1, 3])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    home = tmp_path_factory.mktemp("repaired") / "app"
    return home, {"nodes": request.param, "right": make(home, nodes=request.param)}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_damaged_outputs_are_made_again(
    folder: tuple[Path, dict[str, Any]], tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    home, app = tmp_path / "app", folder[1]
    shutil.copytree(folder[0], home)
    files, draw = files_of(home), random.Random(seed)
    assert any(len(f.stem.split("-")) == 2 for f in files), "a file of many micro-batches"
    assert any(len(f.stem.split("-")) == 3 for f in files), "a file of one"
    for file in draw.sample(files, (1, 2, 5, len(files))[seed]):
        damage(file, draw)
    assert verify_folder(home).damage
    assert f"sparkstream store repair {home}" in str(verify_folder(home))
    assert cli.main(["store", "repair", str(home)]) == 0
    assert "outputs are made again from the journal" in capsys.readouterr().out
    assert not verify_folder(home).damage
    assert all(map(is_sealed, files_of(home)))
    assert read_again(home, nodes=app["nodes"]) == app["right"]
    assert repair_folder(home, {}) == ["no file of outputs is damaged"]


def test_the_rest_of_outputs_of_which_the_oldest_were_dropped(tmp_path: Path) -> None:
    home = tmp_path / "app"
    retention = "outputs=20KB"
    right = make(home, retention=retention)
    assert len(right[0]) < 10 * PORTIONS, "some were dropped"
    for file in files_of(home):
        damage(file, random.Random(file.name))
    repair_folder(home, {})
    assert read_again(home, retention=retention) == right


def test_input_that_is_no_longer_kept_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "app"
    app = deploy(APP, name="app", home=home, master="inline", retention="recording=1KB")
    for first in (0, 3_000):
        frame = pd.DataFrame({"k": "k", "v": range(3_000), "o": None, "at": range(first, first + 3_000)})
        app.feed("S", frame, time="at")
    end(app)
    file = files_of(home)[0]
    damage(file, random.Random(1))
    before = file.read_bytes()
    with pytest.raises(SparkStreamError, match=r"the outputs of app cannot be made again: .*no longer kept"):
        repair_folder(home, {})
    assert file.read_bytes() == before


def test_an_app_in_use(tmp_path: Path) -> None:
    home = tmp_path / "app"
    app = deploy(APP, name="app", home=home, master="inline")
    try:
        with pytest.raises(Misuse, match="folder of app 'app'"):
            repair_folder(home, {})
    finally:
        end(app)


UNREPEATABLE = ["UUID()", "math:rand()", "math:rand(7)", "time:currentTimestamp()", "time:timestampInMilliseconds()"]


@pytest.mark.parametrize("function", UNREPEATABLE)
def test_values_of_chance_and_of_the_wall_clock_are_not_made_up(tmp_path: Path, function: str) -> None:
    home = tmp_path / "app"
    text = f"define stream S (k string); from S select k, {function} as x insert into O;"
    app = deploy(text, name="app", home=home, master="inline")
    app.send("S", ["a"], at=1)
    app.flush()
    end(app)
    (file,) = files_of(home)
    damage(file, random.Random(1))
    before = file.read_bytes()
    name = function.partition("(")[0]
    with pytest.raises(SparkStreamError, match=f"the outputs of app cannot be made again: {name} would give other"):
        repair_folder(home, {})
    assert file.read_bytes() == before


def test_functions_that_another_run_gives_again() -> None:
    stream = "define stream S (k string, v long); "
    script = "define function f[javascript] return double { return BODY; }; " + stream
    for text, names in [
        (stream + "from S select currentTimeMillis() as n, time:dateAdd(k, 1, 'day') as d insert into O;", []),
        (script.replace("BODY", "data[0] * 2") + "from S select f(v) as x insert into O;", []),
        (script.replace("BODY", "Math.random()") + "from S select f(v) as x insert into O;", ["f"]),
        (stream + "from every e1=S[UUID() != k] -> e2=S select e1.k as k insert into O;", ["UUID"]),
    ]:
        assert unrepeatable_functions(compile_app(text)) == names


def test_outputs_whose_number_is_not_known(tmp_path: Path, folder: tuple[Path, dict[str, Any]]) -> None:
    """All of them are made again."""
    home = tmp_path / "app"
    shutil.copytree(folder[0], home)
    (written,) = home.glob("life-*/outputs/written.json")
    written.unlink()
    damage(files_of(home)[0], random.Random(1))
    assert "its checkpoint, store and outputs are made again" in repair_folder(home, {})[0]
    assert read_again(home, nodes=folder[1]["nodes"]) == folder[1]["right"]


def test_a_repair_leaves_nothing_in_the_inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the parts of nodes are files, as those of large feeds."""
    monkeypatch.setattr(division, "INLINE_STEPS", 0)
    home = tmp_path / "app"
    app = deploy(APP, name="app", home=home, master="inline", nodes=2)
    app.send("S", [[f"k{i % 7}", i, [i]] for i in range(20)], at=1_000)
    app.send("S", [["a", 3, [1]]], at=2_000)
    right = outputs(app)
    end(app)
    before = sorted(home.rglob("inbox/**/*"))
    damage(files_of(home)[0], random.Random(1))
    repair_folder(home, {})
    assert sorted(home.rglob("inbox/**/*")) == before
    assert not verify_folder(home).damage
    assert read_again(home, nodes=2) == right
