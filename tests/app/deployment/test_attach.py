"""An app goes on in another process than the one that deployed it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, apps, attach, attachable, deploy, get, stop_all
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import text
from sparkstream_nb.runners.choice import INLINE
from tests.app.deployment.test_owner import other
from tests.apps import attaching
from tests.apps.programs import killed

__all__ = ["other"]
APP = "define stream S (v int); @info(name='q') from S select sum(v) as total insert into O;"


@pytest.fixture
def stopped() -> Iterator[None]:
    yield
    stop_all()


@pytest.mark.contract
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("stopped")
def test_an_app_whose_process_was_killed_goes_on(tmp_path: Path, master: str | None) -> None:
    home, came, out = tmp_path / "home", tmp_path / "in", tmp_path / "out"
    came.mkdir()
    out.mkdir()
    attaching.write_files(came, range(3))
    killed(home, "attaching.py", home, came, out, 150, master=master)
    assert "not kept" not in (home / "app.json").read_text()
    attaching.write_files(came, range(3, attaching.FILES))
    app = attach("attached", home)
    assert app.redeployed == (
        "The state was kept: no change affects it. "
        f"Granted again: file={came}, file={out}, environment variable SOMETHING."
    )
    with app.runtime.progress.changed:
        while app.runtime.inbox.position.events["S"] < attaching.EVENTS:
            app.runtime.progress.changed.wait(0.25)
    assert app.drain(60) == 0
    assert (app.nodes, app.routing, app.shard_ids) == (2, "hash:k", ("a", "b"))
    assert app.deployment.request.rows_per_micro_batch == 60
    assert app.deployment.retention.recording == 50_000_000
    found = app.output("Sums").frame
    assert sorted(found["v"]) == list(range(attaching.EVENTS))
    lines = [",".join(map(str, row)) for row in found[["k", "v", "total"]].itertuples(index=False)]
    assert (out / "sums.csv").read_text().splitlines() == lines
    for node in "ab":
        values = found[found["node"] == node]["v"]
        assert list(found[found["node"] == node]["total"]) == list(values.rolling(3, min_periods=1).sum().astype(int))
    merged, _ = app.aggregation("A", per="min")
    assert merged["total"].sum() == sum(range(attaching.EVENTS))


def test_attaching_in_the_process_that_has_it(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP, limits="nesting=50")
    assert attach("app", tmp_path / "home") is app
    app.send("S", [4])
    app.flush()
    app.remember(variable="kept", lines_before=3)
    stop_all()
    again = attach("app", tmp_path / "home")
    assert again is not app
    assert (again.remembered_variable, again.lines_before) == ("kept", 3)
    assert again.deployment.limits.nesting == 50
    again.send("S", [3])
    again.flush()
    assert list(again.output("O").frame["total"]) == [4, 7]


@pytest.mark.contract
def test_attaching_after_the_nodes_changed(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP, nodes=2, mode="active-active")
    app.scale(3)
    stop_all()
    assert attach("app", tmp_path / "home").shard_ids == ("node-1", "node-2", "node-3")


@pytest.mark.usefixtures("stopped")
def test_an_app_of_another_process_cannot_be_attached(tmp_path: Path, other: Callable[[Path], Any]) -> None:
    home = tmp_path / "home"
    deploy(APP, name="app", home=home, master=INLINE)
    stop_all()
    process, said = other(home)
    assert said == "has it"
    assert [f.owner for f in attachable(home)] == [f"process {process.pid} on {os.uname().nodename}, app 'other'"]
    with pytest.raises(Misuse, match=f"is in use by process {process.pid} on .*: stop the app there"):
        attach("app", home)


@pytest.mark.usefixtures("stopped")
def test_a_state_that_does_not_fit_is_not_dropped(tmp_path: Path) -> None:
    conf, home = tmp_path / "node.yaml", tmp_path / "home"
    conf.write_text("wso2.carbon: {id: a}")
    deploy(APP, name="app", home=home, conf=conf, master=INLINE)
    stop_all()
    before = (home / "app.json").read_bytes()
    conf.write_text("wso2.carbon: {id: b}")
    with pytest.raises(Misuse, match=r"app cannot be attached: the shard ids are b now, and were a. Deploy it again"):
        attach("app", home)
    assert (home / "app.json").read_bytes() == before
    conf.unlink()
    with pytest.raises(Misuse, match="there is no deployment file"):
        attach("app", home)


@pytest.mark.usefixtures("stopped")
def test_figures_go_on_and_an_app_that_is_not_here_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    app = deploy(APP, name="Totals", master=INLINE)
    app.feed("S", pd.DataFrame({"v": [1, None, "x", 4]}))
    before = app.stats()
    stop_all()
    with pytest.raises(Misuse, match=r"^'Totals' was deployed before, and is not in this process: %siddhi attach T"):
        get("Totals")
    monkeypatch.setattr("sparkstream_nb.lab.results_shown.has_magics", lambda: False)
    attach_again = "sparkstream_nb.attach(NAME) continues one."
    assert text(apps()) == f"No app in this process. Deployed before: Totals. {attach_again}"
    monkeypatch.setattr("sparkstream_nb.lab.results_shown.has_magics", lambda: True)
    assert text(apps()) == "No app in this kernel. Deployed before: Totals. %siddhi attach NAME continues one."
    again = attach("Totals")
    assert (again.stats().outputs, again.stats().errors) == (before.outputs, before.errors)
    assert before.outputs["O"] > 0
    assert before.errors > 0
    assert again.tail("O").snapshot().total == before.outputs["O"]
