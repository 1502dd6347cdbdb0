"""The cost of an operator's settings in failovers: many seeds by many settings, in one Spark job."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import pandas as pd

from ... import argument_checks
from ...charts.picture import Picture
from ...errors import Misuse, nearest, shown
from ...replay.failover_tasks import FailoverCounts
from ...simulation.faults import Fault, Kill, Scenario
from ...simulation.topology import Coordination, Pair
from ..config.fault_schedule import plan_faults
from ..pictures.costs_picture import costs_picture
from .plotly_results import Pictured

MOST_RUNS = 100_000
"""Runs of one study."""
_COORDINATION = ("heartbeat", "retries", "poll")
FIGURES = (*_COORDINATION, "persist", "revisions", "queue", "balancer")
"""The settings of a pair that a study can vary."""
COSTS = ("gap", "events_lost", "events_twice", "lost", "spurious", "duplicated")
"""The counts of a study: see `FailoverCounts`."""


@dataclass(frozen=True)
class StudyRun:
    """A run of a study: the figures that vary, by name, and the costs."""

    setting: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True, repr=False, eq=False)
class FailoverStudy(Pictured):
    """Failovers of an app under many seeds, for each setting of the figures that vary."""

    app: str
    varied: Sequence[str]
    """The names of the figures that vary."""
    runs: Sequence[StudyRun]
    found: Sequence[FailoverCounts]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each setting and seed: the figures that vary, seed, takeovers, gap (ms in which no node was
        active), events_lost, events_twice, and outputs: lost, spurious, duplicated, of how many (outputs)."""
        rows = [{**r.setting, "seed": r.scenario.seed, **asdict(f)} for r, f in zip(self.runs, self.found, strict=True)]
        return pd.DataFrame(rows)

    @cached_property
    def settings(self) -> pd.DataFrame:
        """A row for each setting: the figures that vary, runs, and the median and the 95th percentile of each cost."""
        groups = [((), self.frame)] if not self.varied else self.frame.groupby(list(self.varied), sort=False)
        rows = []
        for values, group_runs in groups:
            key = dict(zip(self.varied, values, strict=True))
            costs = {
                f"{c}_{n}": float(group_runs[c].quantile(q)) for c in COSTS for n, q in (("median", 0.5), ("p95", 0.95))
            }
            rows.append({**key, "runs": len(group_runs), **costs})
        return pd.DataFrame(rows)

    @property
    def said(self) -> str:
        """The cost of a failover, in a line; of several settings, the one that loses fewest outputs."""
        best = min(self.settings.to_dict("records"), key=lambda r: (r["lost_median"], r["duplicated_median"]))
        setting = ", ".join(f"{n}={best[n]}" for n in self.varied)
        head = f"{len(self.runs):,} failovers{f'; {setting} loses fewest outputs' if setting else ''}"
        events, lost_outputs, twice = (f"{best[f'{c}_median']:,.0f}" for c in ("events_lost", "lost", "duplicated"))
        gap = f"in the median no node is active for {best['gap_median'] / 1000:.0f} s"
        return (
            f"{head}: {gap}, {events} events are lost, and of the outputs {lost_outputs} are lost, {twice} duplicated"
        )

    def picture(self) -> Picture:
        """The costs of failovers for each setting, in the median and at worst in 19 of 20."""
        return costs_picture(self)

    def summary(self) -> str:
        return f"<FailoverStudy of {self.app}: {self.said}>"


@dataclass(frozen=True)
class Wanted:
    """The request of a study: seeds, faults ("kill": the active node dies at a moment that the seed chooses; or as
    `deploy` takes them), and the values of each figure that varies."""

    seeds: int | Iterable[int]
    faults: str | Sequence[Fault]
    figures: Mapping[str, Any]


def runs_of(pair: Pair, request: Wanted, length: int) -> tuple[list[str], list[StudyRun]]:
    """The names of the figures that vary, and all runs, of a recording that is `length` ms long. Raises `Misuse` for
    figures that a pair does not have, and too many runs."""
    values_by_name = {}
    for name, values in request.figures.items():
        if name not in FIGURES:
            raise Misuse(nearest(f"a pair has no figure '{name}'", name, FIGURES))
        value_list = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
        if not value_list:
            raise Misuse(f"{name} has no value to try")
        values_by_name[name] = value_list
    if isinstance(request.seeds, int):
        argument_checks.optional_int("seeds", request.seeds, 1)
    seeds = list(range(request.seeds)) if isinstance(request.seeds, int) else list(request.seeds)
    settings = [dict(zip(values_by_name, values, strict=True)) for values in product(*values_by_name.values())]
    if not seeds or len(seeds) * len(settings) > MOST_RUNS:
        raise Misuse(f"a study has 1 to {MOST_RUNS:,} runs, not {len(seeds) * len(settings):,}")
    runs = []
    for setting in settings:
        pair_of_setting = _with(pair, setting)
        runs += [StudyRun(setting, _scenario(pair_of_setting, request.faults, seed, length)) for seed in seeds]
    return list(values_by_name), runs


def _with(pair: Pair, setting: Mapping[str, Any]) -> Pair:
    coordination = {n: v for n, v in setting.items() if n in _COORDINATION}
    others = {n: v for n, v in setting.items() if n not in _COORDINATION}
    return replace(pair, coordination=Coordination(**{**asdict(pair.coordination), **coordination}), **others)


def _scenario(pair: Pair, faults: str | Sequence[Fault], seed: Any, length: int) -> Scenario:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise Misuse(f"a seed is a whole number, not {shown(seed)}")
    if faults != "kill":
        (changed_pair,), planned_faults, rate = plan_faults([pair], faults)
        return Scenario(changed_pair, seed, planned_faults, rate)
    # The same moment under every setting, so that these can be compared.
    return Scenario(pair, seed, (Kill(random.Random(f"kill {seed}").randint(1, max(1, length)), pair.nodes[0]),))
