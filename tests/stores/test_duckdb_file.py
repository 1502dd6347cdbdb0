"""The file of a store: whole or not there."""

from __future__ import annotations

from pathlib import Path

from sparkstream_nb.stores import DuckDBStore


def test_what_a_killed_process_left_of_a_new_file_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "store.duckdb.new").write_bytes(b"x" * 1000)
    store = DuckDBStore(tmp_path / "store.duckdb")
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".wal"] == ["store.duckdb"]
    assert (tmp_path / "store.duckdb").stat().st_mode & 0o777 == 0o600
    store.close()
