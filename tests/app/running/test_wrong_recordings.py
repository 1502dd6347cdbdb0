"""Files that are no recordings, damaged ones, and ones that another program wrote: each refused in one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb import cli
from sparkstream_nb.app import App, deploy
from sparkstream_nb.checksums import from_json, to_json
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.sources.recordings import RecordingFile

TEXT = """define stream S (k string, v double, n int);
define stream B (k string);
from S#window.length(3) select k, sum(v) as t insert into O;
from B select k insert into P;
"""
FIRST = 1_700_000_000_000
ROWS = 61
_MOST = 2**63 - 1


@dataclass(frozen=True)
class Recorded:
    """An app with a recording of its input: of 60 events of S and one of B."""

    app: App
    file: Path

    @property
    def table(self) -> pa.Table:
        return pq.read_table(self.file)

    def read(self, path: Path, folder: Path) -> int:
        """Reads a file as a recording; returns the number of its events."""
        recording = RecordingFile.open(path)
        folder.mkdir(exist_ok=True)
        return sum(len(feed.clocks) for feed in recording.read(self.app.runtime.schemas, folder, "x"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    app = deploy(TEXT, name="recorded", home=folder / "home", master="inline")
    n = ROWS - 1
    frame = pd.DataFrame({"k": [f"k{i % 5}" for i in range(n)], "v": [float(i) for i in range(n)], "n": range(n)})
    app.feed("S", frame.assign(at=[FIRST + 500 * i for i in range(n)]), time="at")
    app.send("B", ["x"])
    app.recording.save(folder / "good.parquet")
    yield Recorded(app, folder / "good.parquet")
    app.stop()
    app.close()


def one_sentence(error: SparkStreamError, path: Path) -> str:
    """The message without the path: one line that names the file, and none of a library's words."""
    text = str(error)
    assert "\n" not in text
    assert str(path) in text
    assert not re.search(r"Error\b|NoneType|object has no|not iterable|unpack|<class|thrift|Arrow", text), text
    return text.replace(str(path), "FILE")


# ------------------------------------------------------------------------------------------- files of another kind


def other_files(recorded: Recorded, folder: Path) -> dict[str, tuple[Path, str]]:
    """Files by what they are, with the reason of their refusal."""
    data = recorded.file.read_bytes()
    not_parquet = r"is no parquet file: a recording is made by app\.recording\.save"
    absent = r"does not exist: a recording is made by app\.recording\.save"

    def written(name: str, contents: bytes) -> Path:
        (folder / name).write_bytes(contents)
        return folder / name

    pa.csv.write_csv(recorded.table.select(["S.v"]), folder / "x.csv")
    pa.feather.write_feather(recorded.table, str(folder / "x.arrow"))
    recorded.table.to_pandas().to_json(folder / "x.jsonl", orient="records", lines=True)
    pq.write_table(pa.table({"a": [1]}), folder / "plain.parquet")
    (folder / "folder.parquet").mkdir()
    (folder / "loop.parquet").symlink_to(folder / "loop.parquet")
    (folder / "dangling.parquet").symlink_to(folder / "none")
    os.mkfifo(folder / "pipe.parquet")
    return {
        "csv": (folder / "x.csv", not_parquet),
        "csv under another name": (written("csv.parquet", (folder / "x.csv").read_bytes()), not_parquet),
        "arrow": (folder / "x.arrow", not_parquet),
        "lines of JSON": (folder / "x.jsonl", not_parquet),
        "plain parquet": (folder / "plain.parquet", r"is no recording: .* STREAM=plain\.parquet"),
        "empty": (written("empty.parquet", b""), not_parquet),
        "begin alone": (written("begin.parquet", b"PAR1" * 3), not_parquet),
        "truncated": (written("cut.parquet", data[:-100]), "is damaged: its checksum is another one"),
        "folder": (folder / "folder.parquet", not_parquet),
        "loop": (folder / "loop.parquet", absent),
        "dangling link": (folder / "dangling.parquet", absent),
        "pipe": (folder / "pipe.parquet", not_parquet),
        "device": (Path("/dev/zero"), not_parquet),
        "in a file": (recorded.file / "x", absent),
        "long name": (folder / ("x" * 300 + ".parquet"), absent),
        "absent": (folder / "none.parquet", absent),
    }


def test_files_of_another_kind(recorded: Recorded, tmp_path: Path) -> None:
    for what, (path, reason) in other_files(recorded, tmp_path).items():
        with pytest.raises(SparkStreamError, match=reason) as raised:
            recorded.read(path, tmp_path / "chunks")
        assert "\n" not in str(raised.value), what


# ------------------------------------------------------------------------------------ recordings of another's making

Change = Callable[[pa.Table], pa.Table]


def values(column: str, *changes: tuple[int, Any]) -> Change:
    """Other values in some rows of a column."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(column)
        type = pa.string() if column in ("stream", "node") else table.schema.field(place).type
        old = table[column].to_pylist()
        for row, value in changes:
            old[row] = value
        return table.set_column(place, column, pa.array(old, type))

    return change


def column(name: str, make: Callable[[pa.ChunkedArray], Any]) -> Change:
    """Another column under a name."""
    return lambda table: table.set_column(table.schema.get_field_index(name), name, make(table[name]))


def not_utf8(old: pa.ChunkedArray) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(old), pa.array([b"\xff"] * len(old), pa.binary()).buffers())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (values("timestamp", (0, None)), "row 0 has no timestamp"),
        (values("clock", (9, None)), "row 9 has no clock"),
        (values("step", (9, None)), "row 9 has no step"),
        (values("stream", (9, None)), "row 9 has no stream"),
        (values("timestamp", (7, _MOST)), "row 7 has a timestamp that no event has"),
        (values("timestamp", (7, -_MOST - 1)), "row 7 has a timestamp that no event has"),
        (values("clock", (ROWS - 1, _MOST)), f"row {ROWS - 1} has a clock that no event has"),
        (values("clock", (7, 0)), "row 7 has a clock out of order"),
        (values("step", (7, 0)), "row 7 has a step out of order"),
        (values("step", (0, -1)), "row 0 has a step out of order"),
        (values("stream", (3, "Other")), "row 3 has a stream that was not recorded"),
        (column("stream", not_utf8), "column stream has texts that are not UTF-8"),
        (column("S.k", not_utf8), r"column S\.k has texts that are not UTF-8"),
        (column("timestamp", lambda c: c.cast(pa.timestamp("ms"))), "it lacks the column timestamp of type int64"),
        (column("timestamp", lambda c: c.cast(pa.string())), "it lacks the column timestamp of type int64"),
        (column("S.v", lambda c: c.cast(pa.float32())), r"it lacks the column S\.v of type double"),
        (column("S.v", lambda c: pa.array([[1.0]] * len(c))), r"it lacks the column S\.v of type double"),
        (column("S.k", lambda c: pa.array([{"a": "b"}] * len(c))), r"it lacks the column S\.k of type string"),
        (column("S.k", lambda c: c.cast(pa.binary())), r"it lacks the column S\.k of type string"),
        (lambda t: t.append_column("S.k", t["S.k"]), r"it lacks the column S\.k of type string"),
        (lambda t: t.append_column("timestamp", t["S.k"]), "it lacks the column timestamp of type int64"),
        (lambda t: t.drop_columns(["S.n"]), r"it lacks the column S\.n of type int32"),
        (lambda t: t.drop_columns(["step"]), "it lacks the column step of type int64"),
    ],
)
def test_rows_and_columns_that_no_app_records(recorded: Recorded, tmp_path: Path, change: Change, reason: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(change(recorded.table).replace_schema_metadata(recorded.table.schema.metadata), path)
    with pytest.raises(SparkStreamError, match=f"is damaged: {reason}") as raised:
        recorded.read(path, tmp_path / "chunks")
    assert one_sentence(raised.value, path).endswith("Put it back from a copy, or record it again.")


@pytest.mark.parametrize(
    ("change", "events"),
    [
        (lambda t: t, ROWS),
        (lambda t: t.slice(0, 20), 20),
        (lambda t: t.slice(0, 0), 0),
        (column("S.v", lambda c: c.dictionary_encode()), ROWS),
        (column("S.k", lambda c: c.dictionary_encode()), ROWS),
    ],
)
def test_a_part_of_a_recording_is_one(recorded: Recorded, tmp_path: Path, change: Change, events: int) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(change(recorded.table).replace_schema_metadata(recorded.table.schema.metadata), path)
    assert recorded.read(path, tmp_path / "chunks") == events


NAMES = st.sampled_from(["S", "B", "k", "string", "object", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(part=st.sampled_from(["version", "app", "streams"]), value=JSON)
def test_descriptions_of_another_form(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory, part: str, value: Any
) -> None:
    folder = tmp_path_factory.mktemp("x")
    metadata = recorded.table.schema.metadata
    members = {**from_json(metadata[b"sparkstream"]), part: value}
    table = recorded.table.replace_schema_metadata({b"sparkstream": to_json(members).encode()})
    path = folder / "x.parquet"
    pq.write_table(table, path)
    try:
        assert recorded.read(path, folder / "chunks") <= ROWS
    except SparkStreamError as error:
        one_sentence(error, path)


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        (b"", "not what was written, at line 1, character 1"),
        (b"[]", "its app and streams are not described as in a recording"),
        (b"null", "its app and streams are not described as in a recording"),
        (b"\xff", "not what was written, at byte 0"),
        (b"[" * 100_000, "not what was written: nested too deep"),
        (b'{"version": ' + b"1" * 5_000 + b"}", "not what was written: a number of too many digits"),
    ],
)
def test_descriptions_that_are_none(recorded: Recorded, tmp_path: Path, description: bytes, reason: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(recorded.table.replace_schema_metadata({b"sparkstream": description}), path)
    with pytest.raises(SparkStreamError, match=f"is damaged: {reason}") as raised:
        recorded.read(path, tmp_path / "chunks")
    one_sentence(raised.value, path)


# --------------------------------------------------------------------------------------------------- changed bytes


@given(
    st.sampled_from(["flip", "metadata", "cut", "zeros", "insert"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 255),
    st.integers(1, 200),
)
def test_any_changed_byte_is_told_or_changes_nothing(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory, change: str, place: float, mask: int, length: int
) -> None:
    folder = tmp_path_factory.mktemp("x")
    data = bytearray(recorded.file.read_bytes())
    end_of_rows = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = end_of_rows + int(place * (len(data) - end_of_rows)) if change == "metadata" else int(place * len(data))
    if change == "cut":
        del data[at:]
    elif change == "zeros":
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif change == "insert":
        data[at:at] = bytes([mask]) * length
    else:
        data[at] ^= mask
    path = folder / "x.parquet"
    path.write_bytes(data)
    try:
        recorded.read(path, folder / "chunks")
    except SparkStreamError as error:
        one_sentence(error, path)
    else:
        assert pq.read_table(path).equals(recorded.table)


# ----------------------------------------------------------------------------------------------- ways to read them


@pytest.mark.parametrize("what", ["csv", "pipe", "truncated", "loop", "a late null", "a changed byte", "another form"])
def test_each_way_to_read_a_recording_refuses_it(
    recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    path = tmp_path / "wrong.parquet"
    if what == "a late null":
        pq.write_table(
            values("timestamp", (ROWS - 1, None))(recorded.table).replace_schema_metadata(
                recorded.table.schema.metadata
            ),
            path,
        )
    elif what == "a changed byte":
        data = bytearray(recorded.file.read_bytes())
        data[-300] ^= 1
        path.write_bytes(data)
    elif what == "another form":
        pq.write_table(recorded.table.replace_schema_metadata({b"sparkstream": b"{}"}), path)
    else:
        path, _ = other_files(recorded, tmp_path)[what]
    app = recorded.app
    for read in (
        lambda: app.feed(path),
        lambda: app.divergence(nodes=2, feed=path),
        lambda: app.study([1, 2], ["round_robin"], feed=path),
    ):
        with pytest.raises(SparkStreamError) as raised:
            read()
        one_sentence(raised.value, path)
    assert app.stats().events == ROWS
    (tmp_path / "app.siddhi").write_text(TEXT)
    siddhi, home = str(tmp_path / "app.siddhi"), str(tmp_path / "app-home")
    for command in (
        ["run", siddhi, "--master", "inline", "--home", home, "--feed", str(path)],
        ["audit", siddhi, "--feed", str(path)],
        ["divergence", siddhi, "--nodes", "2", "--feed", str(path)],
        ["study", siddhi, "--feed", str(path)],
        ["failover", siddhi, "--feed", str(path)],
        ["store", "verify", str(path)],
    ):
        capsys.readouterr()
        assert cli.main(command) != 0, command
        printed = "".join(capsys.readouterr())
        assert str(path) in printed, (command, printed)
        assert "Traceback" not in printed
