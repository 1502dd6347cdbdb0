"""The report of an audit as one HTML page: everything escaped, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ..cluster.audit import Audited
from ..cluster.audit_formats import SIGNS, measurement, summary
from ..plan.audit import Finding

_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --muted: #59636e; --ground: #fff; --line: #d1d9e0;
  --safe: #1a7f37; --routed: #9a6700; --node-dependent: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --muted: #9198a1; --ground: #0d1117; --line: #3d444d;
  --safe: #3fb950; --routed: #d29922; --node-dependent: #f85149; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 75rem;
  margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; min-width: 56rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { color: var(--muted); font-weight: 600; white-space: nowrap; }
td.line { text-align: right; }
td.level { white-space: nowrap; font-weight: 600; }
.safe { color: var(--safe); } .routed { color: var(--routed); } .node-dependent { color: var(--node-dependent); }
.muted { color: var(--muted); }
pre { overflow-x: auto; }
"""


def page(audits: Sequence[Audited]) -> str:
    """The page."""
    body = "\n".join(part for a in audits for part in _app(a))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Scale-out audit</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Scale-out audit</h1>\n"
        f"<p>{escape(summary(audits))}</p>\n{body}\n</body>\n</html>\n"
    )


def _app(a: Audited) -> Iterator[str]:
    yield f"<h2>{escape(a.file)}</h2>"
    if a.error is not None:
        yield f'<pre class="node-dependent">{escape(a.error)}</pre>'
        return
    if a.findings:
        heads = "".join(f"<th>{h}</th>" for h in ("line", "part", "scaling out", "what it does", "repair"))
        rows = "\n".join(map(_row, a.findings))
        yield f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    if a.measured:
        items = "".join(
            f'<li class="{"node-dependent" if m.differing else "safe"}">{escape(measurement(m))}</li>'
            for m in a.measured
        )
        yield f"<h3>Measured with its feeds</h3>\n<ul>{items}</ul>"
    if a.unmeasured is not None:
        yield f'<p class="muted">Not measured: {escape(a.unmeasured)}</p>'
    if a.rejected:
        yield f'<p class="muted">Rows of its feeds that were rejected: {a.rejected:,}</p>'


def _row(f: Finding) -> str:
    accepted = f'<div class="muted">accepted: {escape(f.accepted)}</div>' if f.accepted is not None else ""
    return (
        f'<tr><td class="line">{f.line}</td><td>{f.kind} <b>{escape(f.name)}</b></td>'
        f'<td class="level {f.level}">{SIGNS[f.level]} {f.level}</td>'
        f"<td>{escape(f.effect)}{accepted}</td><td>{escape(f.repair)}</td></tr>"
    )
