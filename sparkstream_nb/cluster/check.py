"""Checking and explaining an app's text, without a deployment."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SiddhiError
from ..plan import compile_app
from ..plan.distribute import distribute
from ..plan.explain import explain as explain_plan
from ..plan.graph import graph_of
from ..plan.nodes import Plan
from ..plan.repair import repairs
from ..plan.split_graph import split_graph
from .answers import AppGraph, Check, PlanText, RepairList
from .conf import DISTRIBUTED

_ONE_NODE = {"shardId": "node-1"}
"""A deployment gives every node its shard id; an app that is only checked is taken as one of them."""


def check(text: str, *, variables: Mapping[str, str] | None = None, lines_before: int = 0) -> Check:
    """Whether `text` is a right app: syntax, names, types and rules. Nothing starts. True in a condition if it is.

    An app that this build cannot run yet is right too: `Check.gaps` says what it cannot run. Numbers of lines count the
    `lines_before` the text.
    """
    try:
        return Check(_compiled(text, variables), None, lines_before)
    except SiddhiError as error:
        return Check(None, error.below(lines_before), lines_before)


def explain(text: str, *, variables: Mapping[str, str] | None = None, lines_before: int = 0) -> PlanText:
    """The plan of an app's text. Nothing starts. Raises `SiddhiError` where the text is wrong.

    Numbers of lines count the `lines_before` the text.
    """
    try:
        return PlanText(explain_plan(_compiled(text, variables), lines_before))
    except SiddhiError as error:
        raise error.below(lines_before) from None


def repair(text: str, *, variables: Mapping[str, str] | None = None, lines_before: int = 0) -> RepairList:
    """What would make each query of an app's text right on several nodes. Nothing starts. Raises `SiddhiError` where
    the text is wrong. Numbers of lines count the `lines_before` the text.
    """
    try:
        return RepairList(repairs(_compiled(text, variables), text, variables), lines_before)
    except SiddhiError as error:
        raise error.below(lines_before) from None


def graph(
    text: str, *, variables: Mapping[str, str] | None = None, lines_before: int = 0, mode: str | None = None
) -> AppGraph:
    """The graph of an app's text; with `mode` "distributed" that of its execution groups and topics. Nothing starts.
    Raises `SiddhiError` where the text is wrong, as `explain` does."""
    try:
        plan = _compiled(text, variables)
        return AppGraph(split_graph(plan, distribute(plan)) if mode == DISTRIBUTED else graph_of(plan))
    except SiddhiError as error:
        raise error.below(lines_before) from None


def _compiled(text: str, variables: Mapping[str, str] | None) -> Plan:
    try:
        return compile_app(text, _ONE_NODE, dict(variables or {}))
    except SiddhiError as error:
        raise error.with_source(text) from None
