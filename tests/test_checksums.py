"""Checksums: a changed byte is told by its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.checksums import (
    BLOCK,
    add_seal,
    check_sealed,
    check_sums,
    from_json,
    is_sealed,
    read_json,
    seal,
    sums_of,
    to_json,
)
from sparkstream_nb.errors import DamagedFile

END = b"\xff\xff\xff\xff\0\0\0\0"


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 7])
def test_sealed_files(tmp_path: Path, size: int) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    data = bytes(i % 251 for i in range(size))
    one.write_bytes(data)
    assert not is_sealed(one)
    seal(one)
    other.write_bytes(add_seal(data))
    assert one.read_bytes() == other.read_bytes()
    assert is_sealed(one)
    check_sealed(one)
    check_sealed(one)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (3, "between byte 0 and byte 1,048,576"),
        (BLOCK, "between byte 1,048,576 and byte 2,097,152"),
        (-1, "its end is missing or changed"),
        (-12, "its end is changed"),
        (-30, "its end is changed"),
    ],
)
def test_a_changed_byte_of_a_sealed_file_is_told_by_its_place(tmp_path: Path, at: int, message: str) -> None:
    file = tmp_path / "f"
    data = bytearray(add_seal(bytes(BLOCK + 100)))
    file.write_bytes(data)
    check_sealed(file)
    data[at] ^= 4
    file.write_bytes(data)
    with pytest.raises(DamagedFile, match=f"the file {file} is damaged: .*{message}"):
        check_sealed(file)


@given(st.binary(min_size=1, max_size=200), st.integers(0, 400), st.integers(0, 399), st.integers(0, 7))
def test_any_change_of_a_sealed_file_is_told(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int, flip: int, bit: int
) -> None:
    file = tmp_path_factory.mktemp("f") / "f"
    whole = add_seal(data)
    changed = bytearray(whole)
    if cut < len(whole):
        changed = changed[:cut]
    else:
        changed[flip % len(whole)] ^= 1 << bit
    file.write_bytes(changed)
    with pytest.raises(DamagedFile):
        check_sealed(file)


def test_a_stream_of_an_earlier_version_is_not_checked(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"something" + END)
    check_sealed(tmp_path / "f")


def test_sums_beside_a_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(bytes(2 * BLOCK))
    sums = sums_of(file)
    check_sums(file, sums)
    file.write_bytes(bytes(2 * BLOCK - 1) + b"x")
    with pytest.raises(DamagedFile, match="between byte 1,048,576 and byte 2,097,152"):
        check_sums(file, sums)
    file.write_bytes(bytes(BLOCK))
    with pytest.raises(DamagedFile, match="its end is missing"):
        check_sums(file, sums)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        check_sums(file, sums)


def test_documents() -> None:
    members = {"a": [1, 2.5, None], "b": {"10": 1, "9": "ü"}, "c": True}
    assert from_json(to_json(members)) == members
    assert from_json(to_json({"n": {10: 1, 9: 2}}, indent=2)) == {"n": {"10": 1, "9": 2}}
    assert from_json(json.dumps(members)) == members  # of an earlier version
    with pytest.raises(ValueError, match="its checksum is another one"):
        from_json(to_json(members).replace("2.5", "2.4"))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "at line 1, character 1"),
        (b'{"batch": 1,\n "rows": {"O": }}', "at line 2, character 16"),
        (b'{"batch": 1}{"batch": 1}', "at line 1, character 13"),
        (b'{"batch": "\x89"}', "at byte 11"),
        (bytes(40), "at line 1, character 1"),
        (b"[" * 100_000, "nested too deep"),
        (b"[]", "no JSON object"),
        (b"7", "no JSON object"),
    ],
)
def test_a_changed_document_is_told_in_plain_words(tmp_path: Path, data: bytes, reason: str) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(data)
    with pytest.raises(DamagedFile, match=rf"the file {file} is damaged: not what was written.*{reason}$"):
        read_json(file)
