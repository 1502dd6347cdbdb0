"""The display of all apps at a glance."""

from __future__ import annotations

from ..app.results.overview import NODE_COLUMNS, NUMERIC_COLUMNS, AppOverview, Overview, app_figures, node_cells
from ..app.results.overview_html import STYLE, overview_html
from ..charts.value_texts import Figure
from .display import html, text
from .drawings.text_tables import Grid


@text.register
def _(overview: Overview) -> str:
    return "\n\n".join([overview.headline(), *(_app_text(a) for a in overview.apps)])


@html.register
def _(overview: Overview) -> str:
    return f"<style>{STYLE}</style>{overview_html(overview)}"


def _app_text(app: AppOverview) -> str:
    figures = " · ".join(f"{name} {value}" for name, value in app_figures(app))
    lines = [f"{app.name}: {app.state}, {app.mode}", figures, *(f"! {p}" for p in app.problems)]
    return "\n".join([*lines, _nodes_grid(app).text(footer=False)] if app.nodes else lines)


def _nodes_grid(app: AppOverview) -> Grid:
    rows = [
        [Figure(cell) if column in NUMERIC_COLUMNS else cell for column, cell in zip(NODE_COLUMNS, cells, strict=True)]
        for cells in map(node_cells, app.nodes)
    ]
    return Grid([*NODE_COLUMNS], rows)
