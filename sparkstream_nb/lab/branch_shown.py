"""A branch of an app's input, as text and as HTML."""

from __future__ import annotations

import html as markup

from ..app import Branch
from ..app.results.rule_comparison import OUTCOMES
from ..charts.value_texts import CountCell, row_text, when
from .display import html, limit_of, text
from .drawings.text_tables import Grid, paragraph


@text.register
def _(branch: Branch) -> str:
    return "\n\n".join([_head(branch), *(g.text() for g in _grids(branch))])


@html.register
def _(branch: Branch) -> str:
    return paragraph(f"<b>{markup.escape(_head(branch))}</b>") + "".join(g.html() for g in _grids(branch))


def _head(branch: Branch) -> str:
    return f"{branch.app}, a branch: {branch.title}"


def _grids(branch: Branch) -> list[Grid]:
    counts = branch.counts.astype(dict.fromkeys(OUTCOMES, object))
    for outcome in OUTCOMES:
        counts[outcome] = [CountCell(n) for n in counts[outcome]]
    differences = branch.differences
    rows = [
        [r["outcome"], r["stream"], when(r["timestamp"]), _node(r), _values(r["before"]), _values(r["after"])]
        for r in differences.head(limit_of(None)).to_dict("records")
    ]
    columns = ["outcome", "stream", "time", "node", "before", "after"]
    return [Grid(list(counts.columns), counts.values.tolist()),
            Grid(columns, rows, total=len(differences), what="different output")]  # fmt: skip


def _node(row: dict[str, object]) -> str:
    nodes = dict.fromkeys(n for n in (row["node before"], row["node after"]) if isinstance(n, str))
    return " → ".join(nodes)


def _values(values: object) -> str:
    return row_text(values) if isinstance(values, list) else ""
