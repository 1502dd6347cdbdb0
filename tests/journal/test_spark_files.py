"""Files of Spark's checkpoint held against Hadoop's checksums, without Spark."""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.journal.spark_files import count_checked, is_log_entry, is_query_id, list_damaged


def put(folder: Path, name: str, data: bytes) -> tuple[Path, Path]:
    """A file with Hadoop's sums of blocks of 512 bytes beside it."""
    file, sums = folder / name, folder / f".{name}.crc"
    file.write_bytes(data)
    blocks = [data[i : i + 512] for i in range(0, len(data), 512)]
    sums.write_bytes(b"crc\0" + struct.pack(">i", 512) + b"".join(struct.pack(">I", crc32(b)) for b in blocks))
    return file, sums


@given(st.binary(min_size=1, max_size=2_000), st.integers(0, 2_000), st.integers(1, 255), st.booleans())
def test_any_change_is_told(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, place: int, mask: int, is_cut: bool
) -> None:
    folder = tmp_path_factory.mktemp("x")
    file, sums = put(folder, "5", data)
    put(folder, "6", data)
    assert list(list_damaged(folder)) == []
    assert count_checked(folder) == 2
    at = place % len(data)
    file.write_bytes(data[:at] if is_cut else data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
    ((damaged, reason),) = list_damaged(folder)
    assert damaged == file
    first = at // 512 * 512
    if not is_cut:
        assert reason == f"not what was written, between byte {first:,} and byte {min(first + 512, len(data)):,}"
    sums.unlink()
    assert list(list_damaged(folder)) == []


@pytest.mark.parametrize(
    ("text", "is_entry"),
    [
        (b'v1\n{"nextBatchWatermarkMs":0}', True),
        (b'v1\n{"batchWatermarkMs":0}\n{"seq": 3}', True),
        (b"v1\n{}\n-", True),
        (b"", False),
        (b'v1\n{"nextBatch', False),
        (b"\0" * 40, False),
        (b'\xff1\n{"a":0}', False),
        (b"v1\n7", False),
        (b"v1\n" + b"[" * 100_000, False),
    ],
)
def test_forms_of_entries(text: bytes, is_entry: bool) -> None:
    assert is_log_entry(text) is is_entry


def test_forms_of_metadata() -> None:
    assert is_query_id(b'{"id":"995d9e3b-eb9b-4238-92ea-d31c43c75943"}')
    for text in (b"", b"{}", b'{"id":1}', b"[]", b'{"id":"995d', b"\xff"):
        assert not is_query_id(text)
