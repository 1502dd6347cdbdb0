"""Reads files that grow, and folders in which files appear: lines, whole texts, or parquet.

A file is known by its name and its inode, and has been read up to an offset. What stands there is written by others: of
a file that grows, a last line without a line break is not taken, and a file that is read whole, or has an end, has to
be unchanged for a while. A file whose inode has changed is another one; what the former one still has is read first,
where it was only renamed. One that has become shorter was emptied, and is read anew.
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
MOST_TEXT = 1 << 28
"""Bytes of a file that is one message."""
SETTLED_SECONDS = 1.0
"""A file that has an end is complete when it was not changed for so long."""
_HIDDEN = (".", "_")
_LONG_AGO = float("-inf")

Mode = Literal["line", "text.full", "parquet"]


@dataclass(frozen=True)
class FilesPlace:
    """Where a source reads: the file or folder `path`, in `mode`. `pattern` is one for the names in a folder.
    `tailing`: a file that was read may grow. `header`: the first line of a file is none. `after`: what becomes of a
    file that was read, "keep", "delete" or "move" to the folder `move_to`. `every`: the pause between two looks, in
    seconds."""

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


@dataclass(frozen=True)
class _Done:
    """The token of what was read: the files that are through."""

    files: tuple[Path, ...] = ()


class FilesReader:
    """A `Reader` of files; `decoder` makes events of their lines or texts (None: parquet). `now` is the time (s since
    1970) against which times of files are held."""

    def __init__(
        self,
        place: FilesPlace,
        schema: Schema,
        decoder: Decoder | None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.place, self.schema, self._decoder, self._now = place, schema, decoder, now
        self._reached: dict[str, list[int]] = {}
        self._behind: dict[str, int] = {}
        self._looked = _LONG_AGO
        self._cancelled = threading.Event()

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self._cancelled.clear()
        self._reached = {name: list(at) for name, at in reached.items()}
        self._looked = _LONG_AGO
        if not self.place.path.exists() and not self.place.path.parent.is_dir():
            raise Away(f"there is no folder {self.place.path.parent}")
        return None

    def read(self, seconds: float) -> Taken | None:
        end = time.monotonic() + seconds
        while True:
            if time.monotonic() >= self._looked + self.place.every:
                taken = self._look()
                if taken is not None:
                    self._looked = _LONG_AGO  # there may be more
                    return taken
            now = time.monotonic()
            if now >= end or self._cancelled.wait(min(end, self._looked + self.place.every) - now):
                return None

    def _look(self) -> Taken | None:
        """The next that is there to be taken."""
        self._looked = time.monotonic()
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
        pass

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

    def _settled(self, file: Path) -> bool:
        """Whether nobody writes the file any more, as far as one can see."""
        return self._now() - file.stat().st_mtime >= SETTLED_SECONDS

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
            if old != inode or (at > size and self.place.mode != "parquet"):
                at = through = 0
            self._behind[file.name] = 0 if through else size - at
            if through:
                self._put_away(file)  # a crash came before
                return None
            if self.place.mode == "line":
                return self._lines(file, file.name, Stretch(inode, at, size))
            if not self._settled(file):
                return None
            return self._groups(file, inode, at) if self.place.mode == "parquet" else self._whole(file, inode, size)
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
            if self.place.tailing or not self._settled(file):
                return None
            return Taken(self._nothing(), 0, {name: [s.inode, s.size, 1]}, _Done((file,)))
        with file.open("rb") as source:
            source.seek(s.at)
            block = source.read(min(BLOCK, s.size - s.at))
            while b"\n" not in block and len(block) < min(LONGEST_LINE, s.size - s.at):
                block += source.read(BLOCK)
        end = block.rfind(b"\n") + 1
        if not end:
            complete = ended or (not self.place.tailing and self._settled(file))
            if len(block) < LONGEST_LINE and not complete:
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
        """A file as one message."""
        assert self._decoder is not None
        self._behind[file.name] = 0
        through = {file.name: [inode, size, 1]}, _Done((file,))
        if size > MOST_TEXT:
            found = self._refused(file, f"it has {size:,} bytes; in mode 'text.full' {MOST_TEXT:,} are read at most")
            return Taken(found, 1, *through)
        return Taken(self._decoder.decode([file.read_bytes()]), 1, *through)

    def _groups(self, file: Path, inode: int, at: int) -> Taken:
        """The next row group of a parquet file; `at` so many were read."""
        try:
            with pq.ParquetFile(file) as parquet:
                last = max(parquet.num_row_groups - 1, 0)
                missing = [n for n in self.schema.names if n not in parquet.schema_arrow.names]
                if missing:
                    has = ", ".join(parquet.schema_arrow.names)
                    found, at = self._refused(file, f"it has no column {missing[0]}; it has {has}"), last
                else:
                    groups = [at] if at < parquet.num_row_groups else []
                    found = self._rows(parquet.read_row_groups(groups, columns=list(self.schema.names)))
        except (FileNotFoundError, PermissionError):
            raise
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            found, last = self._refused(file, f"it is no parquet file: {' '.join(str(error).split())}"), at
        through = at >= last
        if through:
            self._behind[file.name] = 0
        return Taken(found, 1, {file.name: [inode, at + 1, int(through)]}, _Done((file,) if through else ()))

    def _rows(self, table: pa.Table) -> Decoded:
        """Rows as events; those that do not fit the stream are rejected."""
        columns: list[Any] = []
        bad = np.zeros(table.num_rows, np.bool_)
        for attribute in self.schema:
            typed, failed = ingest.convert(ingest.one(table.column(attribute.name)), attribute.type)
            columns.append(typed)
            if failed is not None:
                bad |= failed
        rejected: tuple[Rejected, ...] = ()
        if bad.any():
            rows = table.filter(pa.array(bad)).to_pylist()
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
