"""The entries of an app's journal: one frozen class for each kind, and their form as JSON.

A new kind is a class with a `kind` of its own, named in `KINDS`. This module loads no engine: Spark's process that
plans micro-batches reads entries too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, ClassVar

from ..errors import SparkStreamError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Base of all entries.

    `seq`, `step` and `request` number the entry, its first step and its first request through the app's life. `before`
    is the clock (ms) of the app before the entry, None before its first step. `over` has the numbers of the nodes at
    that time, in the order of routing; empty: the nodes that the app began with. `Inbox.append` sets these five. The
    entry adds `steps` steps and `requests` requests, and moves the clock to `clock` (ms; None: not at all). `app` is
    the app's number in the journal. `file` is the file of the inbox that the entry needs, if any; it is removed when no
    micro-batch will read it again. An entry with `barrier` begins a micro-batch of its own. `source` is the name of the
    source outside that entered it, and `reached` is that source's progress: the changes of its position, by part (None:
    the part is no longer needed). `sums` are the checksums of its files by name (`checksums.sums_of`), set by
    `Inbox.put`; entries of earlier versions have none.
    """

    kind: ClassVar[str] = ""

    seq: int = -1
    step: int = -1
    request: int = -1
    before: int | None = None
    app: int = 0
    steps: int = 0
    requests: int = 0
    clock: int | None = None
    file: str | None = None
    barrier: bool = False
    over: tuple[int, ...] = ()
    source: str | None = None
    reached: Mapping[str, Any] | None = None
    sums: Mapping[str, str] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the inbox that the entry needs."""
        return () if self.file is None else (self.file,)

    @property
    def events_by_stream(self) -> Mapping[str, int]:
        """Number of events that came in from outside with the entry, by stream."""
        return {}

    @property
    def retractable(self) -> bool:
        """True if an interrupt takes the entry back before anything has begun to process it: it belongs to a feed or a
        query that has not returned.
        """
        return False

    def with_numbers(self, seq: int, step: int, request: int, before: int | None) -> Entry:
        """The entry at its place in the journal."""
        return replace(self, seq=seq, step=step, request=request, before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsEntry(Entry):
    """Base of the entries that carry events, or a tick of the clock. `route` is the routing of the events."""

    clock: int
    route: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsEntry(EventsEntry):
    """A batch that was sent: `InputBatch.to_bytes`, as base64 in `data`, or in the inbox's file `file`.

    `events` counts its events by stream; None for a tick of the clock. Events that a sink could not deliver and that
    come in again have its name as `sink`, and as `place` the micro-batch and row of the last of them; they are neither
    requests nor events from outside.
    """

    kind = "steps"

    data: str | None = None
    events: Mapping[str, int] | None = None
    sink: str | None = None
    place: tuple[int, ...] = ()

    @property
    def events_by_stream(self) -> Mapping[str, int]:
        return {} if self.sink is not None or self.events is None else self.events


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """`rows` rows for `stream` in a file of the inbox, from row `first` on.

    The file is in Arrow's IPC format, or, with `groups`, in parquet: rows are counted through these row groups,
    `columns` are the source columns by attribute, and `time` is the column of the event times.
    """

    file: str
    stream: str
    rows: int
    first: int = 0
    groups: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsEntry(EventsEntry):
    """Rows of a feed for `stream`, each a step: `steps` of the inbox's file `file`, from row `first` on (see
    `FileRows`). With `start` (ms), events are `apart` ms apart from there.
    """

    kind = "rows"

    file: str
    stream: str
    first: int = 0
    groups: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    time: str | None = None
    start: int | None = None
    apart: int = 1

    @property
    def file_rows(self) -> FileRows:
        """The rows in the file."""
        return FileRows(
            file=self.file, stream=self.stream, rows=self.steps, first=self.first, groups=self.groups,
            columns=self.columns, time=self.time,
        )  # fmt: skip

    @property
    def events_by_stream(self) -> Mapping[str, int]:
        return {self.stream: self.steps}

    @property
    def retractable(self) -> bool:
        return self.source is None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedEntry(EventsEntry):
    """Rows of several sources, merged by event time: each a step. Of equal times, rows of an earlier one of the `parts`
    come first; the rows of a part are in order of event time.
    """

    kind = "merged"

    parts: tuple[FileRows, ...]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p.file for p in self.parts))

    @property
    def events_by_stream(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for p in self.parts:
            counts[p.stream] = counts.get(p.stream, 0) + p.rows
        return counts

    @property
    def retractable(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Entry):
    """An on-demand query for every node."""

    kind = "ask"

    text: str

    @property
    def retractable(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject(Entry):
    """Rows of a feed, or events that were `sent`, that did not fit: `file`, of the inbox, has them as
    `result_codec.error_lines`."""

    kind = "reject"

    file: str
    sent: bool = False

    @property
    def retractable(self) -> bool:
        return self.source is None and not self.sent


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry(Entry):
    """Progress of an outside source, without an event."""

    kind = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEntry(Entry):
    """A fault to come, for the nodes of a pair: `simulation.faults.members_of`."""

    kind = "fault"

    fault: Mapping[str, Any]


KINDS: dict[str, type[Entry]] = {
    c.kind: c for c in (StepsEntry, RowsEntry, MergedEntry, Ask, Reject, SourceEntry, FaultEntry)
}

_ALWAYS = ("app", "steps", "requests", "clock")
"""Members that are always written, so that people who read the journal see them."""


def to_json(entries: Iterable[Entry]) -> bytes:
    """A JSON list of objects. A member that is as it is by default is left out."""
    return json.dumps([_members(e) for e in entries], separators=(",", ":")).encode()


def from_json(text: bytes | str) -> list[Entry]:
    """The inverse of `to_json`. Raises SparkStreamError for an entry that this version does not know."""
    return [_entry(members) for members in json.loads(text)]


def _members(entry: Entry) -> dict[str, Any]:
    if type(entry) not in KINDS.values():
        raise TypeError(f"{type(entry).__name__} is not among the kinds of entries")
    out: dict[str, Any] = {name: getattr(entry, name) for name in ("seq", "step", "request", "before", "kind")}
    out |= {name: getattr(entry, name) for name in _ALWAYS}
    for field in fields(entry):
        value = getattr(entry, field.name)
        if field.name not in out and (field.default is MISSING or value != field.default):
            out[field.name] = [asdict(p) for p in value] if field.name == "parts" else value
    return out


def _entry(members: dict[str, Any]) -> Entry:
    kind = members.pop("kind", None)
    if kind not in KINDS:
        raise SparkStreamError(
            f"The journal has an entry of kind '{kind}', which this version does not know: a later version wrote it. "
            "Update sparkstream_nb, or deploy the app with fresh."
        )
    values = _tuples(members)
    if "parts" in values:
        values["parts"] = tuple(FileRows(**_tuples(p)) for p in values["parts"])
    return KINDS[kind](**values)


def _tuples(members: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in members.items()}
