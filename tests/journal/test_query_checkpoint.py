"""Checkpoints of queries with anything in them: no error of Python's, and no work without bounds."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.journal.query_checkpoint import QueryCheckpoint


def snapshot() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("metadata", 'v1\n{"sstFiles":[{"dfsSstFileName":"8.sst"}]}')
    return data.getvalue()


def planned(number: int) -> bytes:
    settings = {"batchTimestampMs": 1_000 + number, "conf": {"spark.sql.shuffle.partitions": "1"}}
    return b"v1\n" + json.dumps(settings).encode() + b"\n" + json.dumps({"logOffset": number}).encode()


FILES = {
    "metadata": b'{"id":"995d9e3b-eb9b-4238-92ea-d31c43c75943"}',
    **{f"offsets/{i}": planned(i) for i in range(3)},
    **{f"commits/{i}": b'v1\n{"nextBatchWatermarkMs":0}' for i in range(3)},
    **{f"sources/0/{i}": b'v1\n{"path":"x"}' for i in range(3)},
    "state/0/_metadata/v2/0": b'v2\n{"stateSchemaFilePaths":["/_stateSchema/default/0"]}',
    "state/0/_stateSchema/default/0": b"x",
    "state/0/0/2.zip": snapshot(),
    "state/0/0/SSTs/8.sst": b"x",
    "state/0/0/3.changelog": b"x",
}
"""A checkpoint after three micro-batches, without checksums."""
HUGE = "9" * 18
ODD = [
    b"", b"\xff", b"v1\n" + b"[" * 100_000, b"v1\n{}\n" + b"9" * 5_000,
    b'v1\n{"conf":3}\n{"logOffset":' + HUGE.encode() + b"}",
]  # fmt: skip
NAMES = [
    *FILES, f"offsets/{HUGE}", f"commits/{HUGE}", f"state/0/0/{HUGE}.zip", f"state/0/{HUGE}/1.zip",
    "sources/0/x.compact",
]  # fmt: skip


def write(folder: Path, files: dict[str, bytes]) -> QueryCheckpoint:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return QueryCheckpoint(folder)


def test_a_whole_checkpoint(tmp_path: Path) -> None:
    checkpoint = write(tmp_path, FILES)
    assert checkpoint.is_there()
    assert list(checkpoint.list_damage()) == []
    assert checkpoint.unfinished_batch() is None
    assert not QueryCheckpoint(tmp_path / "state").is_there()


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("offsets/0", "commits/0", "state/0/0/2.zip")])
def test_a_file_that_is_gone_is_told(tmp_path: Path, name: str) -> None:
    """Spark removes the first entries of its logs itself, and a version may be built of the changes before it."""
    checkpoint = write(tmp_path, {other: data for other, data in FILES.items() if other != name})
    damage = " ".join(checkpoint.list_damage())
    assert str(tmp_path) in damage or (name == "commits/2" and checkpoint.unfinished_batch() == 2)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(ODD) | st.binary(max_size=60), max_size=4),
    st.sets(st.sampled_from([*FILES]), max_size=3),
)
def test_anything_may_be_in_it(
    tmp_path_factory: pytest.TempPathFactory, changed: dict[str, bytes], folders: set[str]
) -> None:
    files = {name: data for name, data in {**FILES, **changed}.items() if name not in folders}
    folder = tmp_path_factory.mktemp("query")
    for name in folders:
        (folder / name).mkdir(parents=True)
    checkpoint = write(folder, files)
    damage = list(checkpoint.list_damage())
    assert len(damage) < 40
    assert all(isinstance(sentence, str) for sentence in damage)
    checkpoint.unfinished_batch()
