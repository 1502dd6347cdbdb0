"""Names and values that try to be HTML, SQL or paths: they are kept and shown as what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.deployment.app_folder import default_home
from sparkstream_nb.lab.display import html

TAG = "<script>alert('1')</script><img src=x onerror=alert(1)>"
SQL = "'; DROP TABLE sparkstream_errors; -- \"; DELETE FROM ledger; /*"
PATH = "../../../escaped"
ESCAPE = "\x1b[31mred\x07"
VALUES = [TAG, SQL, PATH, ESCAPE, "%s%n{0}${k}", "a\nb\tc\\", "&lt;b&gt;", "\u202egnp.exe"]

NAMES = [TAG, 'A"; DROP TABLE x; --', "../../escaped"]
SHARDS = ["o'brien\"; --", "../<b>x</b>"]


def app_of(name: str) -> str:
    return f"""
define stream S (k string, v int);
define table T (k string, v int);
define aggregation `{name}` from S select k, sum(v) as s group by k aggregate every sec;
@info(name='q <b>') from S select k, v insert into `{name} out`;
from S select k, v insert into T;
from S[convert(k, 'int') > 0] select k insert into Unused;
"""


@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("name", NAMES)
def test_names_and_values(name: str, run: Callable[..., App], tmp_path: Path) -> None:
    around = {p.name for p in tmp_path.parent.iterdir()}
    app = run(app_of(name), name=f"{PATH} {TAG}", nodes=2, shard_ids=SHARDS)
    for i, value in enumerate(VALUES):
        app.send("S", [value, i], at=1_000)
    app.flush()
    out = app.output(f"{name} out")
    assert sorted(out.frame["k"]) == sorted(VALUES)
    assert set(out.frame["node"]) == set(SHARDS)
    whole = f"from `{name}` within 0L, 10000L per 'seconds' select k, s"
    answer = app.query(whole)
    assert sorted(answer.frame["k"]) == sorted(VALUES)
    for value in (SQL, TAG):
        literal = value.replace('"', "") if '"' in value else value
        found = app.query(f'from T on k == "{literal}" select k, v').frame
        assert len(found) == (literal == value)
    shown = [app, out, answer, app.errors, app.stats(), app.explain()]
    for markup in map(html, shown):
        assert "<script>" not in markup
        assert "<img src=x" not in markup
        assert "<b>x</b>" not in markup
    assert {p.name for p in tmp_path.parent.iterdir()} == around
    assert {p.name for p in tmp_path.iterdir()} == {"home"}


@pytest.mark.parametrize(
    "name", ["..", ".", "../../x", "/etc/passwd", "a/b", "a\\b", "~", "x" * 5_000, "CON", "é", TAG, SQL]
)
def test_the_folder_of_a_name_is_one_below_all_apps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    home = default_home(name)
    assert home.resolve().parent == (tmp_path / "apps").resolve()
    assert len(home.name.encode()) < 255
    home.mkdir(parents=True)
