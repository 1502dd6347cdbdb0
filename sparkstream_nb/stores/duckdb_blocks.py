"""The checksums of a DuckDB file, block by block, without DuckDB.

DuckDB checks a block when it reads it, and it reads the blocks of an index only where a change needs them. Here each
block that is in use is read (DuckDB's documentation, "Internals: Storage Versions and Format"). A file that is made in
another way, such as an encrypted one, is not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import DamagedFile

_HEADER = 4096
"""Bytes of each of the three headers at the beginning."""
_BLOCK = 262_144
"""Bytes of a block, its sum among them: DuckDB's default, which all our stores have."""
_SUM = 8
_META_BLOCKS = 64
"""Parts into which a block of metadata is divided."""
_META = (_BLOCK - _SUM) // _META_BLOCKS // 8 * 8
_NONE = (1 << 64) - 1


def check_blocks(path: Path) -> None:
    """Raise DamagedFile, with the place, if a block of a DuckDB file is not what was written."""
    with path.open("rb") as file:
        headers = [file.read(_HEADER) for _ in range(3)]
        if headers[0][_SUM:][:4] != b"DUCK" or not all(map(_is_whole, headers)):
            return  # DuckDB tells of its headers when it opens the file
        iterations = [struct.unpack_from("<5Q", header, _SUM) for header in headers[1:]]
        _, _, free_list, count, size = max(iterations)
        if size != _BLOCK:
            return
        free = set(_read_free_list(file, free_list, count))
        for number in range(count):
            if number not in free and not _is_whole(_read_block(file, number)):
                first = 3 * _HEADER + number * _BLOCK
                raise DamagedFile(path, f"not what was written, between byte {first:,} and byte {first + _BLOCK:,}")


def _is_whole(block: bytes) -> bool:
    """True if a block, which begins with its sum, is what was written."""
    words = np.frombuffer(block[: len(block) // 8 * 8], "<u8")
    if not len(words):
        return False
    with np.errstate(over="ignore"):
        sum = np.bitwise_xor.reduce(words[1:] * np.uint64(0xBF58476D1CE4E5B9)) ^ np.uint64(5381)
    return bool(sum == words[0])


def _read_block(file: BinaryIO, number: int) -> bytes:
    file.seek(3 * _HEADER + number * _BLOCK)
    return file.read(_BLOCK)


def _read_free_list(file: BinaryIO, pointer: int, count: int) -> Iterator[int]:
    """The numbers of the blocks that hold nothing, from the chain of metadata that begins at `pointer`."""
    data, seen = b"", set[int]()
    while pointer != _NONE and pointer not in seen:
        seen.add(pointer)
        number, part = pointer & (1 << 56) - 1, pointer >> 56
        block = _read_block(file, number)[_SUM:] if number < count else b""
        content = block[part * _META : (part + 1) * _META]
        if len(content) < _META:
            return
        pointer = int.from_bytes(content[:8], "little")
        data += content[8:]
        if len(data) >= 8 * (1 + int.from_bytes(data[:8], "little")):
            break
    if data:
        length = min(int.from_bytes(data[:8], "little"), len(data) // 8 - 1)
        yield from struct.unpack_from(f"<{length}Q", data, 8)
