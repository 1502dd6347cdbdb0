"""A deployment's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ...errors import Misuse, did_you_mean, nearest, shown
from ...journal.shared import Shared
from ...lang.tree import find_annotation
from ...limits import Limits
from ...nodes.distributed import Distributed
from ...plan.nodes import Plan
from ...plan.table_requests import StoredTableLayout
from ...request import ALERTS, DAY, DeployRequest
from ...retention import Retention
from ...runners.choice import Kind
from ...simulation.node_groups import NodeGroups
from ...stores.address import Database
from ...types import Schema
from ..config.grants import Grants
from ..config.secrets import References
from ..connectors.sinks import SinkPlans
from ..connectors.sources import SourcePlans

HA = "ha"
"""The mode of two nodes, of which one takes over from the other (minimum high availability)."""
SCALABLE = "scalable"
"""The mode of nodes in turn where an app keeps nothing, and of such pairs behind a partitioning layer where it does."""
MOST_NODES = 1_000
"""Nodes that one app simulates."""


@dataclass(frozen=True)
class Connections:
    """The places outside that an app reaches, and its permissions.

    `references`: where values of `${...}` come from. `grants`: the app's permissions. `databases`: by aggregation, the
    databases that `@store` names; `tables`: the tables in each database. `sinks` and `sources`: its connections.
    `left_out`: in words, the connections that the app has and that an offline deployment does without.
    """

    references: References = field(default_factory=References, repr=False)
    grants: Grants = field(default_factory=Grants)
    databases: Mapping[str, Database] = field(default_factory=dict)
    tables: Mapping[Database, tuple[StoredTableLayout, ...]] = field(default_factory=dict)
    sinks: SinkPlans | None = field(default=None, repr=False)
    sources: SourcePlans | None = field(default=None, repr=False)
    left_out: str = ""


@dataclass(frozen=True)
class Deployment:
    """A deployment as it was planned: the request, and what follows from it, the app's text and its deployment files.

    `request`: the arguments of `deploy`, its `start` in ms. `start`: where the clock starts (ms). `max_ahead`: as the
    request's; None in playback. `groups`: nodes of which one takes over from another (modes ha, scalable and
    distributed), and their faults; None without groups. `switched_off`: the queries that do not run, as `alerts` is
    "off". `led`: the queries of a leader, as `alerts` is "leader"; None without a leader. `shared`: the address shared
    with Spark's machines. `runner`: kind of the runner. `attached`: True if it continues a deployment of another
    process; the state must fit then.
    """

    request: DeployRequest = field(repr=False)  # its variables may be secrets
    name: str
    mode: str
    routing: str
    shard_ids: tuple[str, ...]
    home: Path
    start: int | None = None
    max_ahead: int | None = DAY
    retention: Retention = field(default_factory=Retention)
    limits: Limits = field(default_factory=Limits)
    groups: NodeGroups | Distributed | None = None
    switched_off: tuple[str, ...] = ()
    led: tuple[str, ...] | None = None
    connections: Connections = field(default_factory=Connections)
    shared: Shared | None = None
    runner: Kind = "spark"
    attached: bool = False

    @property
    def nodes(self) -> int:
        """The number of simulated nodes."""
        return len(self.shard_ids)

    def with_arguments(self, **arguments: Any) -> Deployment:
        """The deployment with other arguments in its request, on which nothing else depends."""
        return replace(self, request=replace(self.request, **arguments))


def input_schemas(plan: Plan) -> dict[str, Schema]:
    """The schemas of the streams that the app defines, by name: events may be sent to them."""
    return {s: d.source.schema for s, d in plan.streams.items() if d.kind == "defined"}


def playback(plan: Plan) -> bool:
    """True if the app asks for the clock of its events (`@app:playback`)."""
    return find_annotation(plan.annotations, "playback") is not None


def check_alerts(alerts: str) -> str:
    """Raises `Misuse` for anything but "on", "off" and "leader"."""
    if alerts not in ALERTS:
        raise Misuse(nearest(f"alerts='{alerts}' is not 'on', 'off' or 'leader'", alerts, ALERTS))
    return alerts


def check_count(nodes: object) -> int:
    """Raise `Misuse` for a value that is not a number of nodes."""
    if isinstance(nodes, bool) or not isinstance(nodes, int):
        raise Misuse(f"nodes must be a whole number, not {nodes!r}")
    if nodes < 1:
        raise Misuse(f"nodes must be 1 or more, not {nodes}")
    if nodes > MOST_NODES:
        raise Misuse(f"nodes is {MOST_NODES:,} at most, not {shown(nodes)}")
    return nodes


def shards_of(shard_ids: Sequence[str] | None, nodes: int) -> tuple[str, ...]:
    """The shard id of each node, by default node-1, node-2, ... Raises `Misuse` for other than one for each."""
    if shard_ids is None:
        return tuple(f"node-{i + 1}" for i in range(nodes))
    id_list = ", ".join(shard_ids)
    if not all(id.strip() for id in shard_ids):
        raise Misuse(f"a shard id is empty: {id_list}")
    if len(shard_ids) != nodes:
        ids = "1 shard id was" if len(shard_ids) == 1 else f"{len(shard_ids):,} shard ids were"
        has = "is 1 node" if nodes == 1 else f"are {nodes:,} nodes"
        raise Misuse(f"each node needs a shard id: there {has}, and {ids} given: {id_list}")
    if len(set(shard_ids)) != nodes:
        raise Misuse(f"two nodes have the same shard id: {id_list}")
    return tuple(shard_ids)


def check_zone(timezone: str) -> None:
    """Raises `Misuse` for a text that is not the name of a time zone."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(timezone, available_timezones()) or "Write a name such as UTC or Europe/Berlin"
        raise Misuse(f"'{timezone}' is not a time zone. {hint}") from None


def milliseconds(time: int | str | datetime, what: str) -> int:
    """A time as ms since 1970: the number, a datetime or date, or a text with any of these; UTC if it has no offset.

    `what` names the argument in messages. Raises `Misuse` for anything else, and for more ms than a long holds.
    """
    wrong = Misuse(f"{what}: {shown(time)} is neither ms since 1970 nor a time such as 2013-01-01T06:00:00")
    if isinstance(time, bool) or not isinstance(time, int | str | date):
        raise wrong
    try:
        moment = _moment(time)
        ms = moment if isinstance(moment, int) else round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise wrong from None
    if not -(2**63) <= ms < 2**63:
        raise Misuse(f"{what}: {shown(time)} is more ms than a long holds")
    return ms


def _moment(time: int | str | date) -> int | datetime:
    if isinstance(time, str):
        try:
            return int(time)
        except ValueError:
            time = datetime.fromisoformat(time)
    if isinstance(time, int):
        return time
    moment = time if isinstance(time, datetime) else datetime.combine(time, datetime.min.time())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
