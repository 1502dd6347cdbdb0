"""Stored aggregations: `sparkstream query`, `sparkstream store`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import Misuse
from ..options import add, read_text
from .app_texts import compile_plan, many
from .commands import Commands


def add_query(commands: Commands) -> None:
    """Add `sparkstream query`."""
    c = commands.add(
        "query",
        query,
        "Answer an on-demand query from stored aggregations, without running the app.",
        "t.siddhi \"from Totals within '2024-**-**' per 'days' select *\"",
    )
    c.add_argument("app", metavar="APP.siddhi", help="the app's text")
    c.add_argument("query", metavar="QUERY", help="such as \"from Prices within ... per 'days' select *\"")
    add(c, "--by-shard", "--as-wso2")
    add(c, "--limit", default=1000, help="rows to print (default: 1,000)")
    add(c, "--conf", "--store", "--home", "--name", "--param", "--allow-env")
    add(c, "--offline", help="of an app that was deployed so: from its own store, and not from its databases")
    add(c, "--allow", help=_DATABASES)


def query(options: Any) -> int:
    """`sparkstream query`. It only reads; nodes that write to a database may run meanwhile."""
    from dataclasses import replace

    from ..app.config.grants import Grants
    from ..app.config.secrets import References
    from ..app.deployment.app_folder import default_home, document_home
    from ..app.stored.maintenance import StoredApp
    from ..app.stored.stored_queries import query_stored
    from ..lab import connect

    connect()
    text, references = read_text(options.app), References(dict(options.param), tuple(options.allow_env))
    name = options.name or compile_plan(options).name
    home = Path(options.home or (document_home(Path(options.app)) if name is None else default_home(name)))
    file = home / "store.duckdb" if options.store is None else Path(options.store)
    conf = [Path(p) for p in options.conf or ()]
    app = StoredApp(text, file, conf, references, grants=Grants.of(options.allow), offline=options.offline)
    answer = query_stored(app, options.query, limit=options.limit, as_wso2=options.as_wso2)
    print(replace(answer, beside=options.by_shard))
    return 0


_DATABASES = "a database that the app's text may name by its address: jdbc=postgresql://HOST:PORT/DATABASE or file=DIR"


_UPKEEP = {
    "shards": "list them with their rows",
    "rename": "OLD NEW, give the rows of one shard to another, which may have some",
    "delete": "SHARD, delete its rows",
    "add-shard-id": "SHARD, add SHARD_ID to tables that lack it",
    "drop": "drop the tables",
    "verify": "APP is a text, a name, a folder or a recording: hold all that was written against its checksums",
    "repair": "make damaged outputs of an app (a text, a name or a folder) again from its journal",
    "rebuild": "make coarse durations of a finer one, or, with --from FILE, all of the events, as rows of SHARD",
}


def add_store(commands: Commands) -> None:
    """Add `sparkstream store`."""
    what = "Look after stored aggregations: shards, and tables from before partitioning."
    c = commands.add("store", store, what, "shards trades.siddhi")
    c.add_argument("action", choices=_UPKEEP, metavar="ACTION", help="; ".join(f"{a}: {w}" for a, w in _UPKEEP.items()))
    c.add_argument("app", metavar="APP.siddhi", help="the app's text")
    c.add_argument("shards", metavar="SHARD", nargs="*", help="the shard ids that the action is for")
    c.add_argument("--from", dest="origin", metavar="FROM", help="rebuild: a finer duration, a .csv or a .parquet file")
    add(c, "--time", help="rebuild: the file's column of event times, for an aggregation without 'aggregate by'")
    c.add_argument("--aggregation", metavar="NAME", help="this aggregation only")
    c.add_argument("--dry-run", action="store_true", help="say what would be done, without doing it")
    add(c, "--conf", "--store", "--home", "--name", "--timezone", "--param", "--allow-env")
    add(c, "--offline", help="of an app that was deployed so: from its own store, and not from its databases")
    add(c, "--allow", help=_DATABASES)


def store(options: Any) -> int:
    """`sparkstream store`. No node of the app may run meanwhile."""
    if options.action == "verify":
        return _verify(options)
    if options.action == "repair":
        return _repair(options)
    from ..app.config.grants import Grants
    from ..app.config.secrets import References
    from ..app.deployment.app_folder import default_home
    from ..app.stored.maintenance import StoredApp, open_maintenance
    from ..app.stored.rebuild_stored import EventFile

    file_given = options.origin is not None and Path(options.origin).suffix in (".csv", ".parquet")
    shard_count = {"rename": 2, "delete": 1, "add-shard-id": 1}.get(options.action, 0)
    if options.action == "rebuild" and file_given:
        shard_count = min(len(options.shards), 1)
    if options.action != "rebuild" and (options.origin, options.time) != (None, None):
        raise Misuse("--from and --time are for sparkstream store rebuild")
    if len(options.shards) != shard_count:
        raise Misuse(f"sparkstream store {options.action} takes {many(shard_count, 'shard id')} after the app")
    text, references = read_text(options.app), References(dict(options.param), tuple(options.allow_env))
    name = options.name or compile_plan(options).name or Path(options.app).stem
    home = default_home(name) if options.home is None else Path(options.home)
    file = home / "store.duckdb" if options.store is None else Path(options.store)
    conf = [Path(p) for p in options.conf or ()]
    app = StoredApp(text, file, conf, references, options.timezone, Grants.of(options.allow), options.offline)
    with open_maintenance(app, options.aggregation) as maintenance:
        if options.action == "shards":
            lines = [f"{a}: shard '{s}', {many(n, 'row')}" for a, s, n in maintenance.shards()] or [
                "no rows are stored"
            ]
        elif options.action == "rename":
            lines = maintenance.rename(*options.shards, dry_run=options.dry_run)
        elif options.action == "delete":
            lines = maintenance.delete(*options.shards, dry_run=options.dry_run)
        elif options.action == "add-shard-id":
            lines = maintenance.add_shard_id(*options.shards, dry_run=options.dry_run)
        elif options.action == "drop":
            lines = maintenance.drop(dry_run=options.dry_run)
        elif file_given:
            log = EventFile(Path(options.origin), options.time)
            lines = maintenance.rebuild_from(log, *options.shards, dry_run=options.dry_run)
        else:
            lines = maintenance.rebuild(options.origin, dry_run=options.dry_run)
    print("\n".join([*lines, *(["nothing was changed (--dry-run)"] if options.dry_run else [])]))
    return 0


def _verify(options: Any) -> int:
    """`sparkstream store verify`: 1 if something is damaged. It only reads; the app may run meanwhile."""
    from ..app.stored.verify_folder import verify_folder, verify_recording

    path = Path(options.app)
    if options.shards:
        raise Misuse("sparkstream store verify takes an app, and no shard id")
    result = verify_recording(path) if path.suffix == ".parquet" else verify_folder(_folder_of(options))
    print(result)
    return 1 if result.damage else 0


def _repair(options: Any) -> int:
    """`sparkstream store repair`. No node of the app may run meanwhile."""
    from ..app.stored.repair_outputs import repair_folder
    from ..lab import connect

    if options.shards:
        raise Misuse("sparkstream store repair takes an app, and no shard id")
    connect()
    print("\n".join(repair_folder(_folder_of(options), dict(options.param))))
    return 0


def _folder_of(options: Any) -> Path:
    """The folder of the app that is named by its text, its name or its folder."""
    from ..app.deployment.app_folder import default_home

    path = Path(options.app)
    if options.home is not None:
        return Path(options.home)
    if path.is_dir():
        return path
    name = compile_plan(options).name or path.stem if path.suffix == ".siddhi" else options.app
    return default_home(options.name or name)
