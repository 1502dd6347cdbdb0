"""The comparison with other engines (`tests/bench/peers`): what it finds, and the texts that need no Java."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.peers import duckdb, files, ours, tables
from tests.bench.peers.compare import compare
from tests.bench.peers.protocol import Difference, Peer, Query, Result, read_queries
from tests.bench.peers.turns import PeerFailed, Turn, measure, run, turns

QUERIES = read_queries()
EVENTS = 15_000
QUERY = Query("q", "a query", "v", {"ours": ""}, {"known": Difference("the last window is open", rows=2, sum=0.1)})
OURS = Result("q", 10, 100.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return files.make(tmp_path_factory.mktemp("peers") / "files", EVENTS)


def test_equal_outputs() -> None:
    assert compare(QUERY, "other", OURS, replace(OURS, sum=100.0 + 1e-8)).text == "equal"


@pytest.mark.parametrize(
    "other",
    [
        replace(OURS, sum=100.001),
        replace(OURS, sum=float("nan")),
        replace(OURS, rows=11),
        replace(OURS, rows=0, sum=0.0),
    ],
)
def test_undeclared_difference(other: Result) -> None:
    found = compare(QUERY, "other", OURS, other)
    assert found.error
    assert "not declared" in found.text


def test_wrong_sum_of_nothing() -> None:
    assert compare(QUERY, "other", replace(OURS, sum=0.0), OURS).error


def test_declared_difference() -> None:
    found = compare(QUERY, "known", OURS, replace(OURS, rows=12, sum=105.0))
    assert not found.error
    assert found.text == "+2 rows of 10, sum 5e-02 off: the last window is open"


@pytest.mark.parametrize("other", [replace(OURS, rows=13), replace(OURS, sum=120.0)])
def test_larger_than_declared(other: Result) -> None:
    found = compare(QUERY, "known", OURS, other)
    assert found.error
    assert "more than declared" in found.text


def _without_known_differences(query: Query) -> Query:
    """DuckDB's text without the open last window, and with at most one event a millisecond and symbol in a window."""
    closed = "from (from trades where timestamp // 1000 < (select max(timestamp // 1000) from trades)) group by"
    ties = "from (select * replace (timestamp * 1000000 + file_row_number as timestamp) from trades)\nwindow"
    text = query.texts["duckdb"]
    if query.name == "tumble":
        text = text.replace("from trades group by", closed)
    if query.name == "last_10_s":
        text = text.replace("from trades\nwindow", ties).replace("9999 preceding", "9999999999 preceding")
    assert (text != query.texts["duckdb"]) == ("duckdb" in query.differences)
    return replace(query, texts={**query.texts, "duckdb": text})


@pytest.mark.parametrize("name", sorted(duckdb.PEER.queries))
def test_duckdb_text(name: str, made: dict[str, Path]) -> None:
    """DuckDB's texts mean what ours do, and ours finds the same from memory and from parquet."""
    query = QUERIES[name]
    rows, summed = ours.total(query, ours.from_memory(query, str(made["csv"]))[0])
    expected = Result(name, rows, summed, 0.0, 0.0)
    again = ours.total(query, ours.from_parquet(query, str(made["parquet"]))[0])
    assert again == (rows, pytest.approx(summed, rel=1e-12))
    other = duckdb.total(query, duckdb.run(_without_known_differences(query), str(made["parquet"]))[0])
    assert compare(replace(query, differences={}), "duckdb", expected, Result(name, *other, 0.0, 0.0)).text == "equal"


def test_declared_differences_name_queries_that_peers_have() -> None:
    from tests.bench.peers import registry

    peers = {t.peer.name: t.peer for t in (*registry.IN_PROCESS, *registry.END_TO_END)}
    for query in QUERIES.values():
        assert all(query.name in peers[p].queries for p in query.differences)
        assert not any(query.name in peers[p].queries for p in query.without)


def _peer(name: str, code: str = "") -> Peer:
    command = [sys.executable, "-S", "-c", code]
    return Peer(name, name.upper(), "csv", lambda: name, lambda q: command, frozenset({"q"}))


def test_turns_and_the_best_repetition() -> None:
    a, b, own = _peer("a"), _peer("b"), _peer("own")
    order = list(turns([Turn(a, own), Turn(b, own)], 2))
    assert [p.name for p in order] == ["a", "own", "b", "own"] * 2
    costs = iter([5, 4, 3, 2, 6, 1.5, 7, 2.5])

    def runner(peer: Peer, query: Query) -> list[Result]:
        cost = next(costs)
        return [replace(OURS, cpu=0.0), replace(OURS, cpu=cost + 1), replace(OURS, cpu=float(cost))]

    best = measure(QUERY, order, runner, lambda text: None)
    assert {n: r.cpu for n, r in best.items() if isinstance(r, Result)} == {"a": 5, "b": 3, "own": 1.5}
    lines = tables.table({"q": best}, [QUERY], [Turn(a, own), Turn(b, own)])
    assert lines[0] == "| query | OWN | A | B | ours / best other |"
    assert lines[2] == "| a query | 1.50; 1.00 | 5.00; 1.00 | 3.00; 1.00 | 0.50 |"


def test_peer_as_a_process(tmp_path: Path) -> None:
    line = 'print("noise"); print(\'{"query": "q", "rows": 1, "sum": 2, "cpu": 3, "wall": 4}\')'
    assert run(_peer("a", line), QUERY, tmp_path, 1, 60) == [Result("q", 1, 2, 3, 4)]
    with pytest.raises(PeerFailed, match="ValueError: no such query"):
        run(_peer("a", "raise ValueError('no such query')"), QUERY, tmp_path, 1, 60)
    with pytest.raises(PeerFailed, match="not finished"):
        run(_peer("a", "import time; time.sleep(60)"), QUERY, tmp_path, 1, 0.1)
