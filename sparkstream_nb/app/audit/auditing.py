"""Audits of apps for several nodes: findings, with a feed also measurements, and their forms for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...errors import SiddhiError, SparkStreamError
from ...plan import compile_app
from ...plan.nodes import Plan
from ...plan.open_names import with_placeholders
from ...plan.remarks import notes
from ...plan.reports.audit import Finding, audit
from ...plan.reports.query_routing import RoutedPart, routed_parts
from ...sarif import sarif_log, sarif_result, sarif_uri
from ..config.conf import DISTRIBUTED, HA, NodeFile
from ..results.frontend import Displayed
from .audit_answers import FeedFiles, Measurement
from .checking import Surroundings

_LEVELS = {"safe": "none", "keyed": "note", "node-dependent": "warning"}


@dataclass(frozen=True, repr=False)
class AppAudit(Displayed):
    """The findings of an app, or the `error` of it or its file; `measured`: results of feeds of the streams `fed`."""

    path: str
    findings: Sequence[Finding] = ()
    error: SparkStreamError | None = None
    measured: Measurement | None = None
    fed: Sequence[str] = ()
    notes: Sequence[str] = ()
    parts: Sequence[RoutedPart] = ()
    """The queries by the routing that they need."""

    @property
    def failing(self) -> list[Finding]:
        """Findings that depend on the node and are not accepted."""
        return [f for f in self.findings if f.fails]

    @property
    def keyed(self) -> list[Finding]:
        """Findings that are right only with a routing by key, and are not accepted."""
        return [f for f in self.findings if f.level == "keyed" and f.accepted is None]

    @property
    def routing(self) -> dict[str, str] | None:
        """By stream, the attribute by which it must be routed for all that is keyed; None if that contradicts
        itself."""
        keys = {key for f in self.keyed for key in f.keys}
        routing_keys = dict(sorted(keys))
        return routing_keys if len(routing_keys) == len(keys) else None

    @property
    def exit_code(self) -> int:
        """2 where the app is wrong, 1 where something depends on the node under every routing and is not accepted."""
        if self.error is not None:
            return 2
        return 1 if self.failing or self.routing is None else 0

    def summary(self) -> str:
        return f"<AppAudit of {self.path}: {len(self.findings):,} findings, {len(self.failing):,} depend on the node>"


@dataclass(frozen=True, repr=False)
class AuditReport(Displayed):
    """The audits of several apps."""

    apps: Sequence[AppAudit]

    @property
    def exit_code(self) -> int:
        """The worst of the apps': 2, 1, or 0."""
        return max((a.exit_code for a in self.apps), default=0)

    def summary(self) -> str:
        return f"<AuditReport of {len(self.apps):,} apps>"


def audit_text(
    path: str,
    text: str,
    files: Sequence[NodeFile] = (),
    variables: Mapping[str, str] | None = None,
    feeds: FeedFiles | None = None,
) -> AppAudit:
    """Audits an app's text as the nodes of `files` would run it; without files, as several nodes of an active-active
    deployment would. Of files of another kind of deployment the names count, and a note says so. The `feeds` that it
    has streams for are measured; raises SparkStreamError for one that cannot be read.
    """
    try:
        plan, open_names = Surroundings(variables or {}, files).compile_text(text)
    except SiddhiError as e:
        return AppAudit(path, error=e)
    values = with_placeholders(variables or {}, open_names)
    plan = _as_deployed(plan, text, files, values)
    feed_files = [] if feeds is None else [(s, p) for s, p in feeds.files if not s or s in plan.streams]
    measurement = None
    if feeds is not None and feed_files:
        from .audit_feeds import measure  # it loads the engine

        measurement = measure(path, plan, replace(feeds, files=feed_files), values)
    remarks = [*_other_kind(files), *notes(plan, open_names)]
    fed, parts = [s for s, _ in feed_files], routed_parts(plan)
    return AppAudit(path, audit(plan, text, values), measured=measurement, fed=fed, notes=remarks, parts=parts)


def _other_kind(files: Sequence[NodeFile]) -> list[str]:
    """The note on files of other deployments than the one that is audited."""
    kinds = {f.kind for f in files}
    if DISTRIBUTED in kinds:
        return [
            "the deployment files are of a fully distributed deployment, which divides the app by @dist (sparkstream "
            "explain shows how); the audit is of several active-active nodes with the whole app on each"
        ]
    if HA in kinds:
        return [
            "the deployment files are of minimum HA, where one node is active and takes all events, so nothing depends "
            "on the node; the audit is of several active-active nodes"
        ]
    return []


def _as_deployed(plan: Plan, text: str, files: Sequence[NodeFile], variables: Mapping[str, str]) -> Plan:
    """The plan of the first node; an aggregation is by shard if it is on all nodes."""
    properties = [{"shardId": f.shard_id, **f.properties} for f in files[1:]]
    plans = [plan, *(compile_app(text, properties=p, variables=variables) for p in properties)]
    by_shard = {
        id_: replace(a, partitioned=all(p.aggregations[id_].partitioned for p in plans))
        for id_, a in plan.aggregations.items()
    }
    return replace(plan, aggregations=by_shard)


def as_json(report: AuditReport) -> str:
    """The report as JSON: a list of apps, each with its findings and measurements."""
    return json.dumps([_plain(a) for a in report.apps], indent=2)


def _plain(a: AppAudit) -> dict[str, Any]:
    out: dict[str, Any] = {"app": a.path, "findings": [{**asdict(f), "fails": f.fails} for f in a.findings]}
    out["routings"] = [asdict(p) for p in a.parts]
    if a.error is not None:
        out["error"] = str(a.error)
    if a.notes:
        out["notes"] = list(a.notes)
    if a.measured is not None:
        out["measured"] = asdict(a.measured)
    return out


def as_sarif(report: AuditReport) -> str:
    """The report as SARIF 2.1.0 (OASIS), for code hosts: a result for each finding that is not safe."""
    kinds = ("query", "table", "window", "trigger", "aggregation", "sink")
    rules = [
        {"id": f"scale-out/{k}", "shortDescription": {"text": f"What several nodes do to a {k}"}}
        for k in (*kinds, "error")
    ]
    rules.append({"id": "known-fault", "shortDescription": {"text": "What WSO2's servers answer otherwise"}})
    results = []
    for a in report.apps:
        uri = sarif_uri(a.path)
        if a.error is not None:
            message = str(a.error).splitlines()[0]
            results.append(sarif_result("scale-out/error", "error", message, uri, _line(a.error)))
        for f in a.findings:
            if f.level == "safe":
                continue
            if f.level == "known-fault":
                message = f"{f.kind} {f.name}: {f.effect}. It is {f.cause}."
                results.append(sarif_result("known-fault", "note", message, uri, f.line))
                continue
            level = "note" if f.accepted is not None else _LEVELS[f.level]
            message = f"{f.kind} {f.name} {f.effect}: {f.cause}. Repair: {f.repair}."
            result = sarif_result(f"scale-out/{f.kind}", level, message, uri, f.line)
            if f.accepted is not None:
                result["suppressions"] = [{"kind": "inSource", "justification": f.accepted}]
            results.append(result)
    return sarif_log("sparkstream audit", rules, results)


def _line(error: SparkStreamError) -> int:
    return error.span.line if isinstance(error, SiddhiError) else 1
