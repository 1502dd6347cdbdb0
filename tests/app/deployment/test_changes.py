"""A changed app is deployed again: what is unchanged goes on, and the rest starts from scratch and is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import App, stop_all
from sparkstream_nb.errors import SparkStreamError, StoreError
from tests.apps.programs import killed, ran
from tests.masters import masters
from tests.profiles import one_of

STREAM = "define stream S (k string, v int);\n"
TABLE = "define table T (k string, v int);\n"
SUMS = "define aggregation A from S select k, sum(v) as total group by k aggregate every sec, min;\n"
KEPT = "@info(name='kept') from S#window.length(3) select k, sum(v) as total insert into Kept;\n"
INTO = "@info(name='into') from S select k, v insert into T;\n"
OTHER = "@info(name='other') from S#window.length(2) select sum(v) as total insert into Other;\n"
ADDED = "@info(name='added') from S#window.length(9) select sum(v) as total insert into Added;\n"


def send(app: App, *values: int) -> None:
    for v in values:
        app.send("S", ["a", v])
    app.flush()


def totals(app: App, stream: str) -> list[int]:
    return list(app.output(stream).frame["total"])


@pytest.mark.contract
@pytest.mark.parametrize("nodes", [1, 2])
def test_what_is_unchanged_goes_on(run: Callable[..., App], tmp_path: Path, nodes: int) -> None:
    how = {"nodes": nodes, "mode": "active-active", "routing": "node:1"}
    app = run(STREAM + TABLE + SUMS + KEPT + INTO + OTHER, **how)
    send(app, 1, 2, 4)
    app = run(STREAM + TABLE + SUMS + ADDED + KEPT + INTO + OTHER.replace("length(2)", "length(4)"), **how)
    trash = next((tmp_path / "home" / "trash").iterdir())
    assert app.redeployed == (
        "The app was changed, and continues where it was. Kept: table T, aggregation A, queries kept, into. "
        f"Started from scratch, as they changed: query other. New: query added. Dropped state is in {trash}."
    )
    assert sorted(p.name for p in trash.iterdir())[0] == "app.json"
    send(app, 8)
    assert totals(app, "Kept") == [1, 3, 7, 14]
    assert totals(app, "Other") == [1, 3, 6, 8]
    assert totals(app, "Added") == [8]
    assert len(app.query("from T select k, v").frame) == 4
    assert app.aggregation("A", per="min")[0]["total"].sum() == 15
    stop_all()
    app = run(STREAM + TABLE + SUMS + ADDED + KEPT + INTO + OTHER.replace("length(2)", "length(4)"), **how)
    assert app.redeployed == "The state was kept: no change affects it."
    send(app, 16)
    assert totals(app, "Kept")[-1] == 28
    assert totals(app, "Added") == [8, 24]
    app = run(STREAM + TABLE + KEPT + INTO, **how)
    assert "Dropped: aggregation A, queries added, other." in (app.redeployed or "")
    send(app, 32)
    assert totals(app, "Kept")[-1] == 56
    app = run(STREAM + TABLE + SUMS + KEPT + INTO, **how)
    send(app, 64)
    assert app.aggregation("A", per="min")[0]["total"].sum() == 64
    with pytest.raises(SparkStreamError, match="was changed while it ran"):
        app.divergence()


@pytest.mark.contract
def test_streams_with_other_attributes(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(STREAM + KEPT + OTHER)
    send(app, 1, 2)
    app = run(STREAM + KEPT + OTHER.replace("select sum(v) as total", "select k, v, sum(v) as total"))
    send(app, 4)
    assert app.output("Other").frame[["k", "v", "total"]].to_numpy().tolist() == [["a", 4, 4]]
    assert totals(app, "Kept") == [1, 3, 7]
    trash = next((tmp_path / "home" / "trash").iterdir())
    assert len(list((trash / "outputs" / "Other").iterdir())) > 0
    wider = "define stream S (k string, v int, w int);\ndefine stream U (v int);\n" + KEPT
    app = run(wider + "@info(name='u') from U select count() as total insert into Us;")
    assert "The state was dropped: the definitions or queries of the app changed" in (app.redeployed or "")


@pytest.mark.contract(thorough=True)
def test_an_input_stream_with_other_attributes(run: Callable[..., App]) -> None:
    other = "@info(name='u') from U#window.length(5) select sum(n) as total insert into Us;\n"
    app = run("define stream U (n int);\n" + STREAM + KEPT + other)
    send(app, 1, 2)
    app.send("U", [3])
    app.flush()
    app = run("define stream U (n int);\n" + STREAM.replace("v int", "v int, w string") + KEPT + other)
    app.send("S", ["a", 8, "x"])
    app.send("U", [4])
    app.flush()
    assert totals(app, "Us") == [3, 7]
    assert totals(app, "Kept")[-1] == 8
    assert app.output("S").frame[["k", "v", "w"]].to_numpy().tolist() == [["a", 8, "x"]]
    assert list(app.output("U").frame["n"]) == [3, 4]


@pytest.mark.contract
def test_what_had_come_in_is_the_former_apps(run: Callable[..., App]) -> None:
    """Events that are sent and not committed when the app is changed are worked on by the former queries."""
    app = run(STREAM + KEPT + OTHER)
    for v in range(60):
        app.send("S", ["a", v])
    app = run(STREAM + KEPT + ADDED)
    assert len(app.output("Kept").frame) == 60
    send(app, 1)
    assert totals(app, "Kept")[-1] == 59 + 58 + 1
    assert totals(app, "Added") == [1]


PROGRAM = """
import sys
from pathlib import Path
from typing import Any
from sparkstream_nb.app import deploy
from sparkstream_nb.app.deployment import app_folder
from tests.app.deployment import test_changes as t
from tests.apps.crashing import die
from tests.apps.programs import master
from sparkstream_nb.outputs.commit import Commit
home, place = Path(sys.argv[1]), sys.argv[2]
app = deploy(t.STREAM + t.SUMS + t.KEPT + t.OTHER, name="app", home=home, master=master())
t.send(app, 1, 2, 4)
if place == "pending":
    commit = Commit.commit
    Commit.commit = lambda self, *rest: (commit(self, *rest), die())
    t.send(app, 8)
app.send("S", ["a", 8])
app.flush()
def dying(call, before):
    def called(*given, **named):
        if before:
            die()
        call(*given, **named)
        die()
    return called
if place == "aside":
    app_folder.copy_to_trash = dying(app_folder.copy_to_trash, False)
if place == "switched":
    app_folder.AppRun.write = dying(app_folder.AppRun.write, False)
if place == "opened":
    from sparkstream_nb.app.running import app_files
    app_files.purge_dropped = dying(app_files.purge_dropped, False)
deploy(t.STREAM + t.KEPT + t.ADDED, name="app", home=home, master=master())
"""


@pytest.mark.timeout(300)
@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("place", ["pending", "aside", "switched", "opened"])
def test_killed_in_the_middle_of_a_change(
    run: Callable[..., App], tmp_path: Path, place: str, master: str | None
) -> None:
    """Either the former app is there whole, or the changed one; and nothing that came in is lost or taken twice."""
    home = tmp_path / "home"
    killed(home, PROGRAM, home, place, master=master)
    app = run(STREAM + KEPT + ADDED)
    begun = "continues where it was" if place in ("pending", "aside") else "The state was kept"
    assert begun in (app.redeployed or "")
    send(app, 16)
    assert totals(app, "Kept") == [1, 3, 7, 14, 28]
    assert totals(app, "Added") == [16]


ELSEWHERE = """
import sys
from pathlib import Path
from typing import Any
from sparkstream_nb.app import deploy
from sparkstream_nb.runners.spark.shared_session import spark_session
from tests.app.deployment import test_changes as t
from tests.apps.crashing import die
from tests.objects import settings
home, master, shared, step = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None, sys.argv[4]
if shared is not None and not master.startswith("sc://"):
    spark_session(master, conf=settings())
how = {"name": "app", "home": home, "master": master, "shared": shared, "nodes": 2, "mode": "active-active",
       "routing": "node:1"}
if step == "begun":
    app = deploy(t.STREAM + t.SUMS + t.KEPT + t.OTHER, **how)
    t.send(app, 1, 2, 4)
    app.send("S", ["a", 8])
    die()
app = deploy(t.STREAM + t.SUMS + t.KEPT + t.ADDED, **how)
print(app.redeployed)
t.send(app, 16)
assert t.totals(app, "Added") == [16]
app = deploy(t.STREAM + t.SUMS + t.KEPT + t.OTHER, **how)  # in the same process
t.send(app, 32)
assert t.totals(app, "Kept") == [1, 3, 7, 14, 28, 56], t.totals(app, "Kept")
assert t.totals(app, "Other")[-1] == 32
assert app.aggregation("A", per="min")[0]["total"].sum() == 63
app.stop()
"""


def goes_on(home: Path, master: str, shared: str = "") -> None:
    """An app that is killed with an event in its journal, and then changed twice, at `master`."""
    killed(home, ELSEWHERE, home, master, shared, "begun")
    done = ran(ELSEWHERE, home, master, shared, "changed")
    assert done.returncode == 0, done.stderr
    assert "Kept: aggregation A, query kept. New: query added. Dropped: query other." in done.stdout
    (trash,) = (home / "trash").iterdir()
    assert list(trash.glob("life-*/checkpoint/offsets/*")), "the nodes' states before the change"


def test_it_goes_on_with_an_address_between_the_machines(run: Callable[..., App], spark: Any, tmp_path: Path) -> None:
    shared = (tmp_path / "meeting").as_uri()
    app = run(STREAM + SUMS + KEPT + OTHER, shared=shared)
    send(app, 1, 2, 4)
    app.send("S", ["a", 8])
    app = run(STREAM + SUMS + KEPT + ADDED, shared=shared)
    send(app, 16)
    assert totals(app, "Kept") == [1, 3, 7, 14, 28]
    assert totals(app, "Added") == [16]
    assert list((tmp_path / "home").glob("trash/*/life-*/checkpoint/offsets/*")), "the nodes' states before the change"


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.timeout(500)
@pytest.mark.parametrize("apart", one_of([False, True]))
def test_over_connect_a_killed_app_that_is_changed_goes_on(tmp_path: Path, apart: bool) -> None:
    with masters("connect", tmp_path) as sparks:
        goes_on(tmp_path / "home", sparks.address(), (tmp_path / "meeting").as_uri() if apart else "")


@pytest.mark.contract
def test_sources_and_sinks_go_on(run: Callable[..., App], tmp_path: Path) -> None:
    came, out = tmp_path / "in", tmp_path / "out"
    came.mkdir()
    out.mkdir()
    text = f"""
@source(type='file', dir.uri='{came}', mode='line', dir.polling.interval='50', @map(type='csv'))
define stream S (k string, v int);
@sink(type='file', file.uri='{out}/kept.csv', @map(type='csv'))
define stream Kept (k string, total long);
"""
    allow = [f"file={came}", f"file={out}"]

    def write(first: int) -> None:
        (came / ".new").write_text("".join(f"a,{v}\n" for v in range(first, first + 50)))
        (came / ".new").rename(came / f"{first}.csv")

    def until(app: App, events: int) -> None:
        with app.runtime.progress.changed:
            while app.runtime.inbox.position.events.get("S", 0) < events:
                app.runtime.progress.changed.wait(0.1)
        app.flush()

    write(0)
    app = run(text + KEPT.replace("length(3)", "length(1)") + OTHER, allow=allow)
    until(app, 20)
    write(50)
    app = run(text + KEPT.replace("length(3)", "length(1)") + ADDED, allow=allow)
    assert "Kept: query kept. New: query added. Dropped: query other." in (app.redeployed or "")
    write(100)
    until(app, 150)
    assert app.drain(30) == 0
    assert (out / "kept.csv").read_text().split() == [f"a,{v}" for v in range(150)]
    changed = text.replace("k string, total long", "total long") + KEPT.replace(
        "length(3) select k,", "length(1) select"
    )
    app = run(changed, allow=allow)
    write(150)
    until(app, 200)
    assert app.drain(30) == 0
    written = (out / "kept.csv").read_text().split()
    assert written == [f"a,{v}" for v in range(150)] + [str(v) for v in range(150, 200)]


def test_a_store_that_refuses_the_new_app_leaves_the_old_one_its_state(run: Callable[..., App], tmp_path: Path) -> None:
    streams = "define stream S (k string, v int, ts long);\n"
    aggregation = "define aggregation A from S select k, sum({0}) as {1} group by k aggregate by ts every sec;\n"
    other = run(streams + aggregation.format("v", "total"), name="other", home=tmp_path / "b", store=tmp_path / "s.db")
    other.stop()
    other.close()
    old = streams + "@info(name='q') from S#window.length(9) select sum(v) as s insert into O;"
    app = run(old)
    app.send("S", ["a", 5, 1], at=1)
    app.flush()
    new = streams + aggregation.format("v, k", "t").replace("sum(v, k)", "max(v)") + "from S select v insert into O;"
    with pytest.raises(StoreError):
        run(new, store=tmp_path / "s.db")
    app = run(old)
    assert app.redeployed == "The state was kept: no change affects it."
    app.send("S", ["a", 7, 2], at=2)
    app.flush()
    assert app.output("O").frame["s"].tolist() == [5, 12]
