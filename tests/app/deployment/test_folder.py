"""What the state of an app depends on."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sparkstream_nb.app import attach, changes, deploy
from sparkstream_nb.app.deployment.app_folder import (
    AppRun,
    check_home,
    default_home,
    fingerprint,
    foresee_changes,
    open_folder,
)
from sparkstream_nb.app.deployment.deployment import Deployment
from sparkstream_nb.errors import Misuse
from sparkstream_nb.journal.private import private_folder
from sparkstream_nb.journal.routing import keys_apart
from sparkstream_nb.plan import compile_app
from sparkstream_nb.request import DeployRequest
from sparkstream_nb.runners.runner_protocol import NodeLayout

APP = "define stream S (a int); @info(name = 'q') from S#window.length(3) select sum(a) as total insert into Out;"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (APP + " -- comment", True),
        ("@app:description('x') " + APP, True),
        (APP.replace("from S", "\n  from S"), True),
        (APP.replace("length(3)", "length(4)"), False),
        (APP.replace("a int", "a long"), False),
        (APP + "from S select a insert into Other;", False),
    ],
)
def test_fingerprint(text: str, same: bool) -> None:
    assert (fingerprint(compile_app(text)) == fingerprint(compile_app(APP))) is same


DEPLOYMENT = Deployment(DeployRequest(), "app", "single", "round_robin", ("a",), Path())


def test_the_id_of_a_node_is_no_part_of_the_plan() -> None:
    a, b = (compile_app(APP, properties={"shardId": s}) for s in ("a", "b"))
    assert fingerprint(a) == fingerprint(b)


def test_a_folder_is_kept_or_emptied(tmp_path: Path) -> None:
    plan = compile_app(APP)
    deployment = replace(DEPLOYMENT, home=tmp_path)
    first, said = open_folder(deployment, plan)
    assert said is None
    (first.folder(tmp_path) / "inbox").mkdir(parents=True)
    again, said = open_folder(deployment, plan)
    assert (again, said) == (first, "The state was kept: no change affects it.")
    assert again.folder(tmp_path).exists()
    other, said = open_folder(replace(deployment, shard_ids=("b",)), plan)
    assert other.run != first.run
    assert said == (
        f"The state was dropped: the shard ids are b now, and were a. It is in {deployment.home / 'trash' / other.run}."
    )
    assert not first.folder(tmp_path).exists()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (replace(DEPLOYMENT, start=0), "the clock starts at 0 ms now, and started with the first event"),
        (DEPLOYMENT.with_arguments(timezone="Europe/Berlin"), "the time zone is Europe/Berlin now, and was UTC"),
    ],
)
def test_state_of_another_clock_does_not_fit(changed: Deployment, reason: str, tmp_path: Path) -> None:
    open_folder(replace(DEPLOYMENT, home=tmp_path), compile_app(APP))
    _, said = open_folder(replace(changed, home=tmp_path), compile_app(APP))
    assert said is not None
    assert said.startswith(f"The state was dropped: {reason}. It is in {tmp_path}")


def opened(deployment: Deployment, text: str) -> tuple[AppRun, str]:
    life, said = open_folder(deployment, compile_app(text))
    return life, said or ""


def test_a_changed_app_goes_on_where_any_state_does(tmp_path: Path) -> None:
    deployment = replace(DEPLOYMENT, home=tmp_path)
    other = "@info(name = 'o') from S#window.length(2) select sum(a) as total insert into Out2;"
    first, _ = opened(deployment, APP + other)
    renamed, said = opened(deployment, APP + other.replace("'o'", "'renamed'"))
    assert (renamed.run, renamed.change, said) == (
        first.run,
        0,
        "The state was kept: no change affects it.",
    )
    assert "query renamed" in renamed.units
    life, said = opened(deployment, APP + other.replace("length(2)", "length(4)"))
    assert (life.run, life.change) == (first.run, 1)
    assert said.startswith("The app was changed, and continues where it was. Kept: query q. New: query o. ")
    again, _ = opened(deployment, APP + other.replace("length(2)", "length(4)"))
    assert again.change == 1
    life, said = opened(deployment, APP.replace("as total", "as sums") + other.replace("length(2)", "length(4)"))
    assert (life.run, life.change, set(life.batches)) == (first.run, 2, {"Out"})
    life, said = opened(deployment, APP.replace("length(3)", "length(9)"))
    assert life.run != first.run
    assert said.startswith("The state was dropped: the definitions or queries of the app changed.")
    replace(life, units={}).write(tmp_path)  # of an earlier version
    _, said = opened(deployment, APP.replace("length(3)", "length(9)") + other)
    assert said.startswith("The state was dropped: the definitions or queries of the app changed.")


def test_what_a_deployment_would_change_is_told_before(tmp_path: Path) -> None:
    deployment = Deployment(DeployRequest(), "app", "single", "round_robin", ("node-1",), tmp_path)
    other = "@info(name = 'o') from S#window.length(2) select sum(a) as total insert into Out2;"
    assert repr(changes(APP, name="app", home=tmp_path)) == "app has no state yet: it begins."
    assert not files(tmp_path)
    opened(deployment, APP + other)
    before = {f: (tmp_path / f).read_bytes() for f in files(tmp_path)}
    changed = APP.replace("length(3)", "length(4)") + other
    added = "@info(name = 'r') from S#window.length(2) select max(a) as most insert into Out3;"
    begins_anew = "app starts from scratch, and all of its state is dropped: "
    goes_on = "app continues where it is, with the unchanged parts.\n  Kept: query o.\n  "
    without_q = "define stream S (a int);" + other + added
    for text, how, said in (
        (APP + other + "-- as it is", {}, "app continues with all of its state: the change does not affect it."),
        (changed, {}, goes_on + "Started from scratch, as they changed: query q."),
        (without_q, {}, goes_on + "New: query r.\n  Dropped: query q."),
        (changed, {"fresh": True}, begins_anew + "fresh was asked for."),
        (changed, {"shard_ids": ["b"]}, begins_anew + "the shard ids are b now, and were node-1."),
        (APP.replace("length(3)", "length(4)"), {}, begins_anew + "the definitions or queries of the app changed."),
    ):
        assert repr(changes(text, name="app", home=tmp_path, **how)) == said
    assert {f: (tmp_path / f).read_bytes() for f in files(tmp_path)} == before
    assert not any((tmp_path / "trash").glob("*"))
    foretold = foresee_changes(deployment, compile_app(changed)).units
    assert foretold is not None
    assert opened(deployment, changed)[0].units == foretold.units


def test_what_was_dropped_can_be_put_back(tmp_path: Path) -> None:
    deployment = replace(DEPLOYMENT, home=tmp_path)
    first, _ = opened(deployment, APP)
    (first.folder(tmp_path) / "inbox").mkdir(parents=True)
    second, said = opened(deployment, APP.replace("length(3)", "length(9)"))
    assert said.startswith("The state was dropped")
    shutil.rmtree(tmp_path / f"life-{second.run}", ignore_errors=True)
    for dropped in (tmp_path / "trash" / second.run).iterdir():
        dropped.replace(tmp_path / dropped.name)
    again, said = opened(deployment, APP)
    assert (again, said) == (first, "The state was kept: no change affects it.")
    assert (again.folder(tmp_path) / "inbox").is_dir()


def test_names_make_different_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    homes = {default_home(n) for n in ("a", "a/b", "a_b", "..", ".", "a b")}
    assert len(homes) == 6
    assert all(h.parent == tmp_path / "apps" and h.name not in ("", ".", "..") for h in homes)


def test_a_folder_that_was_moved_since_spark_began_in_it(tmp_path: Path) -> None:
    plan, here, there = compile_app(APP), tmp_path / "here", tmp_path / "there"
    here.mkdir()
    first, _ = open_folder(replace(DEPLOYMENT, home=here), plan)
    here.rename(there)
    record = (there / "app.json").read_text()
    moved = replace(DEPLOYMENT, home=there)
    with pytest.raises(Misuse, match=re.escape(f"{there} was at {here} before")):
        open_folder(moved, plan)
    assert open_folder(replace(moved, shard_ids=("b",)), plan)[1].startswith("The state was dropped: the shard ids")
    (there / "app.json").write_text(record)
    first.folder(there).mkdir()
    here.symlink_to(there)
    assert open_folder(moved, plan)[0].run == first.run
    here.unlink()
    assert open_folder(moved.with_arguments(fresh=True), plan)[0].run != first.run


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "life-of-mine").mkdir()
    for name in ("store.duckdb", "store.duckdb.backup", "life-of-mine/notes.txt"):
        (tmp_path / name).write_text("mine")
    before = files(tmp_path)
    with pytest.raises(Misuse, match=r"not an app's folder: it has life-of-mine, store\.duckdb, store\.duckdb\.backup"):
        check_home(tmp_path)
    assert files(tmp_path) == before
    for empty in (tmp_path / "new", tmp_path / "a" / "b"):
        check_home(empty)
    (tmp_path / "new").mkdir()
    check_home(tmp_path / "new")


def test_what_a_redeployment_drops_goes_to_the_trash_and_the_rest_stays(tmp_path: Path) -> None:
    plan, deployment = compile_app(APP), replace(DEPLOYMENT, home=tmp_path)
    first, _ = open_folder(deployment, plan)
    (first.folder(tmp_path) / "inbox").mkdir(parents=True)
    for name in ("store.duckdb", "store.duckdb.backup", "notes.txt"):
        (tmp_path / name).write_text("x")
    check_home(tmp_path)
    second, said = open_folder(deployment.with_arguments(fresh=True), plan)
    trash = tmp_path / "trash" / second.run
    assert said == f"The state was dropped: fresh was asked for. It is in {trash}."
    assert {p.name for p in trash.iterdir()} == {f"life-{first.run}", "store.duckdb", "app.json"}
    assert files(tmp_path) >= {"store.duckdb.backup", "notes.txt", "app.json"}
    third, _ = open_folder(deployment.with_arguments(fresh=True), plan)
    assert [p.name for p in (tmp_path / "trash").iterdir()] == [third.run]  # the last one alone is kept
    (tmp_path / "app.json").unlink()  # a crash while it was emptied
    (tmp_path / "store.duckdb.backup").unlink()
    (tmp_path / "notes.txt").unlink()
    check_home(tmp_path)


DAMAGED = {
    "empty": "",
    "cut": "{",
    "members missing": '{"run": "x", "format": 5}',
    "no text": b"\xff\xfe",
    "units": '{"run": "0123456789ab", "format": 5, "units": null}',
    "run": '{"run": null, "format": 5}',
    "deployed": '{"run": "0123456789ab", "format": 5, "deployed": "x"}',
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_app_json_is_an_error_with_the_way_out(damaged: str | bytes, tmp_path: Path) -> None:
    plan, deployment = compile_app(APP), replace(DEPLOYMENT, home=tmp_path)
    open_folder(deployment, plan)
    (tmp_path / "store.duckdb").write_text("sums")
    (tmp_path / "app.json").write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with pytest.raises(Misuse, match=r"app\.json cannot be read: .* fresh=True \(--fresh\) starts from scratch"):
        open_folder(deployment, plan)
    assert (tmp_path / "store.duckdb").read_text() == "sums"
    life, _ = open_folder(deployment.with_arguments(fresh=True), plan)
    assert (tmp_path / "trash" / life.run / "store.duckdb").read_text() == "sums"


@pytest.mark.parametrize("foreign", ['{"expo": {"name": "mine"}}', "[]", '{"run": "x"}', "[" * 100_000, None])
def test_an_app_json_of_something_else_is_left_alone(foreign: str | None, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "store.duckdb").write_text("mine")
    if foreign is None:
        (tmp_path / "app.json").mkdir()
    else:
        (tmp_path / "app.json").write_text(foreign)
    before = files(tmp_path)
    for fresh in (False, True):
        with pytest.raises(
            Misuse, match=r"has app\.json, store\.duckdb, and that app\.json is of something else\. Give"
        ):
            deploy(APP, home=tmp_path, fresh=fresh)
    with pytest.raises(Misuse, match=r"no app's folder: it has no app\.json of an app"):
        attach("app", tmp_path)
    assert files(tmp_path) == before
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_folder_whose_life_is_gone_is_refused(tmp_path: Path) -> None:
    plan, deployment = compile_app(APP), replace(DEPLOYMENT, home=tmp_path)
    life, _ = open_folder(deployment, plan)
    life.folder(tmp_path).rmdir()
    with pytest.raises(
        Misuse, match=f"is not whole: its life-{life.run} is missing, .*Put it back from a copy; fresh=True"
    ):
        open_folder(deployment, plan)
    open_folder(deployment.with_arguments(fresh=True), plan)


def test_what_was_dropped_in_part_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, deployment = compile_app(APP), replace(DEPLOYMENT, home=tmp_path)
    life, _ = open_folder(deployment, plan)
    (life.folder(tmp_path) / "events").write_text("events")
    (tmp_path / "store.duckdb").write_text("sums")
    rename = Path.rename

    def killed(self: Path, to: Path) -> Path:
        if self.name == "app.json":
            raise KeyboardInterrupt
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        open_folder(deployment.with_arguments(fresh=True), plan)
    monkeypatch.undo()
    (part,) = (tmp_path / "trash").iterdir()
    with pytest.raises(Misuse, match="is not whole"):
        open_folder(deployment, plan)
    for _ in range(2):
        again, said = open_folder(deployment.with_arguments(fresh=True), plan)
        assert str(said).endswith(f"State that an interrupted deployment had dropped is in {part}.")
        assert files(part) == {f"life-{life.run}/events", "store.duckdb"}
        assert {p.name for p in (tmp_path / "trash").iterdir()} == {part.name, again.run}


def test_a_start_that_is_killed_leaves_a_folder_to_start_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, deployment = compile_app(APP), replace(DEPLOYMENT, home=tmp_path)
    monkeypatch.setattr(AppRun, "write", lambda *_: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        open_folder(deployment, plan)
    monkeypatch.undo()
    assert [p.name[:5] for p in tmp_path.iterdir()] == ["life-"]
    check_home(tmp_path)
    assert open_folder(deployment, plan)[1] is None


def test_state_of_another_version_is_an_error(tmp_path: Path) -> None:
    plan, deployment = compile_app(APP), replace(DEPLOYMENT, home=tmp_path)
    life, _ = open_folder(deployment, plan)
    replace(life, format=life.format + 1).write(tmp_path)
    with pytest.raises(Misuse, match="was written by another version of this package"):
        open_folder(deployment, plan)


def test_nodes_stay_in_their_partitions(tmp_path: Path) -> None:
    """Spark keeps the number for good: on a machine with more cores, and where an earlier version began."""
    plan = compile_app(APP)
    deployment = Deployment(DeployRequest(), "app", "single", "round_robin", ("a", "b", "c", "d"), tmp_path)
    first, _ = open_folder(deployment, plan, 2)
    private_folder(first.folder(tmp_path) / "inbox")
    again, _ = open_folder(deployment, plan, 4)
    assert again.partitions == first.partitions == 2
    record = json.loads((tmp_path / "app.json").read_text())
    del record["partitions"]
    del record["checksum"]  # an earlier version wrote none
    (tmp_path / "app.json").write_text(json.dumps(record))
    former, _ = open_folder(deployment, plan, 4)
    assert former.partitions is None
    assert NodeLayout.of(4, former.began, former.partitions) == NodeLayout(tuple(keys_apart(4, 4)), 4)
    assert NodeLayout.of(64, 64, None).partitions == 32
    assert NodeLayout.of(5, 4, 2) == NodeLayout(tuple(keys_apart(5, 2)), 2)
    anew, _ = open_folder(deployment.with_arguments(fresh=True), plan, 4)
    assert anew.partitions == 4
