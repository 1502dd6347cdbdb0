"""Coverage of apps by tests: each test is run once more, with an app that counts which of its parts events reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..plan.nodes import Plan
from .app_under_test import AppUnderTest
from .model import AppTest, AppTestFile, Run
from .probes import Probe, add_probes
from .suite_results import Coverage, CoveredPart
from .suite_runner import RunOptions, run_test


class _ReachCounter:
    """The probes of the app that runs now, and the parts of all apps that were reached."""

    def __init__(self) -> None:
        self.probes: tuple[Probe, ...] = ()
        self.is_reached: dict[tuple[str, int, str], bool] = {}

    def instrument(self, plan: Plan) -> Plan:
        plan_with_probes, self.probes = add_probes(plan)
        return plan_with_probes

    def count(self, app: AppUnderTest, name: str, lines_before: int) -> None:
        """Adds the parts that the app's events reached."""
        outputs = app.app.stats().outputs
        for probe in self.probes:
            key = name, probe.line + lines_before, probe.name
            self.is_reached[key] = self.is_reached.get(key, False) or outputs.get(probe.stream, 0) > 0


def measure_coverage(test_runs: Sequence[tuple[AppTestFile, AppTest, Run]], options: RunOptions) -> Coverage:
    """The coverage of the apps of these tests, each in its first run. Tests whose app or step is wrong
    are listed."""
    counter = _ReachCounter()
    counted_tests: set[tuple[str, str]] = set()
    uncounted_tests: list[str] = []
    for file, test, run in test_runs:
        if (str(file.path), test.name) in counted_tests:
            continue
        counted_tests.add((str(file.path), test.name))
        app = test.app
        name = str(file.path if app.path is None else app.path)

        def watch(_: AppTest, running: AppUnderTest, name: str = name, before: int = app.lines_before) -> None:
            counter.count(running, name, before)

        tested_run = run_test(file, test, run, replace(options, instrument=counter.instrument, watch=watch))
        if tested_run.result.error is not None:
            uncounted_tests.append(f"{file.path}: {test.name}")
    parts = [CoveredPart(app, line, name, is_reached) for (app, line, name), is_reached in counter.is_reached.items()]
    return Coverage(tuple(sorted(parts, key=lambda p: (p.app, p.line))), tuple(uncounted_tests))
