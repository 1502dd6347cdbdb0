"""SiddhiQL in pages that nbconvert makes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pygments import lexers
from pygments.token import Error
from traitlets.config import Config

from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.pygments_lexer import SiddhiLexer
from tests.test_environment import PROJECT

PYTHON = {"name": "python", "pygments_lexer": "ipython3"}
CELL = "%%siddhi T --nodes 2\n@info(name='q') -- a comment\nfrom S#window.length(3) select sum(v) as s insert into O;"


def test_each_part_of_a_text_has_its_token() -> None:
    found = [(str(kind).removeprefix("Token."), part) for kind, part in SiddhiLexer().get_tokens(CELL) if part.strip()]
    assert found == [
        ("Keyword.Namespace", "%%siddhi"), ("Name.Attribute", " T --nodes 2"), ("Name.Decorator", "@info"),
        ("Punctuation", "("), ("Name", "name"), ("Operator", "="), ("Literal.String", "'q'"), ("Punctuation", ")"),
        ("Comment.Single", "-- a comment"), ("Keyword", "from"), ("Name", "S"), ("Keyword", "#window"),
        ("Punctuation", "."), ("Name.Function", "length"), ("Punctuation", "("), ("Literal.Number", "3"),
        ("Punctuation", ")"), ("Keyword", "select"), ("Name.Function", "sum"), ("Punctuation", "("), ("Name", "v"),
        ("Punctuation", ")"), ("Keyword", "as"), ("Name", "s"), ("Keyword", "insert"), ("Keyword", "into"),
        ("Name", "O"), ("Punctuation", ";"),
    ]  # fmt: skip


def _is_siddhiql(text: str) -> bool:
    try:
        parse(text)
    except SiddhiError:
        return False
    return True


def test_no_text_of_the_cases_has_what_it_does_not_know() -> None:
    files = sorted((Path(__file__).parents[1] / "cases").rglob("*.jsonl"))
    for line in [line for file in files for line in file.read_text(encoding="utf-8").split("\n") if line][::29]:
        text = json.loads(line).get("app", "")
        if not _is_siddhiql(text):
            continue
        unknown = [part for kind, part in SiddhiLexer().get_tokens(text) if kind is Error]
        assert not unknown, text


def test_an_exported_page_colours_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point is that of an installed package: here it is read from pyproject.toml."""
    from nbconvert import HTMLExporter  # takes two seconds to load
    from nbformat import v4

    ((name, where),) = PROJECT["entry-points"]["pygments.lexers"].items()
    found = EntryPoint(name, where, "pygments.lexers")
    within = lexers.get_lexer_by_name.__globals__  # the module puts another into its place
    monkeypatch.setitem(within, "find_plugin_lexers", lambda: iter([found.load()]))
    config = Config({"HighlightMagicsPreprocessor": {"languages": {"%%siddhi": name}}})
    page, _ = HTMLExporter(config=config).from_notebook_node(
        v4.new_notebook(cells=[v4.new_code_cell(CELL)], metadata={"language_info": PYTHON})
    )
    assert '<span class="k">select</span>' in page
    assert '<span class="nf">length</span>' in page


def test_it_loads_little() -> None:
    code = "import sys, sparkstream_nb.pygments_lexer; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert not {"pyspark", "numba", "numpy", "pandas", "IPython", "lark"} & set(eval(told))
