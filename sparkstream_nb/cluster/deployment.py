"""How an app is deployed."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ..errors import Misuse, brief, did_you_mean, nearest
from ..lang.tree import find_annotation
from ..options import ALERTS, DAY, MODES
from ..plan.nodes import Plan
from ..plan.stored import StoredTableLayout
from ..stores.address import Database
from .secrets import References

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
MOST_NODES = 1000
"""Simulated nodes of an app: each has a state and an engine of its own on this machine."""


@dataclass(frozen=True)
class Deployment:
    """What `deploy` was asked for, with its defaults filled in. See `deploy` for what each field means.

    `databases`: by aggregation, those that `@store` names; `tables`: the tables in each database.
    `references`: where values of `${...}` come from. `switched_off`: the queries that do not run, as `alerts` is "off".
    `led`: those that a leader runs, as `alerts` is "leader"; None where there is no leader.
    """

    name: str
    mode: str
    routing: str
    shard_ids: tuple[str, ...]
    home: Path
    store: str | Path | None = None
    fresh: bool = False
    allow_scripts: bool = False
    rows_per_micro_batch: int | None = None
    start: int | None = None
    timezone: str = "UTC"
    databases: Mapping[str, Database] = field(default_factory=dict)
    tables: Mapping[Database, tuple[StoredTableLayout, ...]] = field(default_factory=dict)
    references: References = field(default_factory=References, repr=False)
    max_ahead: int | None = DAY
    alerts: str = "on"
    switched_off: tuple[str, ...] = ()
    led: tuple[str, ...] | None = None

    @property
    def nodes(self) -> int:
        """How many nodes are simulated."""
        return len(self.shard_ids)


def playback(plan: Plan) -> bool:
    """Whether the app's clock is that of its events by its own words (`@app:playback`)."""
    return find_annotation(plan.annotations, "playback") is not None


def check_kinds(given: Mapping[str, tuple[object, type | UnionType]]) -> None:
    """Raises `Misuse` for the first argument, by name, whose value is not of the kinds beside it, or no proper text."""
    for name, (value, kinds) in given.items():
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            wanted = " or ".join(k.__name__ for k in get_args(kinds) or (kinds,) if k is not NoneType)
            raise Misuse(f"{name}: {brief(value)} is of type {type(value).__name__}: give {wanted}")
        if isinstance(value, str) and _NO_TEXT.search(value):
            raise Misuse(f"{name}: {brief(value)} has NUL, or half of a surrogate pair")


def check_least(name: str, value: int | None, least: int) -> None:
    """Raises `Misuse` for an argument, where it is given, below `least`."""
    if value is not None and value < least:
        raise Misuse(f"{name} must be {least} or more, not {brief(value)}")


def check_alerts(alerts: str) -> str:
    """Raises `Misuse` for anything but "on", "off" and "leader"."""
    if alerts not in ALERTS:
        raise Misuse(nearest(f"alerts='{alerts}' is none of 'on', 'off' and 'leader'", alerts, ALERTS))
    return alerts


def mode_of(mode: str | None, nodes: int) -> str:
    """The mode, or the default for so many nodes. Raises `Misuse` where the two do not fit together."""
    if not isinstance(nodes, int) or isinstance(nodes, bool):
        raise Misuse(f"nodes must be a whole number, not {brief(nodes)}")
    if not 1 <= nodes <= MOST_NODES:
        raise Misuse(f"nodes must be from 1 to {MOST_NODES}, not {brief(nodes)}")
    if mode is None:
        return "active-active" if nodes > 1 else "single"
    if mode not in MODES:
        raise Misuse(nearest(f"'{mode}' is not a deployment mode", mode, MODES))
    if mode == "single" and nodes != 1:
        raise Misuse(f"mode single has one node, not {nodes}: use mode active-active")
    return mode


def shards_of(shard_ids: Sequence[str] | None, nodes: int) -> tuple[str, ...]:
    """The shard id of each node, by default node-1, node-2, ... Raises `Misuse` for other than one for each."""
    if shard_ids is None:
        return tuple(f"node-{i + 1}" for i in range(nodes))
    given = ", ".join(shard_ids)
    if not all(id.strip() for id in shard_ids):
        raise Misuse(f"a shard id is empty: {given}")
    if len(shard_ids) != nodes:
        ids = "1 shard id was" if len(shard_ids) == 1 else f"{len(shard_ids):,} shard ids were"
        has = "is 1 node" if nodes == 1 else f"are {nodes:,} nodes"
        raise Misuse(f"each node needs a shard id: there {has}, and {ids} given: {given}")
    if len(set(shard_ids)) != nodes:
        raise Misuse(f"two nodes have the same shard id: {given}")
    return tuple(shard_ids)


def check_zone(timezone: str) -> None:
    """Raises `Misuse` for a text that is not the name of a time zone."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(timezone, available_timezones()) or "Write a name such as UTC or Europe/Berlin"
        raise Misuse(f"'{timezone}' is not a time zone. {hint}") from None


def milliseconds(time: int | str | datetime, what: str) -> int:
    """A time as ms since 1970: the number, a datetime, or a text with either; UTC if it has no offset.

    `what` names the argument in messages. Raises `Misuse` for anything else, and for a number that no long holds.
    """
    try:
        ms = _milliseconds(time)
    except (TypeError, ValueError, OverflowError):
        wrong = f"'{time}'" if isinstance(time, str) and len(time) < 60 else brief(time)
        raise Misuse(f"{what}: {wrong} is neither ms since 1970 nor a time such as 2013-01-01T06:00:00") from None
    if not -(2**63) <= ms < 2**63:
        raise Misuse(f"{what}: {brief(ms)} ms is out of the range of a long")
    return ms


def _milliseconds(time: object) -> int:
    """Raises TypeError or ValueError for what is no time, OverflowError for one that is out of range."""
    if isinstance(time, str):
        try:
            return int(time)
        except ValueError:
            time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(time, bool):
        raise TypeError
    return operator.index(time)  # type: ignore[arg-type]
