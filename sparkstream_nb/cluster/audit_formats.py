"""An audit as text, as JSON, and as SARIF 2.1.0, which code hosts show at the lines of a change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from .._version import __version__
from ..plan.audit import Finding
from .audit import Audited, Measured

SIGNS = {"safe": "✓", "routed": "!", "node-dependent": "✗"}
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    "node-dependent": "Several nodes put out something else than one node, under any routing",
    "routed": "Several nodes put out the same as one node only where events are routed by a key",
    "not-an-app": "The file is not a SiddhiQL app",
}
_SARIF_LEVELS = {"node-dependent": "error", "routed": "note"}


def summary(audits: Sequence[Audited]) -> str:
    """`2 apps: 3 parts node-dependent, 1 of them accepted; 1 file is wrong`."""
    right = [a for a in audits if a.error is None]
    parts = [f for a in right for f in a.findings if f.level == "node-dependent"]
    accepted = sum(f.accepted is not None for f in parts)
    text = f"{_many(len(right), 'app')}: {_many(len(parts), 'part')} node-dependent"
    if accepted:
        text += f", {accepted:,} of them accepted"
    wrong = len(audits) - len(right)
    return text + (f"; {_many(wrong, 'file')} could not be audited" if wrong else "")


def as_text(audits: Sequence[Audited]) -> str:
    """A line for each part, with its place, what scaling out does to it, and its repair; then what was measured."""
    return "\n".join([*(line for a in audits for line in _lines(a)), summary(audits)])


def _lines(a: Audited) -> Iterator[str]:
    if a.error is not None:
        return  # it is an error message
    for f in a.findings:
        yield f"{a.file}:{f.line}: {SIGNS[f.level]} {f.level}: {message(f)}"
        if f.repair:
            yield f"    repair: {f.repair}"
        if f.accepted:
            yield f"    accepted: {f.accepted}"
    for m in a.measured:
        yield f"{a.file}: {measurement(m)}"
    if a.unmeasured is not None:
        yield f"{a.file}: not measured: {a.unmeasured}"
    if a.rejected:
        yield f"{a.file}: {_many(a.rejected, 'row')} of its feeds rejected"


def message(f: Finding) -> str:
    """`query 'q': each event is processed independently`."""
    return f"{f.kind} '{f.name}': {f.effect}"


def measurement(m: Measured) -> str:
    """`3 nodes, round_robin: 4 of 20 outputs differ from one node's (q: 3 lost, 1 spurious)`."""
    app = "repaired, " if m.repaired else ""
    text = f"{app}{m.nodes} nodes, {m.routing}: "
    if not m.differing:
        return f"{text}all {_many(m.outputs, 'output')} as one node's"
    causes = []
    for query, verdicts in m.queries.items():
        counts = [f"{n:,} {verdict}" for verdict, n in verdicts.items() if verdict != "same" and n]
        if counts:
            causes.append(f"{query}: {', '.join(counts)}")
    causes += [f"{a}: {_many(n, 'merged row')} other" for a, n in m.aggregations.items() if n]
    return f"{text}{m.differing:,} differ from one node's ({'; '.join(causes)})"


def as_json(audits: Sequence[Audited]) -> dict[str, Any]:
    """`apps`, one for each file; `failing`: how many parts are node-dependent and not accepted."""
    return {
        "version": 1,
        "failing": sum(len(a.failing) for a in audits),
        "apps": [
            {
                "file": a.file,
                "error": None if a.error is None else {"message": a.error, "line": a.line, "column": a.column},
                "findings": [asdict(f) for f in a.findings],
                "measured": [{**asdict(m), "outputs": m.outputs, "differing": m.differing} for m in a.measured],
                "unmeasured": a.unmeasured,
                "rejected": a.rejected,
            }
            for a in audits
        ],
    }


# --------------------------------------------------------------------------------------------------------------- SARIF


def as_sarif(audits: Sequence[Audited]) -> dict[str, Any]:
    """A SARIF log with one run. What is safe is no result; what is accepted is a suppressed one."""
    rules = [{"id": id_, "shortDescription": {"text": text}} for id_, text in _RULES.items()]
    driver = {"name": "sparkstream audit", "version": __version__, "rules": rules}
    results = [r for a in audits for r in _results(a)]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(a: Audited) -> Iterator[dict[str, Any]]:
    if a.error is not None:
        yield _result("not-an-app", "error", a.error, a.file, a.line, a.column)
    for f in a.findings:
        if f.level == "safe":
            continue
        text = f"{message(f)}. Repair: {f.repair}." if f.repair else f"{message(f)}."
        result = _result(f.level, _SARIF_LEVELS[f.level], text, a.file, f.line, f.column)
        if f.accepted is not None:
            result["suppressions"] = [{"kind": "inSource", "justification": f.accepted}]
        yield result


def _result(rule: str, level: str, text: str, file: str, line: int | None, column: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line is not None:
        place["region"] = {"startLine": line, "startColumn": column}
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    """A relative path stays relative to where the audit ran, as code hosts want it."""
    path = PurePath(file)
    if path.is_absolute():
        return Path(file).as_uri()
    return quote(path.as_posix())


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
