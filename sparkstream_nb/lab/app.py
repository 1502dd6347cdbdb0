"""Apps as a notebook holds them: `deploy`, `get`, `apps`, `check`, `explain`, and what one can do with an app.

Thin over `sparkstream_nb.cluster`: its answers become objects that show themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from .. import cluster
from ..errors import SiddhiError
from ..plan import compile_app
from ..plan.explain import explain as explain_plan
from ..plan.nodes import AggDuration, Plan
from .arguments import Misuse, nearest
from .results import (
    AppsShown,
    CheckShown,
    DeploymentCard,
    ErrorsShown,
    FeedShown,
    FrameShown,
    PlanShown,
    QueryShown,
    Shown,
    StatsShown,
)

if TYPE_CHECKING:
    from .widgets.aggregation import AggregationView


# A deployment gives every node its shard id; an app that is only checked is taken as one of them.
_ONE_NODE = {"shardId": "node-1"}


class App(Shown):
    """A deployed app. Made by `deploy`, or found by `get`; shows itself as a card.

    `core` is the running app of `sparkstream_nb.cluster`, for programs that want its plain answers.
    """

    def __init__(self, core: Any, said: str | None = None) -> None:
        """`said`: what became of the state of an earlier deployment, to be shown on the card."""
        self.core = core
        self._said = said

    # --------------------------------------------------------------------------------------------------- what it is

    @property
    def name(self) -> str:
        """The name under which it was deployed."""
        return str(self.core.name)

    @property
    def plan(self) -> Plan:
        """The typed logical plan."""
        plan: Plan = self.core.plan
        return plan

    @property
    def state(self) -> str:
        """ "running", "stopped" or "failed"."""
        return str(self.core.state)

    @property
    def nodes(self) -> int:
        """How many nodes are simulated."""
        return int(self.core.nodes)

    @property
    def mode(self) -> str:
        """ "single" or "active-active"."""
        return str(self.core.mode)

    @property
    def shard_ids(self) -> tuple[str, ...]:
        """The shard id of each node, in order."""
        return tuple(self.core.shard_ids)

    def _card(self) -> DeploymentCard:
        return DeploymentCard(
            self.plan,
            name=self.name,
            state=self.state,
            nodes=self.nodes,
            mode=self.mode,
            shard_ids=self.shard_ids,
            routing=getattr(self.core, "routing", None),
            redeployed=self._said,
            shard_warnings=self.core.warnings,
        )

    def text(self) -> str:
        return self._card().text()

    def html(self) -> str:
        return self._card().html()

    # --------------------------------------------------------------------------------------------------- events in

    def send(self, stream: str, values: Any, *, at: int | None = None, node: int | None = None) -> None:
        """Sends one event (values in the stream's order, or a dict by name) or a list of events.

        `at` is the event time in ms since 1970; without it the app's clock stays where it is. `node`, from 1,
        overrides routing.
        Raises `Misuse` for an unknown stream, and what the runtime raises for values that do not fit.
        """
        self._stream(stream)
        self.core.send(stream, values, at=at, node=node)

    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
    ) -> FeedShown:
        """Feeds `stream` with a data frame (pandas, Arrow, Spark) or a .csv or .parquet file.

        Returns when all is committed; shows how far it is until then.

        `time` names the column of the event time: ms, a date and time, or text. Rows that do not fit are counted, kept
        in `errors`, and do not stop the feed. Raises `Misuse` for an unknown stream.
        """
        self._stream(stream)
        before = len(self.core.errors)
        shown = _progress()
        try:
            report = self.core.feed(
                stream, source, time=time, route=route, limit=limit, columns=columns, progress=shown
            )
        finally:
            shown.close()
        kept = self.core.errors.iloc[before:]
        reasons = ErrorsShown(kept, empty="").reasons if len(kept) == report.rejected else {}
        return FeedShown(report, self.name, reasons)

    def flush(self) -> None:
        """Waits until everything sent is committed."""
        self.core.flush()

    def tick(self, ms: int) -> None:
        """Moves the app's clock to `ms` since 1970 with no event, so that windows and timers run."""
        self.core.tick(ms)

    # -------------------------------------------------------------------------------------------------- answers out

    def query(self, text: str, *, limit: int | None = None) -> QueryShown:
        """Answers an on-demand query, merged over shards; `.frame` has the answer, `.by_shard` the parts.

        `limit` is how many rows to show. Raises `SiddhiError` with a caret where the query is wrong.
        """
        return QueryShown(self.core.query(text), limit)

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> FrameShown:
        """What `stream` put out so far: node, timestamp and attributes; `.frame` has all of it."""
        self._stream(stream)
        frame = self.core.output(stream, last=last)
        return FrameShown(frame, empty=f"{stream} has put out nothing yet.", what="event", limit=limit)

    def aggregation(self, name: str, per: str = "sec", within: Any = None) -> tuple[Any, Any]:
        """An aggregation's buckets of one duration: the merged frame, and the one by shard with SHARD_ID."""
        self._aggregation(name)
        merged, by_shard = self.core.aggregation(name, per=per, within=within)
        return merged, by_shard

    def view(self, name: str | None = None, *, per: str | None = None, measure: str | None = None) -> AggregationView:
        """Draws an aggregation by shard and merged, by duration, group and measure.

        `name` may be left out where there is one.

        `per` and `measure` are what it begins with. Raises `Misuse` for names that the app does not have.
        """
        from .widgets.aggregation import AggregationView  # plotly and ipywidgets take a second to load

        known = list(self.plan.aggregations)
        if name is None:
            if len(known) != 1:
                raise Misuse(nearest(f"{self.name} has {len(known)} aggregations: name one", "", known))
            name = known[0]
        self._aggregation(name)
        wanted: str = name

        def fetch(duration: AggDuration) -> tuple[Any, Any]:
            merged, by_shard = self.core.aggregation(wanted, per=duration)
            return merged, by_shard

        return AggregationView(self.plan.aggregations[name], fetch, shards=self.shard_ids, per=per, measure=measure)

    @property
    def errors(self) -> ErrorsShown:
        """Rows and events that the app could not take, each with its reason; `.frame` has all of them."""
        return ErrorsShown(self.core.errors, empty=f"{self.name} took every row.", what="error")

    # ------------------------------------------------------------------------------------------------- how it works

    def explain(self) -> PlanShown:
        """The plan: what runs where, and what routing does to each query."""
        return PlanShown(self.core.explain())

    def stats(self) -> StatsShown:
        """State and speed by node."""
        return StatsShown(self.core.stats())

    def stop(self) -> None:
        """Stops the app. What it stored stays."""
        self.core.stop()

    def interrupt(self) -> None:
        """Cancels what Spark is doing for the app; the kernel and the app stay usable."""
        self.core.interrupt()

    def __dir__(self) -> list[str]:
        return sorted(super().__dir__())

    def _stream(self, name: str) -> None:
        if name not in self.plan.streams:
            raise Misuse(nearest(f"{self.name} has no stream '{name}'", name, self.plan.streams))

    def _aggregation(self, name: str) -> None:
        if name not in self.plan.aggregations:
            raise Misuse(nearest(f"{self.name} has no aggregation '{name}'", name, self.plan.aggregations))


def _progress() -> Any:
    """A bar in a notebook, a line elsewhere."""
    if getattr(get_ipython(), "kernel", None) is None:
        return cluster.ProgressLine()
    from .widgets.progress import FeedBar  # ipywidgets take a second to load

    return FeedBar()


def deploy(
    text: str,
    *,
    name: str | None = None,
    nodes: int = 1,
    mode: str | None = None,
    routing: str = "round_robin",
    shard_ids: Sequence[str] | None = None,
    master: str | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
    variables: Mapping[str, str] | None = None,
    allow_scripts: bool = False,
) -> App:
    """Deploys a SiddhiQL app on simulated nodes, carried by Spark.

    - `nodes`, `mode`: "single", or "active-active", the default for several nodes. Each node holds one shard.
    - `routing`: which node gets an event: "round_robin", "hash:ATTRIBUTE" or "node:N".
    - `master`: a Spark master or Connect address; local by default.
    - `store`: the DuckDB file of the aggregations.
    - `fresh`: forget the state and the aggregations of an earlier deployment under this name.
    - `variables`: values of `${NAME}` in the text; the environment is never looked at.
    - `allow_scripts`: functions that the app defines as scripts may run, with limits on time and memory.

    Raises `SiddhiError` where the text is wrong, before anything starts, and `SparkUnavailable` without a usable Spark.
    """
    core = cluster.deploy(
        text,
        name=name,
        nodes=nodes,
        mode=mode or ("active-active" if nodes > 1 else "single"),
        routing=routing,
        shard_ids=shard_ids,
        master=master,
        store=store,
        fresh=fresh,
        variables=variables,
        allow_scripts=allow_scripts,
    )
    return App(core, None if fresh else core.redeployed)


def get(name: str) -> App:
    """The app of this process that was deployed under `name`. Raises `Misuse` where there is none."""
    known = cluster.apps()
    if name not in known:
        raise Misuse(nearest(f"no app is called '{name}'", name, known))
    return App(known[name])


def apps() -> AppsShown:
    """The apps of this process; `.apps` is a dict by name."""
    return AppsShown({name: App(core) for name, core in cluster.apps().items()})


def check(text: str, *, variables: Mapping[str, str] | None = None) -> CheckShown:
    """Whether `text` is a right app: syntax, names, types and rules. Nothing starts. True in a condition if it is."""
    try:
        return CheckShown(compile_app(text, _ONE_NODE, dict(variables or {})), None)
    except SiddhiError as e:
        return CheckShown(None, e.with_source(text))


def explain(text: str, *, variables: Mapping[str, str] | None = None) -> PlanShown:
    """The plan of an app's text. Nothing starts. Raises `SiddhiError` where the text is wrong."""
    return _guarded(text, lambda: PlanShown(explain_plan(compile_app(text, _ONE_NODE, dict(variables or {})))))


def _guarded(text: str, make: Callable[[], PlanShown]) -> PlanShown:
    try:
        return make()
    except SiddhiError as e:
        raise e.with_source(text) from None
