"""Bytes of an app's files that others changed: told by file and place, and never shown as data."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import App, deploy
from sparkstream_nb.app.stored.verify_folder import verify_folder
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.runners import inline_checkpoint
from sparkstream_nb.runners.inline_checkpoint import BufferedState, InlineCheckpoint
from tests.apps.waiting import until

APP = """
define stream S (k string, v long);
@PrimaryKey('k') define table T (k string, v long);
define aggregation G from S select k, sum(v) as t group by k aggregate every sec ... hour;
@info(name='w') from S#window.length(5) select k, v, sum(v) as t group by k insert into O;
@info(name='t') from S select k, v update or insert into T set T.v = T.v + v on T.k == k;
"""


def end(app: App) -> None:
    app.stop()
    app.close()


def results(app: App) -> list[Any]:
    app.flush()
    return [
        app.output("O").frame.values.tolist(),
        app.query("from T select * order by k").rows,
        app.query("from G within 0L, 100000000L per 'sec' select k, t").rows,
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The folder of an app that has ended, and its results."""
    home = tmp_path_factory.mktemp("damage") / "app"
    app = deploy(APP, name="app", home=home, master="inline")
    keys = [f"k{i % 7}" for i in range(3_000)]
    for first in (1_000, 6_000):
        frame = pd.DataFrame({"k": keys, "v": range(3_000), "at": range(first, first + 3_000)})
        app.feed("S", frame, time="at")
        app.send("S", ["z", 1])
    found = results(app)
    end(app)
    return home, found


def changed_files(home: Path) -> list[Path]:
    """One file of each kind."""
    kinds: dict[str, Path] = {}
    for file in sorted(home.rglob("*")):
        if file.is_file() and file.stat().st_size and not set(file.parts) & {"marks", "fed.json"}:
            if file.name.endswith(("-shm", "-wal")):
                continue
            kinds["feed" if file.name.startswith("feed-") else file.suffix or file.parent.name] = file
    return list(kinds.values())


def test_a_changed_byte_is_told_or_changes_nothing(folder: tuple[Path, list[Any]], tmp_path: Path) -> None:
    home, right = folder
    files = changed_files(home)
    assert len(files) >= 6
    draw = random.Random(1)
    for n, file in enumerate(files * 2):
        copy = tmp_path / f"copy-{n}"
        shutil.copytree(home, copy)
        damaged = copy / file.relative_to(home)
        data = bytearray(damaged.read_bytes())
        at = draw.randrange(len(data))
        data[at] ^= 1 << draw.randrange(8)
        damaged.write_bytes(data if n % 3 else data[:at])
        told = verify_folder(copy).damage
        if n % 2:
            continue
        told_by_start = open_copy(copy, right)
        assert told or not told_by_start, (damaged, at)
        assert str(copy) in told_by_start or "state" in told_by_start.lower() or not told_by_start


def test_verify_names_each_file_with_a_changed_byte(folder: tuple[Path, list[Any]], tmp_path: Path) -> None:
    """In all that a file holds: of an SQLite database only a part is in use, and marks are for display."""
    home = tmp_path / "app"
    shutil.copytree(folder[0], home)
    draw = random.Random(2)
    for file in changed_files(home):
        if file.suffix == ".sqlite" or file.name == "lock":
            continue
        data = file.read_bytes()
        blocks = range(12_288 + 5_000, len(data), 262_144) if file.suffix == ".duckdb" else ()
        for at in [*blocks, *(draw.randrange(len(data)) for _ in range(1 if blocks else 6))]:
            file.write_bytes(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
            assert str(file) in str(verify_folder(home).damage), (file, at)
        file.write_bytes(data)
    assert not verify_folder(home).damage


def open_copy(copy: Path, right: list[Any]) -> str:
    """The error of an app that goes on with a copy; empty if all is right."""
    try:
        app = deploy(APP, name="app", home=copy, master="inline")
        try:
            assert results(app) == right
        finally:
            end(app)
    except SparkStreamError as error:
        return str(error)
    return ""


def test_the_file_and_the_place_are_named(folder: tuple[Path, list[Any]], tmp_path: Path, capsys: Any) -> None:
    home = tmp_path / "app"
    shutil.copytree(folder[0], home)
    assert cli.main(["store", "verify", str(home)]) == 0
    assert "all is as it was written: 1 app.json" in capsys.readouterr().out
    file = next(home.glob("life-*/outputs/O/*.arrows"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert cli.main(["store", "verify", str(home)]) == 1
    assert f"the file {file} is damaged: not what was written, between byte 0" in capsys.readouterr().out
    assert f"the file {file} is damaged: not what was written, between byte 0" in open_copy(home, folder[1])


@pytest.mark.thorough
def test_an_input_file_that_changed_before_it_was_processed(tmp_path: Path) -> None:
    """The app stops with the file's name, and no event is set aside."""
    app = deploy(APP, name="app", home=tmp_path / "app", master="inline")
    app.stop()
    frame = pd.DataFrame({"k": ["a"] * 3_000, "v": range(3_000), "at": range(3_000)})
    app.runtime.stream.runner.cancel()
    start, app.runtime.stream.start = app.runtime.stream.start, lambda: None  # type: ignore[method-assign]
    app.feed("S", frame, time="at", background=True)
    until(app, lambda: app.runtime.inbox.position.seq > 0)
    file, *_ = sorted((tmp_path / "app").glob("life-*/inbox/feed-*"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    app.runtime.stream.start = start  # type: ignore[method-assign]
    with pytest.raises(SparkStreamError, match=re.escape(f"the file {file} is damaged")):
        app.flush()
    end(app)


Change = Callable[[Path], object]


@pytest.mark.parametrize(
    ("change", "message", "lines"),
    [
        (lambda f: f.write_bytes(f.read_bytes()[:4]), "has 4 bytes, where 12 were written: others have cut it", 3),
        (lambda f: f.write_bytes(b""), "has 0 bytes, where 12 were written: others have cut it", 2),
        (lambda f: f.write_bytes(f.read_bytes() * 2), "has 24 bytes, where 12 were written: others have added", 8),
        (lambda f: f.write_bytes(f.read_bytes()[:-2] + b"9\n"), "does not end as it was written", 5),
    ],
)
def test_a_sink_tells_that_others_changed_its_file(
    run: Callable[..., App], tmp_path: Path, change: Change, message: str, lines: int
) -> None:
    file = tmp_path / "o.csv"
    sink = f"@sink(type='file', file.uri='{file}', @map(type='csv')) define stream O (k string, v long);"
    text = f"define stream S (k string, v long); {sink} from S select k, v insert into O;"
    app = run(text, allow=[f"file={tmp_path}"])

    def send(*values: int) -> None:
        before = len(file.read_bytes()) if file.exists() else 0
        for v in values:
            app.send("S", ["a", v])
        app.flush()
        until(app, lambda: file.exists() and len(file.read_bytes()) >= before + 4 * len(values))

    send(1, 2, 3)
    change(file)
    send(4)
    send(5)
    told = [line for line in app.logs if message in line]
    assert len(told) == 1
    assert message in (app.stats().sinks[0].last_error or "")
    assert len(file.read_text().splitlines()) == lines


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("written.json", "[]"),
        ("written.json", '{"batch": "x", "rows": {}}'),
        ("written.json", '{"batch": 1, "rows": [1]}'),
        ("written.json", '{"batch": 1, "rows": {"O": "1"}}'),
        ("written.json", '{"batch": 1, "rows": {"O"'),
        ("dropped.json", '{"O": {}}'),
        ("dropped.json", "[]"),
    ],
)
def test_a_changed_count_of_outputs_is_told(
    folder: tuple[Path, list[Any]], tmp_path: Path, name: str, text: str
) -> None:
    home = tmp_path / "app"
    shutil.copytree(folder[0], home)
    (file,) = (f / name for f in home.glob("life-*/outputs"))
    file.write_text(text)
    reason = f"the file {file} is damaged: not what was written"
    assert reason in str(verify_folder(home))
    assert reason in open_copy(home, folder[1])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE batches SET done = 0",
        "UPDATE batches SET batch = batch + 1",
        """UPDATE batches SET "end" = replace("end", '"seq": ', '"seq": 1')""",
        """UPDATE batches SET "first" = NULL""",
        "UPDATE batches SET tries = 'x'",
        "DELETE FROM batches",
        "UPDATE nodes SET node = node + 8",
        "UPDATE nodes SET version = substr(version, 2)",
        "DELETE FROM nodes",
        "UPDATE pieces SET piece = 'text'",
        "UPDATE pieces SET piece = NULL",
    ],
)
def test_a_changed_row_of_the_checkpoint_is_told(folder: tuple[Path, list[Any]], tmp_path: Path, change: str) -> None:
    home = tmp_path / "app"
    shutil.copytree(folder[0], home)
    (file,) = home.glob("life-*/checkpoint/nodes.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        assert database.execute(change).rowcount > 0
    assert str(file.parent) in str(verify_folder(home).damage)
    told = open_copy(home, folder[1])
    assert str(home) in told
    assert re.search(r"[Pp]ut (the checkpoint|it) back from a copy", told)
    assert "Error" not in told


def test_a_checkpoint_whose_making_was_cut_short_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(new: Path, path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inline_checkpoint, "put_in_place", end)
        with pytest.raises(KeyboardInterrupt):
            InlineCheckpoint(tmp_path).open()
    (tmp_path / "nodes.sqlite.new").write_bytes(b"SQLite format 3\0")
    checkpoint = InlineCheckpoint(tmp_path)
    checkpoint.open()
    assert checkpoint.read_progress().planned == -1
    checkpoint.close()
    assert InlineCheckpoint(tmp_path).done() == (-1, -1)
    assert [p.name for p in tmp_path.iterdir()] == ["nodes.sqlite"]


def test_a_checkpoint_of_an_earlier_version_has_no_sums(tmp_path: Path) -> None:
    former = InlineCheckpoint(tmp_path)
    (tmp_path / "nodes.sqlite").touch()
    with contextlib.closing(sqlite3.connect(tmp_path / "nodes.sqlite")) as database, database:
        database.executescript(
            'CREATE TABLE batches (batch INTEGER PRIMARY KEY, "first" TEXT, "end" TEXT, done INTEGER, tries INTEGER);'
            "CREATE TABLE nodes (node INTEGER PRIMARY KEY, version TEXT, digests TEXT);"
            "CREATE TABLE pieces (node INTEGER, digest TEXT, piece BLOB, PRIMARY KEY (node, digest));"
        )
        offset = '{"seq": 3, "at": 70, "skip": 0}'
        database.execute("INSERT INTO batches VALUES (4, ?, ?, 1, 0)", (offset, offset))
        database.execute("INSERT INTO nodes VALUES (0, 'v', '[]')")
    former = InlineCheckpoint(tmp_path)
    assert former.done() == (4, 2)
    former.open()
    planned = former.plan({"seq": 3, "at": 70, "skip": 0}, {"seq": 4, "at": 90, "skip": 0})
    state = BufferedState(former, 1)
    state.set_version("v", "[]")
    former.finish(planned, [state])
    former.close()
    assert InlineCheckpoint(tmp_path).done() == (5, 3)
