"""Checking and explaining an app's text, without a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...argument_types import explain_arguments
from ...errors import SiddhiError, lines_below
from ...plan import compile_app
from ...plan.distributed.distribute import distribute
from ...plan.nodes import Plan
from ...plan.open_names import OpenName, check_data_sources, compile_open, with_placeholders
from ...plan.remarks import notes
from ...plan.reports.app_graph import graph_of
from ...plan.reports.explain import explain as explain_plan
from ...plan.reports.repair import repairs
from ...plan.reports.split_graph import split_graph
from ..config.conf import DISTRIBUTED, HA, NodeFile, node_files
from ..config.conf_distributed import is_manager
from ..config.secrets import References
from ..results.text_answers import AppGraph, Check, PlanText, RepairList

_ONE_NODE = {"shardId": "node-1"}
"""A deployment gives every node its shard id; an app that is only checked is taken as one of them."""


@dataclass(frozen=True)
class Surroundings:
    """The parts of a deployment that an app's text lacks: values of `${NAME}`, and the nodes' deployment files. Without
    files, names that only they define are left open.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[NodeFile] = ()

    @staticmethod
    def of(
        variables: Mapping[str, str] | None = None,
        conf: str | Path | Sequence[str | Path] | None = None,
        allow_env: Sequence[str] = (),
    ) -> Surroundings:
        """The surroundings that the arguments of `deploy` give. Raises `Misuse` for deployment files that cannot be
        read."""
        values = dict(variables or {})
        if conf is None or (isinstance(conf, Sequence) and not conf):
            return Surroundings(values)
        return Surroundings(values, node_files(conf, ("", HA, DISTRIBUTED), References(values, tuple(allow_env))))

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the first node that runs apps."""
        if not self.files:
            return _ONE_NODE
        file = next((f for f in self.files if not is_manager(f)), self.files[0])
        return {"shardId": file.shard_id, **file.properties}

    def compile_text(self, text: str) -> tuple[Plan, tuple[OpenName, ...]]:
        """The plan of the first node, and the names that are left open. Raises `SiddhiError`, with the text, for an app
        that is wrong on any node."""
        if not self.files:
            return compile_open(text, _ONE_NODE, self.variables)
        plans = []
        for file in [f for f in self.files if not is_manager(f)] or self.files:  # managers run no apps
            plans.append(compile_app(text, {"shardId": file.shard_id, **file.properties}, self.variables))
            check_data_sources(plans[-1], file.sources)
        return plans[0], ()


@explain_arguments
def check(
    text: str,
    *,
    variables: Mapping[str, str] | None = None,
    conf: str | Path | Sequence[str | Path] | None = None,
    allow_env: Sequence[str] = (),
    lines_before: int = 0,
) -> Check:
    """True if `text` is a right app: syntax, names, types and rules. Nothing starts. True in a condition if it is.

    An app that this build cannot run yet is right too: `Check.gaps` names the missing features. Without `conf`, the
    nodes' deployment files, a `ref`, a data source or a `${NAME}` without a value is a note (`Check.notes`); with it,
    an error. A part that does less than it seems to is a note. Numbers of lines count the `lines_before` the text.
    """
    surroundings = Surroundings.of(variables, conf, allow_env)
    try:
        plan, open_names = surroundings.compile_text(text)
        return Check(plan, None, lines_before, notes(plan, open_names, lines_before))
    except SiddhiError as error:
        return Check(None, error.below(lines_before), lines_before)


@explain_arguments
def explain(
    text: str,
    *,
    variables: Mapping[str, str] | None = None,
    conf: str | Path | Sequence[str | Path] | None = None,
    allow_env: Sequence[str] = (),
    lines_before: int = 0,
) -> PlanText:
    """The plan of an app's text, with the notes of `check`. Nothing starts. Raises `SiddhiError` if the text is
    wrong. `conf` as in `check`; numbers of lines count the `lines_before` the text.
    """
    with lines_below(lines_before):
        plan, open_names = Surroundings.of(variables, conf, allow_env).compile_text(text)
        remarks = "".join(f"note: {note}\n" for note in notes(plan, open_names, lines_before))
        return PlanText(explain_plan(plan, lines_before) + remarks)


@explain_arguments
def repair(
    text: str,
    *,
    variables: Mapping[str, str] | None = None,
    conf: str | Path | Sequence[str | Path] | None = None,
    allow_env: Sequence[str] = (),
    lines_before: int = 0,
) -> RepairList:
    """Repairs that make each query of an app's text right on several nodes. Nothing starts. Raises `SiddhiError` if
    the text is wrong. `conf` as in `check`; numbers of lines count the `lines_before` the text.
    """
    with lines_below(lines_before):
        surroundings = Surroundings.of(variables, conf, allow_env)
        plan, open_names = surroundings.compile_text(text)
        repair_list = repairs(plan, text, with_placeholders(surroundings.variables, open_names))
        return RepairList(repair_list, lines_before, notes(plan, open_names, lines_before))


@explain_arguments
def graph(
    text: str,
    *,
    variables: Mapping[str, str] | None = None,
    conf: str | Path | Sequence[str | Path] | None = None,
    allow_env: Sequence[str] = (),
    lines_before: int = 0,
    mode: str | None = None,
) -> AppGraph:
    """The graph of an app's text; with `mode` "distributed" that of its execution groups and topics. Nothing starts.
    Raises `SiddhiError` if the text is wrong, as `explain` does. `conf` as in `check`."""
    with lines_below(lines_before):
        plan, open_names = Surroundings.of(variables, conf, allow_env).compile_text(text)
        app_graph = split_graph(plan, distribute(plan)) if mode == DISTRIBUTED else graph_of(plan)
        return AppGraph(app_graph, notes(plan, open_names, lines_before))
