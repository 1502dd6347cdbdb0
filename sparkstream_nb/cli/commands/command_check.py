"""`sparkstream check`."""

from __future__ import annotations

from typing import Any

from ...charts.value_texts import format_count
from ...errors import NotInThisBuild
from ...plan.gaps import found_so_far, what_cannot_run
from ..checked_apps import for_each_app, opener


def run(options: Any) -> int:
    """`sparkstream check`. Parts that this build cannot run are printed; they are no mistakes: the exit code is 0."""
    open_app = opener(options)

    def one(path: str) -> None:
        try:
            checked_app = open_app(path)
        except NotInThisBuild as gap:
            print(f"{path}: {found_so_far(gap)}")
            return
        plan = checked_app.plan
        queries = f"{len(plan.queries):,} {'query' if len(plan.queries) == 1 else 'queries'}"
        summary = f"no mistakes found ({queries}, {format_count(len(plan.aggregations), 'aggregation')})"
        gaps = what_cannot_run(plan)
        print(f"{path}: {summary}{f', but this build cannot run {gaps}' if gaps else ''}")
        for note in checked_app.notes:
            print(f"{path}: {note}")

    return for_each_app(options, one)
