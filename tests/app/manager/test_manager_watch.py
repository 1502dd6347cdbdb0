"""A manager's directory of apps: files that appear, change, are half written, wrong, links, and go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparkstream_nb.app.manager.manager import MOST_BYTES, Manager, checked_app
from sparkstream_nb.app.manager.manager_watch import WatchedDirectory
from sparkstream_nb.errors import Misuse, StoreError
from tests.app.manager.test_manager import APP, StandIn


class Folder:
    """A directory, the manager that watches it, and what was logged since the last `look`."""

    def __init__(self, path: Path) -> None:
        self.path, self.apps, self.log = path, StandIn(), list[str]()
        path.mkdir()
        self.manager = Manager(self.apps)
        self.watched = WatchedDirectory(path, self.manager, self.log.append)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.write_text(text)
        return path

    def look(self, times: int = 2) -> list[str]:
        """What is logged when it is looked at so often; two looks find what is whole."""
        self.log.clear()
        for _ in range(times):
            self.watched.scan()
        return list(self.log)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "siddhi-files")


def test_files_appear_change_and_go(folder: Folder) -> None:
    file = folder.write("a.siddhi", APP)
    folder.write("notes.txt", "not an app")
    folder.write(".hidden.siddhi", APP)
    assert folder.look() == ["a.siddhi: app 'Rooms' is deployed"]
    assert folder.apps.texts == {"Rooms": APP}
    assert folder.look() == []
    file.write_text(APP.replace("3", "40"))
    assert folder.look() == ["a.siddhi: app 'Rooms' is deployed again"]
    os.utime(file, (0, 0))
    assert folder.look() == []
    file.unlink()
    assert folder.look(1) == []  # an editor may be about to put it back
    assert folder.look(1) == ["a.siddhi: app 'Rooms' is stopped and removed"]
    assert folder.apps.texts == {}


def test_an_app_without_a_name_is_called_by_its_file(folder: Folder) -> None:
    folder.write("Halls.siddhi", APP.replace("@app:name('Rooms')", ""))
    assert folder.look() == ["Halls.siddhi: app 'Halls' is deployed"]


def test_a_file_that_is_being_written_is_left_alone(folder: Folder) -> None:
    file = folder.path / "a.siddhi"
    with file.open("w") as writing:
        for i in range(0, len(APP), 20):
            writing.write(APP[i : i + 20])
            writing.flush()
            assert folder.look(1) == []
    assert folder.look() == ["a.siddhi: app 'Rooms' is deployed"]


def test_a_wrong_file_is_said_once(folder: Folder) -> None:
    file = folder.write("a.siddhi", "@app:name('A') define stream S (a int);\nfrom S select b insert into O;")
    folder.write("b.siddhi", APP)
    wrong, right = folder.look()
    assert wrong.startswith("a.siddhi: line 2, column 15: ")
    assert "^" in wrong
    assert right == "b.siddhi: app 'Rooms' is deployed"
    assert folder.look() == []
    file.write_text(APP.replace("Rooms", "A"))
    assert folder.look() == ["a.siddhi: app 'A' is deployed"]
    file.write_text("from")
    assert folder.look()[0].endswith("\nApp 'A' continues unchanged.")
    assert sorted(folder.apps.texts) == ["A", "Rooms"]


def test_a_deployment_that_fails_does_not_end_the_others(folder: Folder) -> None:
    folder.write("a.siddhi", APP.replace("Rooms", "A"))
    folder.write("b.siddhi", APP)
    folder.apps.failure = StoreError("the database does not answer")
    assert folder.look() == ["a.siddhi: the database does not answer", "b.siddhi: app 'Rooms' is deployed"]
    assert folder.look() == []


def test_what_is_no_text(folder: Folder) -> None:
    (folder.path / "a.siddhi").write_bytes(b"\n\xff")
    folder.write("long.siddhi", "-" * (MOST_BYTES + 1))
    (folder.path / "folder.siddhi").mkdir()
    os.mkfifo(folder.path / "pipe.siddhi")
    assert folder.look() == [
        "a.siddhi: it is not UTF-8 text (line 2): save it as UTF-8",
        "long.siddhi: an app has at most 1,000,000 bytes, and this one 1,000,001",
    ]
    assert folder.look() == []


def test_links_stay_within_the_directory(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside.siddhi"
    outside.write_text(APP)
    (folder.path / "out.siddhi").symlink_to(outside)
    (folder.path / "nowhere.siddhi").symlink_to(tmp_path / "none")
    (folder.path / "circle.siddhi").symlink_to(folder.path / "circle.siddhi")
    (folder.path / "..data").mkdir()  # as Kubernetes mounts files
    (folder.path / "..data" / "in.siddhi").write_text(APP.replace("Rooms", "In"))
    (folder.path / "in.siddhi").symlink_to(Path("..data") / "in.siddhi")
    said = folder.look()
    assert "out.siddhi: it is a link that leads out of the directory, and is not followed" in said
    assert "in.siddhi: app 'In' is deployed" in said
    assert list(folder.apps.texts) == ["In"]
    assert folder.look() == []


def test_an_app_and_its_file_do_not_come_apart(folder: Folder) -> None:
    folder.manager.add(checked_app(APP))
    file = folder.write("a.siddhi", APP)
    assert folder.look() == ["a.siddhi: there is an app 'Rooms' already, which came over HTTP: DELETE it there first"]
    folder.manager.remove("Rooms")
    assert folder.look(1) == ["a.siddhi: app 'Rooms' is deployed"]
    with pytest.raises(Misuse, match=r"app 'Rooms' comes from the file a.siddhi of the watched directory: change or"):
        folder.manager.remove("Rooms")
    with pytest.raises(Misuse, match=r"comes from the file a\.siddhi"):
        folder.manager.put(checked_app(APP))
    folder.write("b.siddhi", APP)
    assert folder.look()[0].endswith("give one of the two files another @app:name")
    file.write_text(APP.replace("Rooms", "Halls"))
    assert folder.look() == [
        "a.siddhi: app 'Rooms' is stopped and removed",
        "a.siddhi: app 'Halls' is deployed",
        "b.siddhi: app 'Rooms' is deployed",
    ]


def test_a_directory_that_goes_stops_nothing(folder: Folder) -> None:
    folder.write("a.siddhi", APP)
    folder.look()
    folder.path.rename(folder.path.with_name("away"))
    assert len(folder.look()) == 1
    assert list(folder.apps.texts) == ["Rooms"]
    folder.path.with_name("away").rename(folder.path)
    assert folder.look() == []


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"--watch: .*none is not a directory"):
        WatchedDirectory(tmp_path / "none", Manager(StandIn()), print)
