"""Planning a deployment: from its parameters to the planned deployment, as data.

`plan_deployment` reads deployment files and compiles the app; it starts nothing, and writes nothing. `deploy` starts
its result (`deploying.py`), `changes` compares it with the present app.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..argument_checks import check_name
from ..engine.scripts import refuse_scripts
from ..errors import Misuse, SparkStreamError
from ..journal.routing import Route
from ..journal.shared import shared_at
from ..limits import Limits
from ..nodes.distributed import Distributed
from ..plan import compile_app
from ..plan.distributed.layer_streams import behind_layer
from ..plan.distributed.leader import LEADER, led_by
from ..plan.gaps import refuse
from ..plan.nodes import Plan
from ..plan.shard_safety.safety import dependent_queries, without
from ..request import DeployRequest
from ..retention import Retention
from ..runners.choice import check_master, kind_of
from ..simulation.node_groups import NodeGroups
from ..stores.duckdb import check_file
from .config.conf import DISTRIBUTED, node_files
from .config.grants import Grants
from .config.secrets import References
from .connectors.response_links import response_links
from .connectors.sinks import SinkPlans, check_sinks
from .connectors.sources import SourcePlans
from .connectors.stores import databases_of, tables_of
from .deployment.app_folder import check_home, default_home, document_home, document_name, text_home
from .deployment.deployment import (
    HA,
    Connections,
    Deployment,
    check_alerts,
    check_zone,
    input_schemas,
    milliseconds,
    playback,
)
from .deployment.grouping import Layer, check_groups
from .deployment.modes import ActiveActive, AskedNodes, Mode, NodesOfMode, check_clock, mode_of
from .deployment.node_plans import compile_nodes
from .deployment.offline import OfflineCompiler, shared_tables
from .deployment.offline_advice import point_offline
from .results import frontend

Compiler = Callable[[str, Mapping[str, str], Mapping[str, str] | None], Plan]
"""Makes an app's plan of its text, a node's properties and the values of `${NAME}`, as `compile_app` does."""


@dataclass(frozen=True)
class PlannedDeployment:
    """A deployment before it starts: its parameters, the plan of each node, the master, and notes for the card."""

    deployment: Deployment
    plans: tuple[Plan, ...] = field(repr=False)
    master: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The plan of the first node. Other nodes' plans differ in their properties."""
        return self.plans[0]


@dataclass(frozen=True)
class _RoutedQueries:
    """The effect of the routing on queries: queries that are switched off, and queries of a leader."""

    routing: str
    off: tuple[str, ...]
    led: tuple[str, ...] | None


def plan_deployment(
    request: DeployRequest, *, attached: bool = False, compiler: Compiler = compile_app
) -> PlannedDeployment:
    """The deployment that `request` asks for. `attached`: it continues with the state of the last one, or is refused
    when it starts. `compiler` makes the plans, unless the request is for one without connections.

    Raises SiddhiError for a wrong app, NotInThisBuild for a declared gap, and `Misuse` for arguments that do not fit
    together.
    """
    try:
        return _plan_deployment(request, attached, compiler)
    except SparkStreamError as error:
        if request.offline or attached or compiler is not compile_app:
            raise
        raise point_offline(error, lambda: _runs_offline(request)) from None


def _runs_offline(request: DeployRequest) -> bool:
    """True if the app has connections, and something to compute without them."""
    offline_plan = _plan_deployment(replace(request, offline=True), False, compile_app)
    return bool(offline_plan.deployment.connections.left_out and offline_plan.plan.queries)


def _plan_deployment(request: DeployRequest, attached: bool, compiler: Compiler) -> PlannedDeployment:
    request.check()
    check_zone(request.timezone)
    check_master(request.master, request.shared)
    if request.store is not None:
        check_file(request.store)
    start = None if request.start is None else milliseconds(request.start, "start")
    references = References(dict(request.variables or {}), tuple(request.allow_env))
    files = () if request.conf is None else tuple(node_files(request.conf, ("", HA, DISTRIBUTED), references))
    mode = mode_of(request, files)
    node_request = AskedNodes(request, files, mode.layer(request, files))
    nodes = mode.nodes(node_request)
    several = isinstance(mode, ActiveActive) and len(nodes.shard_ids) > 1
    offline = OfflineCompiler(several) if request.offline else None
    if offline is not None:
        compiler = offline.compile_text
    plans = _compile_plans(request, compiler, mode, nodes, node_request)
    name, home = _name_and_home(request.name or plans[0].name, request)
    plans, groups = _plan_groups(plans, name, mode, nodes, node_request)
    plans, routing_layer = _apply_routing(plans, request, mode, nodes, node_request.layer)
    check_clock(request.clock, mode, plans[0], start)
    if groups is not None:
        check_groups(plans[0], mode.name, routing_layer.routing, request.alerts)
    grants = Grants.of(request.allow)
    if groups is not None:
        check_sinks(plans[0], mode.name)
    links = response_links(plans[0])
    sinks = SinkPlans(plans[0], grants, references, links)
    check_home(home)
    connections = Connections(
        references=references,
        grants=grants,
        databases={} if request.offline else databases_of(plans, files, references, grants),
        tables=shared_tables(plans[0], home) if request.offline else tables_of(plans, files, references, grants),
        sinks=sinks,
        sources=SourcePlans(plans[0], grants, references, home, files, links),
        left_out="" if offline is None else offline.left_out,
    )
    deployment = Deployment(
        replace(request, start=start),
        name=name,
        mode=mode.name,
        routing=routing_layer.routing,
        shard_ids=nodes.shard_ids,
        home=home,
        start=start,
        max_ahead=None if playback(plans[0]) else request.max_ahead,
        retention=Retention.of(request.retention),
        limits=Limits.of(request.limits),
        groups=groups,
        switched_off=routing_layer.off,
        led=routing_layer.led,
        connections=connections,
        shared=shared_at(request.shared),
        runner=kind_of(request.master),
        attached=attached,
    )
    unknown = [(f.path.name, ", ".join(f.unknown)) for f in files if f.unknown]
    notes = tuple(f"{file}: these keys mean nothing here: {keys}" for file, keys in unknown)
    return PlannedDeployment(deployment, plans, request.master, notes)


def _compile_plans(
    request: DeployRequest, compiler: Compiler, mode: Mode, nodes: NodesOfMode, node_request: AskedNodes
) -> tuple[Plan, ...]:
    """The plan of each node."""
    files, shards = node_request.files, nodes.shard_ids
    file_properties = [{**mode.refs(files), **f.properties} for f in files if f.shard_id in shards] or [{}] * len(
        shards
    )
    zone, common = request.timezone, mode.properties(files)
    properties = [
        {"aggTimeZone": zone, **node_properties, "timezone": zone, **common, "shardId": shard}
        for node_properties, shard in zip(file_properties, shards, strict=True)
    ]
    text, variables, divided_streams = request.text, request.variables, node_request.layer.divided_streams
    return tuple(compile_nodes(properties, lambda p: behind_layer(compiler(text, p, variables), divided_streams)))


def _plan_groups(
    plans: tuple[Plan, ...], name: str, mode: Mode, nodes: NodesOfMode, node_request: AskedNodes
) -> tuple[tuple[Plan, ...], NodeGroups | Distributed | None]:
    """The nodes' plans in the mode, which can run, and the groups that take over from each other."""
    of_nodes = tuple(mode.plan(plan) for plan in plans)
    refuse(of_nodes[0])
    refuse_scripts(of_nodes[0], node_request.request.allow_scripts)
    Route.parse(node_request.request.routing, len(nodes.shard_ids), input_schemas(of_nodes[0]))
    return of_nodes, mode.groups(plans[0], name, nodes, node_request)


def _apply_routing(
    plans: tuple[Plan, ...], request: DeployRequest, mode: Mode, nodes: NodesOfMode, layer: Layer
) -> tuple[tuple[Plan, ...], _RoutedQueries]:
    """The nodes' plans under the routing, and its effect on queries. Raises `Misuse` for invalid `alerts`."""
    check_alerts(request.alerts)
    several = len(nodes.shard_ids) > 1
    off = tuple(dependent_queries(plans[0], layer.route)) if request.alerts == "off" and several else ()
    plans = tuple(without(plan, off) for plan in plans)
    led = led_by(plans[0], layer.route) if request.alerts == "leader" and isinstance(mode, ActiveActive) else None
    if led is not None and LEADER in nodes.shard_ids:
        raise Misuse(f"a shard id is '{LEADER}', the shard id of the node for alerts='leader': give the shard another")
    return plans, _RoutedQueries(layer.route, off, led)


def _name_and_home(name: str | None, request: DeployRequest) -> tuple[str, Path]:
    """The name of an app, and its folder. Without a name it is called after the notebook."""
    if name is not None:
        check_name("the app's name", name)
        name_and_home = name, default_home(name)
    else:
        document = frontend.current().document()
        if document is None:
            name_and_home = "app", text_home(request.text)
        else:
            name_and_home = document_name(document), document_home(document)
    return name_and_home if request.home is None else (name_and_home[0], Path(request.home))
