"""SQL over relations and frames: what is refused, what names mean, limits and interrupts."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sparkstream_nb.errors import Misuse
from sparkstream_nb.stores.sql_session import (
    CatalogRows,
    Relation,
    SqlQuery,
    SqlRows,
    SqlSession,
    distinct_names,
    list_places,
    quote,
)

FRAME = pd.DataFrame({"x": [1, 2], "y": ["a", None]})


class Names:
    """A catalog of relations, each with its full name in the column `relation`; `read_names` have those that were
    read."""

    def __init__(self, name: str, *relations: tuple[str, str]) -> None:
        self.name = name
        self.relations = [Relation(schema, r, pa.schema({"relation": pa.string()})) for schema, r in relations]
        self.read_names: list[str] = []

    def read(self, relations: Sequence[Relation]) -> CatalogRows:
        self.read_names += [f"{r.schema}.{r.name}" for r in relations]
        return CatalogRows({r: pa.table({"relation": [f"{r.schema}.{r.name}"]}) for r in relations})


def ask(text: str, *catalogs: Names, **options: Any) -> SqlRows:
    return SqlSession(SqlQuery(text, catalogs, **options)).run()


def values(text: str, *catalogs: Names, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ask(text, *catalogs, **options).table.to_pylist()]


@pytest.mark.parametrize(
    "text",
    [
        "insert into f values (1)", "create table t as select 1", "create view v as select 1", "drop table f",
        "copy (select 1) to 'OUT'", "copy f to 'OUT'", "copy (pivot f on x using sum(x)) to 'OUT'",
        "explain analyze copy (select 1) to 'OUT'", "attach 'OUT' as other", "install httpfs", "load httpfs",
        "set memory_limit = '1GB'", "pragma database_list", "call pragma_version()", "export database 'OUT'",
        "create table t as pivot f on x using sum(x)", "with a as (select 1) insert into f select * from a",
        "update f set x = 1", "delete from f", "begin", "vacuum", "checkpoint", "prepare p as select 1",
    ],
)  # fmt: skip
def test_only_queries_that_read(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Misuse) as refusal:
        ask(text.replace("OUT", str(tmp_path / "out")), frames={"f": FRAME})
    assert "SQL reads here" in str(refusal.value) or "syntax error" in str(refusal.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the query is empty"),
        ("-- nothing", "the query is empty"),
        ("select 1; select 2", "these are 2 queries: ask one at a time"),
        ("selec 1", 'syntax error at or near "selec"'),
        ("select z from f", '"z" not found'),
        ("from nosuch", "there is no relation or variable 'nosuch'"),
        ("from ff", "Did you mean 'f'?"),
        ("from alerts", "there is no variable 'alerts' with rows; write Trades.outputs.Alerts"),
        ("from 'http://127.0.0.1:1/a.parquet'", "cannot be read here: SQL reads local files alone"),
        ("from 's3://bucket/a.parquet'", "cannot be read here"),
        ("from 'nosuch.csv'", "nosuch.csv"),
    ],
)
def test_a_wrong_query_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(Misuse) as refusal:
        ask(text, Names("Trades", ("outputs", "Alerts")), frames={"f": FRAME})
    assert words in str(refusal.value)


def test_only_relations_that_are_named_are_read() -> None:
    trades = Names("Trades", ("inputs", "Prices"), ("outputs", "Alerts"), ("outputs", "Rises"), ("", "errors"))
    assert values("select relation from Trades.outputs.alerts", trades) == [("outputs.Alerts",)]
    assert trades.read_names == ["outputs.Alerts"]
    assert values("from Trades.errors", trades) == [(".errors",)]
    described = ask("describe Trades.outputs.Rises", Names("Trades", ("outputs", "Rises")))
    assert described.table.column("column_name").to_pylist() == ["relation"]


def test_the_home_needs_no_qualification() -> None:
    trades, other = Names("Trades", ("inputs", "Prices"), ("", "errors")), Names("Other", ("inputs", "Prices"))
    for text in ("from Prices", "from inputs.Prices", "from Trades.inputs.Prices", 'from "trades"."Inputs"."prices"'):
        assert values(text, trades, other, home="Trades") == [("inputs.Prices",)]
    assert values("from errors", trades, other, home="Trades") == [(".errors",)]


def test_names_that_need_quotes_or_clash() -> None:
    odd = Names('My "App"', ("outputs", "a.b"), ("outputs", "A.B"), ("outputs", "select"))
    places = [place for place, _ in list_places([odd, Names("temp", ("", "errors")), Names("TEMP", ("", "errors"))])]
    assert places[:3] == ['"My ""App""".outputs."a.b"', '"My ""App""".outputs."A.B_2"', '"My ""App""".outputs."select"']
    assert places[3:] == ["temp_app.errors", "TEMP_app_2.errors"]
    rows = ask(f"select * from {places[0]} union all from {places[1]} union all from {places[2]}", odd)
    assert [r["relation"] for r in rows.table.to_pylist()] == ["outputs.a.b", "outputs.A.B", "outputs.select"]
    assert rows.remarks == ["""My "App".outputs has two names that are one to SQL: 'A.B' is "A.B_2\""""]
    assert distinct_names(["a", "A", "a_2", "A"], [""] * 4) == ["a", "A_3", "a_2", "A_4"]
    assert [quote(n) for n in ("symbol", "größe", "1a", "order")] == ["symbol", '"größe"', '"1a"', '"order"']


def test_columns_that_sql_does_not_tell_apart() -> None:
    class Doubled(Names):
        def read(self, relations: Sequence[Relation]) -> CatalogRows:
            return CatalogRows({r: pa.table({"node": ["n"], "Node": [1]}) for r in relations}, ["a remark"])

    rows = ask("select node, Node_2 from T.outputs.S", Doubled("T", ("outputs", "S")))
    assert rows.table.to_pylist() == [{"node": "n", "Node_2": 1}]
    assert rows.remarks == ["a remark", "T.outputs.S has columns that are one to SQL: 'Node' is Node_2"]


def test_frames_files_and_relations_in_one_query(tmp_path: Path) -> None:
    class Result:
        frame = FRAME

    file = tmp_path / "limits.csv"
    file.write_text("x,most\n1,10\n2,20\n")
    frames = {"p": FRAME, "a": pa.table({"x": [2]}), "r": Result(), "unused": object(), "kind": pd.DataFrame}
    text = f"select p.x, most from p join a using (x) join r using (x) join '{file}' using (x) cross join T.errors"
    assert values(text, Names("T", ("", "errors")), frames=frames) == [(2, 20)]
    assert values("pivot p on y using sum(x)", frames=frames) == [(1,)]
    with pytest.raises(Misuse, match="'kind'"):
        ask("from kind", frames=frames)


def test_a_variable_with_the_name_of_a_relation_is_not_used_and_that_is_said() -> None:
    rows = ask("from Alerts", Names("T", ("outputs", "Alerts")), frames={"alerts": FRAME}, home="T")
    assert rows.table.to_pylist() == [{"relation": "outputs.Alerts"}]
    assert rows.remarks == ["alerts is T.outputs.Alerts, not the variable of that name"]


def test_nulls_and_nan_stay_apart() -> None:
    table = pa.table({"v": pa.array([1.0, None, float("nan"), -0.0])})
    assert str(values("from t", frames={"t": table})) == "[(1.0,), (None,), (nan,), (-0.0,)]"


def test_a_limit_of_rows_is_said_and_ends_the_query() -> None:
    began = time.monotonic()
    rows = ask("from range(1_000_000_000)", limit=1_000)
    assert (rows.table.num_rows, rows.is_cut) == (1_000, True)
    assert time.monotonic() - began < 30
    assert not ask("from range(1000)", limit=1_000).is_cut


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_an_interrupt_ends_a_query(seconds: float) -> None:
    def interrupt() -> None:
        while not any(thread.name == "sql" for thread in threading.enumerate()):
            time.sleep(0.001)
        time.sleep(seconds)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask("select count(*) from range(3_000_000) a, range(3_000_000) b where a.range % 7 = b.range % 11")
    assert time.monotonic() - began < 30


def test_progress_is_told() -> None:
    shares: list[float] = []
    text = "select count(*) from f a, f b where a.x % 7 = b.x % 11 and a.x * b.x % 13 = 5"
    frames = {"f": pd.DataFrame({"x": range(60_000)})}
    SqlSession(SqlQuery(text, frames=frames), shares.append).run()
    assert shares
    assert all(0 < share <= 1 for share in shares)
