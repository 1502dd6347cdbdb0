"""Apps are listed with what they take on the disk, and removed for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import App, app_folders, apps, attachable, deploy, empty_trash_of, remove_app
from sparkstream_nb.app.deployment.owner import acquire_home
from sparkstream_nb.errors import Misuse

TEXT = """
define stream S (v int);
define aggregation A from S select sum(v) as s aggregate every sec;
from S select v insert into O;
"""


def used(run: Callable[..., App]) -> App:
    app = run(TEXT)
    app.send("S", [1], at=1000)
    app.flush()
    return app


def test_an_app_is_removed_with_its_folder(run: Callable[..., App], tmp_path: Path) -> None:
    app = used(run)
    (found,) = app_folders(app.home)
    assert (found.name, found.owner, found.trash) == ("app", "this process", 0)
    assert found.size > 10_000
    run(TEXT.replace("sum", "max"), fresh=True)
    (found,) = app_folders(app.home)
    assert 0 < found.trash < found.size
    emptied = empty_trash_of("app", app.home)
    assert emptied.size == found.trash
    assert app_folders(app.home)[0].trash == 0
    removed = remove_app("app", app.home)
    assert removed.left == []
    assert removed.size > 10_000
    assert not app.home.exists()
    assert "app" not in apps()
    with pytest.raises(Misuse, match="is no app's folder"):
        remove_app("app", app.home)
    assert used(run).output("O").frame["v"].tolist() == [1], "it starts from scratch"


def test_what_is_elsewhere_and_what_is_not_the_apps_stays(run: Callable[..., App], tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    app = run(TEXT, store=store)
    (app.home / "notes.txt").write_text("mine")
    removed = remove_app("app", app.home)
    assert removed.left == [f"its aggregations in {store}"]
    assert store.exists()
    assert [p.name for p in app.home.iterdir()] == ["notes.txt"]


def test_an_app_of_another_owner_is_not_removed(run: Callable[..., App], tmp_path: Path) -> None:
    app = used(run)
    app.stop()
    app.close()
    held = acquire_home(app.home, "another")
    try:
        with pytest.raises(Misuse, match="is the folder of app 'another' of this process"):
            remove_app("app", app.home)
    finally:
        held.release()
    assert (app.home / "app.json").exists()


def test_the_command_lists_and_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    assert cli.main(["apps"]) == 0
    assert capsys.readouterr().out == "No app was deployed here before.\n"
    for name in ("One", "Two"):
        app = deploy(TEXT, name=name, master="inline")
        app.stop()
        app.close()
    assert cli.main(["apps"]) == 0
    listed = capsys.readouterr().out
    assert "One" in listed
    assert "of it trash" in listed
    assert cli.main(["apps", "remove"]) == 2
    assert "which apps?" in capsys.readouterr().err
    assert cli.main(["apps", "empty-trash"]) == 0
    assert capsys.readouterr().out.count(": removed 0 B in ") == 2
    assert cli.main(["apps", "remove", "One"]) == 0
    assert capsys.readouterr().out.startswith("One: removed ")
    assert [found.name for found in attachable()] == ["Two"]
