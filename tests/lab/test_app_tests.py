"""`%siddhi test`: the report of tests of apps in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from IPython.core.completer import provisionalcompleter

from sparkstream_nb.lab import display
from sparkstream_nb.testing.suite_results import AppTestReport

FILE = """app:
  define stream S (name string);
  @info(name='echo') from S[not (name is null)] select name insert into O;
test: <b>bold</b>
send S
name
<script>alert(1)</script>
expect O
name
"<i>"
test: right
send S
name
x
expect O
name
x
"""


def report(shell: Any, folder: Path, options: str = "") -> AppTestReport:
    (folder / "names.siddhitest").write_text(FILE, encoding="utf-8")
    found: AppTestReport = shell.run_line_magic("siddhi", f"test {folder} {options}")
    return found


def test_the_report_is_shown_with_escaped_texts(shell: Any, tmp_path: Path) -> None:
    found = report(shell, tmp_path, "--coverage -o kept")
    assert shell.user_ns["kept"] is found
    page = display.html(found)
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;bold" in page
    assert not any(tag in page for tag in ("<script", "<i>", "<b>bold"))
    assert "1 passed, 1 failed" in page
    assert "2 of 3 parts of the apps reached" in page
    assert "filter of S in query echo, false" in page
    text = display.text(found)
    assert "− <i>" in text
    assert "+ <script>alert(1)</script>" in text


def test_quiet_leaves_out_what_passed(shell: Any, tmp_path: Path) -> None:
    page = display.html(report(shell, tmp_path, "-k right --quiet"))
    assert "1 passed" in page
    assert "names.siddhitest" not in page


def test_test_files_are_completed(shell: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fraud.siddhitest").touch()
    (tmp_path / "fraud.txt").touch()
    line = "%siddhi test fr"
    with provisionalcompleter():
        found = [c.text for c in shell.Completer.completions(line, len(line))]
    assert found == ["fraud.siddhitest"]
