"""Deployments of an app as it is written, without its sources, sinks and databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...plan.connectors.without_connections import compile_offline, list_connections
from ...plan.nodes import Plan
from ...plan.table_requests import layout_of
from ...stores.address import Database
from ..connectors.stores import Tables
from .app_folder import TABLES


@dataclass
class OfflineCompiler:
    """Compiles an app without its connections. `several`: its nodes share the tables with a `@store`. `left_out`: the
    connections that the app has, in words."""

    several: bool
    left_out: str = field(default="", init=False)

    def compile_text(self, text: str, properties: Mapping[str, str], variables: Mapping[str, str] | None) -> Plan:
        """The plan of a node. Raises SiddhiError for a wrong app."""
        connected_plan, plan = compile_offline(text, properties, variables or {}, tables=not self.several)
        self.left_out = list_connections(connected_plan)
        return plan


def shared_tables(plan: Plan, home: Path) -> Tables:
    """The tables with a `@store`, which the nodes share, in a file of the app's folder."""
    layouts = tuple(layout_of(t, plan.properties) for t in plan.tables.values() if t.is_stored)
    return {Database("sqlite", str(home / TABLES)): layouts} if layouts else {}


def describe_left_out(left_out: str) -> str:
    """The note on an app that runs without its connections; empty where it has none."""
    if not left_out:
        return ""
    return (
        f"Offline, without {left_out}. Streams of sources are fed, and those of sinks read, as others are; stored rows "
        "are the app's own."
    )
