"""Reads files that grow, and folders in which files appear: lines, texts between patterns, whole texts, or parquet.

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

from ..engine.expressions.java_values import RowFailure
from ..ingest import ingest
from ..mapping.attribute_values import misfit
from ..mapping.decoding import Decoded, Decoder, RejectedMessage, cut
from ..types import Attribute, Schema
from .nofollow_folder import Folder, Linked
from .reached import ALL_OF_LINES, FileProgress, Stretch, has_mark, mark_of
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable
from .regex_messages import MessageCutter

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

Mode = Literal["line", "regex", "text.full", "binary.full", "parquet"]
GROWING = frozenset({"line", "regex"})
"""The modes that read a file as it grows."""


@dataclass(frozen=True)
class FilesPlace:
    """Place of a file source: the file or folder `path`, without links, in `mode`. `pattern` is one for whole names in
    a folder. `tailing`: a file that was read may grow. `header`: the first line of a file is not an event. `after`:
    fate of a file that was read, "keep", "delete" or "move" to the folder `move_to`. `every`: the pause between two
    looks, in seconds. `cutter` finds the messages in mode `regex`.
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
    cutter: MessageCutter | None = None

    @property
    def grows(self) -> bool:
        """True for a mode that reads a file as it grows, and not whole."""
        return self.mode in GROWING


@dataclass(frozen=True)
class _Done:
    """Token of the messages read: a file that is read to its end, with its progress at that time."""

    name: str
    progress: FileProgress


@dataclass(frozen=True)
class _Portion:
    """The part of a file that was read: its events, its `end`, whether nothing comes after it, and how many messages it
    has. `mark`: the file's mark, if it is known."""

    events: Decoded
    end: int
    is_last: bool
    message_count: int
    mark: int | str | None = None


class FilesReader(SourceReader):
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
        self._progress: dict[str, FileProgress] = {}
        self._changes: dict[str, list[int | str] | None] = {}
        """Changes of the position without an event: they go with the next one."""
        self._unread_bytes: dict[str, int] = {}
        self._left: deque[str] = deque()
        """Files left from the last look at the folder."""
        self._here: Folder
        """The folder of the files, open during a look."""
        self._wrong: dict[str, str] = {}
        """By name, why a file cannot be read or put away."""
        self._inodes: dict[int, str] = {}
        """The names of the files that were read by their inodes, at the last look at the folder."""
        self._scan_start = self._last_full_scan = _LONG_AGO
        self._last_look = _LONG_AGO
        self._cancel_event = threading.Event()

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self._cancel_event.clear()
        self._progress = {name: FileProgress.of(at) for name, at in positions.items()}
        self._last_look, self._changes = _LONG_AGO, {}
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
            if time.monotonic() >= self._last_look + self.place.every:
                messages = self._look()
                if messages is not None:
                    self._last_look = _LONG_AGO  # there may be more
                    return messages
            now = time.monotonic()
            if now >= end or self._cancel_event.wait(min(end, self._last_look + self.place.every) - now):
                return None

    def _look(self) -> ReadMessages | None:
        """The next that is there to be taken. Raises SourceUnavailable if nothing is, and a file is in the way."""
        self._last_look = time.monotonic()
        with self._open_folder() as self._here:
            return self._look_here()

    def _look_here(self) -> ReadMessages | None:
        if not self._left:
            self._wrong, self._scan_start = {}, self._last_look
            self._inodes = {r.inode: name for name, r in self._progress.items()}
            self._left.extend(self._files())
        while self._left:
            messages = self._next(self._left[0])
            if messages is not None:
                return messages
            self._left.popleft()
        self._forget_vanished()
        self._last_full_scan = self._scan_start
        if self._wrong:
            raise SourceUnavailable("; ".join(list(self._wrong.values())[:3]))
        return None

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        for part, at in messages.reached.items():
            if at is not None:
                self._progress[part] = FileProgress.of(at)
        if isinstance(messages.token, _Done):
            with self._open_folder() as self._here:
                self._put_away(messages.token.name, messages.token.progress)

    def behind(self) -> Behind | None:
        is_known = self._unread_bytes or self._last_full_scan > _LONG_AGO
        return Behind(self._last_full_scan, dict(self._unread_bytes)) if is_known else None

    def cancel(self) -> None:
        self._cancel_event.set()

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
        names_by_time = []
        for e in self._here.entries():
            if self._is_wanted(e.name) and e.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    names_by_time.append((e.stat(follow_symlinks=False).st_mtime_ns, e.name))
        return [name for _, name in sorted(names_by_time)]

    def _is_wanted(self, name: str) -> bool:
        return not name.startswith(_HIDDEN) and self.place.pattern.fullmatch(name) is not None

    def _forget_vanished(self) -> None:
        """Forgets the files that are not there any more."""
        if self.place.folder:
            for name in list(self._progress):
                try:
                    self._here.stat(name)
                except FileNotFoundError:
                    self._forget(name)
                except OSError:
                    pass  # there is something else by this name, for now

    def _forget(self, name: str) -> None:
        del self._progress[name]
        self._unread_bytes.pop(name, None)
        self._changes[name] = None

    def _is_settled(self, change_ns: int) -> bool:
        """True if a file that was changed then (ns) is probably no longer being written."""
        return self._now() - change_ns / 1e9 >= SETTLED_SECONDS

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
        progress = self._progress.get(name) or self._find_renamed(name, s)
        if progress is not None and progress.inode != s.inode:
            previous_name = self._former(progress)
            if previous_name is not None and self.place.folder and self._is_wanted(previous_name):
                self._call(previous_name, progress)
            elif previous_name is not None and (rest := self._rest_of(previous_name, name, progress)) is not None:
                return rest
            elif (rotated_messages := self._read_missed(name, s, progress, previous_name)) is not None:
                return rotated_messages
            progress = None
        if progress is not None and not self._same(name, s, progress):
            progress = None
        if progress is not None and progress.through:
            self._unread_bytes[name] = 0
            self._put_away(name, progress)  # a crash came before
            return None
        s = replace(s, at=0 if progress is None else progress.at)
        self._unread_bytes[name] = s.size - s.at if self.place.grows else s.size
        if self.place.grows:
            return self._lines(name, name, s)
        if not self._is_settled(s.modified_ns):
            return None
        return self._groups(name, s, progress) if self.place.mode == "parquet" else self._whole(name, s)

    def _path(self, name: str) -> Path:
        return self._here.path / name

    def _same(self, name: str, s: Stretch, progress: FileProgress) -> bool:
        """True if a file with the same name and inode is the one that was read. One that was to be put away, and was
        changed since, is another one."""
        keeps = self.place.after == "keep"
        if progress.is_unchanged(s) or (progress.modified_ns == s.modified_ns and not keeps):
            return True
        if self.place.grows:
            written_anew = progress.through and not keeps
            return not written_anew and s.size >= progress.at and self._has_mark(name, progress.at, progress.mark)
        if not keeps or not self._has_mark(name, s.size, progress.mark):
            return False
        self._progress[name] = progress = replace(
            progress, modified_ns=s.modified_ns, entry_changed_ns=s.entry_changed_ns
        )
        self._changes[name] = progress.data()  # it is not compared at each look
        return True

    @property
    def _compared_bytes(self) -> int:
        """Bytes up to which all that was read of a file is compared."""
        return ALL_OF_LINES if self.place.grows else MOST_TEXT

    def _mark(self, name: str, at: int) -> str:
        with self._here.open(name) as source:
            return mark_of(source, at, self._compared_bytes)

    def _has_mark(self, name: str, at: int, mark: int | str) -> bool:
        with self._here.open(name) as source:
            return has_mark(source, at, mark, self._compared_bytes, grows=self.place.grows)

    def _former(self, progress: FileProgress) -> str | None:
        """The name of the file that was read before, if it is in the same folder (`x.log` as `x.log.1`); or None."""
        if not self.place.grows or not self.place.tailing:
            return None
        for e in self._here.entries():
            if e.inode() == progress.inode and e.is_file(follow_symlinks=False):
                return e.name if self._has_mark(e.name, progress.at, progress.mark) else None
        return None

    def _find_renamed(self, name: str, s: Stretch) -> FileProgress | None:
        """Progress of a file that was read under another name."""
        progress = self._progress.get(self._inodes.get(s.inode, ""))
        if progress is None or not self.place.grows or not self._has_mark(name, progress.at, progress.mark):
            return None
        self._call(name, progress)
        return progress

    def _call(self, name: str, progress: FileProgress) -> None:
        """A file that was read is known by this name as well."""
        if name not in self._progress:
            self._progress[name] = progress
            self._changes[name] = progress.data()

    def _rest_of(self, previous_name: str, name: str, progress: FileProgress) -> ReadMessages | None:
        """Remaining messages of a renamed file; also its last line without a line break, if it is no longer being
        written.
        """
        s = Stretch.of(self._here.stat(previous_name), progress.at)
        return (
            None if s.at >= s.size else self._lines(previous_name, name, s, is_complete=self._is_settled(s.modified_ns))
        )

    def _read_missed(
        self, name: str, s: Stretch, progress: FileProgress, previous_name: str | None
    ) -> ReadMessages | None:
        """Contents of `name` between the file that was read and the present one: each was put aside under its name
        and a number or date (`x.log.1`, `x.log-20261125`), and is newer than the file read. The oldest comes first.
        """
        if self.place.folder or not self.place.grows or not self.place.tailing:
            return None
        after = progress.modified_ns if previous_name is None else self._here.stat(previous_name).st_mtime_ns
        rotated_files = []
        for e in self._here.entries():
            suffix = _ROTATED.fullmatch(e.name.removeprefix(name))
            if e.name.startswith(name) and suffix is not None and e.is_file(follow_symlinks=False):
                stretch = Stretch.of(self._here.stat(e.name))
                if after < stretch.modified_ns and stretch.inode not in (s.inode, progress.inode) and stretch.size:
                    rotated_files.append((stretch.modified_ns, e.name, stretch, suffix["packed"] is not None))
        for change_ns, other, stretch, is_compressed in sorted(rotated_files, key=lambda f: f[:2]):
            if is_compressed:
                refusal = self._decode_refused(other, "it was compressed before all of it was read, and is not read")
                return self._take(other, name, stretch, _Portion(refusal, stretch.size, False, 1))
            if (messages := self._lines(other, name, stretch, is_complete=self._is_settled(change_ns))) is not None:
                return messages
        return None

    def _lines(self, file: str, name: str, s: Stretch, *, is_complete: bool = False) -> ReadMessages | None:
        """Whole lines, or messages of mode `regex`, of a stretch of `file`, which is known as `name`; a last one
        without its end where the file `is_complete`."""
        is_complete = is_complete or (not self.place.tailing and self._is_settled(s.modified_ns))
        if self._needs_properties and not self.place.tailing and not is_complete:
            return None  # it is not known yet which message is the last one
        if s.at == s.size:
            if self.place.tailing or not is_complete:
                return None
            return self._take(file, name, s, _Portion(self._decode_none(), s.size, True, 0))
        if self.place.cutter is not None:
            return self._cut_messages(file, name, s, self.place.cutter, is_complete)
        block = self._read_block(file, s)
        cut = block.rfind(b"\n") + 1
        reads_to_end = s.at + len(block) == s.size and is_complete
        if not cut or (reads_to_end and cut < len(block)):
            if len(block) < LONGEST_LINE and not reads_to_end:
                return None
            cut = len(block)
        lines = [line.removesuffix(b"\r") for line in block[:cut].split(b"\n")]
        if self.place.header and s.at == 0:
            del lines[0]
        lines = [line for line in lines if line]
        end = s.at + cut
        through = end == s.size and is_complete and not self.place.tailing
        return self._take(file, name, s, _Portion(self._decode(file, lines, through), end, through, len(lines)))

    def _cut_messages(
        self, file: str, name: str, s: Stretch, cutter: MessageCutter, is_complete: bool
    ) -> ReadMessages | None:
        """Messages of mode `regex` of a stretch."""
        with self._here.open(file) as source:
            source.seek(s.at)
            block = source.read(min(LONGEST_LINE, s.size - s.at))
        reads_to_end = s.at + len(block) == s.size and is_complete
        try:
            cut_messages = cutter.cut(block, is_complete=reads_to_end)
        except RowFailure as error:
            refusal = self._decode_refused(file, str(error))
            return self._take(file, name, s, _Portion(refusal, s.size, reads_to_end and not self.place.tailing, 1))
        messages, end = cut_messages.messages, cut_messages.end
        if reads_to_end:
            end = len(block)
        elif not messages:
            if len(block) < LONGEST_LINE:
                self._unread_bytes[name] = cut_messages.pending_bytes
                return None
            reason = f"there is no message within {LONGEST_LINE:,} bytes, which are passed over"
            return self._take(file, name, s, _Portion(self._decode_refused(file, reason), s.at + len(block), False, 1))
        through = reads_to_end and not self.place.tailing
        events = self._decode(file, messages, through)
        return self._take(file, name, s, _Portion(events, s.at + end, through, len(messages)))

    @property
    def _needs_properties(self) -> bool:
        """True if attributes come from transport properties."""
        return self._decoder is not None and any(h is not None for h in self._decoder.mapping.headers)

    def _decode(self, file: str, messages: Sequence[bytes], is_last: bool) -> Decoded:
        """The events of messages of a file, with their transport properties. `is_last`: they end the file."""
        assert self._decoder is not None
        if not self._needs_properties:
            return self._decoder.decode(messages)
        properties = {"file.path": str(self._path(file)), "file.name": file, "eof": "false"}
        properties_of_messages = [properties] * len(messages)
        if is_last and messages:
            properties_of_messages[-1] = {**properties, "eof": "true"}
        return self._decoder.decode(messages, properties_of_messages)

    def _read_block(self, file: str, s: Stretch) -> bytes:
        """The next bytes of a stretch, with a line break among them if it comes in time."""
        with self._here.open(file) as source:
            source.seek(s.at)
            block = source.read(min(BLOCK, s.size - s.at))
            while b"\n" not in block and len(block) < min(LONGEST_LINE, s.size - s.at):
                block += source.read(BLOCK)
        return block

    def _take(self, file: str, name: str, s: Stretch, portion: _Portion) -> ReadMessages:
        """The messages of a portion of a stretch of `file`, which is known as `name`."""
        p = portion
        mark = self._mark(file, p.end if self.place.grows else s.size) if p.mark is None else p.mark
        progress = FileProgress(s.inode, p.end, p.is_last, mark, s.modified_ns, s.entry_changed_ns)
        changes, self._changes = {**self._changes, name: progress.data()}, {}
        return ReadMessages(
            p.events, p.message_count, changes, lasting=True, token=_Done(file, progress) if p.is_last else None
        )

    def _whole(self, file: str, s: Stretch) -> ReadMessages:
        """A file as one message."""
        mark = None
        if s.size > MOST_TEXT:
            reason = f"it has {s.size:,} bytes; in mode '{self.place.mode}' {MOST_TEXT:,} are read at most"
            events = self._decode_refused(file, reason)
        else:
            with self._here.open(file) as source:
                text = source.read(s.size)
            events, mark = self._decode(file, [text], True), mark_of(io.BytesIO(text), s.size, self._compared_bytes)
        return self._take(file, file, s, _Portion(events, s.size, True, 1, mark))

    def _groups(self, file: str, s: Stretch, progress: FileProgress | None) -> ReadMessages:
        """The next row group of a parquet file; `s.at` row groups were read."""
        at = s.at
        try:
            with self._here.open(file) as source, pq.ParquetFile(source) as parquet:
                last = max(parquet.num_row_groups - 1, 0)
                wrong = _wrong_columns(self.schema.names, parquet.schema_arrow.names)
                if wrong is not None:
                    events, at = self._decode_refused(file, wrong), last
                else:
                    groups = [at] if at < parquet.num_row_groups else []
                    events = self._rows(parquet.read_row_groups(groups, columns=list(self.schema.names)))
        except Exception as error:  # pyarrow raises several kinds of errors, also OSError, for a broken file
            if isinstance(error, OSError) and (error.errno is not None or isinstance(error, Linked)):
                raise  # of the file system
            is_damaged = isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError | OSError)
            why = "it is no parquet file" if is_damaged else f"it cannot be read: {type(error).__name__}"
            events, last = self._decode_refused(file, f"{why}: {' '.join(str(error).split())}"), at
        mark = None if progress is None else progress.mark
        return self._take(file, file, s, _Portion(events, at + 1, at >= last, 1, mark))

    def _rows(self, table: pa.Table) -> Decoded:
        """Rows as events; those that do not fit the stream are rejected."""
        columns: list[Any] = []
        bad = np.zeros(table.num_rows, np.bool_)
        wrong: dict[int, tuple[Attribute, bool]] = {}
        for attribute in self.schema:
            source, spoilt, _ = ingest.readable(ingest.one(table.column(attribute.name)), attribute.type)
            values, misfits = ingest.convert(source, attribute.type)
            columns.append(values)
            for mask, no_text in ((spoilt, True), (misfits, False)):
                if mask is not None:
                    bad |= mask
                    for i in np.flatnonzero(mask).tolist():
                        wrong.setdefault(i, (attribute, no_text))
        rejects: tuple[RejectedMessage, ...] = ()
        if bad.any():
            rows = _plain_rows(table.filter(pa.array(bad)))
            rejects = tuple(_reject_row(*wrong[i], row) for i, row in zip(sorted(wrong), rows, strict=True))
            columns = [c.filter(pa.array(~bad)) for c in columns]
        return Decoded(columns, np.arange(len(columns[0]), dtype=np.int64), rejects)

    def _decode_refused(self, file: str, reason: str) -> Decoded:
        nothing = self._decode_none()
        return Decoded(nothing.columns, nothing.message, (RejectedMessage(0, reason, str(self._path(file))),))

    def _decode_none(self) -> Decoded:
        if self._decoder is not None:
            return self._decoder.decode([])
        columns = [ingest.convert(pa.nulls(0), a.type)[0] for a in self.schema]
        return Decoded(columns, np.empty(0, np.int64), ())

    def _put_away(self, name: str, progress: FileProgress) -> None:
        """Delete, move or keep a file that is in the inbox, if it is still the one that was read."""
        if self.place.after == "keep":
            return
        try:
            stretch = Stretch.of(self._here.stat(name))
            if (stretch.inode, stretch.modified_ns) != (progress.inode, progress.modified_ns):
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
        if name in self._progress:
            self._forget(name)


def _wrong_columns(needed_columns: Sequence[str], file_columns: Sequence[str]) -> str | None:
    """Why a file with `file_columns` lacks one of the `needed_columns`; None if it has all."""
    missing = next((n for n in needed_columns if n not in file_columns), None)
    if missing is not None:
        return f"it has no column {missing}; it has {', '.join(file_columns)}"
    twice = next((n for n in needed_columns if file_columns.count(n) > 1), None)
    return None if twice is None else f"it has {file_columns.count(twice)} columns called {twice}"


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
