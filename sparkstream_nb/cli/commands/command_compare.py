"""`sparkstream compare`."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from ...app import App, Labels, RuleComparison
from ...app.results.rule_comparison import OUTCOMES
from ...errors import Misuse
from ...lab.compared_shown import Comparison
from ...options import read_text
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream compare`. Returns 1 where more outputs differ than `--at-most` allows, or as the feed says."""
    excesses: list[str] = []
    if options.vary:
        return _vary(options)
    if options.labels:
        raise Misuse("--labels is for --vary NAME=VALUES, which counts the outputs of many settings")

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


def _vary(options: Any) -> int:
    """Many settings of the new text."""
    if options.at_most or options.rename:
        raise Misuse("--vary counts the outputs of many settings: leave out --at-most and --rename")
    labels = None
    if options.labels:
        labels = Labels.of(_read_labels(options.labels), options.label_time, options.tolerance)

    def sweep(app: App) -> Comparison:
        text, values = read_text(options.new), dict(options.vary)
        return app.sweep(text, values, labels=labels, nodes=options.nodes, routing=options.routing)

    return compare_nodes(options, {}, sweep)


def _read_labels(file: str) -> pd.DataFrame:
    try:
        return pd.read_csv(file)
    except (OSError, ValueError) as error:
        raise Misuse(f"--labels: {file} cannot be read as CSV: {error}") from None


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
