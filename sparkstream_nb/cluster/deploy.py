"""Deploying, finding and stopping apps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..engine.scripts import refuse_scripts
from ..errors import Misuse, SparkStreamError, nearest
from ..plan import compile_app
from ..plan.gaps import refuse
from ..plan.nodes import Plan
from ..spark.routing import Route
from ..spark.session import spark_session
from ..spark.settings import local_master, on_this_machine
from .answers import Apps
from .app import App
from .deployment import Deployment, milliseconds, mode_of
from .first_use import prepare
from .folder import default_home, open_folder

_apps: dict[str, App] = {}
_lock = threading.RLock()


def deploy(
    text: str,
    *,
    name: str | None = None,
    nodes: int = 1,
    mode: str | None = None,
    routing: str = "round_robin",
    shard_ids: Sequence[str] | None = None,
    master: str | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
    variables: Mapping[str, str] | None = None,
    allow_scripts: bool = False,
    home: str | Path | None = None,
    rows_per_micro_batch: int | None = None,
    start: int | str | datetime | None = None,
    timezone: str = "UTC",
) -> App:
    """Deploys a SiddhiQL app on `nodes` simulated nodes, carried by Spark, and starts it.

    - `name`: the app's name, by default that of `@app:name`. An app of that name in this process is stopped.
    - `nodes`, `mode`: "single" (one node), or "active-active", the default for several nodes: every node runs the whole
      app on its share of the events, and writes aggregations under its shard id.
    - `routing`: which node gets an event: "round_robin", "hash:ATTRIBUTE" or "node:K", K from 1.
    - `shard_ids`: one for each node, by default node-1, node-2, ...
    - `master`: a Spark master or Connect address; local by default.
    - `store`: the DuckDB file of the aggregations, by default one in the app's folder.
    - `fresh`: forget the state and the aggregations of an earlier deployment under this name. Otherwise they are kept
      where the app means what it meant before; `App.redeployed` says what became of them.
    - `variables`: values of `${NAME}` in the text; the environment is never looked at.
    - `allow_scripts`: functions that the app defines as scripts may run, with limits on time and memory.
    - `home`: the app's folder, by default `$SPARKSTREAM_HOME`, or the user's cache folder, then `apps`, then the name.
    - `rows_per_micro_batch`: how many events of a backlog are committed at once, at most.
    - `start`: where the app's clock starts: ms since 1970, a datetime or an ISO text. By default it starts with the
      first event or tick; with 0 it starts in 1970, as Siddhi's playback does. A pattern that begins with an absent
      state waits from there on, and a trigger at 'start' has that time.
    - `timezone`: the time zone of cron expressions, such as "Europe/Berlin".

    Raises SiddhiError for a wrong app before Spark is started, NotInThisBuild for a declared gap, SparkUnavailable
    without a usable Spark, and SparkStreamError for arguments that do not fit together.
    """
    mode = mode_of(mode, nodes)
    clock_start = None if start is None else milliseconds(start, "start")
    shards = tuple(shard_ids) if shard_ids is not None else tuple(f"node-{i + 1}" for i in range(nodes))
    if len(shards) != nodes or len(set(shards)) != nodes:
        raise SparkStreamError(
            f"{nodes} nodes need as many different shard ids, and these were given: {', '.join(shards)}."
        )
    own = {"timezone": timezone, **({"partitionById": "true"} if mode == "active-active" else {})}
    plans = [compile_app(text, properties={"shardId": s, **own}, variables=variables) for s in shards]
    refuse(plans[0])
    refuse_scripts(plans[0], allow_scripts)
    inputs = {s: d.source.schema for s, d in plans[0].streams.items() if d.kind == "defined"}
    Route.parse(routing, nodes, inputs)
    name = name or plans[0].name
    deployment = Deployment(
        name=name,
        mode=mode,
        routing=routing,
        shard_ids=shards,
        home=default_home(name) if home is None else Path(home),
        store=store,
        fresh=fresh,
        allow_scripts=allow_scripts,
        rows_per_micro_batch=rows_per_micro_batch,
        start=clock_start,
        timezone=timezone,
    )
    return _start(deployment, plans, master)


def _start(deployment: Deployment, plans: Sequence[Plan], master: str | None) -> App:
    """The running app, in place of a former one of its name."""
    with _lock:
        former = _apps.pop(deployment.name, None)
        if former is not None:
            former.stop()
            former.close()
        if on_this_machine(master or local_master()):
            prepare()
        session = _session(master)
        life, said = open_folder(deployment, plans[0])
        app = _apps[deployment.name] = App(deployment, plans, life, session, said)
        app.start()
        return app


def _session(master: str | None) -> Any:
    """The session. Spark's handler for Ctrl-C, which cancels the work of every app, is not left behind."""
    if threading.current_thread() is not threading.main_thread():
        return spark_session(master)
    former = signal.getsignal(signal.SIGINT)
    try:
        return spark_session(master)
    finally:
        signal.signal(signal.SIGINT, former)


def apps() -> Apps:
    """The apps of this process by name, stopped ones too."""
    return Apps(dict(_apps))


def get(name: str) -> App:
    """The app of this process that was deployed under `name`. Raises `Misuse` where there is none."""
    found = _apps.get(name)
    if found is None:
        raise Misuse(nearest(f"no app is called '{name}'", name, _apps))
    return found


def stop_all() -> None:
    """Stops every app and lets go of its store."""
    with _lock:
        for app in list(_apps.values()):
            app.stop()
            app.close()
        _apps.clear()
