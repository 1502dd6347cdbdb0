"""Reads files that grow, and folders in which files appear: lines, whole texts, or parquet.

A file is known by its name, its inode, and a checksum of its beginning (`_mark`): inodes are used again. It has been
read up to an offset. What stands there is written by others: of a file that grows, a last line without a line break is
not taken, and a file that is read whole, or has an end, has to be unchanged for a while. A file whose inode has changed
is another one; what the former one still has is read first, where it was only renamed, and then those that came between
the two. One that has become shorter, or begins differently, was written anew, and is read anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...mapping.decoding import Decoded, Decoder, Rejected, cut
from ...mapping.values import misfit
from ...types import Attribute, Schema
from .. import ingest
from .reader import Away, Behind, Taken

BLOCK = 1 << 23
"""Bytes that are read at once."""
LONGEST_LINE = 1 << 24
MOST_TEXT = 1 << 28
"""Bytes of a file that is one message."""
SETTLED_SECONDS = 1.0
"""A file that has an end is complete when it was not changed for so long."""
_HIDDEN = (".", "_")
_LONG_AGO = float("-inf")
_HEAD, _WHOLE = 1_024, 65_536
_ROTATED = re.compile(r"[._-]\d[\d._:T-]*(?P<packed>\.(gz|bz2|xz|zst|Z))?")
"""What is added to the name of a log file that is full; it may be compressed then."""

Mode = Literal["line", "text.full", "parquet"]


@dataclass(frozen=True)
class FilesPlace:
    """Where a source reads: the file or folder `path`, in `mode`. `pattern` is one for whole names in a folder.
    `tailing`: a file that was read may grow. `header`: the first line of a file is none. `after`: what becomes of a
    file that was read, "keep", "delete" or "move" to the folder `move_to`. `every`: the pause between two looks, in
    seconds."""

    path: Path
    folder: bool
    mode: Mode
    tailing: bool = True
    header: bool = False
    pattern: re.Pattern[str] = re.compile(".*")
    after: Literal["keep", "delete", "move"] = "keep"
    move_to: Path | None = None
    every: float = 1.0


@dataclass(frozen=True)
class Stretch:
    """What of a file is to be read: from byte (of parquet: row group) `at` to its `size`."""

    inode: int
    at: int
    size: int
    changed: int
    """When the file was changed last, in ns since 1970."""

    @staticmethod
    def of(file: Path, at: int = 0) -> Stretch:
        stat = file.stat()
        return Stretch(stat.st_ino, at, stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True)
class Reached:
    """How far a file was read: `at`, as in `Stretch`; `through`: to its end, as it was `changed` last. `mark` tells its
    content from that of another file."""

    inode: int
    at: int
    through: bool
    mark: int
    changed: int

    def data(self) -> list[int]:
        """As plain data, for the journal."""
        return [self.inode, self.at, int(self.through), self.mark, self.changed]

    @staticmethod
    def of(data: Sequence[int]) -> Reached:
        inode, at, through, mark, changed = data
        return Reached(inode, at, bool(through), mark, changed)


@dataclass(frozen=True)
class _Done:
    """The token of what was read: a file that is through, as it was then."""

    file: Path
    reached: Reached


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
        self._reached: dict[str, Reached] = {}
        self._changes: dict[str, list[int] | None] = {}
        """Of the position, without an event: they go with the next one."""
        self._behind: dict[str, int] = {}
        self._left: deque[Path] = deque()
        """Of the last look at the folder."""
        self._wrong: dict[str, str] = {}
        """By name, why a file cannot be read or put away."""
        self._inodes: dict[int, str] = {}
        """The names of the files that were read by their inodes, at the last look at the folder."""
        self._scanned = self._seen = _LONG_AGO
        self._looked = _LONG_AGO
        self._cancelled = threading.Event()

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self._cancelled.clear()
        self._reached = {name: Reached.of(at) for name, at in reached.items()}
        self._looked, self._changes = _LONG_AGO, {}
        self._left.clear()
        self._check_folder()
        return None

    def _check_folder(self) -> None:
        """Raises Away where the folder is not there. What was read of its files is not forgotten for that: it may be on
        a disk that comes back."""
        folder = self.place.path if self.place.folder else self.place.path.parent
        if not folder.is_dir():
            raise Away(f"there is no folder {folder}")

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
        """The next that is there to be taken. Raises Away where nothing is, and a file is in the way."""
        self._looked = time.monotonic()
        if not self._left:
            self._check_folder()
            self._wrong, self._scanned = {}, self._looked
            self._inodes = {r.inode: name for name, r in self._reached.items()}
            self._left.extend(self._files())
        while self._left:
            taken = self._next(self._left[0])
            if taken is not None:
                return taken
            self._left.popleft()
        self._vanished()
        self._seen = self._scanned
        if self._wrong:
            raise Away("; ".join(list(self._wrong.values())[:3]))
        return None

    def kept(self, taken: Taken, refused: Mapping[int, str]) -> None:
        for part, at in taken.reached.items():
            if at is not None:
                self._reached[part] = Reached.of(at)
        if isinstance(taken.token, _Done):
            self._put_away(taken.token.file, taken.token.reached)

    def busy(self, *, full: bool) -> None:
        pass

    def behind(self) -> Behind | None:
        known = self._behind or self._seen > _LONG_AGO
        return Behind(self._seen, dict(self._behind)) if known else None

    def close(self) -> None:
        pass

    def cancel(self) -> None:
        self._cancelled.set()

    # ------------------------------------------------------------------------------------------------ what there is

    def _files(self) -> list[Path]:
        """The files that are there, in the order of their times, or names where these are equal."""
        if not self.place.folder:
            return [self.place.path] if self.place.path.is_file() else []
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.place.path) as entries:
            for e in entries:
                if self._wanted(e.name) and e.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        found.append((e.stat(follow_symlinks=False).st_mtime_ns, e.name))
        return [self.place.path / name for _, name in sorted(found)]

    def _wanted(self, name: str) -> bool:
        return not name.startswith(_HIDDEN) and self.place.pattern.fullmatch(name) is not None

    def _vanished(self) -> None:
        """Forgets the files that are not there any more."""
        if self.place.folder:
            for name in [n for n in self._reached if not (self.place.path / n).exists()]:
                self._forget(name)

    def _forget(self, name: str) -> None:
        del self._reached[name]
        self._behind.pop(name, None)
        self._changes[name] = None

    def _settled(self, file: Path) -> bool:
        """Whether nobody writes the file any more, as far as one can see."""
        return self._now() - file.stat().st_mtime >= SETTLED_SECONDS

    # --------------------------------------------------------------------------------------------------- one file

    def _next(self, file: Path) -> Taken | None:
        """What is to be taken of a file now; None for nothing."""
        try:
            s = Stretch.of(file)
            known = self._reached.get(file.name) or self._renamed(file, s)
            if known is not None and known.inode != s.inode:
                former = self._former(file, known)
                if former is not None and self.place.folder and self._wanted(former.name):
                    self._call(former.name, known)
                elif former is not None and (taken := self._rest_of(former, file.name, known)) is not None:
                    return taken
                elif (missed := self._missed(file, s, known, former)) is not None:
                    return missed
                known = None
            if known is not None and not self._same(file, s, known):
                known = None
            if known is not None and known.through:
                self._behind[file.name] = 0
                self._put_away(file, known)  # a crash came before
                return None
            s = replace(s, at=0 if known is None else known.at)
            self._behind[file.name] = s.size - s.at if self.place.mode == "line" else s.size
            if self.place.mode == "line":
                return self._lines(file, file.name, s)
            if not self._settled(file):
                return None
            return self._groups(file, s) if self.place.mode == "parquet" else self._whole(file, s)
        except FileNotFoundError:
            return None
        except OSError as error:  # others are read meanwhile
            self._wrong[file.name] = f"{file} cannot be read: {error.strerror or error}"
            return None

    def _same(self, file: Path, s: Stretch, known: Reached) -> bool:
        """Whether a file with the same name and inode is the one that was read. One that was to be put away, and was
        changed since, is another one."""
        if known.changed == s.changed:
            return True
        if self.place.mode == "line":
            written_anew = known.through and self.place.after != "keep"
            return not written_anew and s.size >= known.at and self._mark(file, known.at) == known.mark
        return self.place.after == "keep" and self._mark(file, s.size) == known.mark

    def _mark(self, file: Path, at: int) -> int:
        """A checksum of the beginning of `at` bytes that were read; of a file that is read whole of its end too."""
        with file.open("rb") as source:
            if self.place.mode == "line":
                return zlib.crc32(source.read(min(at, _HEAD)))
            found = zlib.crc32(source.read(_WHOLE))
            source.seek(max(at - _WHOLE, 0))
            return zlib.crc32(source.read(_WHOLE), found) ^ at

    def _former(self, file: Path, known: Reached) -> Path | None:
        """The file that was called `file` before, where it is in the same folder (`x.log` as `x.log.1`); or None."""
        if self.place.mode != "line" or not self.place.tailing:
            return None
        with os.scandir(file.parent) as entries:
            for e in entries:
                if e.inode() == known.inode and e.is_file(follow_symlinks=False):
                    found = file.parent / e.name
                    return found if self._mark(found, known.at) == known.mark else None
        return None

    def _renamed(self, file: Path, s: Stretch) -> Reached | None:
        """How far a file was read under another name."""
        known = self._reached.get(self._inodes.get(s.inode, ""))
        if known is None or self.place.mode != "line" or self._mark(file, known.at) != known.mark:
            return None
        self._call(file.name, known)
        return known

    def _call(self, name: str, known: Reached) -> None:
        """A file that was read is known by this name as well."""
        if name not in self._reached:
            self._reached[name] = known
            self._changes[name] = known.data()

    def _rest_of(self, former: Path, name: str, known: Reached) -> Taken | None:
        """What a renamed file still has; its last line without a line break when nobody writes it any more."""
        s = Stretch.of(former, known.at)
        return None if s.at >= s.size else self._lines(former, name, s, ended=self._settled(former))

    def _missed(self, file: Path, s: Stretch, known: Reached, former: Path | None) -> Taken | None:
        """What `file` held between the one that was read and the one that is there: each was put aside under its name
        and a number or date (`x.log.1`, `x.log-20261125`), and is newer than what was read. The oldest comes first."""
        if self.place.folder or self.place.mode != "line" or not self.place.tailing:
            return None
        after = known.changed if former is None else Stretch.of(former).changed
        found = []
        for other in file.parent.iterdir():
            suffix = _ROTATED.fullmatch(other.name.removeprefix(file.name))
            if other.name.startswith(file.name) and suffix is not None:
                stretch = Stretch.of(other)
                if after < stretch.changed and stretch.inode not in (s.inode, known.inode) and stretch.size:
                    found.append((stretch.changed, other, stretch, suffix["packed"] is not None))
        for _, other, stretch, packed in sorted(found, key=lambda f: f[:2]):
            if packed:
                refused = self._refused(other, "it was compressed before all of it was read, and is not read")
                return self._take(other, file.name, stretch, refused, end=stretch.size, through=False, received=1)
            if (taken := self._lines(other, file.name, stretch, ended=self._settled(other))) is not None:
                return taken
        return None

    def _lines(self, file: Path, name: str, s: Stretch, *, ended: bool = False) -> Taken | None:
        """Whole lines of a stretch of `file`; a last one without a line break where the file has `ended`."""
        ended = ended or (not self.place.tailing and self._settled(file))
        if s.at == s.size:
            if self.place.tailing or not ended:
                return None
            return self._take(file, name, s, self._nothing(), end=s.size, through=True, received=0)
        with file.open("rb") as source:
            source.seek(s.at)
            block = source.read(min(BLOCK, s.size - s.at))
            while b"\n" not in block and len(block) < min(LONGEST_LINE, s.size - s.at):
                block += source.read(BLOCK)
        cut = block.rfind(b"\n") + 1
        whole = s.at + len(block) == s.size and ended
        if not cut or (whole and cut < len(block)):
            if len(block) < LONGEST_LINE and not whole:
                return None
            cut = len(block)
        lines = [line.removesuffix(b"\r") for line in block[:cut].split(b"\n")]
        if self.place.header and s.at == 0:
            del lines[0]
        lines = [line for line in lines if line]
        assert self._decoder is not None
        end = s.at + cut
        through = end == s.size and ended and not self.place.tailing
        return self._take(file, name, s, self._decoder.decode(lines), end=end, through=through, received=len(lines))

    def _take(
        self, file: Path, name: str, s: Stretch, decoded: Decoded, *, end: int, through: bool, received: int
    ) -> Taken:
        """What was read of a file, up to `end`."""
        mark = self._mark(file, end if self.place.mode == "line" else s.size)
        reached = Reached(s.inode, end, through, mark, s.changed)
        changes, self._changes = {**self._changes, name: reached.data()}, {}
        return Taken(decoded, received, changes, lasting=True, token=_Done(file, reached) if through else None)

    def _whole(self, file: Path, s: Stretch) -> Taken:
        """A file as one message."""
        assert self._decoder is not None
        if s.size > MOST_TEXT:
            found = self._refused(file, f"it has {s.size:,} bytes; in mode 'text.full' {MOST_TEXT:,} are read at most")
        else:
            found = self._decoder.decode([file.read_bytes()])
        return self._take(file, file.name, s, found, end=s.size, through=True, received=1)

    def _groups(self, file: Path, s: Stretch) -> Taken:
        """The next row group of a parquet file; `s.at` so many were read."""
        at = s.at
        try:
            with pq.ParquetFile(file) as parquet:
                last = max(parquet.num_row_groups - 1, 0)
                wrong = _wrong_columns(self.schema.names, parquet.schema_arrow.names)
                if wrong is not None:
                    found, at = self._refused(file, wrong), last
                else:
                    groups = [at] if at < parquet.num_row_groups else []
                    found = self._rows(parquet.read_row_groups(groups, columns=list(self.schema.names)))
        except Exception as error:  # pyarrow raises several kinds, also OSError, for what is broken
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the file system
            broken = isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError | OSError)
            why = "it is no parquet file" if broken else f"it cannot be read: {type(error).__name__}"
            found, last = self._refused(file, f"{why}: {' '.join(str(error).split())}"), at
        return self._take(file, file.name, s, found, end=at + 1, through=at >= last, received=1)

    def _rows(self, table: pa.Table) -> Decoded:
        """Rows as events; those that do not fit the stream are rejected."""
        columns: list[Any] = []
        bad = np.zeros(table.num_rows, np.bool_)
        wrong: dict[int, Attribute] = {}
        for attribute in self.schema:
            typed, failed = ingest.convert(ingest.one(table.column(attribute.name)), attribute.type)
            columns.append(typed)
            if failed is not None:
                bad |= failed
                for i in np.flatnonzero(failed).tolist():
                    wrong.setdefault(i, attribute)
        rejected: tuple[Rejected, ...] = ()
        if bad.any():
            rows = _plain_rows(table.filter(pa.array(bad)))
            rejected = tuple(_rejected(wrong[i], row) for i, row in zip(sorted(wrong), rows, strict=True))
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

    def _put_away(self, file: Path, reached: Reached) -> None:
        """What is done with a file that is in the inbox, if it still is the one that was read."""
        if self.place.after == "keep":
            return
        try:
            stat = file.stat()
            if (stat.st_ino, stat.st_mtime_ns) != (reached.inode, reached.changed):
                return
            if self.place.after == "delete":
                file.unlink()
            elif self.place.move_to is not None:
                self.place.move_to.mkdir(parents=True, exist_ok=True)
                shutil.move(file, _free(self.place.move_to / file.name))
        except FileNotFoundError:
            pass
        except OSError as error:
            self._wrong[file.name] = f"{file} was read and cannot be put away: {error.strerror}"
            return
        if file.name in self._reached:
            self._forget(file.name)


def _free(target: Path) -> Path:
    """A path that nobody has: `target`, or it with a number."""
    out, number = target, 1
    while out.exists():
        out = target.with_name(f"{target.stem}-{number}{target.suffix}")
        number += 1
    return out


def _wrong_columns(wanted: Sequence[str], found: Sequence[str]) -> str | None:
    """Why a file with the columns `found` has not each of those `wanted`; None where it has."""
    missing = next((n for n in wanted if n not in found), None)
    if missing is not None:
        return f"it has no column {missing}; it has {', '.join(found)}"
    twice = next((n for n in wanted if found.count(n) > 1), None)
    return None if twice is None else f"it has {found.count(twice)} columns called {twice}"


def _plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python values; a value that Python does not have, as a date after the year 9999, as Arrow writes it."""
    columns = {name: ingest.python_values(table.column(name)) for name in table.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _rejected(attribute: Attribute, row: Mapping[str, Any]) -> Rejected:
    """A row of a parquet file, of which the value of one attribute does not fit, as JSON."""
    text = json.dumps(row, ensure_ascii=False, default=str)
    return Rejected(0, misfit(attribute.name, attribute.type, row[attribute.name]), cut(text))
