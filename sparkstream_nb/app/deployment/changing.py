"""An app that is deployed again with another text: the parts of its run that continue, and those that start again.

The run continues with its journal, checkpoint, ledger, and positions of sources and sinks. All that came in is
committed by the former app first (`has_pending`), so entries and micro-batches before the change are of the former app,
those after it of the new one. Then `app.json` is replaced: that is the moment of the change. The parts to remove are
named in it too, and are removed when the app is opened, as often as a crash demands (`purge_dropped`).
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import Misuse
from ...journal.inbox import entries_in
from ...journal.private import private_folder
from ...outputs.output_files import OutputFiles
from ...plan.nodes import Plan
from ...plan.state_units import UnitChanges, unit_changes
from ...runners.choice import checkpoint_of, keep_checkpoint
from ...runners.spark.handover import left
from ...sinks.position import count_unsent
from ...stores.duckdb import forget_aggregations
from ...system import put_in_place

if TYPE_CHECKING:
    from .app_folder import AppRun

_MOST_NAMED = 12
"""Names of one kind in a sentence."""


def has_pending(home: Path, app_run: AppRun) -> bool:
    """True if anything that came in during a life is not committed: the app must not be changed before that."""
    folder = app_run.folder(home)
    progress = checkpoint_of(app_run.runner, folder, app_run.shared_folder).read_progress()
    return bool(
        progress.planned != progress.done
        or entries_in(folder / "inbox") > progress.reached
        or left(folder, app_run.shared_folder)
    )


def plan_change(home: Path, previous_run: AppRun, plan: Plan, schemas: AppRun) -> tuple[AppRun, UnitChanges]:
    """The run of an app from its change to `plan` on, and the changes of its units. `schemas` is a run that begins with
    the plan. Raises `Misuse` if something that came in is not committed.
    """
    if has_pending(home, previous_run):
        raise Misuse(
            f"{home} cannot continue with another app: some of its input is not committed. Deploy the former app, let "
            "it finish (app.flush()), and deploy this one then; fresh=True (--fresh) starts from scratch"
        )
    progress = checkpoint_of(
        previous_run.runner, previous_run.folder(home), previous_run.shared_folder
    ).read_progress()
    number = previous_run.change + 1
    unit_diff = unit_changes(previous_run.units, plan, number)
    others = [
        s for s in {*previous_run.schemas, *schemas.schemas} if previous_run.schemas.get(s) != schemas.schemas.get(s)
    ]
    reset_units = [
        key.partition(" ") for key in (*unit_diff.added, *unit_diff.changed, *unit_diff.bound, *unit_diff.removed)
    ]
    new_run = replace(
        previous_run,
        plan=schemas.plan,
        units=unit_diff.units,
        schemas=schemas.schemas,
        change=number,
        changed=progress.reached,
        fresh=tuple(name for kind, _, name in reset_units if kind == "aggregation"),
        entries={**previous_run.entries, **dict.fromkeys(others, progress.reached)},
        batches={**previous_run.batches, **dict.fromkeys(others, progress.planned + 1)},
        aside=uuid.uuid4().hex[:12],
    )
    return new_run, unit_diff


def copy_to_trash(home: Path, previous_run: AppRun, new_run: AppRun, place: Path) -> None:
    """Copy the parts that the change drops into the trash, at `place`: the nodes' states, and the store if some of it
    goes.
    """
    shutil.copy2(home / "app.json", place / "app.json")  # first: copies that are cut short need not be kept
    checkpoint_copy = private_folder(place / f"life-{previous_run.run}") / "checkpoint"
    if previous_run.shared_folder is not None:
        try:
            previous_run.shared_folder.below("checkpoint").copy_to(checkpoint_copy)
        except OSError as error:
            raise previous_run.shared_folder.unreached_error(error) from None
    else:
        keep_checkpoint(previous_run.runner, previous_run.folder(home), checkpoint_copy)
    for name in ("store.duckdb", "store.duckdb.wal"):
        if new_run.fresh and (home / name).exists():
            shutil.copy2(home / name, place / name)


def purge_dropped(home: Path, app: str, app_run: AppRun, *, own_store: bool) -> None:
    """Remove the parts that the last change of an app restarted: outputs of streams that have other attributes since,
    which go to the trash, and aggregations of the app's own store. Running it again has no effect.
    """
    if not app_run.change:
        return
    outputs = OutputFiles(app_run.folder(home) / "outputs", app_run.shards)
    for stream, first in app_run.batches.items():
        old = [f for f in outputs.files(stream) if f.last < first]
        if old:
            outputs.forget(stream)
        place = home / "trash" / str(app_run.aside) / "outputs" / outputs.stream_folder(stream).name
        for file in old:
            with contextlib.suppress(FileNotFoundError):
                put_in_place(file.path, private_folder(place) / file.path.name)
    store = home / "store.duckdb"
    if own_store and app_run.fresh and store.exists():
        forget_aggregations(store, (app, f"{app_run.run}/change", app_run.change), app_run.fresh)


def unsent_before(home: Path, previous_run: AppRun, new_run: AppRun) -> int:
    """The number of unsent outputs of streams whose attributes change: they are not sent."""
    streams = {s for s in new_run.batches if new_run.batches[s] != previous_run.batches.get(s)}
    return count_unsent(previous_run.folder(home), streams)


Fate = Literal["kept", "changed", "dropped"]
"""The fate of an app's state."""


@dataclass(frozen=True)
class Changes:
    """The effect of a deployment on the app's state: there is none yet (`begun`), all of it continues (`kept`), or the
    parts named in `units` (`changed`), or all is `dropped`, for a `reason`.
    """

    app: str
    becomes: Fate | Literal["begun"]
    reason: str | None = None
    units: UnitChanges | None = None

    def __repr__(self) -> str:
        if self.becomes == "begun":
            return f"{self.app} has no state yet: it begins."
        if self.becomes == "kept":
            return f"{self.app} continues with all of its state: the change does not affect it."
        if self.units is None:
            return f"{self.app} starts from scratch, and all of its state is dropped: {self.reason}."
        return "\n  ".join([f"{self.app} continues where it is, with the unchanged parts.", *_lines(self.units)])


def _lines(changes: UnitChanges) -> list[str]:
    """The fates of a changed app's parts, a line for each."""
    fates = (
        ("Kept", changes.kept),
        ("Started from scratch, as they changed", changes.changed),
        ("Started from scratch, as a named window that they read starts from scratch or is read again", changes.bound),
        ("New", changes.added),
        ("Dropped", changes.removed),
    )
    return [f"{words}: {_list_units(keys)}." for words, keys in fates if keys]


def describe_changes(changes: UnitChanges, trash: Path, left: int) -> str:
    """The fate of a changed app's state, in words."""
    out = ["The app was changed, and continues where it was.", *_lines(changes)]
    if changes.changed or changes.bound or changes.removed:
        out.append(f"Dropped state is in {trash}.")
    if left:
        out.append(
            f"Outputs that sinks had not sent, of streams whose attributes changed ({left:,}), will not be sent."
        )
    return " ".join(out)


def _list_units(keys: Sequence[str]) -> str:
    """Units by kind: `queries a, b, table T`."""
    by_kind: dict[str, list[str]] = {}
    for key in keys:
        kind, _, name = key.partition(" ")
        by_kind.setdefault(kind, []).append(name)
    return ", ".join(_some(kind, names) for kind, names in by_kind.items())


def _some(kind: str, names: Iterable[str]) -> str:
    names = list(names)
    several = {"query": "queries"}.get(kind, f"{kind}s") if len(names) > 1 else kind
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{several} {', '.join(names[:_MOST_NAMED])}{more}"
