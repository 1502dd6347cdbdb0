"""Looking after the stored aggregations of an app that is not deployed: shards, and tables from before partitioning."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import Misuse, StoreError, nearest
from ...plan import compile_app
from ...plan.connectors.without_connections import compile_offline
from ...plan.nodes import AggregationDef, Plan
from ...stores import Store
from ...stores.address import MEMORY, Database
from ...stores.patience import Patience
from ..config.conf import NodeFile, node_files
from ..config.grants import Grants
from ..config.secrets import References
from ..connectors.stores import databases_of, open_store
from ..deployment.deployment import check_zone
from .rebuild_stored import EventFile, finer_of, from_finer, from_log


@dataclass(frozen=True)
class StoredApp:
    """The stores of an app's aggregations: `store`, a DuckDB file, and the databases that its `@store`s name.

    `text`: the app. `conf`: the nodes' deployment files, and `timezone`, as for `deploy`. `grants`: the databases that
    the app's text may name by their addresses. `offline`: the app was deployed without its databases.
    """

    text: str = field(repr=False)
    store: Path
    conf: Sequence[Path] = ()
    references: References = field(default_factory=References, repr=False)
    timezone: str = "UTC"
    grants: Grants = field(default_factory=Grants)
    offline: bool = False

    def compile_text(self, properties: Mapping[str, str]) -> Plan:
        """The app's plan with the properties of a node. Raises SiddhiError for a wrong app."""
        if self.offline:
            return compile_offline(self.text, properties, self.references.variables)[1]
        return compile_app(self.text, properties, self.references.variables)

    def databases(self, plans: Sequence[Plan], files: Sequence[NodeFile]) -> dict[str, Database]:
        """The database of each aggregation that has one. Raises as `databases_of`."""
        return {} if self.offline else databases_of(plans, files, self.references, self.grants)


@dataclass(frozen=True)
class StoreMaintenance:
    """The store of an app that is open for upkeep, and the aggregations in it that are partitioned by id."""

    store: Store
    aggregations: Mapping[str, AggregationDef]
    plan: Plan
    problem: StoreError | None = None
    """Why the tables do not fit the app."""

    def shards(self) -> list[tuple[str, str, int]]:
        """(aggregation, shard id, stored rows) of each. Raises StoreError if the tables do not fit the app."""
        self._check()
        return [(a, s.shard, s.rows) for a in self.aggregations for s in self.store.shards(a)]

    def rename(self, old: str, new: str, *, dry_run: bool = False) -> list[str]:
        """Gives the rows of shard `old` to `new`, merged with those that it has: it is renamed, or adopted. Says what
        is done. Raises `Misuse` for a shard that holds nothing."""
        return self._each(old, lambda a: self.store.move_shard(a, old, new), f"go to shard '{new}'", dry_run)

    def delete(self, shard: str, *, dry_run: bool = False) -> list[str]:
        """Delete the rows of a shard; returns the actions, in words. Raises `Misuse` for a shard that holds nothing."""
        return self._each(shard, lambda a: self.store.delete_shard(a, shard), "are deleted", dry_run)

    def _check(self) -> None:
        if self.problem is not None:
            raise self.problem

    def rebuild(self, finer: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Compute the durations above `finer`, by default the smallest, from its rows; returns the actions, in words.
        Raises `Misuse` for a duration that is not finer.
        """
        self._check()
        zone = self.plan.properties["aggTimeZone"]
        with_finer = [(d, finer_of(finer, d)) for d in self.aggregations.values()]
        return [x for d, f in with_finer for x in from_finer(self.store, d, f, zone, dry_run=dry_run)]

    def rebuild_from(self, log: EventFile, shard: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Compute an aggregation from its events, as rows of `shard`; returns the actions, in words. Raises `Misuse`
        for several aggregations, and for an unsuitable log (`rebuild_stored.from_log`).
        """
        self._check()
        if len(self.aggregations) != 1:
            raise Misuse("events rebuild one aggregation: name it with --aggregation")
        (definition,) = self.aggregations.values()
        return from_log(self.store, self.plan, definition, log, shard, dry_run=dry_run)

    def _each(self, shard: str, work: Callable[[str], None], what: str, dry_run: bool) -> list[str]:
        rows_by_aggregation = {a: n for a, s, n in self.shards() if s == shard}
        if not rows_by_aggregation:
            shards = {s for _, s, _ in self.shards()}
            raise Misuse(nearest(f"no aggregation has rows of a shard '{shard}'", shard, shards))
        if not dry_run:
            for aggregation in rows_by_aggregation:
                work(aggregation)
        return [f"{a}: {n:,} rows of shard '{shard}' {what}" for a, n in rows_by_aggregation.items()]

    def add_shard_id(self, shard: str, *, dry_run: bool = False) -> list[str]:
        """Add SHARD_ID to tables that lack it, and to their keys; their rows become rows of `shard`. Returns the
        statements.
        """
        return [s for a in self.aggregations for s in self.store.add_shard_id(a, shard, dry_run=dry_run)]

    def drop(self, *, dry_run: bool = False) -> list[str]:
        """Drop all tables of the aggregations; the next deployment creates them again. Returns the actions, in words.
        """
        for aggregation in () if dry_run else self.aggregations:
            self.store.drop(aggregation)
        return [f"{a}: its tables are dropped" for a in self.aggregations]


@contextlib.contextmanager
def open_maintenance(app: StoredApp, aggregation: str | None = None) -> Iterator[StoreMaintenance]:
    """Opens the store of an app, for one of its aggregations or for all. No node of the app may run meanwhile.

    Tables that do not fit are accepted, as maintenance may repair them. Raises StoreError if a database
    cannot be opened, `Misuse` for an unknown aggregation, and SiddhiError for a wrong app.
    """
    files: tuple[NodeFile, ...] = tuple(node_files(list(app.conf), references=app.references)) if app.conf else ()
    file_properties = [dict(f.properties) for f in files] or [{}]
    ids = [f.shard_id for f in files] or ["node-1"]
    check_zone(app.timezone)
    defaults = {"partitionById": "true", "aggTimeZone": app.timezone}
    plans = [
        app.compile_text({**defaults, **g, "shardId": s})
        for g, s in zip(file_properties, ids, strict=True)
    ]
    aggregations = plans[0].aggregations
    if aggregation is not None and aggregation not in aggregations:
        raise Misuse(nearest(f"the app has no aggregation '{aggregation}'", aggregation, aggregations))
    selection = {a: d for a, d in aggregations.items() if aggregation in (None, a)}
    databases = app.databases(plans, files)
    outside = set(selection) <= set(databases)
    if not outside and not app.store.exists():
        raise StoreError(f"There is no store {app.store}. Name the DuckDB file of the aggregations.")
    store_path = MEMORY if outside and not app.store.exists() else str(app.store)
    store = open_store(store_path, databases, Patience(seconds=0))
    try:
        problem = None
        try:
            store.prepare(selection.values())
        except StoreError as e:
            problem = e
        yield StoreMaintenance(store, selection, plans[0], problem)
    finally:
        store.close()
