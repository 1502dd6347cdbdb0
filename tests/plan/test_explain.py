"""`explain` as text: `explain/NAME.siddhi` is the app, `explain/NAME.txt` what is said about it.

Regenerate with `python -m tests.plan.test_explain`, and read the difference before committing it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.plan import compile_app, explain

FOLDER = Path(__file__).parent / "explain"
APPS = sorted(FOLDER.glob("*.siddhi"))


def _explained(app: Path) -> str:
    """Without the lines about gaps, which come and go with the build."""
    text = explain(compile_app(app.read_text("utf-8")))
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("  gap "))


@pytest.mark.parametrize("app", APPS, ids=lambda p: p.stem)
def test_explain(app: Path) -> None:
    assert _explained(app) == app.with_suffix(".txt").read_text("utf-8")


def test_there_are_apps() -> None:
    assert APPS


def test_a_clock_that_would_move_by_itself_is_explained() -> None:
    app = "@app:playback(idle.time='1 sec', increment='1 sec') define stream S (v int); from S select v insert into O;"
    assert "clock: moves on by 1,000 ms when nothing is sent for 1,000 ms" in explain(compile_app(app))
    assert "clock:" not in explain(compile_app(app.replace("(idle.time='1 sec', increment='1 sec')", "")))


if __name__ == "__main__":
    for each in APPS:
        each.with_suffix(".txt").write_text(_explained(each), "utf-8")
