"""Answers of an app to retrieval queries, over its store and its nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ... import argument_checks
from ...engine.expressions import Context
from ...engine.scripts import scripts_of
from ...engine.state.node_batch import RetrievalAnswer
from ...errors import Misuse, SiddhiRuntimeError, nearest, shown
from ...journal.entries import Ask, SourceEntry
from ...journal.result_codec import QueryFailed
from ...nodes.distributed import Distributed
from ...outputs.open_buckets import check_node
from ...outputs.reach import cuts
from ...outputs.shard_retrieval import Retrieved, merge_nodes, retrieve, rows_wanted, select_all
from ...plan import compile_retrieval
from ...plan.nodes import AggDuration, AggregationDef, Ref, Retrieval
from ..results import frontend
from ..results.answers import SHARD, Result, frame_of
from ..results.buckets import ALWAYS, AggregationReader, InputStream, StoredAggregation
from ..results.frontend import View
from ..results.hints import hint_of, what_is_cut
from ..results.listeners import Followed
from .runtime import AppRuntime


class Retrievals:
    """On-demand queries, aggregations and their views."""

    def __init__(self, app: AppRuntime) -> None:
        self._app = app

    def query(self, text: str, *, limit: int | None = None, as_wso2: bool | str = False) -> Result:
        """Answers an on-demand query when everything sent is committed.

        Over an aggregation: merged over shards, and `by_shard` the rows of each. Over a node's own tables and windows,
        with several nodes: the select works on the rows of all. `limit` is the number of rows to show. `as_wso2`: the
        answer of WSO2's servers over an aggregation partitioned by id, which do not see the bucket of the finest
        duration that is open on each node; in playback of the server with this shard id, or, with True, of the one with
        the latest event; "alive": of servers without playback, in the minute in which the events came, where seconds
        are the finest duration. (When the duration asked for has passed by the clock, their answer is that without
        `as_wso2`.) Late events and restarts are not shown. Raises SiddhiError, with a caret, for a wrong query,
        `Misuse` for a shard that is none of the app's.
        """
        app = self._app
        app.check_open()
        argument_checks.require_str("the query", text)
        argument_checks.optional_int("limit", limit, 0)
        if isinstance(as_wso2, str):
            check_node(as_wso2, app.app_run.shards)
        retrieval = compile_retrieval(text, app.plan)
        if app.deployment.groups is not None:
            return self._of_groups(retrieval, text, limit)
        if retrieval.source is not None and retrieval.source.kind == "aggregation" and retrieval.output is None:
            app.waits.flush()
            now = app.clock.now()
            answer = _merge_answers(retrieve(app.plan, retrieval, app.store, now=now, as_wso2=as_wso2), limit)
            return replace(answer, hint=hint_of(app.plan, retrieval, app.store, now=now, empty=not len(answer)))
        if retrieval.shared:
            app.waits.flush()  # one node answers, and the others may take their turn with the table later
        among = self._holders(retrieval)
        if len(among) == 1 or retrieval.output is not None or retrieval.shared:
            first = next(iter(self._among(self._ask_nodes(text), among).values()))
            return Result(first.columns, first.rows, limit=limit)
        answers = self._among(self._ask_nodes(rows_wanted(text)), among)
        context = self._context()
        return _merge_answers(merge_nodes(retrieval, answers, context, app.clock.now()), limit)

    def _context(self) -> Context:
        """The context for evaluating a select over several nodes' rows."""
        app = self._app
        return Context(scripts=scripts_of(app.plan, app.deployment.request.allow_scripts), limits=app.deployment.limits)

    def _holders(self, retrieval: Retrieval) -> Sequence[int]:
        """The numbers of the nodes that have the sources of a retrieval: all, or the leader alone."""
        app = self._app
        element_ids = {retrieval.source.id} if retrieval.source is not None else set()
        if retrieval.output is not None:
            element_ids.add(retrieval.output.target.id)
        leader = app.app_run.leader
        return app.app_run.over if leader is None or element_ids.isdisjoint(app.parts.state) else (leader,)

    @contextlib.contextmanager
    def hold_commit(self, texts: Sequence[str]) -> Iterator[list[dict[str, RetrievalAnswer]]]:
        """No micro-batch is committed inside. Gives the answers to queries for all rows of a table, a named window or
        an aggregation in nodes, as of the last commit: for each query by node, of the nodes that have it."""
        app = self._app
        if texts:
            app.start()
        with app.progress.gate.open_reader() as reader:
            queries: Sequence[int] = ()
            if texts:
                with app.lock:  # what comes after the queries is in another micro-batch
                    end = app.inbox.append([*(Ask(text=text) for text in texts), SourceEntry(barrier=True)])
                queries = range(end - len(texts), end)
                reader.let_through(end - 1)
                with app.waits.cancel_on_interrupt():
                    app.stream.wait(end - 1)
            reader.wait_idle()
            with app.progress.changed:
                answers = [app.progress.answers.pop(seq) for seq in queries]
            yield [self._answers_of(text, by_node) for text, by_node in zip(texts, answers, strict=True)]

    def _answers_of(
        self, text: str, answers: Mapping[int, RetrievalAnswer | QueryFailed]
    ) -> dict[str, RetrievalAnswer]:
        """The answers of the nodes that have the source of a query."""
        if self._app.deployment.groups is not None:
            return self._active_among(answers)
        retrieval = compile_retrieval(text, self._app.plan)
        nodes = self._holders(retrieval)
        return self._among(answers, nodes[:1] if retrieval.shared else nodes)

    def _among(
        self, answers: Mapping[int, RetrievalAnswer | QueryFailed], nodes: Sequence[int]
    ) -> dict[str, RetrievalAnswer]:
        """The answers of some of the nodes, by shard. Raises SiddhiRuntimeError if one of them failed."""
        out: dict[str, RetrievalAnswer] = {}
        for node in nodes:
            answer = answers[node]
            if isinstance(answer, QueryFailed):
                raise SiddhiRuntimeError(answer.message)
            out[self._app.app_run.shards[node]] = answer
        return out

    def _ask_nodes(self, text: str) -> dict[int, RetrievalAnswer | QueryFailed]:
        """Puts a query to all nodes in its place among the events; their answers."""
        app = self._app
        with app.lock:
            app.start()
            seq = app.inbox.append([Ask(text=text)])
        with app.waits.cancel_on_interrupt():
            app.stream.wait(seq)
        with app.progress.changed:
            return app.progress.answers.pop(seq)

    def _of_groups(self, retrieval: Retrieval, text: str, limit: int | None) -> Result:
        """The answer of the active node; of several groups, the select over the rows of all of their active nodes."""
        if not self._is_divided(retrieval) or retrieval.output is not None:
            first = next(iter(self._active(text).values()))
            return Result(first.columns, first.rows, limit=limit, hint=self._cut_in_groups(retrieval))
        answers = merge_nodes(retrieval, self._active(rows_wanted(text)), self._context(), self._app.clock.now())
        return replace(_merge_answers(answers, limit), hint=self._cut_in_groups(retrieval))

    def _cut_in_groups(self, retrieval: Retrieval) -> str | None:
        """The hint about an aggregation that active nodes have in their memory."""
        source = retrieval.source
        if source is None or source.kind != "aggregation" or retrieval.output is not None:
            return None

        def holds(per: AggDuration, start: int, end: int) -> bool:
            query_text = f"from {source.id} within {start}L, {end}L per '{per}' select * limit 1"
            return any(answer.rows for answer in self._active(query_text).values())

        return "; ".join(map(what_is_cut, cuts(self._app.plan, retrieval, holds, now=self._app.clock.now()))) or None

    def _is_divided(self, retrieval: Retrieval) -> bool:
        """True if several nodes of groups each have a part of a retrieval's source."""
        groups = self._app.deployment.groups
        if isinstance(groups, Distributed):
            source_id = None if retrieval.source is None else retrieval.source.id
            return any(source_id in g.elements and g.parallel > 1 for g in groups.split.groups)
        return groups is not None and len(groups.pairs) > 1

    def _active(self, text: str) -> dict[str, RetrievalAnswer]:
        """Puts a query to all nodes; the answers of the active ones."""
        return self._active_among(self._ask_nodes(text))

    def _active_among(self, node_answers: Mapping[int, RetrievalAnswer | QueryFailed]) -> dict[str, RetrievalAnswer]:
        """The answer of each group's active node, the first one where two take themselves for it, by node. Raises
        SiddhiRuntimeError if a group has none."""
        app = self._app
        groups = app.deployment.groups
        assert groups is not None
        if isinstance(groups, Distributed):
            answers_by_shard = {app.app_run.shards[n]: a for n, a in node_answers.items()}
            failure = next((a.message for a in answers_by_shard.values() if isinstance(a, QueryFailed)), None)
            if failure is not None:
                raise SiddhiRuntimeError(failure)
            return {n: a for n, a in answers_by_shard.items() if isinstance(a, RetrievalAnswer)}
        answers = {app.app_run.shards[n]: a for n, a in node_answers.items() if n in app.app_run.over}
        out: dict[str, RetrievalAnswer] = {}
        for pair in groups.pairs:
            pair_answers = [(n, answers[n]) for n in pair.nodes]
            active = next(((n, a) for n, a in pair_answers if isinstance(a, RetrievalAnswer)), None)
            if active is None:
                messages = [a.message for _, a in pair_answers if isinstance(a, QueryFailed)]
                raise SiddhiRuntimeError("; ".join(dict.fromkeys(messages)))
            out[active[0]] = active[1]
        return out

    def aggregation(
        self, name: str, per: str = "sec", within: Sequence[Any] | str | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """All of an aggregation's buckets of a duration: (merged over shards, by shard with SHARD_ID first).

        `within`: one text with wildcards, or two bounds (texts or ms). Raises `Misuse` for an unknown name, and
        SparkStreamError for a duration that the aggregation does not have.
        """
        app = self._app
        app.check_open()
        self._aggregation(name)
        app.waits.flush()
        if not (within is None or isinstance(within, str) or (isinstance(within, Sequence) and len(within) == 2)):
            raise Misuse(f"within is one text or two bounds, not {shown(within)}")
        bounds = ALWAYS if within is None else (within,) if isinstance(within, str) else tuple(within)
        if app.deployment.groups is not None:
            return self._in_memory(name, per, bounds)
        retrieval = select_all(app.plan, name, per, bounds)  # type: ignore[arg-type]
        result = _merge_answers(retrieve(app.plan, retrieval, app.store, now=app.clock.now()))
        frame = result.frame
        if result.by_shard is not None:
            return frame, result.by_shard
        alone = frame.copy()
        alone.insert(0, SHARD, app.writers(name)[0])
        return frame, alone

    def _in_memory(self, name: str, per: str, bounds: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """An aggregation of groups, which their active nodes have."""
        within = ", ".join(f"{b}L" if isinstance(b, int) else f"'{b}'" for b in bounds)
        answers = self._active(f"from {name} within {within} per '{per}' select *")
        frames = {shard: frame_of(answer) for shard, answer in answers.items()}
        by_shard = [frame.assign(**{SHARD: shard})[[SHARD, *frame.columns]] for shard, frame in frames.items()]
        return pd.concat(frames.values(), ignore_index=True), pd.concat(by_shard, ignore_index=True)

    def view(self, name: str | None = None, *, per: str | None = None, measure: str | None = None) -> View:
        """Draws an aggregation by shard and merged, by duration, group and measure.

        `name` may be left out if there is one. `per` and `measure` are its first choice. Raises `Misuse` for names that
        the app does not have, and SparkStreamError if no front end is connected.
        """
        app = self._app
        if app.deployment.groups is not None:
            raise Misuse(f"{app.name} has mode {app.mode}, where a node has all of an aggregation: query it instead")
        names = list(app.plan.aggregations)
        if name is None:
            if len(names) != 1:
                raise Misuse(nearest(f"{app.name} has {len(names)} aggregations: name one", "", names))
            name = names[0]
        return frontend.current().view(self.reader_of(name), per=per, measure=measure)

    def reader_of(self, name: str) -> AggregationReader:
        """A reader of an aggregation's buckets. Raises `Misuse` for an unknown name."""
        app = self._app
        self._aggregation(name)
        definition = app.plan.aggregations[name]
        return AggregationReader(
            StoredAggregation(definition, app.store, lambda: app.writers(name), app.plan.aggregation_zone),
            self._input_of(definition),
            Followed(app.name, app.on_commit, app.view_state, app.selection),
            app.waits.settle_briefly,
        )

    def _input_of(self, aggregation: AggregationDef) -> InputStream:
        """The stream that an aggregation reads; for a derived one, the app's first defined stream."""
        app = self._app
        defined_streams = [s for s, d in app.plan.streams.items() if d.kind == "defined"]
        input_stream = aggregation.input.source.id
        stream = input_stream if input_stream in defined_streams or not defined_streams else defined_streams[0]
        by = aggregation.by
        time = by.name if isinstance(by, Ref) and by.name in app.schemas[stream].names else None
        return InputStream(app.name, stream, app.schemas[stream], time)

    def _aggregation(self, name: str) -> None:
        app = self._app
        argument_checks.require_str("name", name)
        if name not in app.plan.aggregations:
            raise Misuse(nearest(f"{app.name} has no aggregation '{name}'", name, app.plan.aggregations))


def _merge_answers(answers: Retrieved, limit: int | None = None) -> Result:
    read = answers.read_by_shard
    by_shard = None if read is None else (lambda: frame_of(read()))
    return Result(answers.answer.columns, answers.answer.rows, by_shard, limit)
