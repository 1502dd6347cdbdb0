"""`sparkstream run`."""

from __future__ import annotations

from typing import Any

from ..compiling import compile_plan


def run(options: Any) -> int:
    """`sparkstream run`. Errors of app, feeds and options that can be found before Spark starts are reported before."""
    plan = compile_plan(options)
    from ..running import run_plan  # what runs apps takes its time to load, and a wrong app is reported before

    return run_plan(plan, options)
