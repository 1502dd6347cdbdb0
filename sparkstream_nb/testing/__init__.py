"""Tests of users' own apps: test files, their runner and reports, the command, and the pytest plugin.

A test file (`.siddhitest`) names an app, sends it events from tables, and compares its outputs with other tables. Apps
run without their sources, sinks and databases. `check_cuts` is for tests of functions, aggregators and windows of your
own (`sparkstream_nb.extending`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cut_checks import check_cuts

__all__ = ["check_cuts"]


def __getattr__(name: str) -> Any:
    """Loads `check_cuts` when it is used: pytest imports this package in every run, for the plugin."""
    if name != "check_cuts":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .cut_checks import check_cuts

    return check_cuts
