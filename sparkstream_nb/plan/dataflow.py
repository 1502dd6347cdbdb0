"""Index of the queries of a plan by the ids that they read and write, so that analyses of large apps take linear time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from . import nodes as n
from .query_parts import inserts_into, sources, tables_of


class Dataflow:
    """The queries of a plan by number, in the order of the text, and those that read or write a stream or table."""

    def __init__(self, plan: n.Plan) -> None:
        self.plan = plan
        self.queries = plan.queries
        targets = [q.output.target.id for q in self.queries]
        self._writing = _by([id_] for id_ in targets)
        self._inserting = _by([id_] * inserts_into(q, id_) for q, id_ in zip(self.queries, targets, strict=True))
        self._reading = _by({s.id for s in sources(q)} for q in self.queries)
        self._touching = _by(self.tables)

    @cached_property
    def tables(self) -> list[tuple[str, ...]]:
        """The tables that each query reads or changes."""
        return [tables_of(q) for q in self.queries]

    def into(self, stream: str) -> list[n.Query]:
        """The queries that insert into a stream or window."""
        return self._of(self._inserting, stream)

    def writers(self, id_: str) -> list[n.Query]:
        """The queries that write a stream, window or table."""
        return self._of(self._writing, id_)

    def readers(self, id_: str) -> list[n.Query]:
        """The queries whose input is a stream, window, table or aggregation."""
        return self._of(self._reading, id_)

    def users(self, table: str) -> list[n.Query]:
        """The queries that read or change a table."""
        return self._of(self._touching, table)

    def before(self, k: int) -> list[int]:
        """The queries, by number, that write the inputs or targets of number `k`; for a fault stream, the queries that
        read the stream whose faults it has. The output of a query that only writes to a table does not depend on other
        writers.
        """
        q = self.queries[k]
        queries_before: set[int] = set()
        for s in sources(q):
            queries_before.update(self._inserting.get(s.id, ()))
            if s.id.startswith("!"):
                queries_before.update(self._reading.get(s.id[1:], ()))
        for table in tables_of(q, with_target=False):
            queries_before.update(
                w for w in self._writing.get(table, ()) if self.queries[w].output.target.kind == "table"
            )
        return sorted(queries_before - {k})

    def _of(self, numbers: Mapping[str, list[int]], id_: str) -> list[n.Query]:
        return [self.queries[k] for k in numbers.get(id_, ())]


def _by(ids: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Invert lists of ids: the positions of each id."""
    out: dict[str, list[int]] = {}
    for k, query_ids in enumerate(ids):
        for id_ in query_ids:
            out.setdefault(id_, []).append(k)
    return out
