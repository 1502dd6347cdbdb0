"""`sparkstream store verify`: holds all that an app wrote against its checksums, without changing anything."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ...checksums import check_sealed
from ...engine.columnar.blocks import digest_of
from ...errors import DamagedFile, Misuse, SparkStreamError
from ...journal.checkpoints import CheckpointProgress, SparkCheckpoint
from ...journal.inbox import InboxPosition
from ...journal.journal import entries_from, segments
from ...journal.query_checkpoint import QueryCheckpoint
from ...journal.segments import check_files
from ...journal.spark_files import count_checked, list_damaged
from ...outputs.output_files import WRITTEN, OutputFiles
from ...recovery.batch_care import BatchCare
from ...runners.app_node import parse_note
from ...runners.inline_checkpoint import CHECKPOINT_FILE, InlineCheckpoint
from ...runners.spark.handover import left
from ...sinks.position import read_position
from ...sources.recordings import RecordingFile
from ...stores.duckdb import last_batch, read_all_tables
from ..deployment.app_folder import AppRun, former_life
from ..deployment.owner import owner_of
from ..deployment.whole import Found, describe_lacking


@dataclass(frozen=True)
class Verification:
    """The result: number of files that were read by kind, one sentence for each damage, and notes."""

    checked: dict[str, int]
    damage: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in self.checked.items() if n)
        if not self.damage:
            return "\n".join([f"all is as it was written: {counts or 'nothing'}", *self.notes])
        return "\n".join([*self.damage, f"read: {counts or 'nothing'}", *self.notes])


def verify_recording(path: Path) -> Verification:
    """Read a recording whole."""
    try:
        RecordingFile.open(path).check()
    except SparkStreamError as error:
        return Verification({}, (str(error),))
    return Verification({"recording": 1}, ())


def verify_checkpoint(folder: Path) -> Verification:
    """Read the checkpoint of a streaming query of Spark's, such as one over `siddhi()`."""
    checkpoint = QueryCheckpoint(folder)
    damage = tuple(dict.fromkeys(checkpoint.list_damage()))
    notes = []
    if damage:
        notes.append("Put the checkpoint back from a copy, or start the query with a new checkpointLocation.")
    if not checkpoint.has_state():
        notes.append("There is no state: right for a query that keeps nothing, and else it is gone.")
    batch = checkpoint.unfinished_batch()
    if batch is not None:
        notes.append(
            f"Micro-batch {batch} has no commit: the next start does it, with the same rows. If it was done before, a "
            "sink that does not know its number gets its outputs twice."
        )
    return Verification({"files of a checkpoint": count_checked(folder)}, damage, tuple(notes))


def verify_folder(home: Path) -> Verification:
    """Read what an app wrote into its folder. Raises `Misuse` if there is no app."""
    if not (home / "app.json").exists():
        raise Misuse(f"{home} has no app: no app.json")
    verifier = _Verifier(home)
    verifier.verify()
    return Verification(verifier.checked, tuple(verifier.damage), tuple(verifier.notes))


def list_state_damage(home: Path) -> tuple[str, ...]:
    """A sentence for each damage of an app's checkpoint and store, for each that lacks parts of the other, and for
    outputs that are gone."""
    verifier, app_run = _Verifier(home), former_life(home)
    for check in (verifier.check_checkpoint, verifier.check_state, verifier.check_number_of_outputs):
        with verifier.reports():
            check(app_run.folder(home))
    with verifier.reports():
        verifier.check_store(app_run)
    return tuple(verifier.damage)


class _Verifier:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.checked: dict[str, int] = {}
        self.damage: list[str] = []
        self.notes: list[str] = []
        self.has_input = False
        """The journal is undamaged."""

    def verify(self) -> None:
        app_run = None
        with self.reports():
            app_run = former_life(self.home)
            run_folder = app_run.folder(self.home)
            self._count("app.json")
            checks = (
                self._journal, self._outputs, self.check_number_of_outputs, self.check_checkpoint, self.check_state,
                self._sinks,
            )  # fmt: skip
            for check in checks:
                with self.reports():
                    check(run_folder)
        owner = owner_of(self.home)
        if owner is not None:
            self.notes.append(f"The store was not read: the app is in use by {owner}.")
        else:
            with self.reports():
                self.check_store(app_run)
        if self.damage and self.has_input:
            self.notes.append(
                f"What is damaged can be made again from the journal, if that has all of the input: sparkstream store "
                f"repair {self.home}"
            )

    @contextlib.contextmanager
    def reports(self) -> Iterator[None]:
        try:
            yield
        except (SparkStreamError, OSError) as error:
            self.damage.append(str(error))

    def _count(self, kind: str, count: int = 1) -> None:
        self.checked[kind] = self.checked.get(kind, 0) + count

    def _each(self, kind: str, files: Iterable[Path], check: Callable[[Path], object]) -> None:
        """Check files, each by itself; those that go meanwhile are left out."""
        for file in files:
            with self.reports(), contextlib.suppress(FileNotFoundError):
                check(file)
                self._count(kind)

    def _journal(self, run_folder: Path) -> None:
        BatchCare.of(run_folder / "inbox")
        entries = 0
        for _, file in segments(run_folder / "inbox"):
            with self.reports(), contextlib.suppress(FileNotFoundError):
                InboxPosition.of(file)
        for entry, _ in entries_from(run_folder / "inbox"):
            entries = entry.seq + 1
            self._count("entries of the journal")
            with self.reports(), contextlib.suppress(FileNotFoundError):  # done with, and no longer kept
                check_files(run_folder / "inbox", entry)
        with contextlib.suppress(SparkStreamError):  # a checkpoint that cannot be read says nothing about the journal
            planned_entries = _read_progress(run_folder).reached
            if entries < planned_entries:
                self.damage.append(f"{run_folder / 'inbox'}: its journal ends before entry {planned_entries:,}")
        self.has_input = not self.damage

    def check_state(self, run_folder: Path) -> None:
        """Tell of a checkpoint without the state of the nodes."""
        folder, progress = run_folder / "checkpoint", _read_progress(run_folder)
        if (folder / CHECKPOINT_FILE).exists() and progress.done >= 0 and not progress.state:
            self.damage.append(f"{folder}: the state of its nodes is gone")

    def _outputs(self, run_folder: Path) -> None:
        outputs = OutputFiles(run_folder / "outputs", ())
        for folder in sorted((run_folder / "outputs").glob("*/")):
            if not folder.name.startswith("."):
                files = [file.path for file in outputs.files(unquote(folder.name))]
                self._each("files of outputs", files, check_sealed)

    def check_number_of_outputs(self, run_folder: Path) -> None:
        """Tell of outputs that are gone, or of which the number is not known any more."""
        outputs, progress = OutputFiles(run_folder / "outputs", ()), _read_progress(run_folder)
        if not outputs.folder.is_dir():
            if progress.done >= 0:
                self.damage.append(f"{outputs.folder} is gone")
            return
        if outputs.accounted_batch > progress.planned:
            self.damage.append(f"{outputs.folder} has outputs of micro-batches that the checkpoint does not have")
        if outputs.accounted_batch < 0 and any(outputs.folder.glob("*/*.arrows")):
            self.damage.append(f"{outputs.folder / WRITTEN}, with the number of outputs, is gone")
        lacking = outputs.describe_lacking()
        if lacking is not None and not any(map(_is_damaged, outputs.folder.glob("*/*.arrows"))):
            self.damage.append(f"{outputs.folder}: {lacking}")

    def check_checkpoint(self, run_folder: Path) -> None:
        """Read the checkpoint whole."""
        file = run_folder / "checkpoint" / CHECKPOINT_FILE
        if not file.exists():
            folder = run_folder / "checkpoint"
            for damaged_file, reason in list_damaged(folder):
                self.damage.append(f"the file {damaged_file} is damaged: {reason}")
            self._count("files of Spark's checkpoint", count_checked(folder))
            SparkCheckpoint.of(run_folder, None).check_logs()
            return
        try:
            with contextlib.closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
                for (text,) in database.execute("PRAGMA integrity_check"):
                    if text != "ok":
                        raise SparkStreamError(f"the file {file} is damaged: {text}")
                for node, digests in database.execute("SELECT node, digests FROM nodes").fetchall():
                    self._state(file, database, node, digests)
        except sqlite3.Error as error:
            raise SparkStreamError(f"the file {file} is damaged: {error}") from None

    def _state(self, file: Path, database: sqlite3.Connection, node: int, digests: str) -> None:
        for digest in dict.fromkeys(parse_note(digests, f"the file {file}")[0]):
            row = database.execute("SELECT piece FROM pieces WHERE node = ? AND digest = ?", (node, digest)).fetchone()
            if row is None or not isinstance(row[0], bytes) or digest_of(row[0]) != digest:
                what = "is missing" if row is None else "is not what was written"
                raise SparkStreamError(f"the file {file} is damaged: piece {digest} of the state of node {node} {what}")
            self._count("pieces of state")

    def _sinks(self, run_folder: Path) -> None:
        self._each("positions of sinks", sorted((run_folder / "sinks").glob("*.json")), read_position)

    def check_store(self, app_run: AppRun | None) -> None:
        """Read the store whole, which no process may have open, and compare it with the checkpoint."""
        file = self.home / "store.duckdb"
        if file.exists():
            self._count("tables of the store", read_all_tables(file))
            if app_run is not None and app_run.shared is None:
                self._ledger(last_batch(file, app_run.run), app_run)
        elif app_run is not None and app_run.shared is None:
            self._ledger(-1, app_run)

    def _ledger(self, ledger: int, app_run: AppRun) -> None:
        """Compares the last micro-batch in the store with the checkpoint's. Where DuckDB's or SQLite's log was cut off,
        one of them lacks micro-batches, and no checksum tells it."""
        folder = app_run.folder(self.home)
        if left(folder, None) or (ledger < 0 and not _has_own_store(app_run)):
            return
        state = Found(sys.maxsize, _read_progress(folder), ledger, outputs=True)
        lacking = describe_lacking(state)
        if lacking is not None:
            self.damage.append(f"{self.home} is not whole: {lacking}")


def _is_damaged(file: Path) -> bool:
    try:
        check_sealed(file)
    except DamagedFile:
        return True
    return False


def _read_progress(run_folder: Path) -> CheckpointProgress:
    folder = run_folder / "checkpoint"
    is_inline = (folder / CHECKPOINT_FILE).exists()
    return (InlineCheckpoint(folder) if is_inline else SparkCheckpoint.of(run_folder, None)).read_progress()


def _has_own_store(app_run: AppRun) -> bool:
    """True if the app has its store in its folder, as by default."""
    return app_run.deployed is not None and app_run.deployed.arguments.get("store") is None
