"""The relations of an app for SQL, all as of one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from ...durations import describe_time
from ...engine.expressions.objects import to_json
from ...engine.state.node_batch import RetrievalAnswer
from ...errors import Misuse
from ...lang.printer import name_text
from ...outputs.event_tables import NODES, event_fields, output_table
from ...outputs.input_events import KeptEvents
from ...outputs.output_files import stamps
from ...outputs.shard_retrieval import retrieve, select_all
from ...plan.nodes import AggDuration
from ...plan.output_labels import is_inner
from ...runners.operator.output_rows import arrow_types
from ...runners.output_columns import rows_as_table
from ...stores.layout import SUFFIX
from ...stores.sql_session import CatalogRows, Relation
from ...types import Schema, Type
from ..results.answers import SHARD, Stats
from ..results.buckets import ALWAYS
from ..results.divergence import Divergence
from ..results.metric_tables import METRICS
from ..results.moment import Moment
from .retrievals import Retrievals
from .runtime import AppRuntime

_ERROR_FIELDS = pa.schema({"id": pa.int64(), "stream": pa.string(), "timestamp": pa.int64(), "values": pa.string(),
                     "reason": pa.string()})  # fmt: skip
_DIVERGENCE_FIELDS = pa.schema({"query": pa.string(), "verdict": pa.string(), "timestamp": pa.int64(),
                                "node": pa.string(), "values": pa.string(), "cause": pa.string()})  # fmt: skip
_DIVERGENCE = Relation("", "divergence", _DIVERGENCE_FIELDS)


@dataclass(frozen=True)
class AppQuestions:
    """Answers of an app about itself, beside its files."""

    stats: Callable[[], Stats]
    last_moment: Callable[[], Moment]
    divergence: Callable[[], Divergence]


class AppRelations:
    """The relations of an app, a catalog for SQL under its name."""

    def __init__(self, app: AppRuntime, retrievals: Retrievals, questions: AppQuestions) -> None:
        self._app, self._retrievals, self._questions = app, retrievals, questions

    @property
    def name(self) -> str:
        return self._app.name

    @property
    def relations(self) -> list[Relation]:
        """Events by stream (`inputs`, `outputs`), rows of `tables` and named `windows`, buckets of `aggregations`,
        merged and by shard (`shards`), the app's `errors` and its `divergence`, and its `metrics`."""
        app, plan = self._app, self._app.plan
        arrivals = {*plan.input_streams, *app.inbox.position.events}
        schemas = {s: schema for s, schema in app.schemas.items() if not is_inner(s)}
        relations = [Relation("inputs", s, event_fields(schemas[s])) for s in schemas if s in arrivals]
        relations += [
            Relation("outputs", s, event_fields(schemas[s])) for s in schemas if s not in plan.input_streams
        ]
        relations += [Relation("tables", t, _row_fields(d.source.schema)) for t, d in plan.tables.items()]
        relations += [Relation("windows", w, _row_fields(plan.schema(w))) for w in plan.windows]
        for id_, definition in plan.aggregations.items():
            columns = _plain_fields(definition.source.schema)
            by_shard = pa.schema([pa.field(SHARD, pa.string()), *columns])
            for per in definition.durations:
                relations.append(Relation("aggregations", f"{id_}_{SUFFIX[per]}", columns))
                relations.append(Relation("shards", f"{id_}_{SUFFIX[per]}", by_shard))
        relations += [Relation("", "errors", _ERROR_FIELDS), _DIVERGENCE]
        return [*relations, *(Relation("metrics", name, metric.columns) for name, metric in METRICS.items())]

    def read(self, relations: Sequence[Relation]) -> CatalogRows:
        """The rows of relations, all as of one commit, at which everything sent before is committed; a feed in the
        background is not waited for. Of an app that is stopped, its last state. Raises `Misuse` for an app that is
        closed, and for what a stopped app does not have."""
        app = self._app
        app.check_open()
        is_running = app.state == "running"
        if is_running:
            app.waits.settle_briefly()
        rows: dict[Relation, pa.Table] = {
            r: _divergence_table(self._questions.divergence().frame) for r in relations if r == _DIVERGENCE
        }
        in_nodes = [r for r in relations if self._is_in_nodes(r)]
        if in_nodes and not is_running:
            rows |= self._last_rows(in_nodes)
        texts = [self._text_of(r) for r in in_nodes] if is_running else []
        with self._retrievals.hold_commit(texts) as answers:
            if is_running:
                rows |= {r: self._node_rows(r, by_node) for r, by_node in zip(in_nodes, answers, strict=True)}
            events = {r: self._read_events(r) for r in relations if r.schema in ("inputs", "outputs")}
            rows |= {r: kept_events.table for r, kept_events in events.items()}
            rows |= {r: self._read_one(r) for r in relations if r not in rows}
        remarks = [] if is_running else [self._describe_end()]
        for relation, kept_events in events.items():
            if kept_events.unreadable:
                of_stream = f"events of {self.name}.{relation.name}"
                remarks.append(f"the first {kept_events.unreadable:,} {of_stream} are no longer kept")
        return CatalogRows(rows, remarks)

    def _describe_end(self) -> str:
        clock = self._app.inbox.position.clock
        until = "" if clock is None else f", of {describe_time(clock)}"
        return f"{self.name} is {self._app.state}: its last state{until}"

    def _is_in_nodes(self, relation: Relation) -> bool:
        """True for rows that nodes have in their memory, or that are read by them."""
        in_memory = ("aggregations", "shards") if self._app.deployment.groups is not None else ()
        return relation.schema in ("tables", "windows", *in_memory)

    def _text_of(self, relation: Relation) -> str:
        """The on-demand query for all rows of a relation in nodes."""
        if relation.schema in ("tables", "windows"):
            return f"from {name_text(relation.name)} select *"
        name, per = self._buckets[relation.name]
        return f"from {name_text(name)} within {ALWAYS[0]}L, {ALWAYS[1]}L per '{per}' select *"

    @property
    def _buckets(self) -> dict[str, tuple[str, AggDuration]]:
        """The aggregation and the duration of each relation of buckets."""
        definitions = self._app.plan.aggregations.items()
        return {f"{id_}_{SUFFIX[per]}": (id_, per) for id_, d in definitions for per in d.durations}

    def _last_rows(self, relations: Sequence[Relation]) -> dict[Relation, pa.Table]:
        """The rows of relations in nodes at the end of a stopped app's input."""
        if any(r.schema in ("aggregations", "shards") for r in relations):
            raise Misuse(f"{self.name} is {self._app.state}, and its aggregations are in its nodes: app.start() first")
        moment = self._questions.last_moment()
        tables: dict[Relation, pa.Table] = {}
        for relation in relations:
            if relation.name not in moment.row_names:
                database = f"table '{relation.name}' is in a database, which its nodes read"
                raise Misuse(f"{self.name} is {self._app.state}, and its {database}: app.start() first")
            schema = self._app.plan.schema(relation.name)
            by_node = {n: {**state.tables, **state.windows}[relation.name].rows for n, state in moment.nodes.items()}
            tables[relation] = _with_nodes({n: rows_as_table(schema, rows) for n, rows in by_node.items()}, schema)
        return tables

    def _node_rows(self, relation: Relation, answers: Mapping[str, RetrievalAnswer]) -> pa.Table:
        """The answers of nodes as rows of a relation."""
        tables = {shard: _typed_table(answer) for shard, answer in answers.items()}
        if relation.schema == "aggregations":
            return pa.concat_tables(tables.values())
        if relation.schema == "shards":
            parts = [t.add_column(0, SHARD, pa.array([s] * t.num_rows, pa.string())) for s, t in tables.items()]
            return pa.concat_tables(parts)
        return _with_nodes(tables, self._app.plan.schema(relation.name))

    def _read_one(self, relation: Relation) -> pa.Table:
        """The rows of a relation that is neither in nodes nor of events. No commit is under way."""
        match relation.schema:
            case "aggregations" | "shards":
                return self._read_buckets(relation)
            case "metrics":
                return METRICS[relation.name].read(self._questions.stats())
        return self._app.store.errors(self.name).rename_columns(_ERROR_FIELDS.names).cast(_ERROR_FIELDS)

    def _read_events(self, relation: Relation) -> KeptEvents:
        """The events of a stream that came in or out. No commit is under way."""
        app, stream = self._app, relation.name
        if relation.schema == "inputs":
            return app.input_reader().up_to(stream, app.progress.last)
        schema = app.schemas[stream]
        with app.outputs.tidying:
            outputs = app.outputs.read(stream, app.progress.batch)
            dropped_count = app.outputs.dropped_events.get(stream, 0)
        table = (
            event_fields(schema).empty_table() if outputs is None else output_table(outputs, app.outputs.shards, schema)
        )
        return KeptEvents(table, dropped_count)

    def _read_buckets(self, relation: Relation) -> pa.Table:
        app = self._app
        name, per = self._buckets[relation.name]
        answers = retrieve(app.plan, select_all(app.plan, name, per, ALWAYS), app.store, now=app.clock.now())
        if relation.schema == "aggregations":
            return _typed_table(answers.answer)
        if answers.read_by_shard is not None:
            return _typed_table(answers.read_by_shard())
        table = _typed_table(answers.answer)
        return table.add_column(0, SHARD, pa.array([app.writers(name)[0]] * table.num_rows, pa.string()))


def _divergence_table(frame: pd.DataFrame) -> pa.Table:
    """The frame of a `Divergence`; values are JSON, and causes sentences."""
    columns = {
        **frame,
        "values": [to_json(v) for v in frame["values"]],
        "cause": [None if c is None else str(c) for c in frame["cause"]],
    }
    arrays = [pa.array(columns[f.name], f.type, from_pandas=True) for f in _DIVERGENCE_FIELDS]
    return pa.table(arrays, schema=_DIVERGENCE_FIELDS)


def _with_nodes(tables: Mapping[str, pa.Table], schema: Schema) -> pa.Table:
    """The rows of nodes, each with its node first, as `_row_fields` has them."""
    fields = _row_fields(schema)
    parts = []
    for node, table in tables.items():
        nodes = pa.array([node] * table.num_rows, pa.string()).dictionary_encode()
        parts.append(table.add_column(0, fields.field(0), nodes).cast(fields))
    return pa.concat_tables(parts)


def _typed_table(answer: RetrievalAnswer) -> pa.Table:
    return rows_as_table(Schema.of(*((name, Type(type)) for name, type in answer.columns)), answer.rows)


def _plain_fields(schema: Schema) -> pa.Schema:
    return pa.schema(list(arrow_types(schema).items()))


def _row_fields(schema: Schema) -> pa.Schema:
    """The columns of a table or a named window: `node` (shard id), then its attributes; beside an attribute of that
    name, `event_node`."""
    return pa.schema([pa.field(stamps(schema.names)[0], NODES), *_plain_fields(schema)])
