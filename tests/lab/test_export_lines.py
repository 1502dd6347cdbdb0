"""`%siddhi save` and `%siddhi export` in a shell; the notebook that an app becomes runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from sparkstream_nb import app as api
from sparkstream_nb.errors import Misuse

TEXT = "define stream S (k string, v int); from S[v > ${L}] select k, v insert into O;"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[api.App]:
    monkeypatch.chdir(tmp_path)
    variables = {"L": "1", "API_TOKEN": "hunter2"}
    app = api.deploy(TEXT, name="My app", home=tmp_path / "home", master="inline", nodes=2, variables=variables)
    for i in range(5):
        app.send("S", ["a 'b'", i], at=1_700_000_000_000 + i)
    yield app
    api.stop_all()


def line(shell: Any, text: str) -> Any:
    return shell.run_line_magic("siddhi", text)


def test_save(shell: Any, app: api.App, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line(shell, "save 'My app' trades.siddhi")
    assert capsys.readouterr().out == "trades.siddhi: the text of My app\n"
    assert (tmp_path / "trades.siddhi").read_text() == TEXT


def test_export_as_each_kind(shell: Any, app: api.App, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert line(shell, "export 'My app' --as job") is None
    assert capsys.readouterr().out == "My app.sh, with My app.siddhi: sh My app.sh runs it\n"
    report = line(shell, "export 'My app' a.siddhitest --as test --limit 10")
    assert "a.siddhitest: sparkstream test a.siddhitest\n" in capsys.readouterr().out
    assert report.exit_code == 0
    line(shell, "export 'My app' --as notebook")
    assert capsys.readouterr().out == "My app.ipynb, with My app.parquet: open it in JupyterLab\n"
    files = {f.name for f in tmp_path.iterdir() if f.is_file()}
    assert files == {"My app.sh", "My app.siddhi", "a.siddhitest", "My app.ipynb", "My app.parquet"}
    assert not any("hunter2" in f.read_text(errors="replace") for f in tmp_path.iterdir() if f.is_file())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("export 'My app' --as job", "My app.sh exists: give the file another name"),
        ("export 'My app' x.sh --as job --limit 5", "--limit is for --as test"),
        ("export 'My app' x.sh --as notebook", "a notebook ends in .ipynb: call it x.ipynb"),
        ("export 'My app' x.sh", "--as"),
        ("export Other x.sh --as job", "no app is called 'Other'"),
        ("save 'My app'", "FILE"),
    ],
)
def test_a_mistake_is_one_sentence(shell: Any, app: api.App, tmp_path: Path, words: str, message: str) -> None:
    (tmp_path / "My app.sh").write_text("mine")
    with pytest.raises(Misuse) as refusal:
        line(shell, words)
    assert message in str(refusal.value)
    assert (tmp_path / "My app.sh").read_text() == "mine"


@pytest.mark.notebook
def test_the_notebook_runs(shell: Any, app: api.App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(shell, "export 'My app' --as notebook")
    notebook = nbformat.read(tmp_path / "My app.ipynb", 4)
    nbformat.validate(notebook)
    assert "API_TOKEN" in notebook.cells[0].source
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "apps"))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = next(c for c in notebook.cells if c.source.startswith("%siddhi output")).outputs
    assert "3 events" in outputs[-1].data["text/plain"]
