"""The search for words that a stranger would have to translate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests import plain_words


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("The rows of a table.", []),
        ("What comes out of a table.", ["What comes out of a table.", "What comes"]),
        ("Whether it waits.", ["Whether it waits."]),
        ("Makes it anew for so many rows.", ["anew", "so many"]),
        ("Whatever is left.", []),
    ],
)
def test_docstrings_in_plain_words(
    docstring: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.py").write_text(f"def f():\n    {docstring!r}\n")
    for page in ("README.md", "ARCHITECTURE.md"):
        (tmp_path / page).write_text("plain\n")
    monkeypatch.setattr(plain_words, "ROOT", tmp_path)
    monkeypatch.setattr(plain_words, "PACKAGE", package)
    assert [f.text for f in plain_words.find_words()] == found
    assert all(f.where == "top" and f.place == "package/one.py:2" for f in plain_words.find_words())


def test_texts_below_fields_are_docstrings(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text('class A:\n    x: int = 1\n    """The number."""\n')
    assert list(plain_words.docstrings(file)) == [(3, "The number.")]


def test_functions_named_by_a_participle_alone(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(
        "class A:\n    def _packed(self): ...\n    def pack(self): ...\n    def is_packed(self): ...\n"
        "    def __getitem__(self, i): ...\n\n\nasync def running():\n    def told(): ...\n    def noted(): ...\n"
    )
    assert sorted(plain_words.bare_participles(file)) == [(2, "_packed"), (8, "running"), (10, "noted")]


def test_budgets_fall_and_never_rise() -> None:
    text = plain_words._lowered("participles", {"app": 3, "lab": 1, "plan": 0}, {"app": 2, "lab": 4})
    assert text.endswith("[participles]\napp = 2\nlab = 1\nplan = 0\n")


def test_code_in_documents_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("Run `it --anew`.\n")
    (tmp_path / "ARCHITECTURE.md").write_text("It runs anew.\n")
    monkeypatch.setattr(plain_words, "ROOT", tmp_path)
    monkeypatch.setattr(plain_words, "PACKAGE", tmp_path / "package")
    assert [(f.where, f.place, f.text) for f in plain_words.find_words()] == [("docs", "ARCHITECTURE.md:1", "anew")]


def test_no_two_modules_share_a_name() -> None:
    files = [f for f in plain_words.PACKAGE.rglob("*.py") if not f.name.startswith("__")]
    several = {name: n for name, n in Counter(f.name for f in files).items() if n > 1}
    assert several == {}


def test_phrases_with_a_plainer_word_are_counted_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("The app goes on anew.\n")
    (tmp_path / "ARCHITECTURE.md").write_text("plain\n")
    monkeypatch.setattr(plain_words, "ROOT", tmp_path)
    monkeypatch.setattr(plain_words, "PACKAGE", tmp_path / "package")
    assert [(f.text, f.table) for f in plain_words.find_words()] == [("anew", "budgets"), ("goes on", "phrases")]


def test_variables_are_named_after_what_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("def f(kept, rows):\n    found = rows\n    rows.written = [held for held in found]\n")
    assert [name for _, name in sorted(plain_words.bindings(file))] == ["kept", "rows", "found", "held", "written"]
    names = ("found", "_kept", "written", "token", "restored_state", "rows")
    assert [plain_words.table_of(n) for n in names] == ["riddles", "riddles", "variables", None, None, None]
