"""An app's inbox at a shared address: its owner puts the input there, Spark's machines read it from there.

The journal goes in objects whose names are the numbers of their first byte and of the one after their last. So a copy
of them is a journal with the same offsets. Its owner's own journal is authoritative: entries that are not at the
address yet are put there later, in order, also by another process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..errors import SparkStreamError
from ..pauses import Pauses
from .checkpoints import LocalFiles
from .journal import JOURNAL, entries_of, lines, segment, segments
from .kept import JournalRetention, Offset
from .parts import PARTS, done_with
from .private import private_folder
from .shared import Shared, planner_folder

OBJECT_BYTES = 1 << 20
"""Size in bytes of an object of the journal, unless a line is longer."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two tries where the address cannot be reached."""
_IDLE_SECONDS = 0.5
_STATE = "mirrored.json"
_APPS = "inbox/apps"


@dataclass
class _MirrorProgress:
    """Progress of the mirror: the journal before byte `at` is at the address. `cut`: entries from this number on were
    taken back, and are still to be removed there.
    """

    at: int = 0
    cut: int | None = None


@dataclass
class _There:
    """Contents of the address: the names of files, and the first byte of objects of the journal, with the one after."""

    files: set[str]
    objects: deque[tuple[int, int]]

    @staticmethod
    def of(shared: Shared) -> _There:
        """Contents of the address, as another process may have left them. Raises OSError."""
        return _There(set(shared.names("inbox")), deque(map(_span, shared.names(f"inbox/{JOURNAL}"))))


@dataclass
class Mirror:
    """Puts the inbox in `folder` at the address `shared`. `last_committed` returns the number of the last committed
    entry: entries before that micro-batch are removed from the address, as `retention` allows.
    `say` receives messages for the user.
    """

    folder: Path
    shared: Shared
    retention: JournalRetention
    last_committed: Callable[[], int]
    say: Callable[[str], None]
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _more: threading.Event = field(default_factory=threading.Event)
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _remote: _There | None = None
    _passed_offsets: deque[Offset] = field(default_factory=deque)
    _last: int = -1
    _removals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._progress = _MirrorProgress()
        with contextlib.suppress(FileNotFoundError):
            self._progress = _MirrorProgress(**json.loads((self.folder / _STATE).read_text(encoding="utf-8")))

    def start(self) -> None:
        """Run until `stop`."""
        if self._thread is None:
            self._ending = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._ending,), name="sparkstream-mirror", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End, after the transfers in progress."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ending.set()
            self._more.set()
            thread.join()

    def notify_appended(self) -> None:
        """There is more."""
        self._more.set()

    def prepare(self, apps: bytes) -> str:
        """Makes the address ready for a query to begin with, whose work is `apps`; returns the digest of that. Raises
        SparkStreamError if the address cannot be reached."""
        with self._lock:
            try:
                self._cut()
                self.shared.put(_APPS, apps)
            except OSError as error:
                raise self.shared.unreached_error(error) from None
        return digest_of(apps)

    @contextlib.contextmanager
    def taking_back(self, seq: int) -> Iterator[None]:
        """The entries from number `seq` on are taken back from the journal inside. They are removed from the address
        before a query restarts."""
        with self._lock:
            self._passed_offsets = deque(o for o in self._passed_offsets if o["seq"] <= seq)
            self._write(
                _MirrorProgress(self._progress.at, seq if self._progress.cut is None else min(seq, self._progress.cut))
            )
            yield

    def _run(self, ending: threading.Event) -> None:
        pauses, has_reported = Pauses(FIRST_PAUSE, LONGEST_PAUSE), False
        while not ending.is_set():
            self._more.clear()
            try:
                with self._lock:
                    has_moved = self._step()
                    self._forget()
                pauses.reset()
                has_reported = False
            except OSError as error:
                if not has_reported:
                    self.say(f"{self.shared.unreached_error(error)}. It is tried again")
                has_reported = True
                ending.wait(pauses.next())
                continue
            if not has_moved:
                self._more.wait(_IDLE_SECONDS)

    def _step(self) -> bool:
        """Puts one object there; whether there was one. Raises OSError if the address cannot be reached."""
        self._cut()
        remote = self._remote = self._remote or _There.of(self.shared)
        batch_lines: list[bytes] = []
        first = end = self._progress.at
        offsets: list[Offset] = []
        for at, line in lines(self.folder, first):
            if batch_lines and (at != end or end - first + len(line) > OBJECT_BYTES):
                break
            if not batch_lines:
                first = at
            batch_lines.append(line)
            end = at + len(line)
            entries = entries_of(self.folder, at, line)
            for name in dict.fromkeys(name for e in entries for name in e.files):
                if name not in remote.files:
                    self.shared.put_file(f"inbox/{name}", self.folder / name)
                    remote.files.add(name)
            offsets.append({"seq": entries[-1].seq + 1, "at": end, "skip": 0})
        if not batch_lines:
            return False
        self.shared.put(_object(first, end), b"".join(batch_lines))
        remote.objects.append((first, end))
        self._passed_offsets.extend(offsets)
        self._write(_MirrorProgress(end))
        return True

    def _cut(self) -> None:
        """Removes objects with entries that were taken back. Raises OSError."""
        seq = self._progress.cut
        if seq is None:
            return
        at, cut_objects = self._progress.at, []
        for first, end in sorted(map(_span, self.shared.names(f"inbox/{JOURNAL}")), reverse=True):
            blob = self.shared.get(_object(first, end))
            if all(e.seq < seq for line in blob.splitlines() for e in entries_of(self.folder, first, line)):
                break
            at = first
            cut_objects.append(_object(first, end))
        self.shared.remove(*cut_objects)
        self._remote = None
        self._write(_MirrorProgress(at))

    def _forget(self) -> None:
        """Remove entries that Spark cannot ask for again: all before the last committed micro-batch. Raises OSError."""
        last_committed, end = self.last_committed(), None
        if last_committed != self._last:
            while self._passed_offsets and self._passed_offsets[0]["seq"] <= self._last + 1:
                end = self._passed_offsets.popleft()
            self._last = last_committed
        if end is not None and self._remote is not None:
            names = {file.name for file in self.retention.end(end)}
            self._remote.files -= names
            self._removals += [f"inbox/{name}" for name in names]
            parts = self.shared.names(f"inbox/{PARTS}")
            self._removals += [f"inbox/{PARTS}/{name}" for name in done_with(parts, end["seq"])]
            objects = self._remote.objects
            while len(objects) > 1 and objects[1][0] <= end["at"]:  # the planner looks for the one that it is at
                self._removals.append(_object(*objects.popleft()))
        if self._removals:
            self.shared.remove(*self._removals)
            self._removals = []

    def _write(self, progress: _MirrorProgress) -> None:
        LocalFiles(self.folder).put(_STATE, json.dumps(asdict(progress)).encode())
        self._progress = progress


class Mirrored:
    """The other side: the journal at an address, copied into a `folder` of the process that plans micro-batches."""

    def __init__(self, shared: Shared) -> None:
        self.shared, self.folder = shared, planner_folder()
        private_folder(self.folder / JOURNAL)
        self._ends: dict[int, int] = {}
        self._done_until = 0

    def follow(self) -> None:
        """Copy new entries and files. Raises SparkStreamError if the app is gone from the address."""
        if not self.shared.has(_APPS):
            raise SparkStreamError("The inbox is gone from its address: the app was deployed again.")
        longest: dict[int, int] = {}
        for first, end in map(_span, self.shared.names(f"inbox/{JOURNAL}")):
            longest[first] = max(end, longest.get(first, 0))  # one that was put again may have more
        for first, end in sorted(longest.items()):
            if first >= self._done_until and self._ends.get(first) != end:
                with contextlib.suppress(FileNotFoundError):  # it was done with, and went just now
                    self.shared.get_file(_object(first, end), segment(self.folder, first))
                    self._ends[first] = end

    def end(self, end: Offset) -> None:
        """Mark everything before offset `end` as done."""
        for first, file in segments(self.folder):
            following = self._ends[first]
            if following < end["at"]:
                file.unlink()
                self._done_until = max(self._done_until, following)


def apps_at(shared: Shared, digest: str) -> bytes:
    """The work on entries, as serialized by the app's owner. Raises SparkStreamError if the owner did not put it there:
    others may be able to write to the address.
    """
    blob = shared.get(_APPS)
    if digest_of(blob) != digest:
        raise SparkStreamError("What is to be done with the inbox is not what its owner put at its address.")
    return blob


def retire(shared: Shared) -> None:
    """Signal a query that may still run, on a server, that its app is gone. Nothing else is removed."""
    with contextlib.suppress(OSError):
        shared.remove(_APPS)


def _object(first: int, end: int) -> str:
    """The name of an object of the journal."""
    return f"inbox/{JOURNAL}/{first:018d}-{end:018d}"


def _span(name: str) -> tuple[int, int]:
    first, _, end = name.partition("-")
    return int(first), int(end)


def digest_of(blob: bytes) -> str:
    """Digest of some bytes."""
    return hashlib.sha256(blob).hexdigest()
