"""Deploying, finding and stopping apps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..engine.scripts import refuse_scripts
from ..errors import SparkStreamError, did_you_mean
from ..plan import compile_app
from ..plan.gaps import refuse
from ..spark.session import spark_session
from .app import App
from .folder import default_home, open_folder

MODES = ("single", "active-active")

_apps: dict[str, App] = {}
_lock = threading.RLock()


def deploy(
    text: str,
    *,
    name: str | None = None,
    nodes: int = 1,
    mode: str = "single",
    routing: str = "round_robin",
    shard_ids: Sequence[str] | None = None,
    master: str | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
    variables: Mapping[str, str] | None = None,
    allow_scripts: bool = False,
    home: str | Path | None = None,
    rows_per_micro_batch: int | None = None,
) -> App:
    """Deploys a SiddhiQL app on `nodes` simulated nodes, and starts it.

    `mode`: "single" (one node), or "active-active" (every node runs the whole app on its share of the events, and
    writes aggregations under its shard id). `routing`: "round_robin", "hash:ATTR" or "node:K". `store`: the DuckDB file
    of the aggregations, by default one in the app's folder `home`. `allow_scripts`: the app's script functions may
    run, with limits. An app of that name in this process is stopped. `rows_per_micro_batch` limits how much of a
    backlog is committed at once. State in the folder is kept where the app means what it meant before, unless `fresh`;
    `App.redeployed` says what became of it.

    Raises SiddhiError for a wrong app before Spark is started, NotInThisBuild for a declared gap, SparkUnavailable, and
    SparkStreamError for arguments that do not fit together.
    """
    if mode not in MODES:
        hint = did_you_mean(mode, MODES)
        raise SparkStreamError(
            f"'{mode}' is no mode of deployment. Modes are {' and '.join(MODES)}. {hint or ''}".strip()
        )
    if nodes < 1:
        raise SparkStreamError("A deployment has one node at least.")
    if mode == "single" and nodes != 1:
        raise SparkStreamError(f"Mode single is one node. For {nodes} nodes use mode active-active.")
    shards = list(shard_ids) if shard_ids is not None else [f"node-{i + 1}" for i in range(nodes)]
    if len(shards) != nodes or len(set(shards)) != nodes:
        raise SparkStreamError(
            f"{nodes} nodes need as many different shard ids, and these were given: {', '.join(shards)}."
        )

    def plan_of(shard: str):  # type: ignore[no-untyped-def]
        properties = {"shardId": shard}
        if mode == "active-active":
            properties["partitionById"] = "true"
        return compile_app(text, properties=properties, variables=variables)

    plans = [plan_of(s) for s in shards]
    refuse(plans[0])
    refuse_scripts(plans[0], allow_scripts)
    name = name or plans[0].name
    App.check_routing(plans[0], routing, nodes)
    with _lock:
        former = _apps.pop(name, None)
        if former is not None:
            former.stop()
            former.close()
        session = _session(master)
        folder = Path(home) if home is not None else default_home(name)
        life, said = open_folder(folder, plans[0], shards=shards, mode=mode, fresh=fresh)
        app = App(
            name,
            plans,
            life,
            folder,
            session,
            mode=mode,
            routing=routing,
            store=store,
            redeployed=said,
            fresh=fresh,
            allow_scripts=allow_scripts,
            rows_per_micro_batch=rows_per_micro_batch,
        )
        _apps[name] = app
        app.start()
        return app


def _session(master: str | None):  # type: ignore[no-untyped-def]
    """The session. Spark's handler for Ctrl-C, which cancels the work of every app, is not left behind."""
    if threading.current_thread() is not threading.main_thread():
        return spark_session(master)
    former = signal.getsignal(signal.SIGINT)
    try:
        return spark_session(master)
    finally:
        signal.signal(signal.SIGINT, former)


def apps() -> dict[str, App]:
    """The apps of this process by name, stopped ones too."""
    return dict(_apps)


def get(name: str) -> App:
    """The app called `name`. Raises SparkStreamError where there is none."""
    found = _apps.get(name)
    if found is None:
        raise SparkStreamError(f"There is no app '{name}'. {did_you_mean(name, _apps) or ''}".strip())
    return found


def stop_all() -> None:
    """Stops every app and lets go of its store."""
    with _lock:
        for app in list(_apps.values()):
            app.stop()
            app.close()
        _apps.clear()
