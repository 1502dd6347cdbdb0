"""Changing the number of nodes of a running app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ... import argument_checks
from ...errors import Misuse
from ...interrupts import deferred, interruptible
from ...journal.routing import Route
from ...plan.distributed.leader import LEADER
from ..config.conf import node_files
from ..deployment.scaling import scale_deployment, wanted_ids
from .app_files import AppDefinition
from .runtime import AppRuntime


def scale_app(
    app: AppRuntime,
    nodes: int | None,
    shard_ids: Sequence[str] | None,
    conf: str | Path | Sequence[str | Path] | None,
) -> None:
    """Gives the app its new nodes, as `App.scale` describes it. Raises `Misuse` as that does."""
    if app.mode != "active-active":
        raise Misuse(f"{app.name} has mode {app.mode}; deploy it with mode='active-active' to scale it")
    argument_checks.optional_str_list("shard_ids", shard_ids)
    files = () if conf is None else tuple(node_files(conf, references=app.deployment.connections.references))
    ids = [f.shard_id for f in files] if files else shard_ids
    new_ids = wanted_ids(app.shard_ids, app.app_run.shards, nodes, ids)
    if app.app_run.leader is not None and LEADER in new_ids:
        raise Misuse(f"'{LEADER}' is the shard id of the leader: give the shard another")
    if new_ids == app.shard_ids:
        return
    if any(feed.active for feed in app.feeds.values()):
        raise Misuse(f"{app.name} has feeds in the background: stop them, or wait for them, before it is scaled")
    deployment, plans = scale_deployment(app.deployment, app.definition.plans, new_ids, files)
    Route.parse(deployment.routing, len(new_ids))
    with app.lock, deferred():
        with interruptible(), app.waits.cancel_on_interrupt():
            app.waits.settle(None)  # sources of topics cannot read while the lock is held
        new_run = app.app_run.with_nodes(new_ids)
        if new_run.deployed is not None:
            new_run = replace(new_run, deployed=new_run.deployed.with_nodes(new_ids, conf))
        app.reopen(AppDefinition(deployment.with_arguments(fresh=False), plans, new_run))
