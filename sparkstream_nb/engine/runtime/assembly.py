"""Builds a node's operators from a plan, in the order in which an event reaches them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...plan import nodes
from ...plan.window_declarations import DECLARATIONS
from ..aggregation import AggregationOp
from ..columnar.column_data import Array, Mask
from ..columnar.error_routing import fault_stream
from ..columnar.rows import CURRENT
from ..expressions import Env
from ..joins.joins import Lookup
from ..joins.lookups import AggregationLookup
from ..patterns.machine_layout import lay_out
from ..ratelimit import waits
from ..state.cron_times import CronTimes
from ..state.services import Services
from ..tables.stored_tables import StoredTable
from ..tables.table_log import NOT_BUFFERED, find_buffered
from ..tables.table_store import TableCondition, TableLookup, TableStore, TableWriter
from .memory_topics import sink_operators
from .named_windows import NamedWindow
from .operator_graph import OpNode
from .operators import AggregationOperator, EntryOperator, Operator, QueryOperator, WindowOperator, entry, tables_read
from .partitions import Instances, PartitionEntry
from .query_operator import QueryOp
from .table_cycles import repeatable
from .triggers import TriggerOperator


class Assembly:
    """The parts of a node: `operators` in the order of the text, and their shared parts by id."""

    def __init__(self, plan: nodes.Plan, services: Services, has_store: bool = False) -> None:
        """With `has_store`, an aggregation that no query reads keeps no buckets: additions go to a store."""
        self.plan, self.services = plan, services
        self.buffered_tables = find_buffered(plan)
        self.stored_tables = {t: StoredTable(d, services) for t, d in plan.tables.items() if d.is_stored}
        in_memory = {
            t: TableStore(d, services, self.buffered_tables.get(t, NOT_BUFFERED))
            for t, d in plan.tables.items()
            if not d.is_stored
        }
        self.tables: dict[str, TableStore] = {**in_memory, **self.stored_tables}
        self.logged_tables: list[TableStore | AggregationOperator] = [self.tables[t] for t in self.buffered_tables]
        self.windows: dict[str, NamedWindow] = {}
        self.aggregations: dict[str, AggregationOp] = {}
        self.instances: dict[str, Instances] = {}
        self.operators: list[Operator] = []
        self._phase = 0
        self._conditions: dict[tuple[str, nodes.Expr], TableCondition] = {}
        services.in_table = self._in_table
        services.on_error = {s: d.on_error for s, d in plan.streams.items() if d.on_error is not None}
        for t in plan.triggers.values():
            if not t.start:
                times = None if t.cron is None else CronTimes(t.cron, services.context.timezone)
                node = OpNode((), t.id, has_timers=True)
                self.operators.append(TriggerOperator(t, self._phase, node, services, times))
                self._phase += 1
        for d in plan.windows.values():
            window = NamedWindow(d, services, self._phase)
            self._phase += 1
            self.windows[d.source.id] = window
            alone = (
                f"reads of a join change the event times of {window.id}" if self._stamped_between_looks(window) else ""
            )
            node = OpNode((entry(d.source.id),), d.source.id, alone=alone, has_timers=True)
            self.operators.append(WindowOperator(window, node))
        self.feeds: dict[str, AggregationOperator] = {}
        read = {t for q in plan.queries for t in tables_read(q)}
        for a in plan.aggregations.values():
            op = AggregationOperator(a, services, plan.aggregation_zone, keep=not has_store or a.id in read)
            op.node = replace(op.node, also=self._faults(a.input.source.id))
            if a.id in read and not op.node.also and not op.node.has_timers:
                op.node = replace(op.node, writes=(), logged_writes=(a.id,))
                self.logged_tables.append(op)
            self.feeds[a.id], self.aggregations[a.id] = op, op.aggregation
            self.operators.append(op)
        for element in plan.elements:
            if isinstance(element, nodes.Partition):
                self._partition(element)
            else:
                self._query(element, services, {})
        self.operators += sink_operators(plan, services)

    def _stamped_between_looks(self, window: NamedWindow) -> bool:
        """True if the joins' looks affect the window's output (see `NamedWindow._track`)."""
        stamps = window.window.stamps
        readers = [q for q in self.plan.queries if window.id in sources_of(q)]
        if stamps is None or not any(isinstance(q.input, nodes.JoinInput) for q in readers):
            return False
        return stamps == CURRENT or any(q.output.event_type != "current" for q in readers)

    def _in_table(self, table: str, condition: nodes.Expr, env: Env, order_keys: Array | None = None,
        rank: int = 0) -> Mask:
        table_condition = self._conditions.get((table, condition))
        if table_condition is None:
            table_condition = self._conditions[table, condition] = TableCondition(condition, self.tables[table])
        return table_condition.any(env, order_keys, rank)

    def _query(self, query: nodes.Query, services: Services, keys: Mapping[str, str]) -> QueryOp:
        table_lookups: list[TableLookup | AggregationLookup] = []

        def lookups(join: nodes.JoinInput) -> dict[int, Lookup]:
            sides = self._lookups(join, services)
            table_lookups.extend(x for x in sides.values() if isinstance(x, TableLookup | AggregationLookup))
            return sides

        op = QueryOp(query, services, self._phase, lookups)
        self._phase += op.schedulers
        target = query.output.target
        writer = None
        if target.kind == "table":
            writer = TableWriter(query.output, query.select, self.tables[target.id], services, query.name)
        to = {"stream": target.id, "window": entry(target.id)}.get(target.kind)
        sources = {s: keys.get(s, s) for s in op.inputs}
        read = tables_read(query)
        buffered_ids = {x.id for x in self.logged_tables}
        target_ids = () if writer is None else (target.id,)
        alone = ""
        if writer is not None and target.id not in self.buffered_tables and not isinstance(query.output, nodes.Insert):
            alone = f"{target.id} is changed row by row"
        node = OpNode(
            tuple(sources.values()),
            to,
            tuple(t for t in read if t not in buffered_ids),
            tuple(t for t in target_ids if t not in self.buffered_tables),
            alone,
            tuple(t for t in read if t in buffered_ids),
            tuple(t for t in target_ids if t in self.buffered_tables),
            self._faults(*op.inputs),
            op.has_timers,
            _single(query),
            not services.is_partitioned and repeatable(query),
            writer is None or writer.writes_whole_rows,
        )
        self.operators.append(QueryOperator(op, sources, node, writer, self.windows, table_lookups))
        return op

    def _faults(self, *streams: str) -> tuple[str, ...]:
        """The fault streams that failing events of these streams go to."""
        return tuple(fault_stream(s) for s in streams if self.services.on_error.get(s) == "STREAM")

    def _lookups(self, join: nodes.JoinInput, services: Services) -> dict[int, Lookup]:
        """The sides of a join that are not streams."""
        out: dict[int, Lookup] = {}
        for s, side in enumerate((join.left, join.right)):
            if side.source.kind == "table":
                out[s] = TableLookup(self.tables[side.source.id], join.on, s)
            elif side.source.kind == "aggregation":
                out[s] = AggregationLookup(self.feeds[side.source.id], join, s, services)
        return out

    def _partition(self, partition: nodes.Partition) -> None:
        instances = Instances(self.services.strings, partition.purge)
        services = self.services.inside(instances)
        self.instances[partition.id] = instances
        keys_by_stream = {k.stream: k for k in partition.keys}
        inner = {s.id for s in partition.inner}
        entry_keys: dict[str, str] = {}
        for q in partition.queries:
            for s in sources_of(q):
                if s not in inner and not (s in self.windows and isinstance(q.input, nodes.JoinInput)):
                    entry_keys[s] = f"{partition.id}/{s}"
        for s, key in entry_keys.items():
            way = PartitionEntry(s, keys_by_stream.get(s), instances, services, partition.id)
            alone = "" if way.has_key else f"{s} goes to every instance of a partition"
            if len(entry_keys) > 1 and partition.purge is not None:
                alone = "events of any of several streams keep a partition's key from being purged"
            if len(keys_by_stream) > 1 and any(waits(q.rate) for q in partition.queries):
                alone = "any of several streams may begin the periods of a partition's rate limit"
            if len(keys_by_stream) > 1 and any(
                isinstance(q.input, nodes.StateInput) and lay_out(q.input, 0).begins_alone for q in partition.queries
            ):
                alone = "any of several streams may begin what a partition's pattern waits for"
            by_value = isinstance(keys_by_stream.get(s), nodes.ValueKey)
            node = OpNode(
                (s,), key, alone=alone, also=self._faults(s), has_timers=partition.purge is not None, single=by_value
            )
            self.operators.append(EntryOperator(way, node))
        for q in partition.queries:
            joins = isinstance(q.input, nodes.JoinInput)  # they look into a named window as it is
            keys = {s: k for s, k in entry_keys.items() if not (joins and s in self.windows)}
            op = self._query(q, services, keys)
            instances.holders.append(op.release)
            instances.reuses &= op.forgets_all


def _single(query: nodes.Query) -> bool:
    """True if the query surely makes at most one chunk of one event."""
    if repeatable(query):
        return True
    if not isinstance(query.input, nodes.StreamInput) or query.rate is not None:
        return False
    return all(
        isinstance(s, nodes.FilterStep) or (isinstance(s, nodes.WindowStep) and DECLARATIONS[s.function].single_chunk)
        for s in query.input.steps
    )


def sources_of(query: nodes.Query) -> tuple[str, ...]:
    """Ids of the streams and windows that a query reads."""
    source = query.input
    if isinstance(source, nodes.StreamInput):
        inputs = [source.source]
    elif isinstance(source, nodes.JoinInput):
        inputs = [source.left.source, source.right.source]
    else:
        inputs = [slot.source for slot in source.slots]
    return tuple(dict.fromkeys(s.id for s in inputs if s.kind in ("stream", "window")))
