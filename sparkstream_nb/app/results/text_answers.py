"""Result types of reports on an app's text: plain, typed data. `lab.plans_shown` has the display of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import NotInThisBuild, SiddhiError
from ...plan.gaps import found_so_far, what_cannot_run
from ...plan.nodes import Plan
from ...plan.reports.app_graph import Graph
from ...plan.reports.repair import Repairs
from .frontend import Displayed
from .graph_flow import GraphFlow

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class PlanText(Displayed):
    """A plan as `explain` prints it: `str()` is the text."""

    text: str

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def summary(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class RepairList(Displayed):
    """Repairs that make each query of an app right on several nodes, and the app's text with the possible rewrites.
    Numbers of lines count the `lines_before` the text.
    """

    repairs: Repairs
    lines_before: int = 0
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[str, int, str, str, str]]:
        """For each query: query, line, level of its shard safety, repair (a word), advice."""
        return [(r.query, r.line + self.lines_before, r.before.level, r.kind, r.advice) for r in self.repairs.repairs]

    @property
    def frame(self) -> pd.DataFrame:
        """`rows` as a pandas frame."""
        import pandas as pd  # heavy, and all else of a repair needs none

        return pd.DataFrame(self.rows, columns=["query", "line", "level", "repair", "advice"])

    def summary(self) -> str:
        return "\n".join(f"{r.query}: {r.advice}" for r in self.repairs.repairs)


@dataclass(frozen=True, repr=False)
class AppGraph(Displayed):
    """The graph of an app: a picture in a notebook, a list of edges as text. `flow`: the events on the edges of a
    running app, which its display follows."""

    graph: Graph
    notes: tuple[str, ...] = ()
    flow: GraphFlow | None = field(default=None, compare=False)

    def summary(self) -> str:
        return f"<AppGraph: {len(self.graph.nodes)} nodes, {len(self.graph.edges)} edges>"


@dataclass(frozen=True, repr=False, eq=False)
class Check(Displayed):
    """The result of a check: true in a condition if the app is right.

    Either `plan` is the app's plan, or `error` the first error, with its place and the way out. If it is a
    `NotInThisBuild`, of an extension that is not included, the app is right up to there. Numbers of lines count the
    `lines_before` the text. `notes`: names that only a deployment gives a value, and
    parts that do less than they seem to.
    """

    plan: Plan | None
    error: SiddhiError | None
    lines_before: int = 0
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return self.error is None or isinstance(self.error, NotInThisBuild)

    @property
    def gaps(self) -> str:
        """The parts of an app that this build cannot run, with their lines; "" if there are none."""
        if isinstance(self.error, NotInThisBuild):
            return found_so_far(self.error, self.lines_before)
        return "" if self.plan is None else what_cannot_run(self.plan, self.lines_before)

    def __bool__(self) -> bool:
        return self.ok

    def summary(self) -> str:
        if self.error is not None:
            return f"<Check: {self.gaps}>" if self.ok else str(self.error)
        return f"<Check: right, but this build cannot run {self.gaps}>" if self.gaps else "<Check: right>"
