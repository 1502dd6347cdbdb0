"""Clusters without Spark: the nodes' reports are those of real members of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

import numpy as np
import pyarrow as pa

from sparkstream_nb.app import Cluster
from sparkstream_nb.app.views.cluster_view import ClusterReader
from sparkstream_nb.app.views.controls import FaultJournal, FaultStatus
from sparkstream_nb.app.views.pair_view import PairAdapter
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal.result_rows import NodeReport
from sparkstream_nb.nodes.member import PairMember
from sparkstream_nb.plan import compile_app
from sparkstream_nb.simulation.faults import Fault
from sparkstream_nb.simulation.node_groups import NodeGroups

START = 1_717_236_000_000  # 2024-06-01 10:00 UTC
PLAN = compile_app("define stream S (v int); from S select v insert into O;")


class Members:
    """All nodes of `groups`, which take an event each second."""

    def __init__(self, groups: NodeGroups, app: str = "App") -> None:
        self.groups, self.app = groups, app
        self.members = {n: PairMember(groups, n, PLAN, lambda: NodeEngine(PLAN)) for n in groups.nodes}
        self.faults: list[Fault] = []
        self.seconds = 0

    def feed(self, seconds: int) -> None:
        """Takes an event for each of so many seconds."""
        at = START + 1000 * np.arange(self.seconds, self.seconds + seconds)
        rows = StreamRows(np.arange(seconds), at, [pa.array(np.arange(seconds, dtype=np.int32))])
        for member in self.members.values():
            member.step(InputBatch(at, {"S": rows}))
        self.seconds += seconds

    def tick(self, time: int) -> None:
        """Moves the clock to a time (ms) on a whole second, with no event."""
        for member in self.members.values():
            member.step(InputBatch(np.array([time], np.int64), {}))
        self.seconds = (time - START) // 1000 + 1

    def add(self, fault: Fault) -> None:
        """Takes a fault."""
        for member in self.members.values():
            member.happen(fault)
        self.faults.append(fault)

    def reports(self) -> dict[str, NodeReport]:
        """As Spark carries them."""
        found = {n: NodeReport(n, 1.0, False, 1, m.stats()) for n, m in self.members.items()} if self.seconds else {}
        return {n: NodeReport.of_json(r.to_json()) for n, r in found.items()}

    @property
    def cluster(self) -> Cluster:
        """As `App.cluster`."""

        def told() -> FaultStatus:
            clock = START + 1000 * (self.seconds - 1) if self.seconds else None
            return FaultStatus(START if self.seconds else None, clock, self.faults)

        mode = "ha" if len(self.groups.pairs) == 1 else "scalable"
        reader = ClusterReader(
            self.app, mode, PairAdapter(self.app, self.groups), self.reports, lambda _: lambda: None, lambda: None
        )  # fmt: skip
        return Cluster(self.groups, FaultJournal(told, self.add, self.tick, RLock()), reader)


def fed(groups: NodeGroups, seconds: int, *faults: Fault, app: str = "App") -> Members:
    """Nodes that have taken events for so many seconds; the faults have times from the epoch on."""
    members = Members(groups, app)
    for fault in faults:
        members.add(fault)
    members.feed(seconds)
    return members


def cut_into(members: Members, sizes: Sequence[int]) -> None:
    """Feeds so many seconds at a time, each node restored from its snapshot in between."""
    for size in sizes:
        members.feed(size)
        for name, member in members.members.items():
            again = PairMember(members.groups, name, PLAN, lambda: NodeEngine(PLAN))
            again.restore(member.snapshot())
            members.members[name] = again
