"""Options of the commands on stored aggregations."""

from __future__ import annotations

from ...options import Options, add

_DATABASES = "a database that the app's text may name by its address: jdbc=postgresql://HOST:PORT/DATABASE or file=DIR"

_UPKEEP = {
    "shards": "list them with their rows",
    "rename": "OLD NEW, give the rows of one shard to another, which may have some",
    "delete": "SHARD, delete its rows",
    "add-shard-id": "SHARD, add SHARD_ID to tables that lack it",
    "drop": "drop the tables",
    "verify": "APP is a text, a name, a folder, a recording or the checkpoint of a streaming query: hold all that was "
    "written against its checksums",
    "repair": "make what is damaged of an app (a text, a name or a folder) again from its journal: outputs, and where "
    "checkpoint or store is damaged or gone, all of them",
    "rebuild": "make coarse durations of a finer one, or, with --from FILE, all of the events, as rows of SHARD",
}


def add_query(c: Options) -> None:
    """Options of `sparkstream query`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text")
    c.add_argument("query", metavar="QUERY", help="such as \"from Prices within ... per 'days' select *\"")
    add(c, "--by-shard", "--as-wso2", "--as-node")
    add(c, "--limit", default=1000, help="rows to print (default: 1,000)")
    add(c, "--conf", "--store", "--home", "--name", "--param", "--allow-env")
    add(c, "--offline", help="of an app that was deployed so: from its own store, and not from its databases")
    add(c, "--allow", help=_DATABASES)


def add_store(c: Options) -> None:
    """Options of `sparkstream store`."""
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
