"""`sparkstream store`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...app.config.grants import Grants
from ...app.config.secrets import References
from ...app.deployment.app_folder import default_home
from ...app.stored.maintenance import StoredApp, StoreMaintenance, open_maintenance
from ...app.stored.rebuild_stored import EventFile
from ...app.stored.repair_outputs import repair_folder
from ...app.stored.verify_folder import verify_checkpoint, verify_folder, verify_recording
from ...charts.value_texts import format_count
from ...errors import Misuse
from ...journal.query_checkpoint import QueryCheckpoint
from ...lab import connect
from ...siddhi_process import read_app
from ..compiling import compile_plan


def run(options: Any) -> int:
    """`sparkstream store`. No node of the app may run meanwhile."""
    if options.action == "verify":
        return _verify(options)
    if options.action == "repair":
        return _repair(options)
    _check_arguments(options)
    app = _stored_app(options)
    with open_maintenance(app, options.aggregation) as maintenance:
        lines = _maintain(maintenance, options)
    print("\n".join([*lines, *(["nothing was changed (--dry-run)"] if options.dry_run else [])]))
    return 0


def _is_from_file(options: Any) -> bool:
    """True if `--from` names a file of events, and not a finer duration."""
    return options.origin is not None and Path(options.origin).suffix in (".csv", ".parquet")


def _check_arguments(options: Any) -> None:
    """Raises `Misuse` for an option of another action, and for too many or too few shard ids."""
    shard_count = {"rename": 2, "delete": 1, "add-shard-id": 1}.get(options.action, 0)
    if options.action == "rebuild" and _is_from_file(options):
        shard_count = min(len(options.shards), 1)
    if options.action != "rebuild" and (options.origin, options.time) != (None, None):
        raise Misuse("--from and --time are for sparkstream store rebuild")
    if len(options.shards) != shard_count:
        raise Misuse(f"sparkstream store {options.action} takes {format_count(shard_count, 'shard id')} after the app")


def _stored_app(options: Any) -> StoredApp:
    """The app, with the store that the options or its name tell."""
    text, references = read_app(options.app), References(dict(options.param), tuple(options.allow_env))
    name = options.name or compile_plan(options).name or Path(options.app).stem
    home = default_home(name) if options.home is None else Path(options.home)
    file = home / "store.duckdb" if options.store is None else Path(options.store)
    conf = [Path(p) for p in options.conf or ()]
    return StoredApp(text, file, conf, references, options.timezone, Grants.of(options.allow), options.offline)


def _maintain(maintenance: StoreMaintenance, options: Any) -> list[str]:
    """Carries the action out; returns lines that say what was done."""
    match options.action:
        case "shards":
            rows = [f"{a}: shard '{s}', {format_count(n, 'row')}" for a, s, n in maintenance.shards()]
            return rows or ["no rows are stored"]
        case "rename":
            return maintenance.rename(*options.shards, dry_run=options.dry_run)
        case "delete":
            return maintenance.delete(*options.shards, dry_run=options.dry_run)
        case "add-shard-id":
            return maintenance.add_shard_id(*options.shards, dry_run=options.dry_run)
        case "drop":
            return maintenance.drop(dry_run=options.dry_run)
    if _is_from_file(options):
        log = EventFile(Path(options.origin), options.time)
        return maintenance.rebuild_from(log, *options.shards, dry_run=options.dry_run)
    return maintenance.rebuild(options.origin, dry_run=options.dry_run)


def _verify(options: Any) -> int:
    """`sparkstream store verify`: 1 if something is damaged. It only reads; the app may run meanwhile."""
    path = Path(options.app)
    if options.shards:
        raise Misuse("sparkstream store verify takes an app, and no shard id")
    is_recording = path.suffix == ".parquet" or (path.suffix != ".siddhi" and path.is_file())
    if is_recording:
        result = verify_recording(path)
    elif not (path / "app.json").exists() and QueryCheckpoint(path).is_there():
        result = verify_checkpoint(path)
    else:
        result = verify_folder(_folder_of(options))
    print(result)
    return 1 if result.damage else 0


def _repair(options: Any) -> int:
    """`sparkstream store repair`. No node of the app may run meanwhile."""
    if options.shards:
        raise Misuse("sparkstream store repair takes an app, and no shard id")
    connect()
    print("\n".join(repair_folder(_folder_of(options), dict(options.param))))
    return 0


def _folder_of(options: Any) -> Path:
    """The folder of the app that is named by its text, its name or its folder."""
    path = Path(options.app)
    if options.home is not None:
        return Path(options.home)
    if path.is_dir():
        return path
    name = compile_plan(options).name or path.stem if path.suffix == ".siddhi" else options.app
    return default_home(options.name or name)
