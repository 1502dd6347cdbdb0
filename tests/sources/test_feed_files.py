"""CSV and parquet files as feeds: what is right is read, and what is not is rejected and counted."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.ingest.feed_files import FilePart, columns_of_file, parts_of, tables_of
from sparkstream_nb.ingest.ingest import convert
from sparkstream_nb.ingest.row_typing import type_rows
from sparkstream_nb.journal import result_codec
from sparkstream_nb.runners.inline import InlineSession
from sparkstream_nb.runners.runner_protocol import Session
from sparkstream_nb.sources.feed_check import check_source
from sparkstream_nb.sources.feeds import ChunkPlace, FeedOnDisk, Shape, read_feed
from sparkstream_nb.types import Schema, Type

SCHEMA = Schema.of(("k", Type.STRING), ("v", Type.INT))
SHAPE = Shape("S", SCHEMA, None, {})

CSV: dict[str, tuple[bytes, list[list[Any]], list[str]]] = {
    "plain": (b"k,v\na,1\nb,2\n", [["a", 1], ["b", 2]], []),
    "no line break at the end, and one of Windows": (b"k,v\r\na,1\r\nb,2", [["a", 1], ["b", 2]], []),
    "too few and too many values": (
        b"k,v,w\na,1,x\nb,2\nc,3,x,y\nd,4,\n", [["a", 1], ["d", 4]],
        [
            "not a whole row: 2 values, and the header names 3: 'b,2'",
            "not a whole row: 4 values, and the header names 3: 'c,3,x,y'",
        ],
    ),
    "line breaks in quotes": (b'k,v\n"a\nb",1\n"c,d",2\n"e""f",3\n', [["a\nb", 1], ["c,d", 2], ['e"f', 3]], []),
    "a quote inside": (b'k,v\n5" disk,1\n', [['5" disk', 1]], []),
    "a quote that is not closed": (
        b'v,k\n1,a\n2,"b\n3,c\n', [["a", 1]], ["not a whole row: a quote is not closed before 'b\\n3,c\\n'"],
    ),
    "the last value in quotes": (b'v,k\n1,"a\nb"\n', [["a\nb", 1]], []),
    "semicolons": (b"k;v\na,b;1\n", [["a,b", 1]], []),
    "tabs": (b"k\tv\na b\t1\n", [["a b", 1]], []),
    "bars": (b"v|k\n1|a\n", [["a", 1]], []),
    "the mark of UTF-8": ("\ufeffk,v\nä,1\n".encode(), [["ä", 1]], []),
    "UTF-16": ("k,v\nä€,1\n".encode("utf-16"), [["ä€", 1]], []),
    "Windows-1252": ("k,v\nä€,1\n".encode("cp1252"), [["ä€", 1]], []),
    "Latin-1": ("k,v\nä,1\nö\x81,2\n".encode("latin-1"), [["ä", 1], ["ö\x81", 2]], []),
    "a damaged value in UTF-8": (
        "k,v\näöü,1\n".encode() + b"b\xff,2\nc,3\n", [["äöü", 1], ["c", 3]], ["not UTF-8 text in 'k': 'b\\\\xff'"],
    ),
    "a damaged value that is not asked for": ("k,v,w\nä,1,\n".encode() + b"b,2,\xff\n", [["ä", 1], ["b", 2]], []),
    "empty is null, and quoted empty is not": (b'k,v\n,1\n"",2\n', [[None, 1], ["", 2]], []),
    "blank lines": (b"k,v\na,1\n\n\nb,2\n", [["a", 1], ["b", 2]], []),
    "no number": (b"k,v\na,x\nb,2\n", [["b", 2]], ["v: 'x' is not an int"]),
    "spaces around a number": (b"k,v\n a , 1 \n", [[" a ", 1]], []),
    "columns in another order, one twice that is not asked for": (b"w,v,w,k\n0,1,2,a\n", [["a", 1]], []),
    "no rows": (b"k,v\n", [], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
def test_csv_by_hand(name: str, tmp_path: Path) -> None:
    content, rows, reasons = CSV[name]
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    check_source(file, SHAPE)
    found, said = [], []
    for table in tables_of(file, SHAPE.names):
        typed = type_rows(table, SCHEMA)
        found += [list(row) for row in zip(*(c.to_pylist() for c in typed.columns), strict=True)]
        said += [reason for _, _, reason in typed.rejected]
    assert (found, said) == (rows, reasons)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "a.csv is empty: its first line must name the columns."),
        (b"k,w\na,1\n", "a.csv has no column 'v' for stream S. Its columns: k, w. To feed null: columns={'v': None}."),
        (b"k,v,v\na,1,2\n", "a.csv has 2 columns 'v': rename all but one."),
    ],
)
def test_csv_that_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(SparkStreamError) as wrong:
        check_source(file, SHAPE)
    assert str(wrong.value) == said


def test_a_row_may_lie_on_two_blocks(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    long = "x" * 3_000_000
    file.write_text("k,v\n" + "".join(f'"{long}\n{i}",{i}\n' for i in range(8)))
    rows = [v for t in tables_of(file, ["v"]) for v in t.column("v").to_pylist()]
    assert rows == [str(i) for i in range(8)]


NAMES = ["my trades", "50%", "a#b", "a[1]", "ü", "a%20b", "a?b", "{a,b}", "*"]


def test_names_of_files(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.csv").write_text("k,v\na,1\nb\n")
        pq.write_table(pa.table({"k": ["a"], "v": [1]}), tmp_path / f"{name}.parquet")
        inbox = tmp_path / f"inbox {name}"
        inbox.mkdir()
        found = [
            read_feed(tmp_path / f"{name}.{s}", SHAPE, ChunkPlace(inbox, InlineSession()), None, as_it_is=False)
            for s in ("csv", "parquet")
        ]
        assert [(f.rows, f.rejected) for f in found] == [(1, 1), (1, 0)]


def test_a_parquet_folder_is_read_in_order_by_several_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "all.parquet"
    for i in range(3):
        (folder / f"k=p{i}").mkdir(parents=True)
        values = pa.table({"v": list(range(10 * i, 10 * i + 10))})
        pq.write_table(values, folder / f"k=p{i}" / "a.parquet", row_group_size=4)
    monkeypatch.setattr("sparkstream_nb.ingest.feed_files.PART_ROWS", 8)
    assert parts_of(folder) == [FilePart(0, 2), FilePart(2, 4), FilePart(4, 6), FilePart(6, 8), FilePart(8, 9)]
    assert columns_of_file(folder) == ["v", "k"]
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for limit, rows in ((None, 30), (13, 13)):
        typed = read_feed(folder, SHAPE, ChunkPlace(inbox, InlineSession()), limit)
        assert values_of(typed, inbox) == [[f"p{i // 10}", i] for i in range(rows)]


def values_of(typed: FeedOnDisk, inbox: Path) -> list[list[Any]]:
    """The rows of a feed's chunks."""
    out: list[list[Any]] = []
    for chunk in typed.chunks:
        with pa.memory_map(str(inbox / chunk.file)) as source:
            table = pa.ipc.open_file(source).read_all()
        out += [list(row)[1:] for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
    return out


AT = dt.datetime(2024, 6, 1, 10, 0, 0, 123456)
COLUMNS: dict[str, pa.Array] = {
    "s": pa.array(["a", "b"]).dictionary_encode(),
    "i": pa.array([decimal.Decimal("1.00"), decimal.Decimal("2.50")]),
    "l": pa.array([AT, AT], pa.timestamp("ns")),
    "d": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(10, 2)),
    "b": pa.array([True, None]).dictionary_encode(),
    "n": pa.array([{"x": [1]}, None]),
    "t": pa.array([1717236000, 1717236001], pa.timestamp("s", "Europe/Berlin")),
}
TYPED = Schema.of(
    ("s", Type.STRING), ("i", Type.INT), ("l", Type.LONG), ("d", Type.DOUBLE), ("b", Type.BOOL), ("n", Type.STRING),
    ("t", Type.LONG),
)  # fmt: skip


@pytest.mark.parametrize(
    "way", ["arrow", "pandas", "parquet", "parquet on one node", pytest.param("spark", marks=pytest.mark.spark)]
)
def test_types_of_columns_through_every_way_in(way: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    table = pa.table(COLUMNS)
    source: Any = table
    where: Session = InlineSession()
    if way == "pandas":
        source = table.to_pandas()
    elif way.startswith("parquet"):
        source = tmp_path / "a.parquet"
        pq.write_table(table, source)
    elif way == "spark":
        from sparkstream_nb.runners.spark.runner import SparkSessionOfApps

        spark = request.getfixturevalue("spark")
        where = SparkSessionOfApps(spark)
        pq.write_table(table, tmp_path / "a.parquet", coerce_timestamps="us", allow_truncated_timestamps=True)
        source = spark.read.parquet(str(tmp_path / "a.parquet").replace("[", r"\["))  # not a pattern
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    typed = read_feed(source, Shape("S", TYPED, None, {}), ChunkPlace(inbox, where), None, as_it_is="one" in way)
    nested = "Row(x=[1])" if way == "spark-row" else "{'x': [1]}"
    ms = 1717236000123
    (row,) = values_of(typed, inbox)
    assert row[5].replace("array", "").replace("(", "").replace(")", "") == nested
    assert [*row[:5], row[6]] == ["a", 1, ms, 1.25, True, 1717236000000]
    (error,) = result_codec.errors_of((inbox / typed.rejects[0]).read_bytes())
    assert error[3] == "i: 2.50 is not an int"


ARROW = [
    pa.array([1, None], pa.uint64()), pa.array([2**63, 1], pa.uint64()), pa.array([1.5, None]),
    pa.array(["1", "x"]), pa.array(["1", None], pa.large_string()), pa.array([b"1", b"\xff"]),
    pa.array([dt.date(2024, 1, 1), None]), pa.array([dt.time(1), None]), pa.array([dt.timedelta(1), None]),
    pa.array([[1], None]), pa.array([{"a": 1}, None]), pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array([True, None]), pa.nulls(2), pa.array([decimal.Decimal(10) ** 30, None]),
    pa.array(["a", None]).dictionary_encode(), pa.array([AT, None], pa.timestamp("ns", "UTC")),
    pa.array([float("nan"), float("inf")]), pa.array(np.array([1.0, 2.0], np.float16)),
    pa.array([b"ab", None], pa.binary(2)), pa.array(["1", None], pa.string_view()),
    pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
]  # fmt: skip


@pytest.mark.parametrize("type_", list(Type))
@pytest.mark.parametrize("array", ARROW, ids=lambda a: str(a.type))
def test_any_column_becomes_any_type_or_is_rejected(array: pa.Array, type_: Type) -> None:
    schema = Schema.of(("a", type_))
    typed = type_rows(pa.table({"a": array}), schema)
    assert len(typed) + len(typed.rejected) == 2
    assert convert(array, type_)[0] is not None
    for _, values, reason in typed.rejected:
        assert reason.startswith("a: ")
        assert len(values) == 1


def test_a_frame_without_the_columns_is_refused() -> None:
    with pytest.raises(SparkStreamError, match="The frame has no column 'k' for stream S"):
        check_source(pd.DataFrame({"x": [1]}), SHAPE)
