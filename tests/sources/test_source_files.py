"""Files as sources: what is taken of them, in which order, and where a reader goes on."""

from __future__ import annotations

import errno
import os
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.lang.parser import parse
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.plan.connectors.mappings import source_mapping
from sparkstream_nb.sources import file_source, nofollow_folder
from sparkstream_nb.sources.file_source import FilesPlace, FilesReader, Mode
from sparkstream_nb.sources.reader import SourceUnavailable
from sparkstream_nb.types import Attribute, Schema, Type

SCHEMA = Schema((Attribute("k", Type.STRING), Attribute("v", Type.INT)))


def reader_of(path: Path, mode: Mode = "line", mapping: str = "csv", **options: Any) -> FilesReader:
    app = parse(f"@source(type='file', @map(type='{mapping}')) define stream S (k string, v int);")
    annotation = app.definitions[0].annotations[0].nested[0]
    decodes = None if mode == "parquet" else decoder(source_mapping(annotation, SCHEMA), SCHEMA)
    place = FilesPlace(path, path.is_dir(), mode, **{"tailing": mode == "line", "every": 0.0, **options})
    later = time.time() + 3600
    return FilesReader(place, SCHEMA, decodes, now=lambda: later)


def rows(taken: Any) -> list[list[Any]]:
    return [list(r) for r in zip(*(c.to_pylist() for c in taken.events.columns), strict=True)]


def all_of(reader: FilesReader, refused: list[str] | None = None) -> list[list[Any]]:
    """Everything that is there, each part kept; the texts of what was rejected go to `refused`."""
    out = []
    while (taken := reader.read(0.0)) is not None:
        reader.confirm(taken, {})
        if refused is not None:
            refused += [r.text for r in taken.events.rejected]
        out += rows(taken)
    return out


def left(reader: FilesReader) -> int:
    """Bytes that are not read."""
    behind = reader.behind()
    assert behind is not None
    return sum(behind.parts.values())


@pytest.fixture
def opened() -> Callable[..., FilesReader]:
    def make(path: Path, reached: dict[str, Any] | None = None, **options: Any) -> FilesReader:
        reader = reader_of(path, **options)
        reader.open(reached or {})
        return reader

    return make


def test_a_file_that_grows(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,1\nb,2\nc")
    reader = opened(file)
    assert all_of(reader) == [["a", 1], ["b", 2]]
    with file.open("a") as f:
        f.write(",3\r\n\nd,4\n")
    assert all_of(reader) == [["c", 3], ["d", 4]]


def test_a_reader_goes_on_where_another_one_was(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,1\nb,2\n")
    taken = opened(file).read(0.0)
    assert taken is not None
    with file.open("a") as f:
        f.write("c,3\n")
    assert all_of(opened(file, taken.reached)) == [["c", 3]]


def test_what_was_not_kept_is_read_again(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,1\n")
    reader = opened(file)
    assert rows(reader.read(0.0)) == rows(reader.read(0.0)) == [["a", 1]]


def test_a_file_that_is_full_is_renamed(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    file = tmp_path / "x.log"
    file.write_text("a,1\n")
    reader = opened(file)
    assert all_of(reader) == [["a", 1]]
    with file.open("a") as f:
        f.write("b,2\nc,3")
    file.rename(tmp_path / "x.log.1")
    file.write_text("d,4\n")
    assert all_of(reader) == [["b", 2], ["c", 3], ["d", 4]]


@pytest.mark.parametrize("there", [True, False], ids=["the former is there", "the former is gone"])
@pytest.mark.parametrize(
    "suffixes", [(".3", ".2", ".1"), ("-20261123", "-20261124", "-20261125")], ids=["numbers", "dates"]
)
def test_files_that_came_and_went_while_nobody_read(
    tmp_path: Path, opened: Callable[..., FilesReader], suffixes: tuple[str, ...], there: bool
) -> None:
    def write(name: str, text: str, at: int) -> None:
        with (tmp_path / name).open("a") as f:
            f.write(text)
        os.utime(tmp_path / name, (at, at))

    write("x.log.9", "old,0\n", 5)
    write("x.log", "a,1\n", 10)
    taken = opened(tmp_path / "x.log").read(0.0)
    assert taken is not None
    former, *between = suffixes
    write("x.log", "b,2\n" if there else "", 20)
    (tmp_path / "x.log").rename(tmp_path / f"x.log{former}")
    for number, suffix in enumerate(between):
        write(f"x.log{suffix}", f"c,{number}\nd,{number}", 30 + 10 * number)
    write("x.log.1.gz", "no,1\n", 35)
    write("x.log", "e,5\n", 60)
    if not there:
        (tmp_path / f"x.log{former}").unlink()
    refused: list[str] = []
    found = all_of(opened(tmp_path / "x.log", taken.reached), refused)
    assert found == [["b", 2]] * there + [["c", 0], ["d", 0], ["c", 1], ["d", 1], ["e", 5]]
    assert refused == [str(tmp_path / "x.log.1.gz")]


def test_a_folder_that_is_away_is_told_and_not_forgotten(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    folder, aside = tmp_path / "in", tmp_path / "aside"
    folder.mkdir()
    reader = opened(folder)
    folder.rmdir()
    with pytest.raises(SourceUnavailable, match="there is no folder"):
        reader.open({})
    folder.mkdir()
    (folder / "a.csv").write_text("a,1\n")
    assert all_of(reader) == [["a", 1]]
    folder.rename(aside)
    with pytest.raises(SourceUnavailable, match="there is no folder"):
        reader.read(0.0)
    with (aside / "a.csv").open("a") as f:
        f.write("b,2\n")
    aside.rename(folder)
    assert all_of(reader) == [["b", 2]]


def test_a_file_that_was_emptied_is_read_anew(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,1\nb,2\n")
    reader = opened(file)
    assert len(all_of(reader)) == 2
    file.write_text("c,3\n")
    assert all_of(reader) == [["c", 3]]


def rewritten(file: Path, text: str) -> None:
    """Empties a file and writes it anew, as `copytruncate` does: it keeps its inode."""
    with file.open("r+") as f:
        f.truncate(0)
        f.write(text)
    os.utime(file, (50, 50))


@pytest.mark.parametrize("header", [1_100, 200_000, 3_000_000])
def test_a_file_that_was_emptied_and_begins_as_it_did(
    tmp_path: Path, opened: Callable[..., FilesReader], header: int
) -> None:
    file, same = tmp_path / "a.csv", f"{'h' * header},0\n"
    file.write_text(f"{same}a,1\nb,2\n")
    reader = opened(file)
    assert len(all_of(reader)) == 3
    rewritten(file, f"{same}c,3\nd,4\ne,5\n")
    assert [v for _, v in all_of(reader)] == [0, 3, 4, 5]


@pytest.mark.parametrize("lines", [10_000, 300_000])
def test_a_file_that_was_emptied_and_differs_in_the_middle(
    tmp_path: Path, opened: Callable[..., FilesReader], lines: int
) -> None:
    """Of many lines samples are compared: what is written anew differs nearly everywhere."""
    file, ends = tmp_path / "a.csv", "same,1\n" * 20_000
    file.write_text(ends + "a,1\n" * lines + ends)
    reader = opened(file)
    assert len(all_of(reader)) == lines + 40_000
    rewritten(file, ends + "b,1\n" * lines + ends + "c,1\n")
    assert len(all_of(reader)) == lines + 40_001


def test_a_position_of_an_earlier_version_is_gone_on_with(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,1\nb,2\n")
    stat = file.stat()
    reached = {"a.csv": [stat.st_ino, 8, 0, zlib.crc32(b"a,1\nb,2\n"), stat.st_mtime_ns]}
    assert all_of(opened(file, reached)) == []
    with file.open("a") as f:
        f.write("c,3\n")
    assert all_of(opened(file, reached)) == [["c", 3]]
    rewritten(file, "d,4\ne,5\nf,6\n")
    assert len(all_of(opened(file, reached))) == 3


def test_files_of_a_folder_come_in_the_order_of_their_times(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    for name, at in (("b.csv", 10), ("a.csv", 20), ("c.csv", 5), (".part.csv", 1), ("x.txt", 2)):
        (tmp_path / name).write_text(f"{name},1\n")
        os.utime(tmp_path / name, (at, at))
    found = all_of(opened(tmp_path, pattern=re.compile(r".*\.csv")))
    assert [k for k, _ in found] == ["c.csv", "b.csv", "a.csv"]


def test_the_position_forgets_files_that_are_gone(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    (tmp_path / "a.csv").write_text("a,1\n")
    reader = opened(tmp_path)
    assert all_of(reader) == [["a", 1]]
    (tmp_path / "a.csv").unlink()
    assert reader.read(0.0) is None
    (tmp_path / "b.csv").write_text("b,2\n")
    taken = reader.read(0.0)
    assert taken is not None
    assert taken.reached["a.csv"] is None


def test_a_name_and_an_inode_that_are_used_again(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    """Some file systems give a new file the inode of one that was just deleted."""
    file = tmp_path / "a.csv"
    for after in ("delete", "keep"):
        file.write_text("a,1\nb,2\n")
        reader = opened(tmp_path, tailing=False, after=after)
        assert len(all_of(reader)) == 2
        file.write_text("c,3\nd,44\n")
        os.utime(file, (50, 50))
        assert all_of(reader) == [["c", 3], ["d", 44]]
        assert file.exists() == (after == "keep")


def test_a_whole_file_that_is_written_anew(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    (tmp_path / "a.csv").write_text("a,1")
    reader = opened(tmp_path, mode="text.full")
    assert all_of(reader) == [["a", 1]]
    os.utime(tmp_path / "a.csv", (50, 50))
    assert all_of(reader) == []
    (tmp_path / "a.csv").write_text("b,2")
    assert all_of(reader) == [["b", 2]]


@pytest.mark.parametrize("mode", ["text.full", "parquet"])
@pytest.mark.parametrize("time", [50, None], ids=["later", "at the same time"])
def test_a_change_in_the_middle_of_a_whole_file(
    tmp_path: Path, opened: Callable[..., FilesReader], mode: Mode, time: int | None
) -> None:
    def write(middle: str) -> None:
        texts = ["a" * 150_000, middle, "c" * 150_000]
        if mode == "parquet":
            pq.write_table(pa.table({"k": texts, "v": [1, 2, 3]}), file, compression="none", write_statistics=False)
        else:
            file.write_text("".join(f"{text},1\n" for text in texts))
        if time is not None:
            os.utime(file, (time, time))

    file = tmp_path / "a"
    write("x")
    changed = file.stat().st_mtime_ns
    reader = opened(tmp_path, mode=mode)
    assert len(all_of(reader)) == 3
    write("y")
    if time is None:
        os.utime(file, ns=(changed, changed))
    assert [k for k, _ in all_of(reader)][1] == "y"
    os.utime(file, (70, 70))
    assert all_of(reader) == []


@pytest.mark.parametrize("pattern", [".*", ".*log"])
def test_files_of_a_folder_that_are_renamed(tmp_path: Path, opened: Callable[..., FilesReader], pattern: str) -> None:
    file = tmp_path / "x.log"
    file.write_text("a,1\n")
    reader = opened(tmp_path, pattern=re.compile(pattern))
    assert all_of(reader) == [["a", 1]]
    with file.open("a") as f:
        f.write("b,2\n")
    os.utime(file, (50, 50))
    file.rename(tmp_path / "x.log.1")
    file.write_text("c,3\n")
    assert all_of(reader) == [["b", 2], ["c", 3]]
    assert all_of(reader) == []


def test_one_file_in_the_way_does_not_stop_the_others(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, **_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "a.csv").write_text("a,1\n")
    (tmp_path / "b.csv").write_text("b,2\n")
    monkeypatch.setattr(os, "unlink", refuse)
    reader = opened(tmp_path, tailing=False, after="delete")
    found = []
    for _ in range(2):
        taken = reader.read(0.0)
        assert taken is not None
        reader.confirm(taken, {})
        found += rows(taken)
    assert found == [["a", 1], ["b", 2]]
    with pytest.raises(SourceUnavailable, match="was read and cannot be put away: Operation not permitted"):
        reader.read(0.0)


@pytest.mark.parametrize("after", ["delete", "move", "keep"])
def test_what_becomes_of_a_file_that_is_through(tmp_path: Path, opened: Callable[..., FilesReader], after: str) -> None:
    folder, done = tmp_path / "in", tmp_path / "done"
    folder.mkdir()
    (folder / "a.csv").write_text("a,1\nb,2")
    reader = opened(folder, tailing=False, after=after, move_to=done)
    first = reader.read(0.0)
    assert first is not None
    assert (folder / "a.csv").exists()
    reader.confirm(first, {})
    assert rows(first) + all_of(reader) == [["a", 1], ["b", 2]]
    assert (folder / "a.csv").exists() == (after == "keep")
    assert (done / "a.csv").exists() == (after == "move")
    assert all_of(reader) == []


def test_a_file_with_an_end_is_not_read_while_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"event":{"k":"a","v":1}}')
    reader = reader_of(tmp_path, "text.full", "json")
    written_at = file.stat().st_mtime
    reader._now = lambda: written_at
    reader.open({})
    assert reader.read(0.0) is None
    reader._now = lambda: written_at + 2 * file_source.SETTLED_SECONDS
    assert rows(reader.read(0.0)) == [["a", 1]]


def test_a_message_is_a_whole_file(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    (tmp_path / "a.json").write_text('[{"k":"a","v":1},\n{"k":"b","v":2}]')
    assert all_of(opened(tmp_path, mode="text.full", mapping="json")) == [["a", 1], ["b", 2]]


def test_a_header_is_no_event(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    (tmp_path / "a.csv").write_text("k,v\na,1\n")
    assert all_of(opened(tmp_path, header=True)) == [["a", 1]]


def test_parquet_is_read_by_row_groups(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    table = pa.table({"v": [1, 2, 3, 4, 5], "k": list("abcde"), "other": [0.5] * 5})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    reader = opened(tmp_path, mode="parquet")
    first = reader.read(0.0)
    assert first is not None
    assert rows(first) == [["a", 1], ["b", 2]]
    assert all_of(opened(tmp_path, first.reached, mode="parquet")) == [["c", 3], ["d", 4], ["e", 5]]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"k": ["a"]}), "it has no column v; it has k"),
        (pa.table({"k": ["a"], "v": [2**40]}), "v: 1099511627776 is not an int"),
        (None, "it is no parquet file"),
        (pa.Table.from_arrays([["a"], [1], [2]], names=["k", "v", "v"]), "it has 2 columns called v"),
        (pa.table({"k": ["a"], "v": pa.array([2**40], pa.timestamp("s"))}), "is not an int"),
        (pa.table({"k": pa.array([2**30], pa.date32()), "v": [1]}), "is not a string"),
    ],
)
def test_parquet_that_does_not_fit_is_rejected(
    tmp_path: Path, opened: Callable[..., FilesReader], table: pa.Table | None, reason: str
) -> None:
    if table is None:
        (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    else:
        pq.write_table(table, tmp_path / "a.parquet")
    reader = opened(tmp_path, mode="parquet")
    taken = reader.read(0.0)
    assert taken is not None
    assert len(taken.events) == 0
    assert reason in taken.events.rejected[0].reason
    reader.confirm(taken, {})
    assert reader.read(0.0) is None


def test_whatever_a_file_raises_is_its_own_error(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: FilesReader, table: pa.Table) -> Any:
        if table.column("k")[0].as_py() == "b":
            raise KeyError("no such thing")
        return made(self, table)

    made = FilesReader._rows
    monkeypatch.setattr(FilesReader, "_rows", fails)
    for i, name in enumerate("abc"):
        pq.write_table(pa.table({"k": [name], "v": [i]}), tmp_path / f"{name}.parquet")
        os.utime(tmp_path / f"{name}.parquet", (i, i))
    refused: list[str] = []
    assert all_of(opened(tmp_path, mode="parquet"), refused) == [["a", 0], ["c", 2]]
    assert refused == [str(tmp_path / "b.parquet")]


def test_one_row_that_python_does_not_have(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    times = pa.array([0, 2**40, 60], pa.timestamp("s"))
    pq.write_table(pa.table({"k": times, "v": [1, 2, 3]}), tmp_path / "a.parquet")
    refused: list[str] = []
    found = all_of(opened(tmp_path, mode="parquet"), refused)
    assert found == [["1970-01-01 00:00:00.000", 1], ["1970-01-01 00:01:00.000", 3]]
    assert refused == ['{"k": "<value out of range: 1099511627776000>", "v": 2}']


def test_two_columns_of_one_name_that_nobody_reads(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    table = pa.Table.from_arrays([["a"], [1], [2], [3]], names=["k", "v", "other", "other"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert all_of(opened(tmp_path, mode="parquet")) == [["a", 1]]


def test_a_text_that_is_too_long_is_rejected(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source, "MOST_TEXT", 5)
    (tmp_path / "a.csv").write_text("a,1\nb,2\n")
    taken = opened(tmp_path, mode="text.full").read(0.0)
    assert taken is not None
    assert "8 bytes" in taken.events.rejected[0].reason


def test_a_long_file_comes_in_blocks(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source, "BLOCK", 64)
    expected = [[f"key{i}", i] for i in range(500)]
    (tmp_path / "a.csv").write_text("".join(f"{k},{v}\n" for k, v in expected))
    reader = opened(tmp_path)
    first = reader.read(0.0)
    assert first is not None
    assert 0 < len(first.events) < 20
    assert left(reader) > 0
    assert all_of(reader) == expected
    assert left(reader) == 0


def test_a_line_longer_than_a_block(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source, "BLOCK", 16)
    (tmp_path / "a.csv").write_text("x" * 100 + ",1\nb,2\n")
    assert all_of(opened(tmp_path)) == [["x" * 100, 1], ["b", 2]]


def test_a_folder_that_is_missing_is_away(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="there is no folder"):
        reader_of(tmp_path / "no" / "such").open({})


def test_a_file_that_comes_later(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    reader = opened(tmp_path / "later.csv")
    assert reader.read(0.0) is None
    (tmp_path / "later.csv").write_text("a,1\n")
    assert all_of(reader) == [["a", 1]]


LINKS = ["the file", "the folder", "a folder above", "a file in the folder"]


@pytest.mark.parametrize("below", [True, False], ids=["openat", "compared"])
@pytest.mark.parametrize("what", LINKS)
def test_a_link_that_came_later_is_not_followed(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch, what: str, below: bool
) -> None:
    monkeypatch.setattr(nofollow_folder, "_BELOW", below)
    granted, outside = tmp_path / "up" / "in", tmp_path / "outside" / "in"
    for place, line in ((granted, "a,1\n"), (outside, "secret,666\n")):
        place.mkdir(parents=True)
        (place / "x.csv").write_text(line)
    reader = opened(granted / "x.csv" if what == "the file" else granted)
    assert all_of(reader) == [["a", 1]]
    replaced = {
        "the file": granted / "x.csv", "the folder": granted, "a folder above": granted.parent,
        "a file in the folder": granted / "x.csv",
    }[what]  # fmt: skip
    replaced.rename(tmp_path / "former")
    replaced.symlink_to(outside / replaced.relative_to(granted) if "file" in what else outside.parent / "in"
                        if what == "the folder" else outside.parent)
    if what == "a file in the folder":
        assert all_of(reader) == []
    else:
        with pytest.raises(SourceUnavailable, match="is a symbolic link"):
            reader.read(0.0)
    replaced.unlink()
    (tmp_path / "former").rename(replaced)
    with (granted / "x.csv").open("a") as f:
        f.write("b,2\n")
    assert all_of(reader) == [["b", 2]]


def test_a_rotated_file_that_is_a_link_is_not_read(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    (tmp_path / "x.log").write_text("a,1\n")
    os.utime(tmp_path / "x.log", (10, 10))
    reader = opened(tmp_path / "x.log")
    assert all_of(reader) == [["a", 1]]
    (tmp_path / "secret").write_text("secret,666\n")
    (tmp_path / "x.log.1").symlink_to(tmp_path / "secret")
    (tmp_path / "x.log").rename(tmp_path / "other")
    (tmp_path / "x.log").write_text("b,2\n")
    assert all_of(reader) == [["b", 2]]


def test_a_file_that_is_moved_to_another_disk(
    tmp_path: Path, opened: Callable[..., FilesReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(source: str, target: str, **places: Any) -> None:
        if source == "a.csv":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        os_rename(source, target, **places)

    os_rename = os.rename
    monkeypatch.setattr(os, "rename", rename)
    source, done = tmp_path / "in", tmp_path / "done"
    for place in (source, done):
        place.mkdir()
        (place / "a.csv").write_text("a,1\n")
    assert all_of(opened(source, tailing=False, after="move", move_to=done)) == [["a", 1]]
    assert sorted(p.name for p in done.iterdir()) == ["a-1.csv", "a.csv"]
    assert not list(source.iterdir())


def test_a_target_that_became_a_link_is_not_followed(tmp_path: Path, opened: Callable[..., FilesReader]) -> None:
    source, done, outside = tmp_path / "in", tmp_path / "done", tmp_path / "outside"
    source.mkdir()
    outside.mkdir()
    done.symlink_to(outside)
    (source / "a.csv").write_text("a,1\n")
    reader = opened(source, tailing=False, after="move", move_to=done / "deeper")
    taken = reader.read(0.0)
    assert taken is not None
    reader.confirm(taken, {})
    with pytest.raises(SourceUnavailable, match=r"cannot be put away: .*done is a symbolic link"):
        reader.read(0.0)
    assert not list(outside.iterdir())
