"""Parquet files that are damaged or odd, fed to an app: refused in one line, and the app goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError

TEXT = "define stream S (k string, v double, n int); from S#window.length(3) select k, sum(v) as t insert into O;"
ROWS = 20
TABLE = pa.table(
    {
        "k": [f"k{i % 5}" for i in range(ROWS)],
        "v": [float(i) for i in range(ROWS)],
        "n": pa.array(range(ROWS), pa.int32()),
        "at": [1_700_000_000_000 + 500 * i for i in range(ROWS)],
    }
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    from sparkstream_nb.app import deploy

    return deploy(TEXT, name="damaged", home=tmp_path_factory.mktemp("damaged") / "home", master="inline")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "s.parquet"
    pq.write_table(TABLE, path)
    return path.read_bytes()


def refusal(app: App, path: Path) -> str | None:
    """The error of a feed of a file; None if it is taken. Either way the app takes a good event then."""
    try:
        app.feed("S", path, time="at")
    except SparkStreamError as error:
        text = str(error)
        assert "\n" not in text
        assert path.name in text
        return text
    finally:
        app.send("S", ["x", 1.0, 1])
        app.flush()
    return None


CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3)


@given(st.booleans(), CHANGES)
def test_changed_bytes_do_not_stop_an_app(
    app: App,
    whole: bytes,
    tmp_path_factory: pytest.TempPathFactory,
    in_metadata: bool,
    changes: list[tuple[float, int]],
) -> None:
    data = bytearray(whole)
    first = len(data) - 8 - int.from_bytes(data[-8:-4], "little") if in_metadata else 0
    for place, value in changes:
        data[first + int(place * (len(data) - first))] = value
    path = tmp_path_factory.mktemp("x") / "s.parquet"
    path.write_bytes(data)
    refusal(app, path)


def test_a_damaged_column_is_refused_at_once(app: App, whole: bytes, tmp_path: Path) -> None:
    """The column of times is whole: the file would enter the inbox as it is, and stop the nodes."""
    chunk = pq.ParquetFile(pa.BufferReader(whole)).metadata.row_group(0).column(0)
    data = bytearray(whole)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    data[begin : begin + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    (tmp_path / "s.parquet").write_bytes(data)
    assert re.match(r"s\.parquet cannot be read as parquet: ", refusal(app, tmp_path / "s.parquet") or "")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: pq.write_table(TABLE.append_column("k", TABLE["k"]), p), "s.parquet has 2 columns 'k': rename all"),
        (lambda p: pq.write_table(TABLE.append_column("z", TABLE["k"]).append_column("z", TABLE["k"]), p), "'z'"),
        (_pipe, "is a pipe or a device: name a file."),
        (lambda p: p.symlink_to("/dev/zero"), "is a pipe or a device: name a file."),
        (lambda p: p.symlink_to(p), "cannot be read: Too many levels of symbolic links."),
        (lambda p: p.symlink_to(p.parent / "none"), "file not found: FILE"),
        (lambda p: p.write_bytes(b"\0" * 5_000), "s.parquet is not a parquet file, or it is not complete."),
    ],
)
def test_odd_files(app: App, tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "s.parquet"
    make(path)
    assert message in (refusal(app, path) or "").replace(str(path), "FILE")


def test_times_beyond_pythons_are_values_of_rejected_rows(app: App, tmp_path: Path) -> None:
    odd = pa.array([2**62] * ROWS, pa.timestamp("us"))
    pq.write_table(TABLE.set_column(1, "v", odd), tmp_path / "s.parquet")
    report = app.feed("S", tmp_path / "s.parquet", time="at")
    assert report.rejected == ROWS  # type: ignore[union-attr]
