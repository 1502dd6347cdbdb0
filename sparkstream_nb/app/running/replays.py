"""Replays of an app's input: against one node, on other nodes, and over nodes that fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import argument_checks
from ...errors import Misuse, SparkStreamError, shown
from ...journal.entries import FaultEntry
from ...journal.routing import Route
from ...journal.rows import NodeReport
from ...nodes.distributed import Distributed
from ...replay.failover_replay import items_of, outcome_of, span_of, truth_of
from ...replay.failover_tasks import failovers
from ...replay.replay import NOT_KEPT, Nodes, Way, planned_faults
from ...replay.rescheduling_replay import distributed_outcome
from ...replay.study_tasks import Input
from ...simulation.faults import Fault, members_of
from ...simulation.groups import NodeGroups
from ...simulation.placements import run_spans
from ...simulation.resource_manager import simulate_resources
from ...simulation.topology import Pair
from ..deployment.deployment import HA, MOST_NODES
from ..results.divergence import Divergence, Truth
from ..results.failover import Failover
from ..results.failover_study import FailoverStudy, Wanted, runs_of
from ..results.rescheduling import DistributedFailover
from ..views.cluster_view import ClusterAdapter, ClusterReader
from ..views.controls import Cluster, FaultJournal, FaultStatus
from ..views.pair_view import PairAdapter
from ..views.resource_view import ResourceAdapter
from .running import RunningApp
from .source_reading import Reading
from .study import Material, Study, material, study


class ReplayedApp(RunningApp):
    """An app whose past can be asked about."""

    def divergence(self, nodes: int | None = None, routing: str | None = None) -> Divergence:
        """The nodes' outputs, compared with one node that takes the same events in the same order.

        With `nodes` or `routing`: the outputs that this number of nodes would have had under that routing. Every output
        is the same, lost, spurious, late or duplicated, and one that is not the same has its cause: the events that it
        was computed from, and the nodes that they went to. The input is replayed here, without Spark. Raises
        SparkStreamError if its beginning is no longer kept, or a table is in a database.
        """
        if self.deployment.groups is not None and nodes is None and routing is None:
            raise Misuse(f"{self.name} has mode {self.mode}: failover() holds what its nodes put out against one node")
        return self._truth().against(self._way(nodes, routing))

    @property
    def cluster(self) -> Cluster:
        """The nodes of an app in mode ha, scalable or distributed, to be looked at, killed, restarted, paused and cut
        off. Raises `Misuse` in other modes."""
        groups = self._groups()
        journal = FaultJournal(self._fault_status, self._add_fault, self._lock)
        adapter: ClusterAdapter = (
            ResourceAdapter(groups) if isinstance(groups, Distributed) else PairAdapter(self.name, groups)
        )
        reader = ClusterReader(
            self.name, self.mode, adapter, self._node_reports, self.on_commit, self._settle_briefly,
            self._state_for_views,
        )  # fmt: skip
        return Cluster(groups, journal, reader)

    def _state_for_views(self) -> str:
        return "closed" if self.closed else self.state

    def _fault_status(self) -> FaultStatus:
        self._check_open()
        try:
            first, faults = planned_faults(self._inbox.folder, self.schemas)
        except FileNotFoundError:
            raise SparkStreamError(NOT_KEPT) from None
        return FaultStatus(first, self._inbox.position.clock, faults)

    def _add_fault(self, fault: Fault) -> None:
        self.start()
        self._append([FaultEntry(fault=members_of(fault))])

    def _node_reports(self) -> dict[str, NodeReport]:
        """The last report of each node, by its id; if this process has seen none yet, the one that an earlier process
        kept.
        """
        with self._progress.changed:
            found = dict(self._progress.nodes)
        if not found and self._reports is not None:
            found = self._reports.read()
        return {self._life.shards[n]: report for n, report in found.items() if n < len(self._life.shards)}

    @property
    def placement(self) -> dict[str, list[str]]:
        """The nodes that run each partial app of mode distributed, at the app's clock; empty in other modes."""
        groups = self.deployment.groups
        if not isinstance(groups, Distributed):
            return {}
        told = self._fault_status()
        start = 0 if told.first is None else told.first
        now = max(start, told.clock or start)
        happenings = simulate_resources(groups.scenario, start=start, until=now, more=tuple(told.faults)).happenings
        spans = [s for s in run_spans(happenings, now + 1) if s.end > now]
        return {a.name: [s.node for s in spans if s.app == a.name] for a in groups.scenario.apps}

    def failover(self) -> Failover | DistributedFailover:
        """The outputs of mode ha, scalable or distributed, compared with one node that takes every event and never
        fails: who took over when, which events were lost or processed twice, which outputs are lost, spurious or
        duplicated.

        The input is replayed here, without Spark. Raises `Misuse` in other modes, SparkStreamError where the beginning
        of the input is not kept any more.
        """
        groups, nodes = self._groups(), self._replayed_nodes()
        self.flush()
        items = items_of(self._read_input().read(), self.plan)
        if isinstance(groups, Distributed):
            found = distributed_outcome(items, groups, nodes, truth_of(items, nodes))
            return DistributedFailover(self.name, self._writers_of_streams(), groups, found)
        outcome = outcome_of(items, groups, nodes, truth_of(items, nodes))
        return Failover(self.name, self._writers_of_streams(), groups, outcome)

    def failover_study(
        self,
        seeds: int | Iterable[int] = 1_000,
        faults: str | Sequence[Fault] = "kill",
        *,
        feed: Mapping[str, Any] | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        **figures: Any,
    ) -> FailoverStudy:
        """The cost of failovers under many seeds and settings, computed on all cores, on Spark by one job.

        `seeds`: how many, or which. `faults`: "kill" (the active node dies at a moment that the seed chooses), or as in
        `deploy`. `figures`: values to try for the fields of a `Pair`: heartbeat, retries, poll, persist (ms),
        revisions, queue, balancer; others are taken from the app's pair, or the servers' own. The input so far is
        replayed; or `feed`, frames or files by stream, put in order by `time` as in `feed`; `reading` says more of how
        they are read (`Reading(time="at", decimal=",")`). An app of any mode can be studied. Raises `Misuse` for
        impossible figures, SparkStreamError as `failover` and `feed` do.
        """
        nodes = replace(self._replayed_nodes(), led=None)
        came_in = self._material(feed, time, reading)
        groups = self.deployment.groups
        first, last = span_of(came_in.source.read())
        wanted = Wanted(seeds, faults, figures)
        pair = groups.pairs[0] if isinstance(groups, NodeGroups) else Pair()
        varied, runs = runs_of(pair, wanted, last - first)
        self.start()
        found = failovers(self._session, came_in.source, nodes, [r.scenario for r in runs], f"failover {came_in.key}")
        return FailoverStudy(self.name, varied, runs, found)

    def _groups(self) -> NodeGroups | Distributed:
        self._check_open()
        if self.deployment.groups is None:
            raise Misuse(f"{self.name} has mode {self.mode}: deploy it with mode='{HA}' for nodes that take over")
        return self.deployment.groups

    def _writers_of_streams(self) -> dict[str, str]:
        streams = dict.fromkeys(q.output.target.id for q in self.plan.queries)
        return {s: ", ".join(q.name for q in self.plan.queries if q.output.target.id == s) for s in streams}

    def _way(self, nodes: int | None, routing: str | None) -> Way:
        if nodes is None and routing is None:
            return Way(len(self._life.shards))
        argument_checks.optional_int("nodes", nodes, 1, MOST_NODES)
        count = self.nodes if nodes is None else nodes
        Route.parse(routing or self.routing, count, self.schemas)
        return Way(count, routing or self.routing)

    def _truth(self) -> Truth:
        """The truth of all that came in; the last one again where nothing came in since."""
        self._check_open()
        nodes = self._replayed_nodes()
        self.flush()
        source = self._read_input()
        if self._known_truth is None or self._known_truth.source != source:
            self._known_truth = Truth(self.name, source, nodes, self._life.shards)
        return self._known_truth

    def _read_input(self) -> Input:
        """The app's recorded input since it began. Raises SparkStreamError if it was another app for a part of
        that."""
        if self._life.change:
            raise SparkStreamError(
                f"{self.name} was changed while it ran, so what came in before was of another app: to replay it, "
                "deploy this one with fresh=True and feed it again"
            )
        return Input(str(self._inbox.folder), self.schemas, self._life.began, self._inbox.position.seq - 1)

    def _replayed_nodes(self) -> Nodes:
        stored = [t.source.id for t in self.plan.tables.values() if t.is_stored]
        if stored:
            raise SparkStreamError(
                f"{self.name} cannot be replayed: table '{stored[0]}' is in a database, and what it held at each time "
                "is not known any more. Leave @store out of the app to study it"
            )
        d = self.deployment
        return Nodes(self.plan, d.start, d.allow_scripts, d.led, limits=d.limits)

    def study(
        self,
        nodes: int | Iterable[int] = range(1, 17),
        routings: Sequence[str] | None = None,
        *,
        feed: Mapping[str, Any] | None = None,
        time: str | None = None,
        reading: Reading | None = None,
    ) -> Study:
        """Outputs on other numbers of nodes under other routings: the numbers of lost, spurious and duplicated ones
        against one node's, for every combination, computed by one Spark job.

        `routings`: by default round robin, random, each input stream to one node, and by each attribute that could be a
        key. The input so far is replayed; or `feed`, frames or files by stream, put in order by `time` as in `feed`;
        `reading` says more of how they are read (`Reading(time="at", decimal=",")`).
        A study is without a leader: it shows which queries need one. Raises `Misuse` for an impossible combination,
        SparkStreamError as `divergence` and `feed` do.
        """
        self._check_open()
        for count in [nodes] if isinstance(nodes, int | str) else (nodes := list(nodes)):
            argument_checks.optional_int("nodes", count, 1, MOST_NODES)
        replayed = replace(self._replayed_nodes(), led=None)
        return study(self._target, replayed, self._material(feed, time, reading), nodes, routings)

    def _material(self, feed: Mapping[str, Any] | None, time: str | None, reading: Reading | None) -> Material:
        """The input so far, or a feed that is never committed. Raises `Misuse` if both `time` and `reading` say
        which column has the event times."""
        self._check_open()
        if reading is not None and not isinstance(reading, Reading):
            raise Misuse(f"reading is a Reading, not {shown(reading)}: Reading(time='at', decimal=',')")
        if reading is not None and time is not None:
            raise Misuse("time is given twice: as an argument of its own, and with reading")
        if self._life.shared is not None:
            raise Misuse(
                "a study is computed by Spark's machines, which do not see what came in to an app with shared=...: "
                "deploy the app on this machine to study it"
            )
        if feed is None:
            self.flush()
            return Material(self._read_input(), f"{self._life.run} {self._inbox.position.seq}")
        if not isinstance(feed, Mapping):
            raise Misuse(f"feed is a dict of frames or files by stream, not {shown(feed)}")
        for stream in feed:
            self._schema(stream)
        self.start()
        return material(self._target, feed, reading or Reading(time), self.schemas)
