"""A notebook of marimo's, which is Python without IPython: results have static forms in what it exports."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    import pandas as pd
    import sparkstream_nb as ss

    rises = ss.deploy('''
    define stream S (k string, v int);
    @PartitionById define aggregation T from S select k, sum(v) as total group by k aggregate every sec...hour;
    @info(name='p') from every e1=S[v > 5] -> e2=S[k == e1.k and v > 5] select e1.k as k insert into O;
    ''', name="Rises", nodes=2, master="inline", fresh=True)
    frame = pd.DataFrame({"k": ["a", "b"] * 50, "v": range(100), "t": range(0, 100_000, 1000)})
    rises.feed("S", frame, time="t")
    return (rises,)


@app.cell
def _(rises):
    rises.divergence()
    return


@app.cell
def _(rises):
    rises.view("T", per="min")
    return


@app.cell
def _(rises):
    rises.graph()
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.mark.notebook
@pytest.mark.thorough
@pytest.mark.skipif(find_spec("marimo") is None, reason="marimo is not installed (220 MB)")
def test_an_exported_notebook_has_the_static_forms(tmp_path: Path) -> None:
    (tmp_path / "rises.py").write_text(NOTEBOOK, encoding="utf-8")
    command = [sys.executable, "-m", "marimo", "export", "html", "rises.py", "-o", "rises.html"]
    environment = {**os.environ, "SPARKSTREAM_HOME": str(tmp_path / "apps")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "rises.html").read_text(encoding="utf-8")
    for words in ("100 events in", "against one node", "total per", "data:image/svg+xml"):
        assert words in page, words
    assert "Traceback" not in page
