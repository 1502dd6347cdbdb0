"""Blocks of code in the documents: SiddhiQL is a right app, Python parses, and what can run without Spark runs."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generator.recipes import ROOT
from sparkstream_nb.plan import compile_app
from sparkstream_nb.testing.command import EXAMPLES
from sparkstream_nb.testing.python_api import AppFactory
from sparkstream_nb.testing.siddhitest_parser import parse_test_file
from sparkstream_nb.testing.suite_runner import RunOptions, run_file

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
DATA_SOURCES = re.compile(r"@store\(type='rdbms', datasource='\w+'\)")
"""Data sources are in deployment files, which a text alone does not have."""


def blocks(language: str) -> list[tuple[str, str]]:
    """(place, text) of the blocks of a language."""
    found = []
    for page in PAGES:
        for number, m in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")), 1):
            if m[2] == language:
                lines = [line.removeprefix(m[1]) for line in m[3].splitlines()]
                found.append((f"{page.relative_to(ROOT)}:{number}", "\n".join(lines)))
    return found


def apps() -> list[tuple[str, str]]:
    """The apps of the documents: blocks of SiddhiQL, and cells without a language that are whole."""
    found = blocks("siddhi") + [b for b in blocks("") if b[1].startswith("%%siddhi ")]
    return [(place, text) for place, text in found if "define " in text and "\n..." not in text]


@pytest.mark.parametrize(("place", "text"), apps(), ids=lambda v: v if v[:4] in ("docs", "READ") else "")
def test_an_app_is_right(place: str, text: str) -> None:
    app = re.sub(r"\A(%%siddhi[^\n]*\n)", "", text)
    compile_app(DATA_SOURCES.sub("", app), properties={"shardId": "node-1"})


@pytest.mark.parametrize(("place", "text"), blocks("python"), ids=lambda v: v if v[:4] in ("docs", "READ") else "")
def test_python_parses(place: str, text: str) -> None:
    ast.parse(text)


@pytest.mark.parametrize(
    "page",
    [
        "explanations/engine", "guides/apps-and-cells", "guides/errors", "guides/generate", "guides/replay",
        "guides/sinks", "guides/test-your-apps",
    ],
)  # fmt: skip
def test_examples_run_in_this_process(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page that run without Spark."""
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "apps"))
    monkeypatch.chdir(tmp_path)
    ran = 0
    names: dict[str, object] = {}  # a block goes on where the one before it ended
    for place, text in blocks("python"):
        if f"docs/{page}.md" not in place:
            continue
        exec(compile(text, place, "exec"), names)
        for name, test in list(names.items()):
            if name.startswith("test_") and callable(test):
                _call_test(test, tmp_path / name)
        ran += 1
        app = names.get("app")
        if app is not None:
            app.stop()  # type: ignore[attr-defined]
    assert ran


def _call_test(test: Callable[..., None], folder: Path) -> None:
    """Calls a test function with the fixtures that it names."""
    apps = AppFactory(EXAMPLES)
    fixtures = {"siddhi": apps, "tmp_path": folder}
    try:
        test(**{name: fixtures[name] for name in inspect.signature(test).parameters})
    finally:
        apps.close()


@pytest.mark.parametrize(("place", "text"), blocks("siddhitest"), ids=lambda v: v if v[:4] == "docs" else "")
def test_test_files_pass(place: str, text: str) -> None:
    file = parse_test_file(EXAMPLES / "x.siddhitest", text)
    for tested in run_file(file, RunOptions()):
        assert tested.result.has_passed, "\n".join(tested.result.details())


LONGEST = 120


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_lines_are_not_long(page: Path) -> None:
    """Tables apart, whose rows are one line each, and the apps of `differences.md`, which are as cases have them."""
    if page.name in ("performance.md", "scale.md"):
        pytest.skip("its figures are written by the programs that measure them")
    text = page.read_text(encoding="utf-8")
    if page.name == "differences.md":
        text = FENCE.sub("", text)
    lines = text.splitlines()
    assert [i for i, line in enumerate(lines, 1) if len(line) > LONGEST and not line.lstrip().startswith("|")] == []
