"""Removal of an app's rows from stores outside its folder by `fresh`: reported, with DuckDB files copied to the trash
first.

The owner of an aggregation in such a store is not known: another app may have one of the same name.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import StoreError
from ...journal.private import private_file, private_folder
from ...plan.nodes import AggregationDef
from ...stores import BucketRange, Store
from ...stores.address import MEMORY
from .deployment import Deployment

_ALWAYS = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class OutsideStore:
    """A store outside an app's folder, with `aggregations` of the app. `where` is its place for messages; its `file`,
    and the place of its copy, if it is a DuckDB file. Others may share a store that is a `database`.
    """

    where: str
    database: bool
    aggregations: tuple[AggregationDef, ...]
    file: Path | None = None
    copy: Path | None = None

    def copy_to_trash(self) -> None:
        """Copies the file, which must not be open here. Raises StoreError if that cannot be done."""
        if self.file is None or self.copy is None:
            return
        try:
            private_folder(self.copy.parent)
            for one, other in _with_log(self.file, self.copy):
                if one.exists():
                    shutil.copyfile(one, private_file(other))
        except OSError as e:
            self._forget_copy()
            raise StoreError(
                f"The store {self.where} cannot be copied to {self.copy}: {e.strerror or e}. Nothing was removed from "
                "it; make room, or deploy the app without fresh."
            ) from None

    def empty(self, store: Store, writers: Callable[[str], Sequence[str]]) -> str | None:
        """Remove the aggregations, in a database only the rows of the shards that `writers` names; returns the removed
        parts, in words. None if there was nothing: then there is no copy either.
        """
        store.prepare(self.aggregations)
        emptied_names = []
        for aggregation in self.aggregations:
            shards = tuple(writers(aggregation.id)) if self.database and aggregation.partitioned else None
            if _holds(store, aggregation, shards):
                of = "" if shards is None else f" (shards {', '.join(shards)})"
                emptied_names.append(f"{aggregation.id}{of}")
            if shards is None:
                store.drop(aggregation.id)
            for shard in shards or ():
                store.delete_shard(aggregation.id, shard)
        if not emptied_names:
            self._forget_copy()
            return None
        copy_sentence = "There is no copy" if self.copy is None else f"The file as it was is {self.copy}"
        names = ", ".join(emptied_names)
        return f"fresh removed from {self.where} what was there of {names}, whichever app wrote it. {copy_sentence}."

    def _forget_copy(self) -> None:
        if self.file is not None and self.copy is not None:
            with contextlib.suppress(OSError):
                for _, copy in _with_log(self.file, self.copy):
                    copy.unlink(missing_ok=True)
                self.copy.parent.rmdir()  # other things in the trash stay


def outside_stores(
    deployment: Deployment, aggregations: Iterable[AggregationDef], trash: Path
) -> tuple[OutsideStore, ...]:
    """The stores outside the app's folder, each with its aggregations; copies go to the folder `trash`."""
    by_store: dict[tuple[str, bool, Path | None], list[AggregationDef]] = {}
    for aggregation in aggregations:
        database, store = deployment.connections.databases.get(aggregation.id), deployment.request.store
        if database is not None:
            file = Path(database.name) if database.kind == "duckdb" else None
            by_store.setdefault((str(database), True, file), []).append(aggregation)
        elif store is not None and str(store) != MEMORY:
            by_store.setdefault((str(store), False, Path(store)), []).append(aggregation)
    return tuple(
        OutsideStore(
            where, database, tuple(its), file,
            None if file is None or not file.exists() else trash / f"store-{number}-{file.name}",
        )
        for number, ((where, database, file), its) in enumerate(by_store.items(), 1)
    )  # fmt: skip


def _with_log(file: Path, copy: Path) -> list[tuple[Path, Path]]:
    """A DuckDB file and its log, each with its copy."""
    return [(file, copy), (file.with_name(f"{file.name}.wal"), copy.with_name(f"{copy.name}.wal"))]


def _holds(store: Store, aggregation: AggregationDef, shards: Sequence[str] | None) -> bool:
    """True if there are rows of an aggregation, of these shards alone where they are given."""
    if shards is not None:
        return any(s.rows and s.shard in shards for s in store.shards(aggregation.id))
    return any(store.count(aggregation.id, per, BucketRange(*_ALWAYS, 1)) for per in aggregation.durations)
