"""The overview of all apps as HTML, for the manager's dashboard and for notebooks. All texts are escaped.

The style takes its colours from JupyterLab's theme, light ones elsewhere; a page may set others.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from ...errors import escape_controls
from .overview import NODE_COLUMNS, NUMERIC_COLUMNS, AppOverview, NodeOverview, Overview, app_figures, node_cells

STYLE = Path(__file__).with_name("overview.css").read_text(encoding="utf-8")
"""The style of `overview_html`."""
_NO_APPS = "No app is deployed."


def overview_html(overview: Overview) -> str:
    """A headline, and an article for each app: its figures and its nodes."""
    articles = "".join(map(_app_html, overview.apps)) or f"<p>{_NO_APPS}</p>"
    headline = f'<p class="headline">{escape(overview.headline())}</p>'
    return escape_controls(f'<div class="sparkstream-overview">{headline}<div class="apps">{articles}</div></div>')


def _app_html(app: AppOverview) -> str:
    state = escape(app.state)
    head = (
        f'<h2><span class="dot {state}" aria-hidden="true"></span><span class="name">{escape(app.name)}</span> '
        f'<span class="state">{state}</span> <span class="mode">{escape(app.mode)}</span></h2>'
    )
    figures = "".join(
        f'<div class="{_alarm(app, name)}"><div class="label">{escape(name)}</div>'
        f'<div class="value">{escape(value)}</div></div>'
        for name, value in app_figures(app)
    )
    problems = "".join(f'<p class="problem">⚠ {escape(line)}</p>' for line in app.problems)
    return f'<article>{head}<div class="figures">{figures}</div>{problems}{_nodes_html(app)}</article>'


def _alarm(app: AppOverview, name: str) -> str:
    return "figure alarm" if name == "errors" and app.errors else "figure"


def _nodes_html(app: AppOverview) -> str:
    if not app.nodes:
        return ""
    # A column that no node fills, such as the role in mode single, is left out.
    rows = [node_cells(n) for n in app.nodes]
    columns = [i for i in range(len(NODE_COLUMNS)) if any(row[i] for row in rows)]
    head = "".join(f'<th scope="col"{_align(NODE_COLUMNS[i])}>{escape(NODE_COLUMNS[i])}</th>' for i in columns)
    body = "".join(_node_html(node, columns) for node in app.nodes)
    return f'<div class="nodes" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _node_html(node: NodeOverview, columns: list[int]) -> str:
    cells = node_cells(node)
    row_class = ' class="down"' if node.role == "down" else ""
    texts = "".join(f"<td{_align(NODE_COLUMNS[i])}>{escape(cells[i])}</td>" for i in columns)
    return f"<tr{row_class}>{texts}</tr>"


def _align(column: str) -> str:
    return ' class="number"' if column in NUMERIC_COLUMNS else ""
