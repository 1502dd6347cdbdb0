"""All apps of a process at a glance: their states, nodes, rates, errors and memory, as data and as text cells.

The manager's dashboard and the notebook's show the same: `app_figures` and `node_cells` say what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...charts.value_texts import format_count, size, when
from .frontend import Displayed

NODE_COLUMNS = ("node", "role", "runs", "events", "events/s", "state", "clock (UTC)")
"""The columns of `node_cells`."""
NUMERIC_COLUMNS = frozenset({"events", "events/s", "state"})


@dataclass(frozen=True)
class NodeOverview:
    """A node of an app. `role`: active, passive, down, ...; empty where nodes have none. `runs`: the partial apps on
    it. `events`: those it took; `events_per_second` as in `NodeStats`; `state_bytes`: the size of its state; `clock`:
    ms since 1970. None where a node has no such figure, as a manager, or none yet.
    """

    name: str
    role: str = ""
    runs: tuple[str, ...] = ()
    events: int | None = None
    events_per_second: float | None = None
    state_bytes: int | None = None
    clock: int | None = None


@dataclass(frozen=True)
class AppOverview:
    """An app: `state` and `mode` as in `App`. Rates as in `Rates`, events per second; the input's is 0 when no
    micro-batch ended in the last 10 s. `events`: those that came in; `lag`: those not committed yet; `last_event`: the
    app's clock (ms since 1970); `last_commit`: when the last micro-batch ended (ms since 1970). `problems`: the error
    that ended the app, and sources and sinks that do not work, with the reason.
    """

    name: str
    state: str
    mode: str
    input_per_second: float | None = None
    processing_per_second: float | None = None
    events: int = 0
    lag: int = 0
    outputs: int = 0
    errors: int = 0
    last_event: int | None = None
    last_commit: int | None = None
    state_bytes: int = 0
    nodes: tuple[NodeOverview, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Overview(Displayed):
    """The `apps` of a process, by name. `memory`: bytes of this process's memory; None if the system does not tell.
    `read`: gives a later overview, for a display that refreshes itself.
    """

    apps: tuple[AppOverview, ...]
    memory: int | None = None
    read: Callable[[], Overview] | None = field(default=None, compare=False)

    def summary(self) -> str:
        return f"<Overview: {self.headline()}>"

    def headline(self) -> str:
        """`3 apps: 2 running, 1 failed · 12 errors · memory 512.0 MB`."""
        counts = {s: sum(a.state == s for a in self.apps) for s in sorted({a.state for a in self.apps})}
        states = ", ".join(f"{n} {state}" for state, n in counts.items())
        apps = format_count(len(self.apps), "app")
        words = [f"{apps}: {states}" if states else apps]
        if self.apps:
            words.append(format_count(sum(a.errors for a in self.apps), "error"))
        if self.memory is not None:
            words.append(f"memory {size(self.memory)}")
        return " · ".join(words)


def app_figures(app: AppOverview) -> list[tuple[str, str]]:
    """The figures of an app, as (name, value)."""
    return [
        ("input", rate_text(app.input_per_second)),
        ("processing", rate_text(app.processing_per_second)),
        ("events", f"{app.events:,}"),
        ("behind", f"{app.lag:,}"),
        ("outputs", f"{app.outputs:,}"),
        ("errors", f"{app.errors:,}"),
        ("state", size(app.state_bytes)),
        ("last event (UTC)", _time(app.last_event)),
        ("last commit (UTC)", _time(None if app.last_commit is None else app.last_commit // 1000 * 1000)),
    ]


def node_cells(node: NodeOverview) -> tuple[str, ...]:
    """The cells of a node, in the order of `NODE_COLUMNS`."""
    return (
        node.name,
        node.role,
        ", ".join(node.runs),
        "" if node.events is None else f"{node.events:,}",
        "" if node.events_per_second is None else f"{node.events_per_second:,.0f}",
        "" if node.state_bytes is None else size(node.state_bytes),
        "" if node.clock is None else when(node.clock),
    )


def rate_text(per_second: float | None) -> str:
    """`1,200 events/s`; "–" for None."""
    return "–" if per_second is None else f"{per_second:,.0f} events/s"


def _time(ms: int | None) -> str:
    return "–" if ms is None else when(ms)
