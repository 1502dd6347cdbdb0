"""Cases of the reference format on Spark: as in production, with many apps in one streaming query.

Each case is an app with its own nodes. A restart or an on-demand query in its feed ends a micro-batch, and nothing is
kept in the workers in between, so every further step runs on state that Spark's state store gave back. Retrievals over
aggregations read a store that the micro-batches were committed to.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sparkstream_nb.engine.expressions.objects import jsonable
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import Emitted, RetrievalAnswer
from sparkstream_nb.errors import NotInThisBuild, SiddhiError, SparkStreamError
from sparkstream_nb.journal import result_codec, result_rows
from sparkstream_nb.journal.checkpoints import local
from sparkstream_nb.journal.entries import Ask, Entry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.limits import Limits
from sparkstream_nb.outputs.shard_retrieval import retrieve
from sparkstream_nb.plan import compile_app, compile_retrieval
from sparkstream_nb.plan.nodes import BatchClock, Partition, Plan, Retrieval, Safety
from sparkstream_nb.plan.shard_safety.safety import aggregation_safety
from sparkstream_nb.runners.node_spec import NodeSpec, NodeWork
from sparkstream_nb.runners.spark.processor import NodeProcessor
from sparkstream_nb.runners.spark.streaming_query import session_for, start_frame
from sparkstream_nb.runners.stateless import SourceApp, app_of, options_of
from sparkstream_nb.stores.duckdb import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

from .engine_cases import events, input_batch

_PARTITIONS = 2
CASES_AT_ONCE = 200

Case = Mapping[str, Any]


def run_case_on_spark(case: Case, session: SparkSession, nodes: int = 1) -> dict[str, Any]:
    """Run one case on Spark; returns its output in the shape of its `expect`. Raises the case's error."""
    (got,) = run_cases_on_spark([case], session, nodes)
    if isinstance(got, Exception):
        raise got
    return got


def run_cases_on_spark(
    cases: Sequence[Case], session: SparkSession, nodes: int = 1
) -> list[dict[str, Any] | Exception]:
    """Many cases, in order: the output of each, or its error.

    With several `nodes`, events are routed as the app's queries allow: round robin, or by the hash of their key. An app
    that is right under no routing fails with SparkStreamError.
    """
    out: list[dict[str, Any] | Exception] = []
    for at in range(0, len(cases), CASES_AT_ONCE):
        out += _CaseReplay(session, nodes).run(cases[at : at + CASES_AT_ONCE])
    return out


@dataclass
class _RunningCase:
    """A case under way."""

    plans: list[Plan]
    shards: list[str]
    route: str
    got: dict[str, Any]
    store: DuckDBStore | None
    rounds: list[_Round]
    start: int | None
    limits: Limits
    emitted: list[tuple[int, result_rows.TableRow]] = field(default_factory=list)
    failure: Exception | None = None


@dataclass
class _Round:
    """Steps of a feed, and the on-demand query that follows them, if any."""

    steps: list[Any]
    query: str | None = None


class _CaseReplay:
    def __init__(self, session: SparkSession, nodes: int) -> None:
        self.session, self.nodes = session, nodes
        self.running: dict[int, _RunningCase] = {}
        self.asked: dict[int, tuple[int, int]] = {}

    def run(self, cases: Sequence[Case]) -> list[dict[str, Any] | Exception]:
        out: list[dict[str, Any] | Exception | None] = [None] * len(cases)
        for i, case in enumerate(cases):
            try:
                self.running[i] = self._prepare(case)
            except NotInThisBuild as error:
                out[i] = error
            except SiddhiError as error:
                out[i] = {"error": type(error).__name__, "message": str(error)}
            except Exception as error:  # whatever is wrong with one case, the others run
                out[i] = error
        if self.running:
            self._carry()
        for i, r in self.running.items():
            out[i] = r.failure or self._got(r)
            if r.store is not None:
                r.store.close()
        return [o for o in out if o is not None]

    # ------------------------------------------------------------------------------------------------------ before

    def _prepare(self, case: Case) -> _RunningCase:
        given = dict(case.get("properties", {}))
        shards = [given.get("shardId", "")]
        properties = [given]
        if self.nodes > 1:
            shards = [f"node-{k + 1}" for k in range(self.nodes)]
            properties = [{**given, "partitionById": "true", "shardId": s} for s in shards]
        plans = [compile_app(case["app"], properties=p) for p in properties]
        NodeEngine(plans[0])  # raises here instead of in the worker
        got: dict[str, Any] = {
            "streams": {},
            "queries": {q.name: {"in": [], "out": []} for q in plans[0].queries if q.named},
        }
        rounds = [_Round([])]
        for step in case["feed"]:
            if isinstance(step, dict) and "query" in step:
                rounds[-1].query = step["query"]
                rounds.append(_Round([]))
            elif isinstance(step, dict) and "restart" in step:
                rounds.append(_Round([]))
            else:
                rounds[-1].steps.append(step)
        store = None
        if plans[0].aggregations and any(r.query for r in rounds):
            store = DuckDBStore(":memory:")
            store.prepare(plans[0].aggregations.values())
        route = "node:1" if self.nodes == 1 else route_of(plans[0])
        return _RunningCase(
            plans, shards, route, got, store, rounds, case.get("start", 0), Limits.of(case.get("limits"))
        )

    def _fill(self, inbox: Inbox) -> None:
        """Writes the rounds of all cases, each round a micro-batch."""
        for number in range(max(len(r.rounds) for r in self.running.values())):
            entries: list[Entry] = []
            for app, r in self.running.items():
                if number >= len(r.rounds):
                    continue
                round = r.rounds[number]
                try:
                    if round.steps:
                        entries.append(inbox.batch(input_batch(r.plans[0], round.steps), r.route, app))
                except Exception as error:
                    r.failure = error
                    continue
                if round.query is not None:
                    entries += self._question(app, r, round.query, inbox.position.seq + len(entries))
            if entries:
                inbox.append([replace(entries[0], barrier=True), *entries[1:]])

    def _question(self, app: int, r: _RunningCase, text: str, seq: int) -> list[Entry]:
        place = len(r.got.setdefault("results", []))
        r.got["results"].append(None)
        try:
            retrieval = compile_retrieval(text, r.plans[0])
        except NotInThisBuild as error:
            r.failure = error
            return []
        except SparkStreamError as error:
            r.got["results"][place] = _describe_failure(error)
            return []
        if self.nodes > 1 and not _is_stored(retrieval):
            r.failure = SparkStreamError("On several nodes only aggregations are asked.")
            return []
        self.asked[seq] = (app, place)
        return [Ask(app=app, text=text)]

    # ------------------------------------------------------------------------------------------------------ running

    def _carry(self) -> None:
        home = Path(tempfile.mkdtemp(prefix="sparkstream-cases-"))
        inbox = Inbox(home / "inbox")
        try:
            self._fill(inbox)
            if inbox.position.seq == 0:
                return
            keys = {app: [app * self.nodes + k for k in range(self.nodes)] for app in self.running}
            specs = {
                keys[app][k]: NodeSpec(
                    keys[app][k], shard, pickle.dumps(plan), trace=True, index=k, count=self.nodes, start=r.start,
                    limits=r.limits,
                )
                for app, r in self.running.items()
                for k, (shard, plan) in enumerate(zip(r.shards, r.plans, strict=True))
            }
            apps: list[SourceApp | None] = [None] * (max(self.running) + 1)
            for app, r in self.running.items():
                schemas = {s: d.source.schema for s, d in r.plans[0].streams.items()}
                apps[app] = app_of(keys[app], [specs[k] for k in keys[app]], schemas)
            session = session_for(self.session, min(_PARTITIONS, len(specs)))
            processor = NodeProcessor(NodeWork(home.name, specs, inbox.folder, keep=False, isolate=True))
            query = (
                start_frame(session, options_of(home / "inbox", apps), processor)
                .writeStream.option("checkpointLocation", local(home / "checkpoint"))
                .outputMode("append")
                .foreachBatch(self._commit)
                .start()
            )
            query.processAllAvailable()
            query.stop()
        finally:
            inbox.close()
            shutil.rmtree(home, ignore_errors=True)

    def _commit(self, frame: DataFrame, batch: int) -> None:
        partials: dict[int, dict[tuple[str, str], list[pa.Table]]] = {}
        questions: list[tuple[int, result_rows.Answered]] = []
        clocks: dict[int, BatchClock | None] = {}
        for row in result_rows.from_table(frame.toArrow()):
            app, k = divmod(row.node, self.nodes)
            r = self.running[app]
            match row:
                case result_rows.StreamEvents() | result_rows.CurrentEvents() | result_rows.ExpiredEvents():
                    r.emitted.append((k, row))
                case result_rows.Partial():
                    partials.setdefault(app, {}).setdefault((row.name, r.shards[k]), []).append(row.table())
                case result_rows.Errors():
                    r.got["fault"] = True
                case result_rows.NodeFailure():
                    r.failure = RuntimeError(f"{row.error}: {row.message}")
                case result_rows.Answered():
                    if k == 0:
                        questions.append((app, row))
                case result_rows.NodeDone():
                    clocks[app] = row.report.clock
                case result_rows.RowCounts():
                    pass  # cases have the rows themselves
                case result_rows.Logs():
                    pass  # a case expects none
                case _:
                    raise TypeError(f"a case has no use for a row of kind '{row.kind}'")
        for app, clock in clocks.items():
            store = self.running[app].store
            if store is not None:
                found = {key: pa.concat_tables(tables) for key, tables in partials.get(app, {}).items()}
                store.commit(BatchKey("case", "run", batch), found, clock=clock)
        for app, row in questions:
            r = self.running[app]
            r.got["results"][self.asked[row.seq][1]] = self._answer(r, row.seq, row.answer)

    def _answer(self, r: _RunningCase, seq: int, answer: RetrievalAnswer | result_codec.QueryFailed) -> dict[str, Any]:
        """A question's answer: the store's if it is over an aggregation, else the node's."""
        text = [q.query for q in r.rounds if q.query is not None][self.asked[seq][1]]
        assert text is not None
        try:
            retrieval = compile_retrieval(text, r.plans[0])
            if r.store is not None and _is_stored(retrieval):
                found = retrieve(r.plans[0], retrieval, r.store).answer
            elif isinstance(answer, result_codec.QueryFailed):
                if answer.kind == NotInThisBuild.__name__:
                    r.failure = SparkStreamError(answer.message)
                return {"error": answer.kind, "message": answer.message}
            else:
                found = answer
        except SparkStreamError as error:
            return _describe_failure(error)
        answered = [[jsonable(v) for v in row] for row in found.rows]
        return {"rows": answered, "columns": [f"{n} {t}" for n, t in found.columns]}

    # ------------------------------------------------------------------------------------------------------- after

    def _got(self, r: _RunningCase) -> dict[str, Any]:
        """Output of a case, the nodes' parts merged by step."""
        merged: dict[tuple[str, str], list[tuple[int, int, list[Any]]]] = {}
        for node, row in r.emitted:
            table = result_codec.from_ipc(row.blob)
            step, ts, *columns = map(result_codec.column_values, table.columns, table.schema)
            emitted = Emitted(tuple(table.schema.names[2:]), np.array(step), np.array(ts), columns)
            found = zip(step, events(emitted), strict=True)
            merged.setdefault((row.kind, row.name), []).extend((step, node, event) for step, event in found)
        for (kind, name), events_of in merged.items():
            in_order = [event for _, _, event in sorted(events_of, key=lambda f: (f[0], f[1]))]
            if kind == "stream":
                r.got["streams"][name] = in_order
            else:
                r.got["queries"][name][kind] = in_order
        return r.got


def _is_stored(retrieval: Retrieval) -> bool:
    return retrieval.source is not None and retrieval.source.kind == "aggregation" and retrieval.output is None


def _describe_failure(error: SparkStreamError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": str(error)}


def route_of(plan: Plan) -> str:
    """The route under which all of an app's queries are right. Raises SparkStreamError if there is none."""
    keys: set[str] = set()
    for safety in _safeties(plan):
        if safety.level == "node-dependent":
            raise SparkStreamError(f"No routing gives the same results on several nodes as on one: {safety.reason}.")
        keys.update(attribute for _, attribute in safety.keys)
    if len(keys) > 1:
        raise SparkStreamError(f"The queries need routing by different attributes: {', '.join(sorted(keys))}.")
    return f"hash:{keys.pop()}" if keys else "round_robin"


def _safeties(plan: Plan) -> Iterator[Safety]:
    for element in plan.elements:
        yield element.safety
        if isinstance(element, Partition):
            yield from (query.safety for query in element.queries)
    yield from (aggregation_safety(plan, a) for a in plan.aggregations.values())
