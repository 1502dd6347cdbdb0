"""What the state of an app depends on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.cluster.deployment import Deployment
from sparkstream_nb.cluster.folder import default_home, fingerprint, open_folder
from sparkstream_nb.plan import compile_app

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


def test_the_id_of_a_node_is_no_part_of_the_plan() -> None:
    a, b = (compile_app(APP, properties={"shardId": s}) for s in ("a", "b"))
    assert fingerprint(a) == fingerprint(b)


def test_a_folder_is_kept_or_emptied(tmp_path: Path) -> None:
    plan = compile_app(APP)
    deployment = Deployment("app", "single", "round_robin", ("a",), tmp_path)
    first, said = open_folder(deployment, plan)
    assert said is None
    (first.folder(tmp_path) / "inbox").mkdir(parents=True)
    again, said = open_folder(deployment, plan)
    assert (again, said) == (first, "The state was kept: the app means what it meant before.")
    assert again.folder(tmp_path).exists()
    other, said = open_folder(replace(deployment, shard_ids=("b",)), plan)
    assert other.run != first.run
    assert said == "The state was dropped: the shard ids are b now, and were a."
    assert not first.folder(tmp_path).exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"start": 0}, "the clock starts at 0 ms now, and started with the first event"),
        ({"timezone": "Europe/Berlin"}, "the time zone is Europe/Berlin now, and was UTC"),
    ],
)
def test_state_of_another_clock_does_not_fit(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    deployment = Deployment("app", "single", "round_robin", ("a",), tmp_path)
    open_folder(deployment, compile_app(APP))
    _, said = open_folder(replace(deployment, **change), compile_app(APP))
    assert said == f"The state was dropped: {reason}."


def test_names_make_different_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    homes = {default_home(n) for n in ("a", "a/b", "a_b", "..", ".", "a b")}
    assert len(homes) == 6
    assert all(h.parent == tmp_path / "apps" and h.name not in ("", ".", "..") for h in homes)
