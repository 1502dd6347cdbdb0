"""`%siddhi sql` and `%%siddhi --sql` in a shell, over a running app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb import app as api
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.arguments import SQL_OPTIONS, split_query
from sparkstream_nb.lab.sql_lines import QUERY_BEGINNINGS

from .test_magics import completions


@pytest.fixture
def trades(tmp_path: Path) -> Iterator[api.App]:
    api.stop_all()  # the only app needs no name
    text = "define stream Prices (symbol string, price double); from Prices[price > 9.0] select * insert into Alerts;"
    app = api.deploy(text, name="Trades", home=tmp_path / "home", master="inline")
    for i in range(20):
        app.send("Prices", [f"s{i % 2}", float(i)], at=1_700_000_000_000 + i)
    yield app
    api.stop_all()


def line(shell: Any, text: str) -> Any:
    return shell.run_line_magic("siddhi", text)


def test_a_line_and_a_cell(shell: Any, trades: api.App) -> None:
    shell.user_ns["names"] = pd.DataFrame({"symbol": ["s0"], "word": ["Zero"]})
    text = "select symbol, max(price) as most from Trades.outputs.Alerts group by symbol order by symbol"
    assert line(shell, f'sql "{text}"').frame["most"].tolist() == [18.0, 19.0]
    assert line(shell, f"sql {text} --limit 1 --into best").limit == 1
    assert shell.user_ns["best"]["most"].tolist() == [18.0, 19.0]
    cell = "select word\nfrom Alerts\njoin names using (symbol)\n"
    answer = shell.run_cell_magic("siddhi", "--sql --into joined", cell)
    assert repr(answer).endswith("5 rows")
    assert shell.user_ns["joined"]["word"].tolist() == ["Zero"] * 5


def test_a_chart(shell: Any, trades: api.App) -> None:
    figure = line(shell, 'sql "select timestamp, price, symbol from Alerts" --chart points --y price --by symbol')
    assert [trace.name for trace in figure.data] == ["s0", "s1"]
    with pytest.raises(Misuse, match=r"--by says what a chart shows: add --chart line, bar or points"):
        line(shell, 'sql "from Alerts" --by symbol')


def test_without_a_query_the_relations_are_listed(shell: Any, trades: api.App) -> None:
    words = repr(line(shell, "sql")).split()
    place = words.index("Trades.outputs.Alerts")
    assert words[place + 1 : place + 5] == ["node", "VARCHAR,", "timestamp", "BIGINT,"]
    assert words[-2:] == ["10", "relations"]


@pytest.mark.parametrize(
    ("words", "cell", "message"),
    [
        ("sql drop table x", None, "an SQL query begins with select or from, and not with 'drop'"),
        ("sql \"select 1", None, "the quote \" before the query is not closed"),
        ("--sql Trades", "select 1", "write %%siddhi --sql without 'Trades'"),
        ("--sql", "  ", "the query is empty"),
        ("--sql", "insert into x values (1)", "SQL reads here"),
        ("--sql --nodes 3", "select 1", "--nodes"),
        ("sql select 1 --chart pie", None, "pie"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(shell: Any, trades: api.App, words: str, cell: str | None, message: str) -> None:
    with pytest.raises(Misuse) as refusal:
        line(shell, words) if cell is None else shell.run_cell_magic("siddhi", words, cell)
    assert message in str(refusal.value)


def test_options_around_a_query() -> None:
    def parts(text: str) -> tuple[list[str], str]:
        return split_query(text, QUERY_BEGINNINGS, SQL_OPTIONS)

    query = "select 'a' as x from T -- not an option"
    assert parts(f'--into df "{query}" --chart bar') == (["--into", "df", "--chart", "bar"], query)
    assert parts("pivot T on x using sum(y) --limit=5 -o z") == (["--limit=5", "-o", "z"], "pivot T on x using sum(y)")


def test_relations_are_completed(shell: Any, trades: api.App) -> None:
    assert "Trades.outputs.Alerts" in completions(shell, '%siddhi sql "select * from Trades.out')
    assert "symbol" in completions(shell, '%siddhi sql "select sym')
    assert "Trades.errors" in completions(shell, "%%siddhi --sql\nselect *\nfrom Trades.err")
