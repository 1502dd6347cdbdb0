"""Deploying, finding and stopping apps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import argument_checks
from ..argument_types import explain_arguments
from ..errors import Misuse, SparkStreamError, nearest
from ..interrupts import deferred, interruptible
from ..limits import Limits
from ..plan.nodes import Plan
from ..request import DAY, DeployRequest
from ..retention import Retention
from ..runners.choice import ahead_of, check_spark, kind_of, session
from ..runners.runner_protocol import Session
from ..runners.spark.handover import left
from ..simulation.faults import Fault
from ..simulation.resources import ResourceCluster
from ..simulation.topology import Pair
from ..stores.patience import Patience
from .connectors.stores import check_stores
from .deployment.app_folder import (
    check_connected_before,
    default_home,
    foresee_changes,
    has_app,
    life_to_change,
    open_folder,
)
from .deployment.changing import Changes, has_pending
from .deployment.deployment import Deployment
from .deployment.owner import acquire_home, same_folder
from .planning import Compiler, PlannedDeployment, plan_deployment
from .results.first_use import prepare
from .results.frontend import current
from .results.overview import Overview
from .running.app import App
from .running.apps import Apps
from .running.overviews import overview_of
from .running.runtime import AppRuntime

_apps: dict[str, App] = {}
_lock = threading.RLock()


@explain_arguments
def deploy(
    text: str,
    *,
    name: str | None = None,
    nodes: int | None = None,
    mode: str | None = None,
    routing: str = "round_robin",
    shard_ids: Sequence[str] | None = None,
    master: str | None = None,
    conf: str | Path | Sequence[str | Path] | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
    variables: Mapping[str, str] | None = None,
    allow_scripts: bool = False,
    allow_env: Sequence[str] = (),
    allow: Sequence[str] = (),
    offline: bool = False,
    home: str | Path | None = None,
    shared: str | None = None,
    rows_per_micro_batch: int | None = None,
    start: int | str | datetime | None = None,
    clock: str = "virtual",
    timezone: str = "UTC",
    max_ahead: int | None = DAY,
    alerts: str = "on",
    pair: Pair | None = None,
    resources: ResourceCluster | None = None,
    faults: str | Path | Sequence[Fault] | None = None,
    seed: int = 0,
    retention: Retention | str | None = None,
    limits: Limits | str | None = None,
) -> App:
    """Deploys a SiddhiQL app on `nodes` simulated nodes (default: 1), on Spark, and starts it.

    - `name`: the app's name, by default the one in `@app:name`, else the notebook's, or `app` if that is unknown:
      an app without a name takes the place of the one that this notebook had. An app of that name in this process is
      stopped.
    - `nodes`, `mode`: "single" (one node), or "active-active", the default for several nodes: every node runs the whole
      app on its share of the events, and writes aggregations under its shard id. "ha" is minimum high availability:
      two nodes, of which one is active and the other takes over; tables and aggregations are in their memory.
      "scalable" is several such pairs behind a layer that divides events over them, by `routing="hash:ATTRIBUTE"` or as
      a @distribution on the input stream says; without either, nodes in turn, for apps that keep nothing.
      "distributed" splits the app into partial apps as `@dist(execGroup, parallel)` says, which managers place on
      `nodes` resource nodes.
    - `routing`: which node gets an event: "round_robin", "hash:ATTRIBUTE", "node:K" (K from 1), "random:SEED", or
      "sticky": each input stream has its node.
    - `shard_ids`: one for each node, by default node-1, node-2, ...
    - `conf`: the nodes' deployment files, as WSO2's servers have them (`deployment.yaml`): one for each node, or the
      folder that they are in. They give the shard ids, `partitionById`, and the data sources that `@store` names; files
      of minimum HA (`deployment.config: type: ha`) also the mode, and the figures of the pair, or of several pairs by
      `groupId`; files of a fully distributed deployment the mode, managers, resource nodes, figures.
    - `master`: a Spark master or Connect address; Spark on this machine by default. "inline" runs the app in this
      process, without Spark and Java: meant for tests, CI and a first look.
    - `store`: the DuckDB file of the aggregations, by default one in the app's folder.
    - `fresh`: forget the state and the aggregations of an earlier deployment under this name. Otherwise they are kept;
      if the text changed, only the state and aggregations of unchanged parts. `App.redeployed` says which were kept;
      `changes` of the same arguments says it before. From a `store` elsewhere and from databases, aggregations of these
      names are removed, even those that another app wrote: `App.warnings` says which; a DuckDB file is copied to the
      trash of the app's folder first.
    - `variables`: values of `${NAME}` in the text; the environment is never looked at.
    - `allow_scripts`: functions that the app defines as scripts may run, with limits on time and memory.
    - `allow_env`: the environment variables that `${...}` of the deployment files and of `@store` may read.
    - `allow`: what the app may reach outside: "file=DIR", "http=URL-PREFIX", "kafka=HOST:PORT" (and
      hl7, mqtt, nats, rabbitmq, smtp, tcp, websocket),
      "jdbc=postgresql://HOST:PORT/DATABASE". By default nothing: a source, a sink or a `@store` with an address that
      reaches elsewhere is refused, with the text to add here. Addresses in `conf` and `store` need no grant.
    - `offline`: the app runs as it is written on your own feeds, without its sources, sinks and databases. Their
      streams are fed and read as others, stored tables are in memory (those that several nodes share in a file of the
      app's folder), and aggregations in `store`. No secret is looked up, and no `allow` is needed; `App.offline` says
      what was left out.
    - `home`: the app's folder, by default `$SPARKSTREAM_HOME`, or the user's cache folder, then `apps`, then the name.
    - `shared`: an address such as "s3://bucket/folder", where Spark's machines and this one meet if they do not see the
      app's folder under one path. Spark's checkpoint and the data in process are there; all else stays in `home`.
    - `rows_per_micro_batch`: how many events of a backlog are committed at once, at most.
    - `start`: where the app's clock starts: ms since 1970, a datetime or an ISO text. By default it starts with the
      first event or tick; with 0 it starts in 1970, as Siddhi's playback does. A pattern that begins with an absent
      state waits from there on, and a trigger at 'start' has that time.
    - `clock`: source of the app's clock. "virtual": times of events, and `App.tick`. "wall": this machine's clock too:
      an event that is sent without a time has its time, and timers fire when they are due, though no event comes. The
      clock starts with the deployment then, and never goes back. Not in modes ha, scalable and distributed, nor with
      @app:playback or `start`.
    - `timezone`: the time zone of cron expressions and of the buckets of aggregations, such as "Europe/Berlin". A
      deployment file's `aggTimeZone` comes before it.
    - `max_ahead`: an event whose time is more than this many ms (by default a day) after this machine's is an error of
      the app, since the clock would stay there for all later events. None, and `@app:playback` in the app: any time is
      taken.
    - `alerts`: how several nodes run the queries whose outputs depend on which node sees which event, under this
      routing; the app's card says which. "off" switches them off. "leader" has one further node run them, which takes
      all events; its shard id is `leader`.
    - `pair`: modes ha and scalable: the figures of two nodes, a `Pair`, by default the figures of WSO2's servers.
    - `resources`: mode distributed: managers, resource nodes and their figures, by default two of each with the figures
      of WSO2's servers.
    - `faults`: modes ha, scalable and distributed: faults of the nodes, counted from the first event: a list of
      `Kill`, `Restart`, `Pause`, `Cut` and (not in mode distributed) `Slow`; a schedule file; "random", or "random:N"
      for N in ten minutes (in each group of a scaled-out app); or an incident that operators know. Of the first group:
      "two-active", "both-passive", "repeated-outputs", "sent-to-passive", "queue-overflow"; of mode distributed:
      "old-revision", "two-copies", "lost-leader", "paused-leader", "below-minimum". `App.cluster` adds more.
    - `seed`: modes ha, scalable and distributed: seed of the nodes' loops and of random faults: the same one gives the
      same outputs.
    - `retention`: how much input and output, and how many errors, the app's folder keeps: a
      `Retention`, or a text such as "recording=500MB,outputs=5GB,days=7,errors=5000". By default 1 GB, 10 GB and
      100,000; the oldest goes first, and the dropped amounts are counted.
    - `limits`: bounds on what one event may use, beyond which it is an error: a `Limits`, or a text such as
      "characters=1MB,nesting=100,firings=1e6". By default 16 million characters of a text that a function makes, 200
      levels of an object, 1 million firings of a trigger in one step. Replays use the present limits.

    Raises SiddhiError for a wrong app before Spark is started, NotInThisBuild for a declared gap, SparkUnavailable
    without a usable Spark, and SparkStreamError for arguments that do not fit together.
    """
    return _start(plan_deployment(DeployRequest(**locals())))


@explain_arguments
def changes(text: str, **how: Any) -> Changes:
    """The parts of an app's state that `deploy` with these arguments would keep, start over and drop, and why.

    Nothing is touched, and Spark is not started. Raises what `deploy` raises of the arguments.
    """
    deployment_plan = plan_deployment(DeployRequest(text=text, **how))
    return foresee_changes(deployment_plan.deployment, deployment_plan.plan)


def deploy_again(request: DeployRequest) -> App:
    """Deploys what `request` asks for, which continues with its state. Raises what `deploy` raises, and `Misuse` if
    the state does not fit."""
    return _start(plan_deployment(request, attached=True))


def deploy_compiled(request: DeployRequest, compiler: Compiler) -> App:
    """Deploys what `request` asks for, with the plans that `compiler` makes of its text. Raises as `deploy` does."""
    return _start(plan_deployment(request, compiler=compiler))


def _start(deployment_plan: PlannedDeployment) -> App:
    """The running app, in place of a former one of its name, which continues if this one does not start."""
    deployment, plans, master = deployment_plan.deployment, deployment_plan.plans, deployment_plan.master
    check_connected_before(deployment)
    if deployment.shared is not None:
        deployment.shared.check()
    with _lock, deferred():
        with interruptible():
            _finish_elsewhere(deployment, plans[0], master)
        previous_app = _apps.get(deployment.name)
        owner = None
        if previous_app is not None and not previous_app.closed and same_folder(previous_app.home, deployment.home):
            owner = previous_app.runtime.owner
        home_owner = owner or acquire_home(deployment.home, deployment.name)
        try:
            with interruptible():
                check_spark(master)  # before the minutes that the first preparation takes
                prepare(ahead_of(master))
                where = _session(master)
            if previous_app is not None and owner is not None:
                _finish(previous_app, deployment, plans[0])
        except BaseException:
            if owner is None:
                home_owner.release()
            raise
        if previous_app is not None:
            if owner is not None:
                previous_app.runtime.owner = None  # closing it must not release the folder: this deployment has it
            previous_app.stop()
            previous_app.close()
            del _apps[deployment.name]
        try:
            # Before anything of the former app is dropped, which would be lost if its stores refuse the new one.
            if has_app(deployment.home):
                databases, patience = deployment.connections.databases, Patience(tell=current().notice)
                check_stores(deployment.request.store, databases, plans[0].aggregations, patience)
            app_run, message = open_folder(deployment, plans[0], min(where.places, deployment.nodes))
            # Only virtual clocks have a start that is given; one that has begun is the state's.
            app = App(AppRuntime(replace(deployment, start=app_run.start), plans, app_run, where, message))
        except BaseException:
            home_owner.release()
            raise
        app.runtime.owner = home_owner
        _apps[deployment.name] = app
        app.start()
        app.wait_tried()
        for note in deployment_plan.notes:
            app.note(note)
        return app


def _finish(previous_app: App, deployment: Deployment, plan: Plan) -> None:
    """Lets an app that is changed commit its earlier input. Raises `Misuse` if it cannot: the app is not changed
    then."""
    if life_to_change(deployment, plan) is None:
        return
    try:
        with interruptible():
            previous_app.finish()
    except KeyboardInterrupt:
        with suppress(SparkStreamError):
            previous_app.start()
        raise
    except SparkStreamError as error:
        with suppress(SparkStreamError):
            previous_app.start()
        raise Misuse(
            f"{deployment.name} is not changed, as its earlier input is not committed: {str(error).rstrip('.')}. "
            "fresh=True (--fresh) starts from scratch"
        ) from None


def _finish_elsewhere(deployment: Deployment, plan: Plan, master: str | None) -> None:
    """Run the former deployment of another process if an app is changed that has not committed all its input: the
    former app has to commit it, and at the same Connect server if that has handed something over. Does nothing if this
    process has the app.
    """
    running = _apps.get(deployment.name)
    if running is not None and not running.closed and same_folder(running.home, deployment.home):
        return
    previous_run = life_to_change(deployment, plan)
    if previous_run is None or previous_run.deployed is None or not has_pending(deployment.home, previous_run):
        return
    request = previous_run.deployed.request(deployment.home)
    if (
        master is None
        or left(previous_run.folder(deployment.home), previous_run.shared_folder)
        or previous_run.runner != kind_of(master)
    ):
        master = request.master
    variables = {**(request.variables or {}), **deployment.connections.references.variables}
    deploy_again(replace(request, name=deployment.name, master=master, variables=variables))


def _session(master: str | None) -> Session:
    """The session in which the app runs. Spark's handler for Ctrl-C, which cancels the work of every app, is not left
    behind."""
    if threading.current_thread() is not threading.main_thread():
        return session(master)
    previous_handler = signal.getsignal(signal.SIGINT)
    try:
        return session(master)
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def apps() -> Apps:
    """The apps of this process by name, stopped ones too."""
    return Apps(dict(_apps))


def overview() -> Overview:
    """All apps of this process at a glance: their states, nodes, rates, errors and memory, as of the last committed
    micro-batches. In a notebook its display refreshes itself."""
    apps_overview = overview_of([app for app in list(_apps.values()) if not app.closed])
    return replace(apps_overview, read=overview)


@explain_arguments
def get(name: str) -> App:
    """The app of this process that was deployed under `name`. Raises `Misuse` if there is none."""
    argument_checks.require_str("name", name)
    app = _apps.get(name)
    if app is None:
        if has_app(default_home(name)):
            raise Misuse(
                f"'{name}' was deployed before, and is not in this process: %siddhi attach {name}, in Python "
                f"sparkstream_nb.attach('{name}'), continues it"
            )
        if not _apps:
            raise Misuse(f"no app is called '{name}': none is deployed yet, deploy one first")
        raise Misuse(nearest(f"no app is called '{name}'", name, _apps))
    return app


def close_app(name: str) -> None:
    """Stop an app, close its store, and forget it; its folder stays. Raises `Misuse` as `get` does."""
    with _lock, deferred():
        app = get(name)
        app.stop()
        app.close()
        del _apps[name]


def stop_all() -> None:
    """Stop every app and close its store."""
    with _lock, deferred():
        for app in list(_apps.values()):
            app.stop()
            app.close()
        _apps.clear()
