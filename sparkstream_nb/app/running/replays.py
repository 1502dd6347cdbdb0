"""Replays of an app's input: against one node, on other nodes, and over nodes that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ... import argument_checks
from ...errors import Misuse, SparkStreamError, shown
from ...journal.entries import FaultEntry
from ...journal.result_rows import NodeReport
from ...journal.routing import Route
from ...lang.clause_changes import TextComparison
from ...lang.parser import parse
from ...lang.source_text import variables_in
from ...lang.tree import App as Tree
from ...nodes.distributed import Distributed
from ...plan.nodes import Plan
from ...plan.output_labels import label_shared
from ...plan.rewrites.chance import freeze_chance
from ...replay.failover_replay import items_of, outcome_of, span_of, truth_of
from ...replay.failover_tasks import failovers
from ...replay.replay import NOT_KEPT, ONE, Nodes, Way, planned_faults
from ...replay.rescheduling_replay import distributed_outcome
from ...replay.study_tasks import Input
from ...simulation.faults import Fault, members_of
from ...simulation.node_groups import NodeGroups
from ...simulation.placements import run_spans
from ...simulation.resource_manager import simulate_resources
from ...simulation.topology import Pair
from ...sources.disorder import Disorder
from ...sources.recordings import RecordingFile
from ...wording import choose_words
from ..deployment.deployment import HA, MOST_NODES
from ..explaining.why_not_trials import AppText
from ..planning import plan_deployment
from ..results.answers import Stats
from ..results.app_profile import Profile
from ..results.compared_attributes import require_new_names
from ..results.divergence import Divergence, Truth
from ..results.failover import Failover
from ..results.failover_study import FailoverStudy, Wanted, runs_of
from ..results.label_scores import Labels
from ..results.moment import MomentSource
from ..results.rescheduling import DistributedFailover
from ..results.rule_comparison import RuleComparison
from ..results.rule_sweep import RuleSweep, Setting, SweepTrial, settings_of
from ..results.rule_trial import Judging, RuleTrial
from ..views.cluster_view import ClusterAdapter, ClusterReader
from ..views.controls import Cluster, FaultJournal, FaultStatus
from ..views.pair_view import PairAdapter
from ..views.resource_view import ResourceAdapter
from .profiler import Profiler
from .runtime import AppRuntime
from .sent import recording_path
from .source_reading import Reading
from .study import Material, Study, material, recorded_material, study, ways_of


class Replays:
    """Questions about the past of an app, answered from its recorded input."""

    def __init__(
        self, app: AppRuntime, moments: Callable[[Way], MomentSource], stats: Callable[[], Stats]
    ) -> None:
        """`moments` gives the moments of the input, as nodes take it in a way; `stats` the app's figures."""
        self._app, self._moments, self._stats = app, moments, stats
        self._known_truth: Truth | None = None

    def divergence(
        self, nodes: int | None = None, routing: str | None = None, *, feed: str | Path | None = None
    ) -> Divergence:
        """The nodes' outputs, compared with one node that takes the same events in the same order.

        With `nodes` or `routing`: the outputs that this number of nodes would have had under that routing. Every output
        is the same, lost, spurious, late or duplicated, and one that is not the same has its cause: the events that it
        was computed from, and the nodes that they went to. The input is replayed here, or a recording (`feed`), without
        Spark. Raises SparkStreamError if its beginning is no longer kept, or a table is in a database.
        """
        app = self._app
        if app.deployment.groups is not None and nodes is None and routing is None:
            remark = "failover() compares the outputs of its nodes with those of one node"
            raise Misuse(f"{app.name} has mode {app.mode}: {remark}")
        if feed is None:
            return self._truth().against(self.way(nodes, routing))
        replay_material = self._material(feed)
        truth = Truth(app.name, replay_material.source, self.replayed_nodes(), app.app_run.shards)
        return truth.against(self.way(nodes or app.nodes, routing or app.routing))

    def compare(
        self,
        text: str,
        *,
        feed: Mapping[str, Any] | str | Path | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        nodes: int | None = None,
        routing: str | None = None,
        new_names: Mapping[str, str] | None = None,
        warm_up: str | int = 0,
        ignore: str | Sequence[str] = (),
        freeze: bool = False,
    ) -> RuleComparison:
        """The app's outputs under another text of it, compared with those under its own: each is the same, gone, new,
        has other values or comes at another time, and if it is not the same, with the clause of the text that causes
        it.

        The input so far is replayed under both texts, or a `feed`, as in `study`: by one node, or by `nodes` under a
        `routing`. `new_names`: the new name of each stream or attribute that has another one in the new text, or
        `{"Old.a": "New.b"}` for an attribute of one stream alone; a name that the new text has throughout in the place
        of another is found. Attributes that only one text has are not compared; one that the events lack is null.
        `warm_up`: a duration, or ms, at the beginning of the input, whose outputs are not judged, as earlier events may
        be missing. `ignore`: attributes of outputs by which they are not compared, such as that of `UUID()`. `freeze`:
        `UUID()`, `math:rand` and the wall clock give both texts equal values for an event. Raises SiddhiError, with a
        caret, for a text that does not compile, `Misuse` where it gives an attribute of the input another type, and for
        a name that is not there, and SparkStreamError as `divergence` and `feed` do.
        """
        compile_text, tree_of = self._compilers(freeze)
        argument_checks.require_str("the text", text)
        new_plan = compile_text(text, {})  # shows its errors at their places
        argument_checks.optional_str_map("new_names", new_names)
        require_new_names(new_names or {}, self._app.plan, new_plan)
        texts = TextComparison.of(tree_of(self._app.deployment.request.text, {}), tree_of(text, {}), new_names)
        trial = RuleTrial(self._app.name, texts, self._nodes_of_texts(freeze), lambda other: compile_text(other, {}))
        came_in = self._material(feed, time, reading)  # its files go with it
        ignored = [ignore] if isinstance(ignore, str) else ignore
        argument_checks.optional_str_list("ignore", ignored)
        judging = Judging(argument_checks.duration_of("warm_up", warm_up), frozenset(ignored))
        return trial.over(came_in.source.read(), self._way_of_texts(nodes, routing), judging)

    def sweep(
        self,
        text: str,
        values: Mapping[str, Any],
        *,
        feed: Mapping[str, Any] | str | Path | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        labels: Labels | None = None,
        nodes: int | None = None,
        routing: str | None = None,
        warm_up: str | int = 0,
        freeze: bool = False,
    ) -> RuleSweep:
        """The app's outputs under a text with `${NAME}` in it, for every combination of the `values` of these names
        (one or several by name), counted against the outputs under its own text, and scored by `labels`, with examples
        of what is detected and what is not. Cases within the time `warm_up` are left out, as outputs are.

        Other arguments and errors as of `compare`. Raises `Misuse` for more than 10,000 settings too.
        """
        argument_checks.require_str("the text", text)
        settings = settings_of(values)
        request = self._app.deployment.request
        names = {name for name, _ in variables_in(text)}
        if missing := [name for name in values if name not in names]:
            raise Misuse(f"the text has no ${{{missing[0]}}}: write it where the value is to stand")
        own_names = {name for name, _ in variables_in(request.text)}
        if unknown := sorted(names - own_names - {*values, *(request.variables or {})}):
            raise Misuse(f"no values are given for ${{{unknown[0]}}} of the text")
        compile_text, tree_of = self._compilers(freeze)
        own_tree = tree_of(request.text, {})
        trial = SweepTrial(
            self._app.name, text, self._nodes_of_texts(freeze), own_tree,
            lambda setting: tree_of(text, setting), compile_text,
        )  # fmt: skip
        came_in = self._material(feed, time, reading)
        judging = Judging(argument_checks.duration_of("warm_up", warm_up))
        return trial.over(came_in.source.read(), self._way_of_texts(nodes, routing), settings, labels, judging)

    def profile(self, nodes: int | None = None, routing: str | None = None) -> Profile:
        """The time of the nodes by query and step, their skew, frequent keys, and how state grows, with advice.

        Private nodes take the app's input once more in this process and are measured: as it came, or as `nodes` under a
        `routing` would take it; in modes with groups, these have to be given. The app itself is not slowed down. Raises
        `Misuse` for an app without input, SparkStreamError as `divergence` does.
        """
        app = self._app
        if app.deployment.groups is not None and nodes is None and routing is None:
            raise Misuse(
                f"{app.name} has mode {app.mode}: a profile is of nodes that share the events, such as one that runs "
                f"all queries: profile(nodes=1), %siddhi profile {app.name} --nodes 1"
            )
        app.waits.flush()
        recording = self._material(None).source.read()
        if not recording.events:
            raise Misuse(f"{app.name} has no input yet: feed it, or send events")
        way = self.way(nodes, routing)
        names = app.app_run.shards if nodes is None and routing is None else [f"node-{i + 1}" for i in range(way.nodes)]
        return Profiler(app.name, recording, way, self.replayed_nodes(), names).measure(self._stats())

    def _compilers(self, freeze: bool) -> tuple[Callable[[str, Setting], Plan], Callable[[str, Setting], Tree]]:
        """Functions that compile and parse texts as the app's own, with values for names in them; `freeze`: without
        chance."""
        app = self._app
        request = app.deployment.request

        def compile_text(text: str, setting: Setting) -> Plan:
            variables = {**(request.variables or {}), **setting}
            plan = plan_deployment(replace(request, text=text, name=app.name, variables=variables)).plan
            return freeze_chance(plan) if freeze else plan

        def tree_of(text: str, setting: Setting) -> Tree:
            without_value = {name: f"${{{name}}}" for name, _ in variables_in(text)}  # of connections, offline
            return parse(text, {**without_value, **(request.variables or {}), **setting})

        return compile_text, tree_of

    def app_text(self) -> AppText:
        """The app's text, and a function that compiles other texts like it, with frozen chance (`freeze_chance`)."""
        compile_text, tree_of = self._compilers(freeze=True)
        return AppText(tree_of(self._app.deployment.request.text, {}), lambda text: compile_text(text, {}))

    def _nodes_of_texts(self, freeze: bool) -> Nodes:
        nodes = replace(self.replayed_nodes(), led=None)
        return nodes.with_frozen_chance() if freeze else nodes

    def _way_of_texts(self, nodes: int | None, routing: str | None) -> Way:
        return ONE if nodes is None and routing is None else self.way(nodes, routing)

    @property
    def cluster(self) -> Cluster:
        """The nodes of an app in mode ha, scalable or distributed, to be looked at, killed, restarted, paused and cut
        off. Raises `Misuse` in other modes."""
        app = self._app
        groups = self._groups()
        journal = FaultJournal(self._fault_status, self._add_fault, app.tick, app.lock)
        adapter: ClusterAdapter = (
            ResourceAdapter(groups) if isinstance(groups, Distributed) else PairAdapter(app.name, groups)
        )
        reader = ClusterReader(
            app.name, app.mode, adapter, self._node_reports, app.on_commit, app.waits.settle_briefly,
            app.view_state,
        )  # fmt: skip
        return Cluster(groups, journal, reader)

    def _fault_status(self) -> FaultStatus:
        app = self._app
        app.check_open()
        try:
            first, faults = planned_faults(app.inbox.folder, app.schemas)
        except FileNotFoundError:
            raise SparkStreamError(NOT_KEPT) from None
        return FaultStatus(first, app.inbox.position.clock, faults)

    def _add_fault(self, fault: Fault) -> None:
        self._app.start()
        self._app.append([FaultEntry(fault=members_of(fault))])

    def _node_reports(self) -> dict[str, NodeReport]:
        """The last report of each node, by its id; if this process has seen none yet, the one that an earlier process
        kept.
        """
        app = self._app
        with app.progress.changed:
            reports = dict(app.progress.nodes)
        if not reports and app.reports is not None:
            reports = app.reports.read()
        return {app.app_run.shards[n]: report for n, report in reports.items() if n < len(app.app_run.shards)}

    @property
    def placement(self) -> dict[str, list[str]]:
        """The nodes that run each partial app of mode distributed, at the app's clock; empty in other modes."""
        groups = self._app.deployment.groups
        if not isinstance(groups, Distributed):
            return {}
        fault_status = self._fault_status()
        start = 0 if fault_status.first is None else fault_status.first
        now = max(start, fault_status.clock or start)
        happenings = simulate_resources(
            groups.scenario, start=start, until=now, more=tuple(fault_status.faults)
        ).happenings
        spans = [s for s in run_spans(happenings, now + 1) if s.end > now]
        return {a.name: [s.node for s in spans if s.app == a.name] for a in groups.scenario.apps}

    def failover(self, *, feed: str | Path | None = None) -> Failover | DistributedFailover:
        """The outputs of mode ha, scalable or distributed, compared with one node that takes every event and never
        fails: who took over when, which events were lost or processed twice, which outputs are lost, spurious or
        duplicated.

        The input is replayed here, or a recording (`feed`), without Spark. Raises `Misuse` in other modes,
        SparkStreamError where the beginning of the input is not kept any more.
        """
        app = self._app
        groups, nodes = self._groups(), self.replayed_nodes()
        if feed is None:
            app.waits.flush()
        material = None if feed is None else self._material(feed)  # its files go with it
        items = items_of((self._read_input() if material is None else material.source).read(), app.plan)
        if isinstance(groups, Distributed):
            resource_outcome = distributed_outcome(items, groups, nodes, truth_of(items, nodes, by_query=False))
            return DistributedFailover(app.name, self._writers_of_streams(), resource_outcome, groups)
        outcome = outcome_of(items, groups, nodes, truth_of(items, nodes))
        return Failover(app.name, self._writers_of_streams(), outcome, groups)

    def failover_study(
        self,
        /,
        seeds: int | Iterable[int] = 1_000,
        faults: str | Sequence[Fault] = "kill",
        *,
        feed: Mapping[str, Any] | str | Path | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        **figures: Any,
    ) -> FailoverStudy:
        """The cost of failovers under many seeds and settings, computed on all cores, on Spark by one job.

        `seeds`: how many, or which. `faults`: "kill" (the active node dies at a moment that the seed chooses), or as in
        `deploy`. `figures`: values to try for the fields of a `Pair`: heartbeat, retries, poll, persist (ms),
        revisions, queue, balancer; others are taken from the app's pair, or the servers' own. The input so far is
        replayed; or `feed`, a recording, or frames or files by stream, put in order by `time` as in `feed`; `reading`
        says more of how they are read (`Reading(time="at", decimal=",")`). An app of any mode can be studied. Raises
        `Misuse` for impossible figures, SparkStreamError as `failover` and `feed` do.
        """
        app = self._app
        nodes = replace(self.replayed_nodes(), led=None)
        came_in = self._material(feed, time, reading)
        groups = app.deployment.groups
        first, last = span_of(came_in.source.read())
        request = Wanted(seeds, faults, figures)
        pair = groups.pairs[0] if isinstance(groups, NodeGroups) else Pair()
        varied_figures, runs = runs_of(pair, request, last - first)
        app.start()
        outcomes = failovers(app.session, came_in.source, nodes, [r.scenario for r in runs], f"failover {came_in.key}")
        return FailoverStudy(app.name, varied_figures, runs, outcomes)

    def _groups(self) -> NodeGroups | Distributed:
        app = self._app
        app.check_open()
        if app.deployment.groups is None:
            how = choose_words(f"--mode {HA}", f"mode='{HA}'")
            raise Misuse(f"{app.name} has mode {app.mode}: deploy it with {how} for nodes that take over")
        return app.deployment.groups

    def _writers_of_streams(self) -> dict[str, str]:
        plan = self._app.plan
        streams = dict.fromkeys(q.output.target.id for q in plan.queries)
        by_stream = {s: ", ".join(q.name for q in plan.queries if q.output.target.id == s) for s in streams}
        return {**by_stream, **{label: query for query, label in label_shared(plan).items()}}

    def way(self, nodes: int | None, routing: str | None) -> Way:
        """The routing of a replay; as it was, if neither is given. Raises `Misuse` for a wrong one."""
        app = self._app
        if nodes is None and routing is None:
            return Way(len(app.app_run.shards))
        argument_checks.optional_int("nodes", nodes, 1, MOST_NODES)
        count = app.nodes if nodes is None else nodes
        Route.parse(routing or app.routing, count, app.schemas)
        return Way(count, routing or app.routing)

    def _truth(self) -> Truth:
        """The truth of all that came in; the last one again where nothing came in since."""
        app = self._app
        app.check_open()
        nodes = self.replayed_nodes()
        app.waits.flush()
        source = self._read_input()
        truth = self._known_truth
        if truth is None or (truth.source, truth.shards) != (source, app.app_run.shards):
            self._known_truth = truth = Truth(
                app.name, source, nodes, app.app_run.shards, self._moments, app.selection
            )
        return truth

    def input_so_far(self) -> Input:
        """All that came in, committed. Raises SparkStreamError as `divergence` does."""
        self._app.check_open()
        self._app.waits.flush()
        return self._read_input()

    def _read_input(self) -> Input:
        """The app's recorded input since it began. Raises SparkStreamError if it was another app for a part of
        that."""
        app = self._app
        if app.app_run.change:
            raise SparkStreamError(
                f"{app.name} was changed while it ran, so its earlier input was for another app: to replay it, "
                "deploy this one with fresh=True and feed it again"
            )
        return Input(str(app.inbox.folder), app.schemas, app.app_run.began, app.inbox.position.seq - 1)

    def replayed_nodes(self) -> Nodes:
        """The nodes of a replay. Raises SparkStreamError for an app with a table in a database."""
        app = self._app
        database_tables = [t.source.id for t in app.plan.tables.values() if t.is_stored]
        if database_tables:
            raise SparkStreamError(
                f"{app.name} cannot be replayed: table '{database_tables[0]}' is in a database, and its contents at "
                "each time are not recorded. Leave @store out of the app to study it"
            )
        d = app.deployment
        return Nodes(app.plan, d.start, d.request.allow_scripts, d.led, limits=d.limits)

    def study(
        self,
        nodes: int | Iterable[int] = range(1, 17),
        routings: Sequence[str] | None = None,
        *,
        feed: Mapping[str, Any] | str | Path | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        disorder: Disorder | Sequence[Disorder] = (),
    ) -> Study:
        """Outputs on other numbers of nodes under other routings: the numbers of lost, spurious and duplicated ones
        against one node's, for every combination, computed by one Spark job.

        `routings`: by default round robin, random, each input stream to one node, and by each attribute that could be a
        key. The input so far is replayed; or `feed`, a recording, or frames or files by stream, put in order by `time`
        as in `feed`; `reading` says more of how they are read (`Reading(time="at", decimal=",")`).
        `disorder`: the same of the feed's events in one or several disorders, counted against one node that takes them
        in order; the column `disorder` of the frame names them.
        A study is without a leader: it shows which queries need one. Raises `Misuse` for an impossible combination,
        SparkStreamError as `divergence` and `feed` do.
        """
        self._app.check_open()
        for count in [nodes] if isinstance(nodes, int | str) else (nodes := list(nodes)):
            argument_checks.optional_int("nodes", count, 1, MOST_NODES)
        argument_checks.optional_str_list("routings", routings)
        node_set = replace(self.replayed_nodes(), led=None)
        disorders = [disorder] if isinstance(disorder, Disorder) else [*disorder]
        for each_disorder in disorders:
            if not isinstance(each_disorder, Disorder):
                raise Misuse(f"disorder is a Disorder or several, not {shown(each_disorder)}")
            if each_disorder.skew:
                raise Misuse("a study has many numbers of nodes: a skew is for a feed")
        if disorders and not isinstance(feed, Mapping):
            raise Misuse("disorder changes a feed: give feed={stream: frame or file} and time=")
        disordered_material = {str(d): self._material(feed, time, reading, d) for d in disorders}
        ordered_material = self._material(feed, time, reading)
        ways = ways_of(node_set.plan, ordered_material, nodes, routings)
        return study(self._app.target, node_set, ordered_material, ways, disordered_material)

    def _material(
        self,
        feed: Mapping[str, Any] | str | Path | None,
        time: str | None = None,
        reading: Reading | None = None,
        disorder: Disorder | None = None,
    ) -> Material:
        """The input so far, or a feed or a recording that is never committed. Raises `Misuse` if both `time` and
        `reading` say which column has the event times."""
        app = self._app
        app.check_open()
        if reading is not None and not isinstance(reading, Reading):
            raise Misuse(f"reading is a Reading, not {shown(reading)}: Reading(time='at', decimal=',')")
        if reading is not None and time is not None:
            raise Misuse("time is given twice: as an argument of its own, and with reading")
        if app.app_run.shared is not None:
            raise Misuse(
                "a study is computed by Spark's machines, which cannot read the input of an app with shared=...: "
                "deploy the app on this machine to study it"
            )
        if feed is None:
            app.waits.flush()
            return Material(self._read_input(), f"{app.app_run.run} {app.inbox.position.seq}")
        if (path := recording_path(feed)) is not None:
            if time is not None or reading is not None:
                raise Misuse("a recording has its own times: leave out time and reading")
            app.start()
            return recorded_material(app.target, RecordingFile.open(path), app.schemas)
        if not isinstance(feed, Mapping):
            raise Misuse(f"feed is a dict of frames or files by stream, not {shown(feed)}")
        for stream in feed:
            app.schema_of(stream)
        app.start()
        return material(app.target, feed, reading or Reading(time), app.schemas, disorder)
