"""What is in an app's folder is its owner's alone; what others could have put somewhere is not trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.batch_planning import TaskShare
from sparkstream_nb.journal.private import check_private
from sparkstream_nb.runners.stateless import options_of, rows_of

APP = """
define stream S (k string, v int);
define aggregation A from S select k, sum(v) as s group by k aggregate every sec;
@info(name='q') from S#window.length(2) select sum(v) as s insert into O;
"""


def test_files_are_the_owners_alone(run: Callable[..., App], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    app = run(APP, nodes=2)
    app.feed("S", pd.DataFrame({"k": ["a"] * 50_000, "v": range(50_000)}))
    (tmp_path / "a.csv").write_text("k,v\na,1\nb\n")
    app.feed("S", tmp_path / "a.csv")
    app.stop()
    app.close()
    assert home.stat().st_mode & 0o777 == 0o700
    open_ = {
        str(p.relative_to(home)): oct(p.stat().st_mode & 0o777)
        for p in home.rglob("*")
        if p.exists() and p.stat().st_mode & 0o077
    }
    assert open_ == {}
    assert len(list(home.rglob("*.arrows"))) > 0


def test_a_folder_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    check_private(tmp_path)
    tmp_path.chmod(0o770)
    with pytest.raises(SparkStreamError, match=r"can be written to by other users, .* chmod go-w"):
        check_private(tmp_path)
    tmp_path.chmod(0o1777)
    check_private(tmp_path)  # a folder such as /tmp, where nobody can replace what is another's


@pytest.mark.parametrize("up", range(3))
def test_an_inbox_where_others_can_write_is_not_read(tmp_path: Path, up: int) -> None:
    folder = tmp_path / "home" / "life" / "inbox"
    folder.mkdir(parents=True, mode=0o700)
    options_of(folder, [])
    assert list(rows_of(folder, TaskShare([]))) == []
    (folder, *folder.parents)[up].chmod(0o722)
    with pytest.raises(SparkStreamError, match="can be written to by other users"):
        next(rows_of(folder, TaskShare([])))


SHADOWED = """
from sparkstream_nb.app import deploy, stop_all
app = deploy("define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;", home="home")
app.send("S", [1])
app.flush()
print(app.output("O").frame["s"].tolist())
stop_all()
"""


@pytest.mark.spark
def test_modules_beside_the_program_do_not_shadow_those_of_workers(tmp_path: Path) -> None:
    for name in ("secrets", "random", "pandas", "queue"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    found = subprocess.run(
        [sys.executable, "-P", "-c", SHADOWED],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110, env={**os.environ},
    )  # fmt: skip
    assert found.stdout.splitlines()[-1:] == ["[1]"], found.stderr
