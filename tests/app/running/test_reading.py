"""`sparkstream query`: an on-demand query over what is stored, with no app running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparkstream_nb.cli import main
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey
from stores.trades import AGGREGATION, NOON, TRADES, partials_of, plan_of

A = "TradeAggregation"
ALL = f"from {A} within 0L, 9000000000000L per 'days' select *"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "home"))
    path = tmp_path / "trades.siddhi"
    path.write_text(TRADES + AGGREGATION + "define table T (a string);")
    return path


def filled(file: Path, *shards: str | None) -> Path:
    """A store with one trade of quantity 5 in each shard; None: of a deployment that is not partitioned."""
    store = DuckDBStore(file)
    for shard in shards:
        plan = plan_of(shard)
        store.prepare(plan.aggregations.values())
        store.commit(BatchKey("app", shard or "", 0), {(A, shard or ""): partials_of(plan, [["x", 1.0, 5, NOON]])})
    store.close()
    return file


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main(["query", *map(str, words)])
    out = capsys.readouterr()
    return code, out.out + out.err


def test_the_answer_is_merged_and_by_shard(app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = filled(tmp_path / "s.duckdb", "a", "b")
    before = file.read_bytes()
    code, said = run(capsys, app, ALL, "--store", file)
    assert (code, "10" in said, "SHARD_ID" in said) == (0, True, False), said
    code, said = run(capsys, app, ALL, "--store", file, "--by-shard")
    merged, _, shards = said.partition("by shard")
    assert (code, "10" in merged, "SHARD_ID" in shards, "10" in shards.split()) == (0, True, True, False), said
    assert file.read_bytes() == before


def test_rows_without_shards(app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, app, ALL, "--store", filled(tmp_path / "s.duckdb", None), "--by-shard")
    assert (code, "belong to no shard" in said) == (0, True), said


def test_mistakes(app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.duckdb"
    DuckDBStore(empty).close()
    for words, expected in (
        ((ALL,), "There is no store"),
        ((ALL, "--store", empty), "has no table TradeAggregation_"),
        (("from T select *",), "only stored aggregations are read here"),
        ((ALL.replace("Trade", "Trad"),), "Did you mean 'TradeAggregation'?"),
    ):
        code, said = run(capsys, app, *words)
        assert (code > 0, expected in said, "Traceback" in said) == (True, True, False), said


def test_a_file_that_another_process_holds(app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = filled(tmp_path / "s.duckdb", "a")
    holder = subprocess.Popen(
        [sys.executable, "-c", f"import duckdb\nd = duckdb.connect({str(file)!r})\nprint('open', flush=True)\ninput()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        code, said = run(capsys, app, ALL, "--store", file)
        assert (code, "If another process has it, end that first" in said) == (1, True), said
    finally:
        holder.communicate(b"\n")
