"""The run of an app made again from its journal, where its checkpoint or its store is damaged or gone.

A node is a function of its input: the runner of the app works through the whole journal once more, without the app's
sources and sinks, into a new run with checkpoint, outputs and store of its own. When all is there, `app.json` is
replaced, which names the new run, and the former run and store go to the trash. A process that ends before that has
changed nothing. After it, the store still lacks the new run's micro-batches, so an app is refused, and the next repair
does the rest (`finish_replacement`).
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DamagedFile, SparkStreamError
from ...journal.journal import entries_from
from ...journal.kept import list_missing
from ...journal.private import private_folder
from ...outputs.commit import Progress
from ...outputs.output_files import OutputFile, OutputFiles, in_order, sizes_of, spell_out, table_of
from ...plan.query_parts import unrepeatable_functions
from ...runners.choice import session
from ...sinks.position import SinkPosition, read_position, write_position
from ..config.record import DeploymentRecord
from ..deployment.app_folder import AppRun, empty_trash
from ..planning import PlannedDeployment, plan_deployment
from ..running.app_files import AppDefinition, AppFiles

NOT_KEPT = "the beginning of its input is no longer kept; a larger retention, as recording=10GB, would keep it"
_STORE = ("store.duckdb.wal", "store.duckdb")
_MADE_AGAIN = ("checkpoint", "outputs", "sinks", "nodes.json", "marks")
_UNFINISHED = "unfinished"
"""A file in the folder of a new run that is not whole yet."""
_FORMER = "former-app.json"


def plan_again(home: Path, record: DeploymentRecord, variables: Mapping[str, str]) -> PlannedDeployment:
    """The deployment of a record. `variables`: values of `${NAME}` that the app's folder does not keep."""
    request = record.request(home)
    variables = {**(request.variables or {}), **variables}
    return plan_deployment(replace(request, variables=variables), attached=True)


def reason_against(app_run: AppRun, folder: Path, planned_deployment: PlannedDeployment) -> str | None:
    """Why the results of the run in `folder` cannot be had again from its journal, in words; None if they can."""
    functions = unrepeatable_functions(planned_deployment.plan)
    if app_run.change:
        return "it was changed while it ran, so its earlier input was for another app"
    if app_run.shared is not None:
        return "its input is at a shared address"
    if planned_deployment.deployment.connections.tables:
        return "its tables are in a database, whose contents at each time are not recorded"
    if next((entry.seq for entry, _ in entries_from(folder / "inbox")), 1) or list_missing(folder / "inbox", None):
        return NOT_KEPT
    return f"{' and '.join(functions)} would give other values" if functions else None


def rebuild_run(
    home: Path, app_run: AppRun, record: DeploymentRecord, planned_deployment: PlannedDeployment
) -> list[str]:
    """Make the checkpoint, the store and the outputs of an app again. Returns sentences on the result, and on outputs
    that differ from the former ones. The app's folder must belong to this process.

    Raises SparkStreamError if they cannot be made again: nothing is changed.
    """
    former_folder, deployment = app_run.folder(home), replace(planned_deployment.deployment, start=app_run.start)
    reason = reason_against(app_run, former_folder, planned_deployment)
    if reason is None and (deployment.request.store is not None or deployment.connections.databases):
        reason = "its aggregations are in a store outside of its folder"
    if reason is None and (deployment.request.master or "").startswith("sc://"):
        reason = "it runs at a Spark Connect server"
    if reason is not None:
        raise SparkStreamError(f"the checkpoint of {record.name} cannot be made again from its journal: {reason}")
    _remove_unfinished(home)
    new_run = replace(app_run, run=uuid.uuid4().hex[:12])
    folder = private_folder(new_run.folder(home))
    try:
        (folder / _UNFINISHED).touch()
        _copy_input(former_folder, folder)
        deployment = deployment.with_arguments(store=folder / _STORE[-1])
        entries = _work_through(AppDefinition(deployment, planned_deployment.plans, new_run), record.name)
        former_outputs = OutputFiles(former_folder / "outputs", app_run.shards)
        outputs = OutputFiles(folder / "outputs", app_run.shards)
        differences = list(_list_differences(former_outputs, outputs))
        _place_sinks(former_folder, former_outputs, outputs)
        shutil.copyfile(home / "app.json", folder / _FORMER)
        (folder / _UNFINISHED).unlink()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    new_run.write(home)
    place = finish_replacement(home, new_run)
    made_again = f"checkpoint, store and outputs are made again from {entries:,} entries of its journal"
    return [f"{record.name}: its {made_again}", *differences, f"The former ones are in {place}"]


def finish_replacement(home: Path, app_run: AppRun) -> Path | None:
    """Put the store of a new run in the app's folder, and all that is of the former run into the trash, as far as an
    earlier process has not done it; returns the place there, None if there was nothing to do. Each step may be
    repeated, and the last one ends the need for it."""
    folder = app_run.folder(home)
    if not (folder / _STORE[-1]).exists():
        return None
    place = empty_trash(home, app_run.run)
    for run_folder in home.glob("life-*"):
        if run_folder != folder:
            run_folder.rename(place / run_folder.name)
    for name in _STORE:
        if (place / name).exists():
            (home / name).unlink(missing_ok=True)  # made by an app that was refused meanwhile
        elif (home / name).exists():
            (home / name).rename(place / name)
    if (folder / _FORMER).exists():
        (folder / _FORMER).rename(place / "app.json")
    for name in _STORE:
        if (folder / name).exists():
            (folder / name).rename(home / name)
    return place


def _remove_unfinished(home: Path) -> None:
    """Remove the runs that earlier processes did not finish."""
    for marker in home.glob(f"life-*/{_UNFINISHED}"):
        shutil.rmtree(marker.parent)


def _copy_input(former_folder: Path, folder: Path) -> None:
    """Copy the input of a run, and the positions of its sources. Files of events are written once: another name for
    them is a copy."""

    def copy(source: str, target: str) -> None:
        if Path(source).parent.name == "inbox":
            try:
                os.link(source, target)
                return
            except OSError:  # a file system without links
                pass
        shutil.copy2(source, target)

    shutil.copytree(
        former_folder, folder, copy_function=copy, ignore=shutil.ignore_patterns(*_MADE_AGAIN), dirs_exist_ok=True
    )


def _work_through(definition: AppDefinition, name: str) -> int:
    """Works through the journal of a run; returns the number of its entries."""
    files = AppFiles(definition, session(definition.deployment.request.master), Progress())
    try:
        entries = files.inbox.position.seq
        if entries:
            files.stream.start()
            files.stream.wait(entries - 1)
        return entries
    finally:
        files.stream.stop()
        has_ended = files.stream.wait_for_end()
        files.close()
        if not has_ended:
            raise SparkStreamError(f"the checkpoint of {name} cannot be made again: its runner does not end")


# ---------------------------------------------------------------------------------------------------------- outputs


def _list_differences(former_outputs: OutputFiles, outputs: OutputFiles) -> Iterator[str]:
    """A sentence for each stream whose outputs are others than those that can still be read."""
    for folder in sorted(former_outputs.folder.glob("*/")):
        stream = unquote(folder.name)
        if folder.name.startswith("."):
            continue
        table = outputs.read(stream, sys.maxsize)
        files = [f for f in former_outputs.files(stream) if f.last <= former_outputs.accounted_batch]
        rows = [part for _, group in groupby(files, key=lambda f: (f.first, f.node)) for part in _readable(list(group))]
        other_rows = sum(not _has_rows(table, part) for part in rows)
        if other_rows:
            yield (
                f"{stream}: the outputs of {other_rows:,} of {len(rows):,} micro-batches are others than those that "
                "were there"
            )
        elif table is not None and rows and former_outputs.describe_lacking() is None:
            last_step = max(pc.max(part["step"]).as_py() for part in rows)
            new_rows = pc.sum(pc.less_equal(table["step"], last_step)).as_py() + outputs.dropped_events.get(stream, 0)
            former_rows = former_outputs.totals().get(stream, new_rows)
            if new_rows != former_rows:
                yield f"{stream}: {new_rows:,} outputs up to the last one that was there, which were {former_rows:,}"


def _readable(files: Sequence[OutputFile]) -> list[pa.Table]:
    """The outputs of a node in a micro-batch, or of all of a merged file; none if a file is damaged, or has none."""
    try:
        table = in_order([table_of(file) for file in files])
    except DamagedFile:
        return []
    return [table] if table.num_rows else []


def _has_rows(table: pa.Table | None, part: pa.Table) -> bool:
    """True if `part` has the same rows as `table` has at its steps and nodes. Steps that retention has dropped from
    `table` are not compared."""
    if table is None:
        return False
    bounds = pc.min_max(part["step"]).as_py()
    first_kept = pc.min(table["step"]).as_py()
    nodes = pc.unique(part["node"])
    at_steps = pc.and_(
        pc.greater_equal(table["step"], bounds["min"]), pc.less_equal(table["step"], bounds["max"])
    )
    rows = spell_out(table.filter(pc.and_(at_steps, pc.is_in(table["node"], nodes))))
    part = spell_out(part.filter(pc.greater_equal(part["step"], first_kept)))
    return rows.num_rows == part.num_rows and _same_values(rows, part)


def _same_values(rows: pa.Table, others: pa.Table) -> bool:
    """True if two tables have the same values; NaN is the same as NaN."""
    return rows.column_names == others.column_names and all(
        a.combine_chunks().cast(b.type).to_pandas().equals(b.combine_chunks().to_pandas())
        for a, b in zip(rows.columns, others.columns, strict=True)
    )


# ------------------------------------------------------------------------------------------------------------ sinks


def _place_sinks(former_folder: Path, former_outputs: OutputFiles, outputs: OutputFiles) -> None:
    """Write the positions of the sinks in the new outputs: behind as many outputs as they have dealt with."""
    for file in sorted((former_folder / "sinks").glob("*.json")):
        position = read_position(file)
        if position is None:
            continue
        count = _outputs_before(position, former_outputs) - outputs.dropped_events.get(position.stream, 0)
        batch, row = _place_after(outputs, position.stream, max(count, 0))
        write_position(outputs.folder.parent / "sinks" / file.name, replace(position, batch=batch, row=row))


def _outputs_before(position: SinkPosition, outputs: OutputFiles) -> int:
    """The number of outputs before a position: from the outputs, or, where they are damaged, by what the sink has
    counted."""
    last_batch = outputs.accounted_batch
    if outputs.describe_lacking() is not None or position.stream not in outputs.totals():
        return position.sent + position.failed + position.dropped
    return outputs.totals()[position.stream] - outputs.count_after(
        position.stream, position.batch, position.row, last_batch
    )


def _place_after(outputs: OutputFiles, stream: str, count: int) -> tuple[int, int]:
    """The micro-batch and row that follow the first `count` outputs of a stream that are kept."""
    batch = 0
    for _, group in groupby(outputs.files(stream), key=lambda f: f.first):
        for batch, rows in sizes_of(list(group)):
            if count <= rows:
                return batch, count
            count -= rows
    return batch + 1, 0
