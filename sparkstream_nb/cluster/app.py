"""A running app: events in, answers out."""

from __future__ import annotations

import contextlib
import json
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..engine.batch import Answer, InputBatch, StreamRows
from ..engine.expressions import Context
from ..engine.scripts import scripts_of
from ..errors import SiddhiRuntimeError, SparkStreamError, did_you_mean
from ..plan import compile_retrieval, explain
from ..plan.nodes import Plan
from ..spark import feeds
from ..spark.commit import Commit, Progress
from ..spark.entries import Ask
from ..spark.inbox import Inbox
from ..spark.ingest import columns_of
from ..spark.outputs import OutputFiles
from ..spark.processor import NodeSpec
from ..spark.results import Failed
from ..spark.retrieval import Retrieved, merge_nodes, retrieve, rows_wanted, select_all
from ..spark.routing import Route
from ..spark.stream import Stream
from ..stores.duckdb import DuckDBStore
from ..stores.shards import shard_warnings
from ..types import Schema
from .answers import NULLABLE, SHARD, FeedReport, Result, frame_of
from .folder import Life
from .progress import FeedProgress, OnProgress

_ALL_TIMES = (-62_135_596_800_000, 253_402_300_800_000)
"""The years 1 to 9999 in ms."""


class App:
    """An app on its nodes. Made by `deploy`."""

    def __init__(
        self,
        name: str,
        plans: Sequence[Plan],
        life: Life,
        home: Path,
        session: Any,
        *,
        mode: str,
        routing: str,
        store: str | Path | None,
        redeployed: str | None,
        fresh: bool,
        allow_scripts: bool,
        rows_per_micro_batch: int | None = None,
    ) -> None:
        self.name, self.plan, self.mode, self.routing = name, plans[0], mode, routing
        self.shard_ids, self.home, self.redeployed = list(life.shards), home, redeployed
        self._session = session
        self._lock = threading.RLock()
        self._stopped = False
        self._scripts = allow_scripts
        self.store = DuckDBStore(home / "store.duckdb" if store is None else store)
        if fresh and store is not None:
            self.store.prepare(self.plan.aggregations.values())
            for aggregation in self.plan.aggregations:
                self.store.drop(aggregation)
        self.store.prepare(self.plan.aggregations.values())
        self.warnings = [
            w
            for a in self.plan.aggregations.values()
            if a.partitioned
            for w in shard_warnings(self.store, a.id, self.shard_ids)
        ]
        self.schemas: dict[str, Schema] = {s: d.source.schema for s, d in self.plan.streams.items()}
        folder = life.folder(home)
        self._inbox = Inbox(folder / "inbox")
        self._outputs = OutputFiles(folder / "outputs", self.shard_ids)
        self._progress = Progress()
        specs = [
            NodeSpec.of(i, s, p, scripts=allow_scripts, index=i, count=len(plans))
            for i, (s, p) in enumerate(zip(self.shard_ids, plans, strict=True))
        ]
        commit = Commit(name, life.run, self.shard_ids, self.store, self._outputs, self._progress)
        self._stream = Stream(session, name, folder, life.run, specs, self.schemas, commit, rows_per_micro_batch)
        self._progress.batch, self._progress.last = self._stream.committed()

    @staticmethod
    def check_routing(plan: Plan, routing: str, nodes: int) -> None:
        """Raises SparkStreamError for a route that the app's input streams do not have."""
        inputs = {s: d.source.schema for s, d in plan.streams.items() if d.kind == "defined"}
        Route.parse(routing, nodes, inputs)

    # ------------------------------------------------------------------------------------------------------- running

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.shard_ids)

    @property
    def state(self) -> str:
        """ "running", "stopped" (by `stop` or `interrupt`) or "failed"."""
        if self._stream.active:
            return "running"
        return "failed" if self._stream.failure() and not self._stopped else "stopped"

    def start(self) -> None:
        """Starts the app, or starts it again where it left off."""
        with self._lock:
            if not self._stream.active:
                self._stopped = False
                self._stream.start()

    def stop(self) -> None:
        """Cancels the app's Spark work, within 2 s. State, outputs and aggregations stay; an event starts it again."""
        with self._lock:
            self._stopped = True
            self._stream.stop()

    def interrupt(self) -> None:
        """Cancels what Spark does for the app, within 2 s, and takes back the events that it had not begun with.

        The app starts again with the next event; a micro-batch that was under way is then carried through.
        """
        with self._lock:
            self._session.interruptTag(self._tag)
            self._stopped = True
            if self._stream.stop():
                self._inbox.truncate(max(self._stream.planned(), self._progress.last + 1))

    def close(self) -> None:
        """Lets go of the files of a stopped app. It is of no use afterwards."""
        self._stream.ended()
        self._inbox.close()
        self.store.close()

    @property
    def _tag(self) -> str:
        return f"sparkstream-feed-{self._stream.run}"

    def flush(self) -> None:
        """Waits until everything sent is committed. Raises SparkStreamError where the app failed."""
        self._settle(None)

    def _settle(self, tell: Callable[[], None] | None) -> None:
        last = self._inbox.position.seq - 1
        if self._progress.last < last:
            self.start()
            with self._cancelling():
                self._stream.wait(last, tell=tell)

    @contextlib.contextmanager
    def _cancelling(self) -> Iterator[None]:
        """Ctrl-C and a notebook's Stop button inside cancel what Spark does for the app."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupt()
            raise

    # ----------------------------------------------------------------------------------------------------- events in

    def send(self, stream: str, values: Any, *, at: int | None = None, node: int | None = None) -> None:
        """Sends an event, or a list of events at once: one chunk, as Siddhi's `InputHandler.send(Event[])`.

        An event is a list of values in the stream's order or a dict by attribute. `at` is its time in ms; without it
        that of this machine, or the app's clock where that is ahead. `node` (from 1) overrides the routing. Returns
        when the event is in the inbox; `flush` waits for what it causes. Raises SparkStreamError for values that do
        not fit.
        """
        schema = self._schema(stream)
        several = isinstance(values, list | tuple) and bool(values) and isinstance(values[0], list | tuple | dict)
        rows = [self._row(stream, schema, v) for v in (values if several else [values])]
        columns = columns_of(schema, rows, stream)
        route = self.routing if node is None else f"node:{node}"
        Route.parse(route, self.nodes)
        with self._lock:
            ts = self._now() if at is None else int(at)
            times = np.full(len(rows), ts, np.int64)
            batch = InputBatch(times[:1], {stream: StreamRows(np.zeros(len(rows), np.int64), times, columns)})
            self.start()
            self._inbox.append([self._inbox.batch(batch, route)])

    def tick(self, ms: int) -> None:
        """Moves the app's clock to `ms` with no event."""
        with self._lock:
            self.start()
            self._inbox.append([self._inbox.batch(InputBatch(np.array([ms], np.int64)), self.routing)])

    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        progress: OnProgress | None = None,
    ) -> FeedReport:
        """Feeds `stream` from a frame (pandas, Arrow, Spark) or a `.csv` or `.parquet` file, until all is committed.

        `time` names the column of event times (ms, datetime, or text): events are put in their order, ties in the
        feed's. Without it events keep the feed's order, 1 ms apart. `columns` maps attributes to source columns, or
        lists these in the attributes' order. Rows that do not fit are counted and kept in `errors`. `progress` is
        called when the reading begins, and then several times a second until all is committed.
        """
        schema = self._schema(stream)
        names = dict(columns) if isinstance(columns, Mapping) else dict(zip(schema.names, columns or (), strict=False))
        shape = feeds.Shape(stream, schema, time, names)
        chosen = route or self.routing
        Route.parse(chosen, self.nodes, {stream: schema} if route else None)
        began = clock.perf_counter()
        if progress is not None:
            progress(FeedProgress(stream, 0, None, 0, self._progress.batch + 1, 0.0))
        self.start()
        with self._cancelling(), self._tagged():
            found = feeds.read_feed(source, shape, self._inbox.folder, self._session, limit, nodes=self.nodes)
        highest = np.empty(0, np.int64)
        if time is not None:
            found, highest = feeds.in_order(found, self._inbox.folder)
        why = tuple(feeds.reasons(found, self._inbox.folder))
        before = dict(self._progress.rows)
        with self._lock:
            entries = feeds.entries(found, shape, self._inbox, chosen, highest, self._now())
            first = self._inbox.position.seq
            if entries:
                self._inbox.append(entries)

        def tell() -> None:
            p = self._progress
            done = sum(e.steps for e in entries[: max(0, p.last - first + 1)])
            took = clock.perf_counter() - began
            if progress is not None:
                progress(FeedProgress(stream, done, found.rows, found.rejected, p.batch + 1, took))

        self._settle(tell)
        after = self._progress.rows
        outputs = {s: n - before.get(s, 0) for s, n in after.items() if n > before.get(s, 0)}
        seconds = clock.perf_counter() - began
        return FeedReport(stream, found.rows + found.rejected, found.rejected, seconds, outputs, why)

    @contextlib.contextmanager
    def _tagged(self) -> Any:
        """Marks the Spark jobs started inside, for `interrupt`."""
        self._session.addTag(self._tag)
        try:
            yield
        finally:
            self._session.removeTag(self._tag)

    def _now(self) -> int:
        """This machine's time (ms), or the app's clock where it is ahead."""
        return max(int(clock.time() * 1000), self._inbox.position.clock or 0)

    def _schema(self, stream: str) -> Schema:
        if stream not in self.schemas:
            hint = did_you_mean(stream, self.schemas)
            raise SparkStreamError(f"{self.name} has no stream '{stream}'. {hint or ''}".strip())
        return self.schemas[stream]

    def _row(self, stream: str, schema: Schema, values: Any) -> list[Any]:
        if isinstance(values, Mapping):
            for name in values:
                if name not in schema.names:
                    raise SparkStreamError(
                        f"{stream} has no attribute '{name}'. {did_you_mean(name, schema.names) or ''}".strip()
                    )
            missing = [n for n in schema.names if n not in values]
            if missing:
                raise SparkStreamError(f"{stream}: the event lacks {', '.join(missing)}.")
            return [values[n] for n in schema.names]
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise SparkStreamError(f"{stream}: an event is a list of values {schema} or a dict by attribute.")
        return list(values)

    # --------------------------------------------------------------------------------------------------- answers out

    def query(self, text: str) -> Result:
        """Answers an on-demand query when everything sent is committed.

        Over an aggregation: merged over shards. Over a node's own tables and windows, with several nodes: the select
        works on the rows of all. Raises SiddhiError for a wrong query.
        """
        retrieval = compile_retrieval(text, self.plan)
        if retrieval.source is not None and retrieval.source.kind == "aggregation" and retrieval.output is None:
            self.flush()
            return self._retrieved(retrieve(self.plan, retrieval, self.store, now=self._now()))
        if self.nodes == 1 or retrieval.output is not None:
            first = next(iter(self._ask(text).values()))
            return Result(first.columns, first.rows)
        answers = {self.shard_ids[n]: a for n, a in self._ask(rows_wanted(text)).items()}
        context = Context(scripts=scripts_of(self.plan, self._scripts))
        return self._retrieved(merge_nodes(retrieval, answers, context, self._now()))

    @staticmethod
    def _retrieved(found: Retrieved) -> Result:
        by_shard = None if found.by_shard is None else frame_of(found.by_shard)
        return Result(found.merged.columns, found.merged.rows, by_shard)

    def _ask(self, text: str) -> dict[int, Answer]:
        """Puts a question to the nodes in its place among the events; answers by node."""
        with self._lock:
            self.start()
            seq = self._inbox.append([Ask(text=text)])
        with self._cancelling():
            self._stream.wait(seq)
        with self._progress.changed:
            answers = self._progress.answers.pop(seq)
        out: dict[int, Answer] = {}
        for node, answer in sorted(answers.items()):
            if isinstance(answer, Failed):
                raise SiddhiRuntimeError(answer.message)
            out[node] = answer
        return out

    def aggregation(
        self, name: str, per: str = "sec", within: Sequence[Any] | str | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """All of an aggregation's buckets of a duration: (merged over shards, by shard with SHARD_ID first).

        `within`: one text with wildcards, or two bounds (texts or ms). Raises SparkStreamError for an unknown name.
        """
        self.flush()
        bounds = _ALL_TIMES if within is None else (within,) if isinstance(within, str) else tuple(within)
        wanted = select_all(self.plan, name, per, bounds)  # type: ignore[arg-type]
        found = self._retrieved(retrieve(self.plan, wanted, self.store, now=self._now()))
        frame = found.frame
        if found.by_shard is not None:
            return frame, found.by_shard
        alone = frame.copy()
        alone.insert(0, SHARD, self.shard_ids[0])
        return frame, alone

    def output(self, stream: str, *, last: int | None = None) -> pd.DataFrame:
        """What a derived stream put out so far: `node`, `timestamp` (ms), attributes; the `last` so many where given.

        Where the stream has an attribute `timestamp` of its own, the event's time is `event_timestamp`.
        """
        return self._outputs.frame(stream, self._schema(stream).names, self._progress.batch, last)

    @property
    def errors(self) -> pd.DataFrame:
        """Rows and events that the app could not take: stream, timestamp, values, reason."""
        found = self.store.errors(self.name)
        frame = found.to_pandas(types_mapper=NULLABLE.get if found.column("ts").null_count else None)
        frame.columns = pd.Index(["stream", "timestamp", "values", "reason"])
        frame["values"] = [json.loads(v) for v in frame["values"]]
        return frame

    def explain(self) -> str:
        """The plan, and what routing does to each query."""
        return str(explain(self.plan))

    def stats(self) -> dict[str, Any]:
        """How far the app is, and per shard: what the last micro-batch took (ms) and the state's size (bytes)."""
        p, position = self._progress, self._inbox.position
        with p.changed:
            nodes = {self.shard_ids[n]: asdict(report) for n, report in sorted(p.nodes.items())}
            return {
                "state": self.state,
                "clock": position.clock,
                "events": position.request,
                "waiting": position.seq - 1 - p.last,
                "micro_batches": p.batch + 1,
                "outputs": dict(p.rows),
                "errors": p.errors,
                "nodes": nodes,
            }

    @property
    def logs(self) -> list[str]:
        """The last lines that `#log` and `log` sinks wrote."""
        return list(self._progress.logs)

    def __repr__(self) -> str:
        return f"<App {self.name}: {self.state}, {self.nodes} node{'s' if self.nodes > 1 else ''}, {self.mode}>"
