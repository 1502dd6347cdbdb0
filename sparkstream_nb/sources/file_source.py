"""Reads files that grow, and folders in which files appear: lines, whole texts, or parquet.

A file is known by its name, its inode, and a digest of the bytes that were read (`reached.py`): inodes are used again.
It has been read up to an offset. Files are written by others: of a file that grows, a last line without a line break is
not taken, and a file that is read whole, or has an end, has to be unchanged for a while. A file whose inode has changed
is another one; the rest of the former one is read first, if it was only renamed, and then the files that came between
the two. A file that has become shorter, or whose bytes before the offset have changed, was rewritten, and is read
again. No link is followed (`nofollow_folder.py`).
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..ingest import ingest
from ..mapping.attribute_values import misfit
from ..mapping.decoding import Decoded, Decoder, RejectedMessage, cut
from ..types import Attribute, Schema
from .nofollow_folder import Folder, Linked
from .reached import ALL_OF_LINES, FileProgress, Stretch, has_mark, mark_of
from .reader import Behind, ReadMessages, SourceUnavailable

BLOCK = 1 << 23
"""Bytes that are read at once."""
LONGEST_LINE = 1 << 24
MOST_TEXT = 1 << 28
"""Bytes of a file that is one message."""
SETTLED_SECONDS = 1.0
"""Seconds without a change after which a file that has an end is complete."""
_HIDDEN = (".", "_")
_LONG_AGO = float("-inf")
_ROTATED = re.compile(r"[._-]\d[\d._:T-]*(?P<packed>\.(gz|bz2|xz|zst|Z))?")
"""Suffix of the name of a log file that is full; it may be compressed then."""

Mode = Literal["line", "text.full", "parquet"]


@dataclass(frozen=True)
class FilesPlace:
    """Place of a file source: the file or folder `path`, without links, in `mode`. `pattern` is one for whole names in
    a folder. `tailing`: a file that was read may grow. `header`: the first line of a file is not an event. `after`:
    fate of a file that was read, "keep", "delete" or "move" to the folder `move_to`. `every`: the pause between two
    looks, in seconds.
    """

    path: Path
    folder: bool
    mode: Mode
    tailing: bool = True
    header: bool = False
    pattern: re.Pattern[str] = re.compile(".*", re.DOTALL)
    after: Literal["keep", "delete", "move"] = "keep"
    move_to: Path | None = None
    every: float = 1.0


@dataclass(frozen=True)
class _Done:
    """Token of the messages read: a file that is read to its end, with its progress at that time."""

    name: str
    reached: FileProgress


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
        self._reached: dict[str, FileProgress] = {}
        self._changes: dict[str, list[int | str] | None] = {}
        """Changes of the position without an event: they go with the next one."""
        self._behind: dict[str, int] = {}
        self._left: deque[str] = deque()
        """Files left from the last look at the folder."""
        self._here: Folder
        """The folder of the files, open during a look."""
        self._wrong: dict[str, str] = {}
        """By name, why a file cannot be read or put away."""
        self._inodes: dict[int, str] = {}
        """The names of the files that were read by their inodes, at the last look at the folder."""
        self._scanned = self._seen = _LONG_AGO
        self._looked = _LONG_AGO
        self._cancelled = threading.Event()

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self._cancelled.clear()
        self._reached = {name: FileProgress.of(at) for name, at in reached.items()}
        self._looked, self._changes = _LONG_AGO, {}
        self._left.clear()
        with self._open_folder():
            return None

    def _open_folder(self) -> Folder:
        """The folder of the files. Raises SourceUnavailable if it does not exist. Progress of its files is not
        forgotten then: it may be on a disk that comes back.
        """
        return Folder(self.place.path if self.place.folder else self.place.path.parent)

    def read(self, seconds: float) -> ReadMessages | None:
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

    def _look(self) -> ReadMessages | None:
        """The next that is there to be taken. Raises SourceUnavailable if nothing is, and a file is in the way."""
        self._looked = time.monotonic()
        with self._open_folder() as self._here:
            return self._look_here()

    def _look_here(self) -> ReadMessages | None:
        if not self._left:
            self._wrong, self._scanned = {}, self._looked
            self._inodes = {r.inode: name for name, r in self._reached.items()}
            self._left.extend(self._files())
        while self._left:
            taken = self._next(self._left[0])
            if taken is not None:
                return taken
            self._left.popleft()
        self._forget_vanished()
        self._seen = self._scanned
        if self._wrong:
            raise SourceUnavailable("; ".join(list(self._wrong.values())[:3]))
        return None

    def kept(self, taken: ReadMessages, refused: Mapping[int, str]) -> None:
        for part, at in taken.reached.items():
            if at is not None:
                self._reached[part] = FileProgress.of(at)
        if isinstance(taken.token, _Done):
            with self._open_folder() as self._here:
                self._put_away(taken.token.name, taken.token.reached)

    def busy(self, *, full: bool) -> None:
        pass

    def behind(self) -> Behind | None:
        known = self._behind or self._seen > _LONG_AGO
        return Behind(self._seen, dict(self._behind)) if known else None

    def close(self) -> None:
        pass

    def cancel(self) -> None:
        self._cancelled.set()

    # ------------------------------------------------------------------------------------------------ files present

    def _files(self) -> list[str]:
        """The names of the files that are there, in the order of their times, or names where these are equal."""
        if not self.place.folder:
            name = self.place.path.name
            try:
                self._here.stat(name)
            except FileNotFoundError:
                return []
            except Linked as error:
                self._wrong[name] = str(error)
                return []
            return [name]
        found = []
        for e in self._here.entries():
            if self._is_wanted(e.name) and e.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    found.append((e.stat(follow_symlinks=False).st_mtime_ns, e.name))
        return [name for _, name in sorted(found)]

    def _is_wanted(self, name: str) -> bool:
        return not name.startswith(_HIDDEN) and self.place.pattern.fullmatch(name) is not None

    def _forget_vanished(self) -> None:
        """Forgets the files that are not there any more."""
        if self.place.folder:
            for name in list(self._reached):
                try:
                    self._here.stat(name)
                except FileNotFoundError:
                    self._forget(name)
                except OSError:
                    pass  # there is something else by this name, for now

    def _forget(self, name: str) -> None:
        del self._reached[name]
        self._behind.pop(name, None)
        self._changes[name] = None

    def _is_settled(self, changed: int) -> bool:
        """True if a file that was changed then (ns) is probably no longer being written."""
        return self._now() - changed / 1e9 >= SETTLED_SECONDS

    # --------------------------------------------------------------------------------------------------- one file

    def _next(self, name: str) -> ReadMessages | None:
        """Messages to take from a file now; None if there are none."""
        try:
            return self._next_of(name)
        except FileNotFoundError:
            return None
        except Linked as error:
            self._wrong[name] = str(error)
        except OSError as error:  # others are read meanwhile
            self._wrong[name] = f"{self._path(name)} cannot be read: {error.strerror or error}"
        return None

    def _next_of(self, name: str) -> ReadMessages | None:
        s = Stretch.of(self._here.stat(name))
        known = self._reached.get(name) or self._find_renamed(name, s)
        if known is not None and known.inode != s.inode:
            former = self._former(known)
            if former is not None and self.place.folder and self._is_wanted(former):
                self._call(former, known)
            elif former is not None and (taken := self._rest_of(former, name, known)) is not None:
                return taken
            elif (missed := self._read_missed(name, s, known, former)) is not None:
                return missed
            known = None
        if known is not None and not self._same(name, s, known):
            known = None
        if known is not None and known.through:
            self._behind[name] = 0
            self._put_away(name, known)  # a crash came before
            return None
        s = replace(s, at=0 if known is None else known.at)
        self._behind[name] = s.size - s.at if self.place.mode == "line" else s.size
        if self.place.mode == "line":
            return self._lines(name, name, s)
        if not self._is_settled(s.changed):
            return None
        return self._groups(name, s, known) if self.place.mode == "parquet" else self._whole(name, s)

    def _path(self, name: str) -> Path:
        return self._here.path / name

    def _same(self, name: str, s: Stretch, known: FileProgress) -> bool:
        """True if a file with the same name and inode is the one that was read. One that was to be put away, and was
        changed since, is another one."""
        keeps = self.place.after == "keep"
        if known.is_unchanged(s) or (known.changed == s.changed and not keeps):
            return True
        if self.place.mode == "line":
            written_anew = known.through and not keeps
            return not written_anew and s.size >= known.at and self._has_mark(name, known.at, known.mark)
        if not keeps or not self._has_mark(name, s.size, known.mark):
            return False
        self._reached[name] = known = replace(known, changed=s.changed, touched=s.touched)
        self._changes[name] = known.data()  # it is not compared at each look
        return True

    @property
    def _compared_bytes(self) -> int:
        """Bytes up to which all that was read of a file is compared."""
        return ALL_OF_LINES if self.place.mode == "line" else MOST_TEXT

    def _mark(self, name: str, at: int) -> str:
        with self._here.open(name) as source:
            return mark_of(source, at, self._compared_bytes)

    def _has_mark(self, name: str, at: int, mark: int | str) -> bool:
        with self._here.open(name) as source:
            return has_mark(source, at, mark, self._compared_bytes, grows=self.place.mode == "line")

    def _former(self, known: FileProgress) -> str | None:
        """The name of the file that was read before, if it is in the same folder (`x.log` as `x.log.1`); or None."""
        if self.place.mode != "line" or not self.place.tailing:
            return None
        for e in self._here.entries():
            if e.inode() == known.inode and e.is_file(follow_symlinks=False):
                return e.name if self._has_mark(e.name, known.at, known.mark) else None
        return None

    def _find_renamed(self, name: str, s: Stretch) -> FileProgress | None:
        """Progress of a file that was read under another name."""
        known = self._reached.get(self._inodes.get(s.inode, ""))
        if known is None or self.place.mode != "line" or not self._has_mark(name, known.at, known.mark):
            return None
        self._call(name, known)
        return known

    def _call(self, name: str, known: FileProgress) -> None:
        """A file that was read is known by this name as well."""
        if name not in self._reached:
            self._reached[name] = known
            self._changes[name] = known.data()

    def _rest_of(self, former: str, name: str, known: FileProgress) -> ReadMessages | None:
        """Remaining messages of a renamed file; also its last line without a line break, if it is no longer being
        written.
        """
        s = Stretch.of(self._here.stat(former), known.at)
        return None if s.at >= s.size else self._lines(former, name, s, ended=self._is_settled(s.changed))

    def _read_missed(self, name: str, s: Stretch, known: FileProgress, former: str | None) -> ReadMessages | None:
        """Contents of `name` between the file that was read and the present one: each was put aside under its name
        and a number or date (`x.log.1`, `x.log-20261125`), and is newer than the file read. The oldest comes first.
        """
        if self.place.folder or self.place.mode != "line" or not self.place.tailing:
            return None
        after = known.changed if former is None else self._here.stat(former).st_mtime_ns
        found = []
        for e in self._here.entries():
            suffix = _ROTATED.fullmatch(e.name.removeprefix(name))
            if e.name.startswith(name) and suffix is not None and e.is_file(follow_symlinks=False):
                stretch = Stretch.of(self._here.stat(e.name))
                if after < stretch.changed and stretch.inode not in (s.inode, known.inode) and stretch.size:
                    found.append((stretch.changed, e.name, stretch, suffix["packed"] is not None))
        for changed, other, stretch, packed in sorted(found, key=lambda f: f[:2]):
            if packed:
                refused = self._decode_refused(other, "it was compressed before all of it was read, and is not read")
                return self._take(other, name, stretch, refused, end=stretch.size, through=False, received=1)
            if (taken := self._lines(other, name, stretch, ended=self._is_settled(changed))) is not None:
                return taken
        return None

    def _lines(self, file: str, name: str, s: Stretch, *, ended: bool = False) -> ReadMessages | None:
        """Whole lines of a stretch of `file`, which is known as `name`; a last one without a line break where it has
        `ended`."""
        ended = ended or (not self.place.tailing and self._is_settled(s.changed))
        if s.at == s.size:
            if self.place.tailing or not ended:
                return None
            return self._take(file, name, s, self._decode_none(), end=s.size, through=True, received=0)
        with self._here.open(file) as source:
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
        self,
        file: str,
        name: str,
        s: Stretch,
        decoded: Decoded,
        *,
        end: int,
        through: bool,
        received: int,
        mark: int | str | None = None,
    ) -> ReadMessages:
        """Messages read from a file, up to `end`. `mark`: the file's mark, if it is known."""
        if mark is None:
            mark = self._mark(file, end if self.place.mode == "line" else s.size)
        reached = FileProgress(s.inode, end, through, mark, s.changed, s.touched)
        changes, self._changes = {**self._changes, name: reached.data()}, {}
        return ReadMessages(decoded, received, changes, lasting=True, token=_Done(file, reached) if through else None)

    def _whole(self, file: str, s: Stretch) -> ReadMessages:
        """A file as one message."""
        assert self._decoder is not None
        mark = None
        if s.size > MOST_TEXT:
            reason = f"it has {s.size:,} bytes; in mode 'text.full' {MOST_TEXT:,} are read at most"
            found = self._decode_refused(file, reason)
        else:
            with self._here.open(file) as source:
                text = source.read(s.size)
            found, mark = self._decoder.decode([text]), mark_of(io.BytesIO(text), s.size, self._compared_bytes)
        return self._take(file, file, s, found, end=s.size, through=True, received=1, mark=mark)

    def _groups(self, file: str, s: Stretch, known: FileProgress | None) -> ReadMessages:
        """The next row group of a parquet file; `s.at` row groups were read."""
        at = s.at
        try:
            with self._here.open(file) as source, pq.ParquetFile(source) as parquet:
                last = max(parquet.num_row_groups - 1, 0)
                wrong = _wrong_columns(self.schema.names, parquet.schema_arrow.names)
                if wrong is not None:
                    found, at = self._decode_refused(file, wrong), last
                else:
                    groups = [at] if at < parquet.num_row_groups else []
                    found = self._rows(parquet.read_row_groups(groups, columns=list(self.schema.names)))
        except Exception as error:  # pyarrow raises several kinds of errors, also OSError, for a broken file
            if isinstance(error, OSError) and (error.errno is not None or isinstance(error, Linked)):
                raise  # of the file system
            broken = isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError | OSError)
            why = "it is no parquet file" if broken else f"it cannot be read: {type(error).__name__}"
            found, last = self._decode_refused(file, f"{why}: {' '.join(str(error).split())}"), at
        mark = None if known is None else known.mark
        return self._take(file, file, s, found, end=at + 1, through=at >= last, received=1, mark=mark)

    def _rows(self, table: pa.Table) -> Decoded:
        """Rows as events; those that do not fit the stream are rejected."""
        columns: list[Any] = []
        bad = np.zeros(table.num_rows, np.bool_)
        wrong: dict[int, tuple[Attribute, bool]] = {}
        for attribute in self.schema:
            source, spoilt, _ = ingest.readable(ingest.one(table.column(attribute.name)), attribute.type)
            typed, failed = ingest.convert(source, attribute.type)
            columns.append(typed)
            for mask, no_text in ((spoilt, True), (failed, False)):
                if mask is not None:
                    bad |= mask
                    for i in np.flatnonzero(mask).tolist():
                        wrong.setdefault(i, (attribute, no_text))
        rejected: tuple[RejectedMessage, ...] = ()
        if bad.any():
            rows = _plain_rows(table.filter(pa.array(bad)))
            rejected = tuple(_reject_row(*wrong[i], row) for i, row in zip(sorted(wrong), rows, strict=True))
            columns = [c.filter(pa.array(~bad)) for c in columns]
        return Decoded(columns, np.arange(len(columns[0]), dtype=np.int64), rejected)

    def _decode_refused(self, file: str, reason: str) -> Decoded:
        found = self._decode_none()
        return Decoded(found.columns, found.message, (RejectedMessage(0, reason, str(self._path(file))),))

    def _decode_none(self) -> Decoded:
        if self._decoder is not None:
            return self._decoder.decode([])
        columns = [ingest.convert(pa.nulls(0), a.type)[0] for a in self.schema]
        return Decoded(columns, np.empty(0, np.int64), ())

    def _put_away(self, name: str, reached: FileProgress) -> None:
        """Delete, move or keep a file that is in the inbox, if it is still the one that was read."""
        if self.place.after == "keep":
            return
        try:
            found = Stretch.of(self._here.stat(name))
            if (found.inode, found.changed) != (reached.inode, reached.changed):
                return
            if self.place.after == "delete":
                self._here.unlink(name)
            elif self.place.move_to is not None:
                with Folder(self.place.move_to, make=True) as to:
                    self._here.move(name, to)
        except FileNotFoundError:
            pass
        except (OSError, SourceUnavailable) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or error
            self._wrong[name] = f"{self._path(name)} was read and cannot be put away: {why}"
            return
        if name in self._reached:
            self._forget(name)


def _wrong_columns(wanted: Sequence[str], found: Sequence[str]) -> str | None:
    """Why a file with the columns `found` has not each of those `wanted`; None if it has."""
    missing = next((n for n in wanted if n not in found), None)
    if missing is not None:
        return f"it has no column {missing}; it has {', '.join(found)}"
    twice = next((n for n in wanted if found.count(n) > 1), None)
    return None if twice is None else f"it has {found.count(twice)} columns called {twice}"


def _plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python values; a value that Python does not have, as a date after the year 9999, as Arrow writes it."""
    columns = {name: ingest.python_values(table.column(name)) for name in table.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _reject_row(attribute: Attribute, no_text: bool, row: Mapping[str, Any]) -> RejectedMessage:
    """A row of a parquet file, of which the value of one attribute does not fit or is `no_text`, as JSON."""
    text = json.dumps(row, ensure_ascii=False, default=str)
    if no_text:
        return RejectedMessage(0, f"{attribute.name}: {ingest.SPOILT}", cut(text))
    return RejectedMessage(0, misfit(attribute.name, attribute.type, row[attribute.name]), cut(text))
