"""Files of Spark's checkpoint, without Spark: Hadoop's checksums beside them, and the logs of micro-batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from ..json_documents import json_object

_HEAD = b"crc\0"
_NUMBER = 4
"""Bytes of a sum, and of the number of bytes that have one."""


def list_damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of a checkpoint that are not what was written, each with the reason. A file without a checksum beside
    it is not checked, and one that goes meanwhile is left out."""
    for sums in sorted(folder.rglob(".*.crc")):
        file = sums.with_name(sums.name[1 : -len(".crc")])
        try:
            reason = _compare(file.read_bytes(), sums.read_bytes())
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"it cannot be read: {error.strerror}"
        if reason is not None:
            yield file, reason


def list_unchecked(folder: Path) -> list[Path]:
    """The files of a checkpoint without a checksum beside them, if others have one: Hadoop writes them on disks."""
    files = [f for f in sorted(folder.rglob("[!.]*")) if f.is_file()]
    lone_files = [f for f in files if not f.with_name(f".{f.name}.crc").exists()]
    return lone_files if len(lone_files) < len(files) else []


def count_checked(folder: Path) -> int:
    """The number of a checkpoint's files that have a checksum beside them."""
    return sum(sums.with_name(sums.name[1 : -len(".crc")]).exists() for sums in folder.rglob(".*.crc"))


def _compare(data: bytes, sums: bytes) -> str | None:
    """The difference of a file to Hadoop's sums of it; None if there is none."""
    size = int.from_bytes(sums[len(_HEAD) : len(_HEAD) + _NUMBER])
    if not sums.startswith(_HEAD) or not size:
        return None if not sums else "its checksums cannot be read"
    body = sums[len(_HEAD) + _NUMBER :]
    if len(body) != _NUMBER * -(-len(data) // size):
        return "it was cut off, or something was added"
    for number, first in enumerate(range(0, len(data), size)):
        block = data[first : first + size]
        if crc32(block) != int.from_bytes(body[_NUMBER * number : _NUMBER * (number + 1)]):
            return f"not what was written, between byte {first:,} and byte {first + len(block):,}"
    return None


def is_log_entry(text: bytes) -> bool:
    """True for the form of an entry of Spark's logs: a version, then a line of JSON, which may be absent for a source.
    """
    try:
        version, *lines = text.decode().splitlines()
        return version.startswith("v") and version[1:].isdigit() and all(_is_json(line) for line in lines)
    except (ValueError, RecursionError):
        return False


def has_log_head(text: bytes) -> bool:
    """True for a version and a line of JSON, with which each entry of the logs of micro-batches begins; the lines after
    it are a source's own, and none of them is empty."""
    lines = text.split(b"\n")
    return all(lines) and len(lines) > 1 and is_log_entry(b"\n".join(lines[:2]))


def is_query_id(text: bytes) -> bool:
    """True for the form of a query's metadata."""
    return isinstance(json_object(text).get("id"), str)


def _is_json(line: str) -> bool:
    return line == "-" or isinstance(json.loads(line), dict)
