"""`sparkstream store repair`: makes damaged files of an app's outputs again from its journal, and, where its checkpoint
or its store is damaged, all that was made of the journal (`run_from_journal.py`).

A node is a function of its input, so all nodes are run once more over the journal, in this process and with a state of
their own. The outputs that the whole files lack belong into the damaged files. These are replaced only if the stream
then has as many outputs as were written.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...checksums import add_seal, check_sealed
from ...errors import DamagedFile, Misuse, SparkStreamError
from ...journal.checkpoints import SparkCheckpoint
from ...journal.journal import entries_from
from ...journal.marks import forget_tasks
from ...journal.parts import forget_parts
from ...journal.private import write_private
from ...journal.result_codec import to_ipc
from ...journal.result_rows import StreamEvents
from ...journal.temporary import temporary_folder
from ...outputs.merging import write_merged
from ...outputs.output_files import WRITTEN, OutputFile, OutputFiles, in_order, sizes_of, spell_out, table_of
from ...recovery.batch_care import BatchCare
from ...runners.inline import InlineNodes
from ...runners.inline_checkpoint import CHECKPOINT_FILE, InlineCheckpoint
from ...runners.runner_protocol import NodesJob
from ...sinks.position import read_position
from ...system import put_in_place, to_disk
from ..config.record import DeploymentRecord
from ..deployment.app_folder import AppRun, former_life
from ..deployment.node_plans import node_specs
from ..deployment.owner import acquire_home
from .run_from_journal import NOT_KEPT, finish_replacement, plan_again, reason_against, rebuild_run
from .verify_folder import list_state_damage

_ROWS = 100_000
"""Events of the journal that are worked on at once."""


@dataclass
class _Gap:
    """Files to be made again that follow one another in the outputs of a node (None: of all), between whole ones: the
    outputs of the steps between `after` and `before`."""

    files: list[OutputFile]
    node: int | None
    after: int
    before: int
    parts: list[pa.Table] = field(default_factory=list)
    """The outputs, as they are made again, with the columns of `table_of`."""

    def take(self, node: int, table: pa.Table) -> None:
        """Takes the outputs of a node that belong here, with columns `step`, timestamp and the attributes."""
        if self.node is not None and node != self.node:
            return
        gap_rows = table.filter(pc.and_(pc.greater(table["step"], self.after), pc.less(table["step"], self.before)))
        if gap_rows.num_rows:
            self.parts.append(
                spell_out(gap_rows).add_column(0, "node", pa.array([node] * gap_rows.num_rows, pa.int32()))
            )

    @property
    def rows(self) -> int:
        return sum(t.num_rows for t in self.parts)


def repair_folder(home: Path, variables: Mapping[str, str]) -> list[str]:
    """Make the damaged parts of an app's folder again; returns the actions, in words. `variables`: values of
    `${NAME}` in the app's text that its folder does not keep.

    Raises `Misuse` if the app is in use, and SparkStreamError if they cannot be made again: nothing is changed.
    """
    app_run = former_life(home)
    if app_run.deployed is None:
        raise Misuse(f"{home} does not say how its app was deployed: an earlier version wrote it")
    owner = acquire_home(home, app_run.deployed.name)
    try:
        place = finish_replacement(home, app_run)
        if place is not None:
            return [f"{app_run.deployed.name}: what an earlier repair had begun is done; the former run is in {place}"]
        if list_state_damage(home):
            return rebuild_run(home, app_run, app_run.deployed, plan_again(home, app_run.deployed, variables))
        return _repair(home, app_run, app_run.deployed, variables)
    finally:
        owner.release()


def _repair(home: Path, app_run: AppRun, record: DeploymentRecord, variables: Mapping[str, str]) -> list[str]:
    folder = app_run.folder(home)
    outputs = OutputFiles(folder / "outputs", app_run.shards)
    if outputs.accounted_batch < 0 and any(outputs.files(stream) for stream in _streams(outputs)):
        raise SparkStreamError(
            f"the outputs of {record.name} cannot be made again: {outputs.folder / WRITTEN}, with their number, is "
            "missing"
        )
    end = _committed_steps(app_run, folder)
    gaps = {stream: stream_gaps for stream in _streams(outputs) if (stream_gaps := list(_gaps(outputs, stream, end)))}
    if not gaps:
        return ["no file of outputs is damaged"]
    deployment_plan = plan_again(home, record, variables)
    deployment = replace(deployment_plan.deployment, start=app_run.start)
    reason = reason_against(app_run, folder, deployment_plan)
    if reason is not None:
        raise SparkStreamError(f"the outputs of {record.name} cannot be made again: {reason}")
    job = NodesJob(
        name=record.name, home=folder, run=f"repair-{app_run.run}",
        specs=node_specs(deployment, deployment_plan.plans, app_run),
        schemas={s: d.source.schema for s, d in deployment_plan.plan.streams.items()}, rows=_ROWS,
        partitions=app_run.partitions,
    )  # fmt: skip
    try:
        for row in _outputs_again(job):
            for gap in gaps.get(row.name, ()):
                gap.take(row.node, row.table())
    except FileNotFoundError:
        raise SparkStreamError(f"the outputs of {record.name} cannot be made again: {NOT_KEPT}") from None
    for stream, stream_gaps in gaps.items():
        _check_count(outputs, stream, stream_gaps)
        _check_followers(folder, stream, stream_gaps)
    return [_replace(gap) for stream_gaps in gaps.values() for gap in stream_gaps]


def _streams(outputs: OutputFiles) -> list[str]:
    return [unquote(f.name) for f in sorted(outputs.folder.glob("*/")) if not f.name.startswith(".")]


def _committed_steps(app_run: AppRun, folder: Path) -> int:
    """The number of steps of the committed entries."""
    home = folder / "checkpoint"
    checkpoint = InlineCheckpoint(home) if (home / CHECKPOINT_FILE).exists() else SparkCheckpoint.of(folder, None)
    _, last = checkpoint.done()
    return next((e.step + e.steps for e, _ in entries_from(folder / "inbox") if e.seq == last), 0)


def _gaps(outputs: OutputFiles, stream: str, end: int) -> Iterator[_Gap]:
    """The damaged files among the committed ones of a stream; `end`: the first step that is not committed.

    Damaged micro-batches that follow one another become one gap, as nothing says where one of them ends.
    """
    files = [f for f in outputs.files(stream) if f.last <= outputs.accounted_batch]
    damaged_paths = {f.path for f in files if _is_damaged(f)}
    batches = [list(group) for _, group in groupby(files, key=lambda f: f.first)]
    at = 0
    for is_damaged, run in groupby(batches, key=lambda b: any(f.path in damaged_paths for f in b)):
        run_batches = list(run)
        before, after = batches[:at][-1:], batches[at + len(run_batches) :][:1]
        at += len(run_batches)
        if not is_damaged:
            continue
        steps = _last_step(*before) if before else -1, _first_step(*after) if after else end
        if len(run_batches) > 1:
            yield _Gap([f for b in run_batches for f in b], None, *steps)
        else:
            yield from _gaps_of_nodes(run_batches[0], damaged_paths, *steps)


def _gaps_of_nodes(
    files: Sequence[OutputFile], damaged_paths: Collection[Path], after: int, before: int
) -> Iterator[_Gap]:
    """The gaps in the files of one micro-batch, or of one merged file: the files of a node follow one another."""
    for node in dict.fromkeys(f.node for f in files):
        node_files = [f for f in files if f.node == node]
        for at, is_damaged, run in _runs_of(node_files, damaged_paths):
            if is_damaged:
                yield _Gap(
                    run, node, _last_step(node_files[at - 1 : at]) if at else after,
                    _first_step(node_files[at + len(run) :][:1]) if at + len(run) < len(node_files) else before,
                )  # fmt: skip


def _runs_of(
    files: Sequence[OutputFile], damaged_paths: Collection[Path]
) -> Iterator[tuple[int, bool, list[OutputFile]]]:
    """(number of the first file, whether they are damaged, files) of the runs of damaged and whole files."""
    at = 0
    for is_damaged, group in groupby(files, key=lambda f: f.path in damaged_paths):
        run = list(group)
        yield at, is_damaged, run
        at += len(run)


def _is_damaged(file: OutputFile) -> bool:
    try:
        check_sealed(file.path)
        table_of(file)
    except DamagedFile:
        return True
    return False


def _first_step(files: Sequence[OutputFile]) -> int:
    return min(int(pc.min(table_of(f)["step"]).as_py()) for f in files)


def _last_step(files: Sequence[OutputFile]) -> int:
    return max(int(pc.max(table_of(f)["step"]).as_py()) for f in files)


def _outputs_again(job: NodesJob) -> Iterator[StreamEvents]:
    """The outputs of all nodes over the whole journal."""
    with temporary_folder("repair") as scratch:
        checkpoint = InlineCheckpoint(scratch / "checkpoint")
        checkpoint.open()
        nodes = InlineNodes(job, checkpoint, BatchCare.of(job.home / "inbox"), scratch / "outputs", lambda: None)
        try:
            while (batch_plan := nodes.plan()) is not None:
                rows, states = nodes.work(batch_plan)
                yield from (row for row in rows if isinstance(row, StreamEvents))
                checkpoint.finish(batch_plan, states)
                _forget_work(job.home / "inbox", batch_plan.end["seq"])
        finally:
            nodes.release()
            checkpoint.close()
            _forget_work(job.home / "inbox", sys.maxsize)


def _forget_work(inbox: Path, end: int) -> None:
    """Removes what the work on entries before number `end` left in the inbox. An app that continues makes it again."""
    forget_parts(inbox, end)
    forget_tasks(inbox, end)


def _check_count(outputs: OutputFiles, stream: str, gaps: Sequence[_Gap]) -> None:
    """Raise SparkStreamError unless the files of a stream would have as many outputs as were written. Of a gap at the
    beginning, whose oldest outputs were dropped, the others stay."""
    files = {f.path for gap in gaps for f in gap.files}
    intact_rows = sum(table_of(f).num_rows for f in outputs.files(stream) if f.path not in files)
    dropped_rows = outputs.dropped_events.get(stream, 0)
    lacking = outputs.totals().get(stream, 0) - dropped_rows - intact_rows
    repaired_rows = sum(gap.rows for gap in gaps)
    first = gaps[0]
    if dropped_rows and first.after < 0 and repaired_rows > lacking:
        table = in_order(first.parts)
        first.parts = [table.slice(repaired_rows - lacking)]
        repaired_rows = lacking
    if repaired_rows != lacking:
        raise SparkStreamError(
            f"the outputs of {stream} cannot be made again: {lacking:,} are damaged, and the journal gives "
            f"{repaired_rows:,}"
        )


def _check_followers(folder: Path, stream: str, gaps: Sequence[_Gap]) -> None:
    """Raise SparkStreamError if a sink is to continue inside of several files that become one."""
    for file in sorted((folder / "sinks").glob("*.json")):
        position = read_position(file)
        if position is None or position.stream != stream:
            continue
        for gap in gaps:
            first, last = gap.files[0].first, gap.files[-1].last
            if first <= position.batch < last or (position.batch == last and position.row and first < last):
                raise SparkStreamError(
                    f"the outputs of {stream} are not made again: the sink of {file.name} has sent a part of them only"
                )


def _replace(gap: _Gap) -> str:
    """Puts the outputs of a gap in the place of its files."""
    first, last = gap.files[0], gap.files[-1]
    table = in_order(gap.parts)
    if gap.node is None:
        path = last.path.with_name(f"{first.first:012d}-{last.last:012d}.arrows")
        write_merged(path, table, _sizes(gap))
    else:
        path, new = last.path, last.path.with_name(".new")
        write_private(new, add_seal(to_ipc(table.drop_columns(["node"]).combine_chunks())))
        to_disk(new)
        put_in_place(new, path)
    for file in gap.files:
        if file.path != path:
            file.path.unlink()
    names = ", ".join(f.path.name for f in gap.files)
    return f"{unquote(path.parent.name)}: {names}: {table.num_rows:,} outputs are made again from the journal"


def _sizes(gap: _Gap) -> list[tuple[int, int]]:
    """The micro-batches of a merged file with their rows: as its head says, if that can still be read."""
    if len(gap.files) == 1:
        with contextlib.suppress(SparkStreamError, ValueError, TypeError):
            sizes = sizes_of(gap.files)
            if sum(rows for _, rows in sizes) == gap.rows:
                return sizes
    return [(gap.files[-1].last, gap.rows)]
