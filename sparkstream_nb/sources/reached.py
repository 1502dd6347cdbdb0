"""Progress in a file, and the mark that distinguishes it from another one of its name.

A growing file keeps the bytes that were read, and one that is read whole keeps all of them. `mark` shows whether it
does: the digest of these bytes, or, of many, of their beginning, their end and samples between.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

ALL_OF_LINES = 1 << 20
"""Bytes of a file that grows up to which all that was read is compared; with more, samples are."""
_ENDS, _SAMPLES, _SAMPLE = 65_536, 64, 4_096
_BLOCK = 1 << 20
_OLD_HEAD, _OLD_WHOLE = 1_024, 65_536


@dataclass(frozen=True)
class Stretch:
    """Unread part of a file: from byte (of parquet: row group) `at` to its `size`."""

    inode: int
    at: int
    size: int
    modified_ns: int
    """When the file was changed last, in ns since 1970."""
    entry_changed_ns: int
    """When the file system changed its entry last: a program that sets `modified_ns` back cannot set this."""

    @staticmethod
    def of(file_stat: os.stat_result, at: int = 0) -> Stretch:
        return Stretch(file_stat.st_ino, at, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns)


@dataclass(frozen=True)
class FileProgress:
    """Progress in a file: `at`, as in `Stretch`; `through`: to its end, as it was `modified_ns` and `entry_changed_ns`
    last (-1: not known). `mark` distinguishes its content from another file's; a number is a mark of an earlier
    version.
    """

    inode: int
    at: int
    through: bool
    mark: int | str
    modified_ns: int
    entry_changed_ns: int = -1

    def data(self) -> list[int | str]:
        """Encode as plain data, for the journal."""
        return [self.inode, self.at, int(self.through), self.mark, self.modified_ns, self.entry_changed_ns]

    @staticmethod
    def of(data: Sequence[int | str]) -> FileProgress:
        """Decode the result of `data`."""
        inode, at, through, mark, modified_ns, *entry_changed_ns = data
        return FileProgress(int(inode), int(at), bool(through), mark, int(modified_ns), *map(int, entry_changed_ns))

    def is_unchanged(self, s: Stretch) -> bool:
        """True if the file system says that nothing was written since."""
        return self.modified_ns == s.modified_ns and self.entry_changed_ns in (-1, s.entry_changed_ns)


def mark_of(source: BinaryIO, at: int, all_of: int) -> str:
    """The mark of the first `at` bytes: of each of them, where they are `all_of` at most."""
    digest = hashlib.blake2b(str(at).encode(), digest_size=8)
    if at <= max(all_of, 2 * _ENDS + _SAMPLES * _SAMPLE):
        source.seek(0)
        left = at
        while left > 0 and (block := source.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
        return digest.hexdigest()
    between = (at - 2 * _ENDS) // _SAMPLES
    places = [(0, _ENDS), *((_ENDS + i * between, _SAMPLE) for i in range(_SAMPLES)), (at - _ENDS, _ENDS)]
    for place, size in places:
        source.seek(place)
        digest.update(source.read(min(size, at - place)))
    return digest.hexdigest()


def has_mark(source: BinaryIO, at: int, mark: int | str, all_of: int, *, grows: bool) -> bool:
    """True if the first `at` bytes still have this mark. `grows`: the file is read by lines."""
    if isinstance(mark, str):
        return mark_of(source, at, all_of) == mark
    source.seek(0)
    if grows:
        return zlib.crc32(source.read(min(at, _OLD_HEAD))) == mark
    head_crc = zlib.crc32(source.read(_OLD_WHOLE))
    source.seek(max(at - _OLD_WHOLE, 0))
    return zlib.crc32(source.read(_OLD_WHOLE), head_crc) ^ at == mark
