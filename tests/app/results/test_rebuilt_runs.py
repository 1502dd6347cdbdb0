"""`sparkstream store repair` where checkpoint, store or outputs are damaged or gone: the app continues with the right
results, whenever the repair itself ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import App, deploy
from sparkstream_nb.app.deployment.app_folder import former_life
from sparkstream_nb.app.stored.repair_outputs import repair_folder
from sparkstream_nb.app.stored.run_from_journal import finish_replacement
from sparkstream_nb.app.stored.verify_folder import verify_folder
from sparkstream_nb.checksums import add_seal
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.result_codec import to_ipc
from tests.apps.waiting import until

APP = """
define stream S (k string, v long);
define aggregation G from S select k, sum(v) as t group by k aggregate every sec ... hour;
define table T (k string, v long);
@sink(type='file', file.uri='SINK', @map(type='json'))
define stream O (k string, v long, t long);
@info(name='w') from S#window.length(5) select k, v, sum(v) as t group by k insert into O;
@info(name='p') from every e1=S[v % 5 == 0] -> e2=S[k == e1.k] within 1 min select e1.k as k, e2.v as v insert into P;
from S[v % 3 == 0] select k, v update or insert into T on T.k == k;
"""
PORTIONS, ROWS = 6, 10
PROGRAM = """
import os, sys
from pathlib import Path
from sparkstream_nb.app.deployment.app_folder import former_life
from sparkstream_nb.app.stored.repair_outputs import repair_folder

left = int(sys.argv[2])

def counted(function):
    def call(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*arguments, **named)
    return call

Path.rename, Path.unlink = counted(Path.rename), counted(Path.unlink)
repair_folder(Path(sys.argv[1]), {})
"""
"""Repairs an app's folder, and ends at its n-th step that renames or removes a file."""


class Folder:
    """The folder of an app, and the file of its sink."""

    def __init__(self, path: Path, **how: Any) -> None:
        self.path, self.home, self.sink = path, path / "home", path / "sent.json"
        self.how = {"master": "inline", **how}

    def deploy(self) -> App:
        text = APP.replace("SINK", str(self.sink))
        return deploy(text, name="app", home=self.home, allow=[f"file={self.path}"], **self.how)

    def feed(self) -> None:
        """An app that takes some micro-batches, and ends. Half-way, copies of the sink's file and its position are
        made."""
        app = self.deploy()
        for portion in range(PORTIONS):
            if portion == PORTIONS // 2:
                self._wait_for_sink(app)
                app.stop()
                for file in (*self.home.glob("life-*/sinks/*.json"), self.sink):
                    shutil.copy(file, self.path / f"half-way-{file.name}")
            for i in range(ROWS):
                at = ROWS * portion + i
                app.send("S", [f"k{at % 7}", at], at=1_000 * at)
            app.flush()
        self._end(app)

    def results(self) -> list[Any]:
        """The results of the app after one more event, with the lines of its sink."""
        app = self.deploy()
        app.send("S", ["k1", 500], at=1_000_000)
        app.flush()
        sums = app.query("from G within 0L, 100000000L per 'sec' select AGG_TIMESTAMP, k, t")
        rows = [sorted(answer.rows) for answer in (sums, app.query("from T select k, v"))]
        streams = [app.output(stream).frame.values.tolist() for stream in ("O", "P")]
        assert not app.errors.frame.size
        self._end(app)
        return [*streams, *rows, self.sink.read_text().splitlines()]

    def _end(self, app: App) -> None:
        self._wait_for_sink(app)
        app.stop()
        app.close()

    def _wait_for_sink(self, app: App) -> None:
        outputs = len(app.output("O").frame)
        until(app, lambda: self.sink.exists() and len(self.sink.read_text().splitlines()) == outputs)

    def restore(self, copy: Path) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(copy / self.home.name, self.home)
        self.restore_sink(copy / self.sink.name)

    def restore_sink(self, copy: Path) -> None:
        """The sink knows its file by its inode."""
        with self.sink.open("r+") as file:
            file.truncate(0)
            file.write(copy.read_text())


@pytest.fixture(scope="module", params=[1, 3])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, Path, list[Any]]:
    """The folder of an app that ended, a copy of it, and the right results."""
    place = tmp_path_factory.mktemp("rebuilt")
    folder, copy = Folder(place / "app", nodes=request.param), place / "copy"
    folder.path.mkdir()
    folder.feed()
    shutil.copytree(folder.path, copy)
    return folder, copy, folder.results()


def checkpoint_gone(home: Path) -> None:
    shutil.rmtree(next(home.glob("life-*/checkpoint")))


def checkpoint_cut(home: Path) -> None:
    file = next(home.glob("life-*/checkpoint/nodes.sqlite"))
    os.truncate(file, file.stat().st_size // 2)


def store_gone(home: Path) -> None:
    for file in home.glob("store.duckdb*"):
        file.unlink()


def store_changed(home: Path) -> None:
    with (home / "store.duckdb").open("r+b") as file:
        file.seek(12_288)
        file.write(b"\xa5" * 64)


def both_gone(home: Path) -> None:
    checkpoint_gone(home)
    store_gone(home)


def outputs_gone(home: Path) -> None:
    shutil.rmtree(next(home.glob("life-*/outputs")))


def output_gone(home: Path) -> None:
    sorted(home.glob("life-*/outputs/O/*.arrows"))[1].unlink()


@pytest.mark.parametrize(
    "damage",
    [checkpoint_gone, checkpoint_cut, store_gone, store_changed, both_gone, outputs_gone, output_gone],
    ids=lambda damage: damage.__name__,
)
def test_the_app_continues(
    damage: Callable[[Path], None], kept: tuple[Folder, Path, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, copy, right = kept
    folder.restore(copy)
    damage(folder.home)
    with pytest.raises(SparkStreamError) as refusal:
        folder.deploy()
    assert "sparkstream store repair makes it again from the journal, if that has all" in str(refusal.value)
    assert cli.main(["store", "verify", str(folder.home)]) == 1
    assert f"sparkstream store repair {folder.home}" in capsys.readouterr().out
    assert cli.main(["store", "repair", str(folder.home)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "app: its checkpoint, store and outputs are made again from 60 entries of its journal"
    place = Path(lines[1].removeprefix("The former ones are in "))
    assert len(lines) == 2
    assert place.parent == folder.home / "trash"
    assert (place / "app.json").exists()
    assert len(list(folder.home.glob("life-*"))) == 1
    assert not verify_folder(folder.home).damage
    assert folder.results() == right


def test_a_sink_continues_where_it_was(kept: tuple[Folder, Path, list[Any]]) -> None:
    """A sink that had sent half of the outputs sends the others, none twice."""
    folder, copy, right = kept
    folder.restore(copy)
    (position,) = folder.home.glob("life-*/sinks/*.json")
    shutil.copy(copy / f"half-way-{position.name}", position)
    folder.restore_sink(copy / f"half-way-{folder.sink.name}")
    checkpoint_gone(folder.home)
    repair_folder(folder.home, {})
    assert folder.results() == right


def test_other_outputs_are_told(kept: tuple[Folder, Path, list[Any]]) -> None:
    folder, copy, right = kept
    folder.restore(copy)
    checkpoint_gone(folder.home)
    file = sorted(folder.home.glob("life-*/outputs/O/*.arrows"))[-1]
    with pa.ipc.open_stream(file.read_bytes()) as reader:
        table = reader.read_all()
    table = table.set_column(table.num_columns - 1, table.schema.names[-1], pa.array([-1] * table.num_rows, pa.int64()))
    file.write_bytes(add_seal(to_ipc(table)))
    lines = repair_folder(folder.home, {})
    files = len(list(copy.glob("home/life-*/outputs/O/*.arrows")))
    assert lines[1] == f"O: the outputs of 1 of {files} micro-batches are others than those that were there"
    assert folder.results() == right


@pytest.mark.parametrize(
    "how", [{"mode": "ha"}, {"nodes": 3, "alerts": "leader"}, {"clock": "wall"}], ids=lambda how: " ".join(how)
)
def test_other_modes(tmp_path: Path, how: dict[str, Any]) -> None:
    home = tmp_path / "home"
    text = "define stream S (k string, v long); from S#window.time(5 sec) select k, sum(v) as t insert into O;"
    if "clock" not in how:
        text = f"@app:playback {text}"

    def results(events: int = 0) -> list[Any]:
        app = deploy(text, name="app", home=home, master="inline", **how)
        for i in range(events):
            app.send("S", [f"k{i % 4}", i], **({} if "clock" in how else {"at": 1_000 * i}))
        app.flush()
        rows = app.output("O").frame.values.tolist()
        app.stop()
        app.close()
        return rows

    right = results(40)
    checkpoint_gone(home)
    assert len(repair_folder(home, {})) == 2
    assert results()[: len(right)] == right


@pytest.mark.parametrize(
    ("text", "how", "reason"),
    [
        ("from S select UUID() as u insert into O;", {}, "UUID would give other values"),
        ("from S select k insert into O;", {"store": "other.duckdb"}, "its aggregations are in a store outside of its"),
        ("from S select k insert into O;", {"retention": "recording=1"}, "the beginning of its input is no longer"),
    ],
)
def test_what_cannot_be_made_again_is_told(tmp_path: Path, text: str, how: dict[str, Any], reason: str) -> None:
    home = tmp_path / "home"
    if "store" in how:
        how = {"store": tmp_path / how["store"]}
    app = deploy(f"define stream S (k string); {text}", name="app", home=home, master="inline", **how)
    frame = pd.DataFrame({"k": ["a" * 20_000] * 3, "at": [1, 2, 3]})
    for _ in range(2):
        app.feed("S", frame, time="at")
        app.flush()
    app.stop()
    app.close()
    checkpoint_gone(home)
    before = sorted(home.rglob("*"))
    with pytest.raises(SparkStreamError, match=f"checkpoint of app cannot be made again from its journal: {reason}"):
        repair_folder(home, {})
    assert sorted(home.rglob("*")) == before


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "app", master="local[2]", nodes=2)
    folder.path.mkdir()
    folder.feed()
    shutil.copytree(folder.path, tmp_path / "copy")
    right = folder.results()
    folder.restore(tmp_path / "copy")
    (offsets,) = folder.home.glob("life-*/checkpoint/offsets")
    shutil.rmtree(offsets)
    with pytest.raises(SparkStreamError, match="sparkstream store repair makes it again from the journal"):
        folder.deploy()
    assert "made again from 60 entries of its journal" in repair_folder(folder.home, {})[0]
    assert not verify_folder(folder.home).damage
    assert folder.results() == right


@pytest.mark.thorough
def test_a_repair_may_end_at_any_moment(kept: tuple[Folder, Path, list[Any]]) -> None:
    folder, copy, right = kept
    if folder.how["nodes"] > 1:
        pytest.skip("the steps are the same for any number of nodes")
    for step in range(200):
        folder.restore(copy)
        checkpoint_gone(folder.home)
        ended = subprocess.run([sys.executable, "-c", PROGRAM, str(folder.home), str(step)], check=False, timeout=120)
        if ended.returncode == 0:
            break
        assert ended.returncode == 9
        if not list(folder.home.glob("life-*/store.duckdb")) and not list(folder.home.glob("life-*/unfinished")):
            assert folder.results() == right
            continue
        with pytest.raises(SparkStreamError, match=r"is not whole: its (checkpoint|store) is gone"):
            folder.deploy()
        repair_folder(folder.home, {})
        assert len(list(folder.home.glob("life-*"))) == 1
        assert folder.results() == right
    assert step > 5
    assert finish_replacement(folder.home, former_life(folder.home)) is None
