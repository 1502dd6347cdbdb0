"""Sources of type fileeventlistener: files that are created, modified and removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.sources.file_events import FileEventsPlace, FileEventsReader
from tests.apps.waiting import rows, until


class Clock:
    """Seconds that a test sets."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def look(reader: FileEventsReader, position: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and status of the events of a look, which is kept in `position`."""
    messages = reader.read(0.0)
    if messages is None:
        return []
    reader.confirm(messages, {})
    position.update(messages.reached)
    paths, names, statuses = (c.to_pylist() for c in messages.events.columns)
    assert paths == [str(reader.place.path / name) for name in names]
    return list(zip(names, statuses, strict=True))


def test_the_life_of_a_file(tmp_path: Path) -> None:
    clock, position = Clock(), dict[str, Any]()
    (tmp_path / "old.txt").write_text("x")
    reader = FileEventsReader(FileEventsPlace(tmp_path, every=0.0), clock)
    reader.open({})
    assert look(reader, position) == [("old.txt", "created")]
    assert look(reader, position) == []
    (tmp_path / "b.txt").write_text("1")
    (tmp_path / "a.txt").write_text("1")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    (tmp_path / "folder").mkdir()
    assert look(reader, position) == [("a.txt", "created"), ("b.txt", "created")]
    os.utime(tmp_path / "a.txt", ns=(1, 1))
    assert look(reader, position) == []
    assert reader.behind().parts == {"files": 1}  # type: ignore[union-attr]
    clock.seconds += 1.0
    os.utime(tmp_path / "a.txt", ns=(2, 2))
    assert look(reader, position) == [("a.txt", "modifying")]
    assert look(reader, position) == []

    restarted_reader = FileEventsReader(FileEventsPlace(tmp_path, every=0.0), clock)
    restarted_reader.open(position)
    clock.seconds += 1.0
    assert look(restarted_reader, position) == [("a.txt", "modifyingCompleted")]
    (tmp_path / "a.txt").unlink()
    assert look(restarted_reader, position) == [("a.txt", "removed")]
    clock.seconds += 9.0
    assert look(restarted_reader, position) == []
    assert {name for name, at in position.items() if at is not None} == {"b.txt", "old.txt"}


def events_app(folder: Path, options: str = "", mapping: str = ", @map(type='passThrough')") -> str:
    return f"""
    @source(type='fileeventlistener', dir.uri='file:{folder}', monitoring.interval='20'{options}{mapping})
    define stream S (filepath string, filename string, status string);
    from S select * insert into O;
    """


@pytest.mark.contract
@pytest.mark.parametrize("mapping", ["", ", @map(type='passThrough')"])
def test_an_app_and_its_restart(run: Callable[..., App], tmp_path: Path, mapping: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    text = events_app(folder, ", file.name.list='a.txt, b.txt'", mapping)
    app = run(text, allow=[f"file={folder}"])
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text("1")
    until(app, lambda: rows(app, "O") == 2)
    app.stop()
    (folder / "a.txt").unlink()
    again = run(text, allow=[f"file={folder}"])
    until(again, lambda: rows(again, "O") == 3)
    frame = again.output("O").frame
    assert sorted(frame[["filename", "status"]].to_numpy().tolist()[:2]) == [["a.txt", "created"], ["b.txt", "created"]]
    assert frame[["filepath", "filename", "status"]].to_numpy().tolist()[2] == [
        str(folder / "a.txt"), "a.txt", "removed",
    ]  # fmt: skip


def test_a_folder_that_is_a_link_is_not_followed(run: Callable[..., App], tmp_path: Path) -> None:
    folder, other = tmp_path / "in", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    app = run(events_app(folder), allow=[f"file={folder}"])
    folder.rename(tmp_path / "former")
    folder.symlink_to(other)
    until(app, lambda: "is a symbolic link now" in (app.stats().sources[0].last_error or ""))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dir.uri=", "file.name.list=", "has no 'dir.uri'"),
        ("monitoring.interval='20'", "monitoring.interval='x'", "'monitoring.interval'"),
        ("monitoring.interval='20'", "file.name.list='x/y.txt'", "file.name.list has names of files in the folder"),
        ("'passThrough'", "'json'", "gives events and no messages"),
        ("status string", "status int", "gives three strings: the path of a file, its name, its status"),
        ("from S", "from S", "Add --allow 'file="),
    ],
)
def test_what_is_refused(run: Callable[..., App], tmp_path: Path, old: str, new: str, message: str) -> None:
    text = events_app(tmp_path)
    assert old in text
    with pytest.raises(SparkStreamError) as raised:
        run(text.replace(old, new), allow=[f"file={tmp_path}"] if old != new else [])
    assert message in str(raised.value)
