"""Checksums of the files that an app writes: CRC-32 of blocks of a mebibyte, so that damage is told by its place.

A file that may have something after its end, such as an Arrow stream, is sealed: the sums follow its contents. Of other
files the sums are kept beside the name, a JSON document has its own among its members, and a parquet file one sum in
its metadata. Files of earlier versions have none, and are not checked.
"""

from __future__ import annotations

import json
import mmap
import struct
from array import array
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from .errors import DamagedFile

BLOCK = 1 << 20
"""Bytes of a block."""
_MAGIC = b"SSNB-SUM"
_END = struct.Struct("<QII8s")
"""The last bytes of a sealed file: length of its contents, their number of blocks, sum of the sums, magic number."""
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
"""The last bytes of an Arrow stream."""
_SUM = "checksum"
_MOST_KNOWN = 10_000
_checked_files: OrderedDict[tuple[str, int, int, int, str], None] = OrderedDict()
"""Files that this process has checked, as they were."""


def sums_of(path: Path) -> str:
    """The sums of a file: hexadecimal, eight digits for each block."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(BLOCK), b"")
        return "".join(f"{crc32(block):08x}" for block in blocks)


def check_sums(path: Path, sums: str) -> None:
    """Raise DamagedFile if a file does not have these sums, and FileNotFoundError if it does not exist. A file that
    this process has checked is read again only if its time or size changed.
    """
    key = _identity(path, sums)
    if key in _checked_files:
        return
    now = sums_of(path)
    if now != sums:
        if len(now) < len(sums):
            raise DamagedFile(path, "its end is missing")
        first = next((i for i in range(0, len(sums), 8) if now[i : i + 8] != sums[i : i + 8]), len(sums)) // 8
        raise DamagedFile(path, _describe_place(first))
    _note(key)


def seal(path: Path) -> None:
    """Append the sums to a file, which must not be sealed yet."""
    sums, length = array("I"), 0
    with path.open("r+b") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            sums.append(crc32(block))
            length += len(block)
        file.write(_trailer(sums, length))


def add_seal(data: bytes) -> bytes:
    """`data` with its sums."""
    sums = array("I", (crc32(data[i : i + BLOCK]) for i in range(0, len(data), BLOCK)))
    return data + _trailer(sums, len(data))


def _trailer(sums: array[int], length: int) -> bytes:
    text = sums.tobytes()
    return text + _END.pack(length, len(sums), crc32(text, length & 0xFFFFFFFF), _MAGIC)


def is_sealed(path: Path) -> bool:
    """True if the file ends as a sealed one does."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - len(_MAGIC)))
        return file.read() == _MAGIC


def check_sealed(path: Path) -> None:
    """Raise DamagedFile if a sealed file is not as it was written, and FileNotFoundError if it does not exist. An Arrow
    stream of an earlier version, without sums, is not checked.
    """
    key = _identity(path, "")
    if key in _checked_files:
        return
    with path.open("rb") as file:
        if not key[2]:
            raise DamagedFile(path, "it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _check_data(path, data)
    _note(key)


def _check_data(path: Path, data: mmap.mmap) -> None:
    size = len(data)
    if data[-8:] != _MAGIC:
        if data[-8:] != _END_OF_STREAM:
            raise DamagedFile(path, "its end is missing or changed")
        return
    length, count, sum, _ = _END.unpack(data[size - _END.size :])
    text = data[length : size - _END.size]
    if len(text) != 4 * count or crc32(text, length & 0xFFFFFFFF) != sum:
        raise DamagedFile(path, "its end is changed, or something inside is missing")
    for number, sum_of_block in enumerate(array("I", text)):
        first = number * BLOCK
        if crc32(data[first : min(first + BLOCK, length)]) != sum_of_block:
            raise DamagedFile(path, _describe_place(number))


_MOST_METADATA = 64 << 20
"""Bytes at the end of a parquet file in which its metadata are."""
NO_SUM = b"--------"
"""The place of a file's own sum, before that is computed."""


def put_sum(path: Path, marker: bytes) -> None:
    """Write the sum of a file in place of the `NO_SUM` that follows `marker` in it."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        place = data.rfind(marker + NO_SUM) + len(marker)
        assert place >= len(marker), f"no place for the sum of {path}"
        data[place : place + len(NO_SUM)] = _sum_around(data, place)


def check_sum(path: Path, marker: bytes) -> None:
    """Raise DamagedFile if a file of `put_sum` is not as it was written, and OSError if it cannot be read. A file
    without `marker` near its end is not checked.
    """
    key = _identity(path, marker.hex())
    if key in _checked_files or not key[2]:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start = data.rfind(marker, max(0, len(data) - _MOST_METADATA))
        place = start + len(marker)
        if start >= 0 and data[place : place + len(NO_SUM)] != _sum_around(data, place):
            raise DamagedFile(path, "its checksum is another one")
    _note(key)


def _sum_around(data: mmap.mmap, place: int) -> bytes:
    """The sum of a file, as if it had `NO_SUM` at `place`."""
    sum = 0
    for first, end in ((0, place), (place + len(NO_SUM), len(data))):
        for at in range(first, end, BLOCK):
            sum = crc32(data[at : min(at + BLOCK, end)], sum)
        sum = crc32(NO_SUM, sum) if first == 0 else sum
    return f"{sum:08x}".encode()


def _describe_place(block: int) -> str:
    first = block * BLOCK
    return f"not what was written, between byte {first:,} and byte {first + BLOCK:,}"


def _identity(path: Path, sums: str) -> tuple[str, int, int, int, str]:
    stat = path.stat()
    return str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, sums


def _note(key: tuple[str, int, int, int, str]) -> None:
    _checked_files[key] = None
    while len(_checked_files) > _MOST_KNOWN:
        _checked_files.popitem(last=False)


class NestedTooDeep(ValueError):
    """A JSON document that Python cannot read for its depth: nothing of an app's is nested so."""


def to_json(members: Mapping[str, Any], indent: int | None = None) -> str:
    """A JSON document with its sum. `members` have names that are texts."""
    read = json.loads(json.dumps(members))  # as `from_json` meets them: names in dicts inside may be numbers
    return json.dumps({**read, _SUM: _sum_of_members(read)}, indent=indent)


def from_json(text: str | bytes) -> Any:
    """The members of a document of `to_json`, or of an earlier version, without a sum. Raises ValueError, with the
    place in words, if it is changed, `NestedTooDeep` if it never was one.
    """
    try:
        members = json.loads(text.decode() if isinstance(text, bytes) else text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not what was written, at line {error.lineno:,}, character {error.colno:,}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not what was written, at byte {error.start:,}") from None
    except RecursionError:
        raise NestedTooDeep("not what was written: nested too deep") from None
    except ValueError:  # more digits than Python reads
        raise ValueError("not what was written: a number of too many digits") from None
    if not isinstance(members, dict) or not members:
        return members
    if _SUM in members:
        if members.pop(_SUM) != _sum_of_members(members):
            raise ValueError("its checksum is another one")
        return members
    *others, last = members
    sum = members[last]
    if isinstance(sum, str) and sum == _sum_of_members({name: members[name] for name in others}):
        raise ValueError("the name of its checksum is another one")
    return members


def read_json(path: Path) -> dict[str, Any]:
    """The members of a file of `to_json`. Raises FileNotFoundError, and DamagedFile if it is changed."""
    try:
        members = from_json(path.read_bytes())
    except ValueError as error:
        raise DamagedFile(path, str(error)) from None
    if not isinstance(members, dict):
        raise DamagedFile(path, "not what was written: no JSON object")
    return members


def _sum_of_members(members: Mapping[str, Any]) -> str:
    return f"{crc32(json.dumps(members, sort_keys=True, separators=(',', ':')).encode()):08x}"
