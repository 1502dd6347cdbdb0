"""`sparkstream compare`."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from ...app import App, Labels
from ...errors import Misuse
from ...lab.compared_shown import Comparison
from ...options import compared_of, write_text
from ...siddhi_process import read_app
from ..comparing import compare_nodes
from ..rule_reports import CheckedBound, as_junit, as_sarif, check_bounds


def run(options: Any) -> int:
    """`sparkstream compare`. Returns 1 where more outputs differ than `--at-most` allows, or as the feed says."""
    bounds: list[CheckedBound] = []
    if options.vary:
        return _vary(options)
    if options.labels:
        raise Misuse("--labels is for --vary NAME=VALUES, which counts the outputs of many settings")

    def compare(app: App) -> Comparison:
        comparison = app.compare(
            read_app(options.new), nodes=options.nodes, routing=options.routing, **compared_of(options)
        )
        bounds.extend(check_bounds(comparison, dict(options.at_most)))
        if options.junit is not None:
            write_text(options.junit, as_junit(bounds, options.new))
        if options.sarif is not None:
            write_text(options.sarif, as_sarif(comparison, bounds, options.new))
        return comparison

    if options.junit is not None and not options.at_most:
        raise Misuse("--junit has a test for each --at-most, and there is none")
    code = compare_nodes(options, compare)
    excesses = [bound.excess for bound in bounds if bound.excess]
    for excess in excesses:
        print(excess, file=sys.stderr)
    return 1 if excesses else code


def _vary(options: Any) -> int:
    """Many settings of the new text."""
    alone = ("at_most", "rename", "ignore", "junit", "sarif")
    if other := next((name for name in alone if getattr(options, name)), None):
        raise Misuse(f"--vary counts the outputs of many settings: leave out --{other.replace('_', '-')}")
    labels = None
    if options.labels:
        labels = Labels.of(_read_labels(options.labels), options.label_time, options.tolerance)

    def sweep(app: App) -> Comparison:
        text, values = read_app(options.new), dict(options.vary)
        return app.sweep(
            text, values, labels=labels, nodes=options.nodes, routing=options.routing, warm_up=options.warm_up,
            freeze=options.freeze,
        )  # fmt: skip

    return compare_nodes(options, sweep)


def _read_labels(file: str) -> pd.DataFrame:
    try:
        return pd.read_csv(file)
    except (OSError, ValueError) as error:
        raise Misuse(f"--labels: {file} cannot be read as CSV: {error}") from None
