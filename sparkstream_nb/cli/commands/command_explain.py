"""`sparkstream explain`."""

from __future__ import annotations

from typing import Any

from ... import app as api
from ...lab import connect
from ...plan.reports.explain import explain
from ..app_texts import text_of
from ..checked_apps import for_each_app
from ..printed_plans import print_head, print_plans


def run(options: Any) -> int:
    """`sparkstream explain`."""
    return _print_repair(options) if options.repair else print_plans(options, explain)


def _print_repair(options: Any) -> int:
    connect()
    arguments = {"variables": dict(options.param), "conf": options.conf, "allow_env": options.allow_env}

    def one(path: str) -> None:
        with text_of(path) as text:
            proposal = api.repair(text, **arguments)
        print_head(options, path)
        print("\n".join([str(proposal), *(f"note: {note}" for note in proposal.notes)]))

    return for_each_app(options, one)
