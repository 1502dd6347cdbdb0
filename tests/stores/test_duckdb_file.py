"""The file of a store: whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sparkstream_nb.stores import DuckDBStore


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
