"""The file of a store: whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sparkstream_nb.errors import DamagedFile
from sparkstream_nb.stores import DuckDBStore, ErrorRow
from sparkstream_nb.stores.duckdb import forget_aggregations
from sparkstream_nb.stores.duckdb_blocks import check_blocks
from sparkstream_nb.stores.store_protocol import BatchKey


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """What a process makes may be read by all, unless it says otherwise."""
    former = os.umask(0o022)
    yield
    os.umask(former)


def test_what_a_killed_process_left_of_a_new_file_goes_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mark = "0123456789abcdef"
    left = [f".store.duckdb.sparkstream-{ended.pid}-{mark}.new{end}" for end in ("", ".wal")]
    others = [
        "store.duckdb.new",  # a person's
        f".store.duckdb.sparkstream-{os.getpid()}-{mark}.new",  # being made
        f".store.duckdb.sparkstream-{ended.pid}-{mark}.new.copy",
        f".other.duckdb.sparkstream-{ended.pid}-{mark}.new",
    ]
    for name in (*left, *others):
        (tmp_path / name).write_bytes(b"x" * 1000)
    store = DuckDBStore(tmp_path / "store.duckdb")
    assert {p.name for p in tmp_path.iterdir() if p.suffix != ".wal"} == {"store.duckdb", *others}
    assert all((tmp_path / name).read_bytes() == b"x" * 1000 for name in others)
    assert (tmp_path / "store.duckdb").stat().st_mode & 0o777 == 0o600
    store.close()


def test_the_files_of_an_open_store_are_the_owners_alone(tmp_path: Path, open_to_all: None) -> None:
    def modes() -> set[int]:
        return {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()}

    store = DuckDBStore(tmp_path / "store.duckdb")
    assert {p.name for p in tmp_path.iterdir()} == {"store.duckdb", "store.duckdb.wal"}
    assert modes() == {0o600}
    store.commit(BatchKey("a", "run", 0), {})
    assert modes() == {0o600}
    store._db.execute("CHECKPOINT")  # it removes the log, as DuckDB does by itself after many events
    store.commit(BatchKey("a", "run", 1), {})
    assert (tmp_path / "store.duckdb.wal").stat().st_size > 0
    assert modes() == {0o600}
    store.close()
    forget_aggregations(tmp_path / "store.duckdb", ("a", "run", 2), ["A"])
    assert [p.name for p in tmp_path.iterdir()] == ["store.duckdb"]


def test_a_log_in_which_nothing_is_yet_does_no_harm(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    store.commit(BatchKey("a", "run", 0), {})
    store.close()
    (tmp_path / "store.duckdb.wal").touch()
    for read_only in (True, False):
        store = DuckDBStore(tmp_path / "store.duckdb", read_only=read_only)
        assert store.last_committed("a", "run") == 0
        store.close()


def test_errors_of_an_old_file_get_numbers_and_may_have_no_time(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with duckdb.connect(str(path)) as old:
        columns = 'app VARCHAR NOT NULL, stream VARCHAR NOT NULL, ts BIGINT NOT NULL, "values" VARCHAR NOT NULL'
        old.execute(f"CREATE TABLE SPARKSTREAM_ERRORS ({columns}, reason VARCHAR NOT NULL)")
        old.execute("INSERT INTO SPARKSTREAM_ERRORS VALUES ('app', 'S', 5, '[1]', 'old')")
    for batch in range(2):  # the second time, nothing is left to change
        store = DuckDBStore(path)
        assert store.commit(BatchKey("app", "run", batch), {}, [ErrorRow("S", None, [2], "new")])
        store.close()
    with duckdb.connect(str(path)) as found:
        rows = found.execute("SELECT ts, reason, id FROM SPARKSTREAM_ERRORS ORDER BY id").fetchall()
    assert [row[:2] for row in rows] == [(5, "old"), (None, "new"), (None, "new")]
    assert len({row[2] for row in rows}) == 3


def test_a_new_file_is_not_changed_when_it_is_opened_again(tmp_path: Path) -> None:
    """DuckDB 1 cannot open a file again whose process was killed after it changed a table with numbers."""
    path = tmp_path / "store.duckdb"
    DuckDBStore(path).close()
    before = path.read_bytes()
    store = DuckDBStore(path)
    assert (tmp_path / "store.duckdb.wal").read_bytes() == b""
    store.close()
    assert path.read_bytes() == before


def test_each_block_that_is_in_use_is_checked_and_no_other(tmp_path: Path) -> None:
    """Those of an index too, which DuckDB does not read where a table is; a free block may be anything."""
    path = tmp_path / "store.duckdb"
    database = duckdb.connect(str(path))
    database.execute("CREATE TABLE t AS SELECT i, md5(i::varchar) s FROM range(100000) r(i)")
    database.execute("CHECKPOINT")
    database.execute("CREATE TABLE kept (a BIGINT PRIMARY KEY)")
    database.execute("INSERT INTO kept VALUES (1), (2)")
    database.execute("DROP TABLE t")
    database.execute("CHECKPOINT")
    *_, free = database.execute("PRAGMA database_size").fetchall()[0][2:6]
    database.close()
    check_blocks(path)
    data = path.read_bytes()
    told = []
    blocks = range(3 * 4096, len(data), 262_144)
    for first in blocks:
        at = first + 100_000
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            check_blocks(path)
        except DamagedFile as error:
            told.append(f"between byte {first:,} and byte {first + 262_144:,}" in str(error))
    assert free > 0
    assert told == [True] * (len(blocks) - free)
