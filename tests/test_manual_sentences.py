"""The table of the manual's sentences in `docs/wso2/README.md`: its headings are in the notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MANUAL = ROOT.parent / "shared" / "seeds"
ROW = re.compile(r"^\| (.+) \| \[\d\d, (.+)\]\(\.\./\.\./notebooks/([\w.]+)#(.+)\) \|$", re.MULTILINE)
QUOTE = re.compile(r"\*\"(.+?)\"\*", re.DOTALL)
SENTENCES = ROW.findall((ROOT / "docs" / "wso2" / "README.md").read_text(encoding="utf-8"))


def markdown_of(book: Path) -> str:
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def headings(text: str) -> set[str]:
    return set(re.findall(r"^#+ (.+)$", text, re.MULTILINE))


def plain(text: str) -> str:
    """Words alone: without marks of code, line breaks and the difference of case at the start of a sentence."""
    return " ".join(text.replace("`", "").split()).casefold().rstrip(".")


@pytest.mark.parametrize(("sentence", "heading", "book", "anchor"), SENTENCES)
def test_the_heading_is_in_the_notebook(sentence: str, heading: str, book: str, anchor: str) -> None:
    assert heading in headings(markdown_of(ROOT / "notebooks" / book))
    assert anchor == heading.replace(" ", "-")  # as JupyterLab makes it


def test_the_table_is_read() -> None:
    assert len(SENTENCES) > 60
    assert len({book for _, _, book, _ in SENTENCES}) >= 8


def test_all_tasks_of_an_operator_are_in_the_table() -> None:
    book = ROOT / "notebooks" / "13_operations.ipynb"
    tasks = set(re.findall(r"^## (.+)$", markdown_of(book), re.MULTILINE))
    assert tasks == {heading for _, heading, name, _ in SENTENCES if name == book.name}


@pytest.mark.skipif(not MANUAL.is_dir(), reason="the manual's pages are not beside this repository")
def test_quotations_are_the_manuals_words() -> None:
    """Those of the table, and those that the notebooks have in italics."""
    manual = plain(" ".join(page.read_text(encoding="utf-8") for page in sorted(MANUAL.iterdir())))
    quotations = [sentence for sentence, *_ in SENTENCES]
    quotations += [quote for book in NOTEBOOKS for quote in QUOTE.findall(markdown_of(book))]
    assert [q for q in quotations if plain(q) not in manual] == []
