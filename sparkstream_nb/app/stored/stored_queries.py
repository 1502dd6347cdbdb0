"""On-demand queries over the stored aggregations of an app that need not be deployed: they only read."""

from __future__ import annotations

import time

from ...errors import Misuse, StoreError
from ...outputs.open_buckets import check_node
from ...outputs.shard_retrieval import retrieve
from ...plan import compile_retrieval
from ...plan.nodes import Plan
from ...stores import DuckDBStore, Store
from ...stores.opening import open_database
from ...stores.patience import Patience
from ..config.conf import node_files
from ..results.answers import Result, frame_of
from ..results.hints import hint_of
from .maintenance import StoredApp


def query_stored(app: StoredApp, text: str, *, limit: int | None = None, as_wso2: bool | str = False) -> Result:
    """Answers a query over an aggregation from its store, merged over shards, with `by_shard`. Spark is not needed.

    Nodes that write to a database may run meanwhile; a DuckDB file is of one process. `limit`: rows to show. `as_wso2`
    as in `App.query`. Raises SiddhiError for a wrong app or query, `Misuse` for a query of anything but a stored
    aggregation, and StoreError if the store cannot be opened, has no such tables, or has them for another app.
    """
    files = tuple(node_files(list(app.conf), references=app.references)) if app.conf else ()
    node_properties: list[tuple[dict[str, str], str]] = [(dict(f.properties), f.shard_id) for f in files] or [
        ({}, "node-1")
    ]

    def compile_plans(**more: str) -> list[Plan]:
        return [app.compile_text({**more, **g, "shardId": s}) for g, s in node_properties]

    plans = compile_plans()
    retrieval = compile_retrieval(text, plans[0])
    source = retrieval.source
    if source is None or source.kind != "aggregation" or retrieval.output is not None:
        raise Misuse(
            "only stored aggregations are read here: tables and windows are in the nodes of a running app. "
            "Use sparkstream run --query, or %siddhi query in the app's notebook"
        )
    database = app.databases(plans, files).get(source.id)
    store: Store = (
        DuckDBStore(app.store, read_only=True)
        if database is None
        else open_database(database, Patience(seconds=0), read_only=True)
    )
    try:
        # Without deployment files only the tables tell whether the app ran on one node or on several.
        plan = _find_fitting_plan(store, source.id, *plans[:1], *(() if files else compile_plans(partitionById="true")))
        retrieval, now = compile_retrieval(text, plan), int(time.time() * 1000)
        if isinstance(as_wso2, str):
            check_node(as_wso2, [rows.shard for rows in store.shards(source.id)])
        answers = retrieve(plan, retrieval, store, now=now, as_wso2=as_wso2)
        by_shard = answers.by_shard  # read while the store is open
        hint = hint_of(plan, retrieval, store, now=now, empty=not answers.answer.rows)
    finally:
        store.close()
    read = None if by_shard is None else (lambda: frame_of(by_shard))
    return Result(answers.answer.columns, answers.answer.rows, read, limit, hint)


def _find_fitting_plan(store: Store, aggregation: str, *plans: Plan) -> Plan:
    """The first of `plans` that the tables fit. Raises StoreError if none does, with the reason of the last one."""
    for plan in plans[:-1]:
        try:
            store.prepare([plan.aggregations[aggregation]])
        except StoreError:
            continue
        return plan
    store.prepare([plans[-1].aggregations[aggregation]])
    return plans[-1]
