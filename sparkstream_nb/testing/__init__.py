"""Tests of users' own apps: test files, their runner and reports, the command, and the pytest plugin.

A test file (`.siddhitest`) names an app, sends it events from tables, and compares its outputs with other tables. Apps
run without their sources, sinks and databases. `check_cuts` is for tests of functions, aggregators and windows of your
own (`sparkstream_nb.extending`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from .cut_checks import check_cuts

__all__ = ["check_cuts"]

__getattr__, __dir__ = on_first_use(__name__, {".cut_checks": __all__})
