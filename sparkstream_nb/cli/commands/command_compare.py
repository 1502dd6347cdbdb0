"""`sparkstream compare`."""

from __future__ import annotations

import sys
from typing import Any

from ...app import App, RuleComparison
from ...app.results.rule_comparison import OUTCOMES
from ...lab.compared_shown import Comparison
from ...options import read_text
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream compare`. Returns 1 where more outputs differ than `--at-most` allows, or as the feed says."""
    excesses: list[str] = []

    def compare(app: App) -> Comparison:
        comparison = app.compare(
            read_text(options.new), nodes=options.nodes, routing=options.routing, new_names=dict(options.rename)
        )
        excesses.extend(_excesses(comparison, dict(options.at_most)))
        return comparison

    code = compare_nodes(options, {}, compare)
    for excess in excesses:
        print(excess, file=sys.stderr)
    return 1 if excesses else code


def _excesses(comparison: RuleComparison, most: dict[str, tuple[float, bool]]) -> list[str]:
    """A line for each kind of outcome of which there are more than allowed; of percent, of the old text's outputs."""
    totals = comparison.totals
    outputs = sum(n for outcome, n in totals.items() if outcome != "new")
    lines = []
    for outcome, (number, is_percent) in most.items():
        names = OUTCOMES[1:] if outcome == "different" else [outcome.replace("-", " ")]
        count = sum(n for o, n in totals.items() if o in names)
        bound = number * outputs / 100 if is_percent else number
        if count > bound:
            most_text = f"{number:g} % of {outputs:,}" if is_percent else f"{number:g}"
            lines.append(f"{count:,} outputs are {outcome}, and at most {most_text} may be")
    return lines
