"""Completions in SiddhiQL: texts with a cursor (`|`), and what must and must not be offered there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter

from sparkstream_nb.lab.complete import _kind_of
from sparkstream_nb.lab.completion import CompletionQuery, at_cursor
from sparkstream_nb.lab.completion.app_names import of_plan

from .conftest import TRADES, StandIn

DEFINED = """define stream Orders (item string, price double);
define table Stock (code string, amount long);
define window Recent (code string) length(5);
define aggregation Sums from Orders select item, sum(price) as total group by item aggregate every min...day;
"""

CASES = [
    ("from |", "Orders Stock Recent Sums", "price select sum"),
    ("from Ord|", "Orders", "order order by"),
    ("from Orders |", "select join insert\u00a0into #window.", "price Stock sum define"),
    ("from Orders as o join |", "Stock Sums", "price on"),
    ("from Orders#win|", "#window.timeBatch #window.length", "#log Orders"),
    ("from Orders#window.|", "#window.time", "#log sum price"),
    ("from Orders#|", "#window.time #log", "sum price"),
    ("from Orders[|", "item price str:concat Orders.", "amount sum select"),
    ("from Orders[price > 1]#window.length(3) select |", "item price sum str:concat", "code Stock from"),
    ("from Orders select price |", "as insert\u00a0into group\u00a0by", "price sum"),
    ("from Orders select price as |", "", "price sum item"),
    ("from Orders select p| insert into Out;", "price", "item partition\u00a0with"),
    ("from Orders as o join Stock as s on o.|", "o.item o.price", "o.code s.code"),
    ("from Orders as o join Stock as s on o.item == s.|", "s.code s.amount", "s.item"),
    ("from Orders as o join Stock as s on |", "item code o. s. str:concat", "Recent sum"),
    ("from every e1=Orders -> e2=Orders[e1.|", "e1.item e1.price", "e1.code"),
    ("from every e1=Orders -> |", "Orders", "price select"),
    ("from e1=Orders<2:> -> e2=Orders select e1[0].|", ".item .price", "e1.item"),
    ("from Orders select item, sum(|", "price item", "Stock insert"),
    ("from Orders select str:|", "str:concat str:groupConcat", "math:sin price"),
    ("from Orders select math:s|", "math:sin", "math:cos str:concat"),
    ("from Orders select item group by |", "item price", "sum str:concat code"),
    ("from Orders select item having |", "item sum", "code"),
    ("from Orders select item insert into |", "Orders Stock", "Sums price"),
    ("from Orders select item insert into |; from Out select item insert into Later;", "Orders Later", "price"),
    ("from Orders select price as p insert into Out; from Out select |", "p", "item amount"),
    ("from Orders select item update |", "Stock", "Orders"),
    ("from Orders select item delete Stock on |", "item code", "Sums"),
    ("from Orders join Sums on Orders.item == Sums.item within '|", "", "Orders sec"),
    ("from Orders join Sums on Orders.item == Sums.item within '2024-**' per '|", "min hour day", "sec month"),
    ("from Orders join Sums on Orders.item == Sums.item within '2024-**' per '|' select *", "min", "sec"),
    ("from Orders select item update Stock set Stock.|", "Stock.code Stock.amount", "Stock.item"),
    ("define |", "stream table window aggregation trigger", "from Orders string"),
    ("define stream |", "", "Orders string"),
    ("define stream More (a |", "string long double bool", "Orders from"),
    ("define stream More (|", "", "Orders from"),
    ("@|", "@info @sink @app:name @PrimaryKey", "from Orders"),
    ("@in|", "@info @Index", "@sink"),
    ("@sink(|", "type= topic=", "Orders name="),
    ("@sink(type='|", "log inMemory file http", "rdbms"),
    ("@sink(type='kafka', |", "topic= partition.no= key= on.error=", "publisher.url= seq.enabled= prefix="),
    ("@sink(type='log', |", "prefix= priority=", "topic="),
    ("@sink(on.error='|", "LOG STORE STREAM WAIT", "true"),
    ("@sink(type='file', append='|", "true false", "LOG"),
    ("@sink(type='email', @map(type='json'), content.type='|", "text/plain text/html", "counter"),
    ("@sink(type='http', @distribution(strategy='broadcast', @destination(|", "publisher.url=", "topic= type="),
    ("@sink(type='|", "inMemory nats prometheus", "http-request"),
    ("@source(|", "type= topic= topic.list= dir.uri=", "publisher.url="),
    ("@source(type='file', |", "dir.uri= mode= event.time=", "topic.list= cron.expression="),
    ("@source(type='file', mode='|", "line text.full parquet", "polling"),
    ("@source(type='|", "inMemory kafka file cdc", "log http-response"),
    ("@source(type='kafka', @map(type='xml', |", "namespaces= fail.on.missing.attribute=", "validate.xml= schema.id="),
    ("@sink(type='kafka', @map(type='xml', |", "validate.xml= enclosing.element=", "namespaces="),
    ("@sink(type='kafka', @map(type='|", "passThrough json avro", "kafka"),
    ("@Source(type='kafka', threading.option='|", "single.thread topic.wise", "true"),
    ("@info(|", "name=", "type="),
    ("partition with (|", "item", "Sums"),
    ("partition with (item of |", "Orders", "Stock item"),
    ("partition with (item of Orders) begin from |", "Orders", "item"),
    ("partition with (item of Orders) begin from Orders select |", "item price", "amount"),
    ("-- from |", "", "Orders"),
    ("/* from |", "", "Orders"),
    ("from Orders select 1.|", "", "price item"),
    ("wrong wrong; from |", "Orders", "price"),
    ("from Orders select item insert into Out; |", "from define partition\u00a0with", "Orders select"),
    ("|", "define from", "Orders select sum"),
]  # fmt: skip


def offered(text: str) -> tuple[str, ...]:
    before, _, after = text.partition("|")
    return at_cursor(CompletionQuery(DEFINED + before, after)).words


def listed(words: str) -> set[str]:
    """Words with a space in them are written with a no-break space."""
    return {w.replace("\u00a0", " ") for w in words.split(" ") if w}


@pytest.mark.parametrize(("text", "among", "not_among"), CASES, ids=[c[0] for c in CASES])
def test_what_fits_the_place(text: str, among: str, not_among: str) -> None:
    found = offered(text)
    assert listed(among) <= set(found)
    assert not listed(not_among) & set(found)


def test_what_fits_best_comes_first() -> None:
    assert offered("from Orders select |")[:3] == ("item", "price", "Orders.")
    assert offered("from Orders |")[:2] == ("#window.", "select")


@pytest.mark.parametrize("end", range(0, len(TRADES), 3))
def test_no_piece_of_a_text_is_too_short(end: int) -> None:
    found = at_cursor(CompletionQuery(TRADES[:end], TRADES[end:]))
    assert all(w.lower().startswith(found.fragment.lower()) for w in found.words)


QUERIES = [
    ("from |", "TradeAggregation", "TradeStream"),
    ("from TradeAggregation within '2024-**' per '|", "sec day year", "TradeStream"),
    ("from TradeAggregation within 1 per 'sec' select |", "symbol avgPrice total AGG_TIMESTAMP sum", "price"),
    ("from TradeAggregation on |", "symbol", "TradeStream"),
]


@pytest.mark.parametrize(("text", "among", "not_among"), QUERIES, ids=[c[0] for c in QUERIES])
def test_a_query_names_what_the_running_app_has(app: StandIn, text: str, among: str, not_among: str) -> None:
    before, _, after = text.partition("|")
    found = at_cursor(CompletionQuery(before, after, of_plan(app.plan))).words
    assert listed(among) <= set(found)
    assert not listed(not_among) & set(found)


def in_shell(shell: Any, text: str) -> list[str]:
    """The completions of a cell, as the shell gives them."""
    before, _, after = text.partition("|")
    with provisionalcompleter():
        return [c.text for c in shell.Completer.completions(before + after, len(before))]


def test_the_shell_completes_at_the_cursor_of_a_cell(shell: Any, app: StandIn) -> None:
    cell = f"%%siddhi T\n{DEFINED}from Orders select | insert into Out;\nfrom Stock select code insert into P;"
    assert in_shell(shell, cell)[:2] == ["item", "price"]
    assert in_shell(shell, "%%siddhi Trades --query\nfrom Trade|\nselect *") == ["TradeAggregation"]
    assert in_shell(shell, "%siddhi query Trades \"from TradeAggregation within '2024-**' per 'd|") == ["day"]
    assert in_shell(shell, "%siddhi query Tra|") == ["Trades"]
    assert in_shell(shell, "%siddhi tail Trades.Ri|") == ["Trades.Rises"]
    assert in_shell(shell, "%siddhi tail Trades.Rises --latest |") == ["price", "symbol"]
    assert in_shell(shell, "%siddhi tail Trades.Rises --newest |") == ["first", "last"]
    assert in_shell(shell, "%siddhi trace Trades.|") == ["Trades.rise"]
    assert "--until" in in_shell(shell, "%siddhi trace Trades.rise --|")
    assert in_shell(shell, "%siddhi chart Trades.Ri|") == ["Trades.Rises"]
    assert in_shell(shell, "%siddhi chart Trades.Rises --y |") == ["price"]
    assert in_shell(shell, "%siddhi chart Trades.Rises --y price --by |") == ["node", "price", "symbol"]
    assert in_shell(shell, "%siddhi chart Trades.Rises --x |") == ["price", "time"]
    assert in_shell(shell, "%siddhi chart Trades.Rises --kind |") == ["bar", "line", "points"]
    assert "--last" in in_shell(shell, "%siddhi chart Trades.Rises --|")
    body = "define stream A (sym string, price double);\ndefine stream B(code string, "
    assert in_shell(shell, f"%%siddhi T --routing hash:|\n{body}") == ["hash:code", "hash:price", "hash:sym"]
    assert in_shell(shell, f"%%siddhi T --routing hash:s|\n{body}") == ["hash:sym"]
    assert in_shell(shell, f"%%siddhi T --routing ra|\n{body}") == ["random:"]
    assert in_shell(shell, "%siddhi divergence Trades --routing hash:p|") == ["hash:price"]
    assert in_shell(shell, "%siddhi feed Trades.TradeStream frame --route hash:sy|") == ["hash:symbol"]


def test_the_shell_completes_files_and_their_columns(
    shell: Any, app: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rentals.csv").write_text("Zeit;Station Name;Dauer\n", encoding="utf-8-sig")
    (tmp_path / "notes.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    shell.user_ns["frame"] = pd.DataFrame({"at": [1], "a b": [2]})
    feed = "%siddhi feed Trades.TradeStream"
    assert in_shell(shell, f"{feed} |")[:2] == ["--background", "--decimal"]
    assert {"data/", "frame"} <= set(in_shell(shell, f"{feed} |"))
    assert in_shell(shell, f"{feed} da|") == ["data/"]
    assert {"data/", "frame"} <= set(in_shell(shell, "%siddhi trace Trades.rise |"))
    assert in_shell(shell, f"{feed} data/re|") == ["rentals.csv"]
    assert in_shell(shell, f"{feed} data/rentals.csv --time |") == ["Zeit", '"Station Name"', "Dauer"]
    assert in_shell(shell, f"{feed} data/rentals.csv --map symbol=sta|") == ['"Station Name"']
    assert in_shell(shell, f'{feed} data/rentals.csv --map symbol="S|') == ['"Station Name"']
    assert in_shell(shell, f"{feed} frame --map symbol=|") == ["at", '"a b"']


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("select", "keyword"), ("insert\u00a0into", "keyword"), ("string", "type"), ("sum", "aggregate"),
        ("str:concat", "function"), ("#window.time", "window"), ("#log", "stream function"), ("@sink", "annotation"),
        ("topic=", "option"), ("--nodes", "option"), ("feed", "command"), ("Orders.price", "name"),
    ],
)  # fmt: skip
def test_the_kind_of_a_word_is_beside_it(word: str, kind: str) -> None:
    assert _kind_of(word, {"feed"}) == kind
