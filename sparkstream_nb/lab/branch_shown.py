"""A branch of an app's input, as text and as HTML."""

from __future__ import annotations

from ..app import Branch
from ..app.results.rule_comparison import OUTCOMES
from ..charts.value_texts import row_text, when
from .display import blocks_of, limit_of
from .drawings.frame_tables import grid_of_frame
from .drawings.result_blocks import Block, Heading
from .drawings.text_tables import Grid


@blocks_of(Branch)
def _(branch: Branch) -> list[Block]:
    differences = branch.differences
    rows = [
        [r["outcome"], r["stream"], when(r["timestamp"]), _node(r), _values(r["before"]), _values(r["after"])]
        for r in differences.head(limit_of(None)).to_dict("records")
    ]
    columns = ["outcome", "stream", "time", "node", "before", "after"]
    return [
        Heading(f"{branch.app}, a branch: {branch.title}"),
        grid_of_frame(branch.counts, counts=OUTCOMES),
        Grid(columns, rows, total=len(differences), what="different output"),
    ]


def _node(row: dict[str, object]) -> str:
    nodes = dict.fromkeys(n for n in (row["node before"], row["node after"]) if isinstance(n, str))
    return " → ".join(nodes)


def _values(values: object) -> str:
    return row_text(values) if isinstance(values, list) else ""
