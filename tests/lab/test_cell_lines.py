"""Numbers of lines in messages about a cell are those that JupyterLab shows: the line `%%siddhi` is one of them."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.plan import compile_retrieval

from .conftest import TRADES, StandIn

WRONG = "define stream S (a string);\nfrom S select aa insert into O;\n"
STORE = "define stream S (a string);\n@store(type='mongodb')\ndefine table T (a string);\nfrom S insert into T;\n"


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (f"%%siddhi W\n{WRONG}", 3),
        (f"%%siddhi W --check\n{WRONG}", 3),
        (f"%%siddhi W --explain\n{WRONG}", 3),
        (f"%%siddhi W\n\n  \n{WRONG}", 5),
        (f"\n\n%%siddhi W\n\n{WRONG}", 6),
        (f"%%time\n%%siddhi W\n{WRONG}", 4),
        ("%%siddhi Trades --query\n\nfrom TradeAggregation\nselec *", 4),
        (f"text = {WRONG!r}\nget_ipython().run_cell_magic('siddhi', 'W', text)", 3),
        (f"wrong_text = {WRONG!r}\n%siddhi check wrong_text", 2),
    ],
)
def test_an_error_has_the_line_of_the_cell(shell: Any, app: StandIn, cell: str, line: int) -> None:
    app.query = lambda text, **_: compile_retrieval(text, app.plan)  # type: ignore[assignment, method-assign]
    error = shell.run_cell(cell).error_in_exec or sys.last_value  # `%%time` of IPython 8 shows it, and ends well
    assert isinstance(error, SiddhiError)
    first, shown, *_ = str(error).splitlines()
    assert first.startswith(f"line {line}, column ")
    assert shown.startswith(f"{line:>4} | ")


def test_a_gap_has_the_line_of_the_cell(shell: Any, app: StandIn) -> None:
    shown = shell.run_cell(f"%%siddhi W --check\n{STORE}").result
    assert shown.ok
    owner = "it belongs to WSO2's extension siddhi-store-mongodb, which is not included"
    cannot = f"but this build cannot run table 'T' in a store of type 'mongodb' (line 3; {owner})"
    assert repr(shown).endswith(cannot)
    assert "gap store: table 'T' in a store of type 'mongodb' cannot run in this build, line 3" in repr(
        shell.run_cell(f"%%siddhi W --explain\n{STORE}").result
    )


def test_a_plan_has_the_lines_of_the_cell(shell: Any, app: StandIn) -> None:
    assert "query 'rise'  -- line 9\n" in f"{shell.run_cell(f'%%siddhi --explain{chr(10)}{TRADES}').result!r}\n"
    shell.run_cell(f"%%siddhi Trades\n{TRADES}")
    assert "query 'rise'  -- line 9\n" in f"{app.explain()!r}\n"


def test_what_only_a_deployment_says_is_a_note_with_the_line_of_the_cell(shell: Any, app: StandIn) -> None:
    cell = "@store(type='rdbms', ref='shop')\ndefine table T (k string);\ndefine stream S (k string, v int);\n"
    cell += "from S[v > ${LEAST}] select k insert into T;"
    for how in ("--check", "--explain", "--graph", "--repair"):
        shown = shell.run_cell(f"%%siddhi W {how}\n{cell}").result
        told = f"{shown!r}\n{getattr(shown, 'notes', '')}"
        assert "ref 'shop' (line 2) is of a deployment file" in told
        assert "${LEAST} (line 5) has no value and is taken as 1" in told
