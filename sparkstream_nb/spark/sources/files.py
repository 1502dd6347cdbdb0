"""Reads files that grow, and folders in which files appear: lines, whole texts, or parquet.

A file is known by its path and its inode, and has been read up to an offset. What stands there is written by others:
a last line without a line break is not taken until the file has been silent for a while, and neither is a file that is
read whole. A file whose inode has changed is another one; what the former one still has is read first, where it was
only renamed. One that has become shorter was emptied, and is read anew.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...mapping.decoding import Decoded, Decoder, Rejected
from ...types import Schema
from .. import ingest
from .reader import Away, Taken

BLOCK = 1 << 23
"""Bytes that are read at once."""
LONGEST_LINE = 1 << 24
SETTLED = 2
"""A file is complete when this many looks in a row found it unchanged."""
_HIDDEN = (".", "_")
_LONG_AGO = float("-inf")

Mode = Literal["line", "text.full", "parquet"]


@dataclass(frozen=True)
class FilesPlace:
    """Where a source reads: the file or folder `path`, in `mode`. `pattern` is one for the names in a folder.
    `tailing`: a file that was read may grow. `header`: the first line of a file is none. `after`: what becomes of a file that was
    read, "keep", "delete" or "move" to the folder `move_to`. `every` is the pause between two looks, in seconds."""

    path: Path
    folder: bool
    mode: Mode
    tailing: bool = True
    header: bool = False
    pattern: str = "*"
    after: Literal["keep", "delete", "move"] = "keep"
    move_to: Path | None = None
    every: float = 1.0


@dataclass(frozen=True)
class Stretch:
    """What of a file is to be read: from byte `at` to its `size`, as long as it has this `inode`."""

    inode: int
    at: int
    size: int


@dataclass
class _Seen:
    """What was seen of a file: its size at the last look, and at how many looks it was that already."""

    size: int
    looks: int = 0


@dataclass(frozen=True)
class _Done:
    """The token of what was read: the files that are through."""

    files: tuple[Path, ...] = ()


class FilesReader:
    """A `Reader` of files; `decoder` makes events of their lines or texts (None: parquet)."""

    def __init__(
        self,
        place: FilesPlace,
        schema: Schema,
        decoder: Decoder | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.place, self.schema, self._decoder, self._clock = place, schema, decoder, clock
        self._reached: dict[str, list[int]] = {}
        self._seen: dict[Path, _Seen] = {}
        self._behind: dict[str, int] = {}
        self._looked = _LONG_AGO
        self._cancelled = threading.Event()

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self._cancelled.clear()
        self._reached = {name: list(at) for name, at in reached.items()}
        self._seen, self._looked = {}, _LONG_AGO
        if not self.place.path.exists() and not self.place.path.parent.is_dir():
            raise Away(f"there is no folder {self.place.path.parent}")
        return None

    def read(self, seconds: float) -> Taken | None:
        end = self._clock() + seconds
        while True:
            left = self._looked + self.place.every - self._clock()
            if left > 0:
                rest = end - self._clock()
                if self._cancelled.wait(max(min(left, rest), 0.0)) or left > rest:
                    return None
            taken = self._look()
            if taken is not None:
                self._looked = _LONG_AGO  # there may be more
                return taken

    def _look(self) -> Taken | None:
        """The next that is there to be taken."""
        self._looked = self._clock()
        for file in self._files():
            taken = self._next(file)
            if taken is not None:
                return taken
        gone = self._vanished()
        return Taken(self._nothing(), 0, gone) if gone else None

    def kept(self, taken: Taken) -> None:
        for part, at in taken.reached.items():
            if at is None:
                self._reached.pop(part, None)
            else:
                self._reached[part] = list(at)
        token = taken.token
        if isinstance(token, _Done):
            for file in token.files:
                self._put_away(file)

    def busy(self, *, full: bool) -> None:
        pass

    def behind(self) -> Mapping[str, int]:
        return dict(self._behind)

    def close(self) -> None:
        self._seen = {}

    def cancel(self) -> None:
        self._cancelled.set()

    # ------------------------------------------------------------------------------------------------ what there is

    def _files(self) -> Iterator[Path]:
        """The files of a look, in the order of their times, or names where these are equal."""
        if not self.place.folder:
            if self.place.path.is_file():
                yield self.place.path
            return
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.place.path) as entries:
            for e in entries:
                hidden = e.name.startswith(_HIDDEN)
                if not hidden and fnmatch.fnmatchcase(e.name, self.place.pattern) and e.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        found.append((e.stat(follow_symlinks=False).st_mtime_ns, e.name))
        for _, name in sorted(found):
            yield self.place.path / name

    def _vanished(self) -> dict[str, Any]:
        """The files of the position that are not there any more."""
        if not self.place.folder:
            return {}
        gone = [n for n in self._reached if not (self.place.path / n).exists()]
        for name in gone:
            self._behind.pop(name, None)
        return dict.fromkeys(gone)

    def _settled(self, file: Path, size: int) -> bool:
        """Whether nobody writes the file any more, as far as one can see: one look counts at most each `every` s."""
        seen = self._seen.get(file)
        if seen is None or seen.size != size:
            self._seen[file] = _Seen(size)
            return False
        seen.looks += 1
        return seen.looks >= SETTLED

    # --------------------------------------------------------------------------------------------------- one file

    def _next(self, file: Path) -> Taken | None:
        """What is to be taken of a file now; None for nothing. Raises Away where it cannot be read."""
        try:
            stat = file.stat()
            inode, size = stat.st_ino, stat.st_size
            old, at, through = self._reached.get(file.name, (inode, 0, 0))
            if old != inode:
                former = self._former(file, old, at)
                if former is not None:
                    return self._lines(former, file.name, Stretch(old, at, former.stat().st_size), ended=True)
            if old != inode or at > size:
                at = through = 0
            self._behind[file.name] = 0 if through else size - at
            if through:
                return None
            if self.place.mode == "line":
                return self._lines(file, file.name, Stretch(inode, at, size))
            return self._whole(file, inode, size) if self._settled(file, size) else None
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise Away(f"{file} cannot be read: {error.strerror}") from None

    def _former(self, file: Path, inode: int, at: int) -> Path | None:
        """Where a file that was renamed when it was full (`x.log` to `x.log.1`) has something left; or None."""
        if self.place.folder or not self.place.tailing:
            return None
        with os.scandir(file.parent) as entries:
            for e in entries:
                if e.inode() == inode and e.is_file(follow_symlinks=False) and e.stat().st_size > at:
                    return file.parent / e.name
        return None

    def _lines(self, file: Path, name: str, s: Stretch, *, ended: bool = False) -> Taken | None:
        """Whole lines of a stretch of `file`; a last one without a line break where the file has `ended`."""
        if s.at == s.size:
            if self.place.tailing or not self._settled(file, s.size):
                return None
            return Taken(self._nothing(), 0, {name: [s.inode, s.size, 1]}, _Done((file,)))
        with file.open("rb") as source:
            source.seek(s.at)
            block = source.read(min(BLOCK, s.size - s.at))
            while b"\n" not in block and len(block) < min(LONGEST_LINE, s.size - s.at):
                block += source.read(BLOCK)
        end = block.rfind(b"\n") + 1
        if not end:
            if len(block) < LONGEST_LINE and not ended and not self._settled(file, s.size):
                return None
            end = len(block)
        lines = [line.removesuffix(b"\r") for line in block[:end].split(b"\n")]
        if self.place.header and s.at == 0:
            del lines[0]
        lines = [line for line in lines if line]
        self._behind[name] = s.size - s.at - end
        assert self._decoder is not None
        return Taken(self._decoder.decode(lines), len(lines), {name: [s.inode, s.at + end, 0]})

    def _whole(self, file: Path, inode: int, size: int) -> Taken:
        reached = {file.name: [inode, size, 1]}
        self._behind[file.name] = 0
        if self.place.mode == "parquet":
            return Taken(self._parquet(file), 1, reached, _Done((file,)))
        assert self._decoder is not None
        return Taken(self._decoder.decode([file.read_bytes()]), 1, reached, _Done((file,)))

    def _parquet(self, file: Path) -> Decoded:
        """The rows of a parquet file; columns that have the attributes' names."""
        try:
            table = pq.read_table(file)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            return self._refused(file, f"it is no parquet file: {error}")
        missing = [n for n in self.schema.names if n not in table.column_names]
        if missing:
            return self._refused(file, f"it has no column {missing[0]}; it has {', '.join(table.column_names)}")
        columns: list[Any] = []
        bad = np.zeros(table.num_rows, np.bool_)
        for attribute in self.schema:
            typed, failed = ingest.convert(ingest.one(table.column(attribute.name)), attribute.type)
            columns.append(typed)
            if failed is not None:
                bad |= failed
        rejected: tuple[Rejected, ...] = ()
        if bad.any():
            rows = table.select(list(self.schema.names)).filter(pa.array(bad)).to_pylist()
            rejected = tuple(Rejected(0, "its values do not fit the stream", str(row)) for row in rows)
            columns = [c.filter(pa.array(~bad)) for c in columns]
        return Decoded(columns, np.arange(len(columns[0]), dtype=np.int64), rejected)

    def _refused(self, file: Path, reason: str) -> Decoded:
        found = self._nothing()
        return Decoded(found.columns, found.message, (Rejected(0, reason, str(file)),))

    def _nothing(self) -> Decoded:
        if self._decoder is not None:
            return self._decoder.decode([])
        columns = [ingest.convert(pa.nulls(0), a.type)[0] for a in self.schema]
        return Decoded(columns, np.empty(0, np.int64), ())

    def _put_away(self, file: Path) -> None:
        """What is done with a file that is in the inbox."""
        with contextlib.suppress(FileNotFoundError):
            if self.place.after == "delete":
                file.unlink()
            elif self.place.after == "move" and self.place.move_to is not None:
                self.place.move_to.mkdir(parents=True, exist_ok=True)
                shutil.move(file, _free(self.place.move_to / file.name))


def _free(target: Path) -> Path:
    """A path that nobody has: `target`, or it with a number."""
    out, number = target, 1
    while out.exists():
        out = target.with_name(f"{target.stem}-{number}{target.suffix}")
        number += 1
    return out
