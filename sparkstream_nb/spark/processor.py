"""The node engine as Spark's stateful processor: one key per node.

Spark starts a process for every query that only asks the processor for its state variables: this module loads quickly,
and `nodes`, which loads the engine, is loaded where entries are worked on.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..limits import Limits

if TYPE_CHECKING:
    import pandas as pd

    from ..lanes.distributed import Distributed
    from ..plan.leader import Duty
    from ..plan.nodes import Plan
    from ..simulation.groups import Groups
    from .care import Care
    from .shared import Shared


@dataclass(frozen=True)
class NodeSpec:
    """A node as the workers need it: number `index` of its app, which began with `count` nodes.

    `plan` is pickled, so that it is unpickled only where an engine is made. The node's clock starts at `start` (ms;
    None: with the first event or tick). `tables` is `tables.packed`, empty where no table is in a database. A node with
    a `duty` is the leader, and one of `groups` has another node to take over: these take all events. Of the nodes of a
    distributed app the first one computes all. `limits`: what one event may ask for. `tokens` name the parts of its
    state (`plan.state_units.state_tokens`), where the app may be changed and go on; else the plan is always the same.
    """

    node: int
    shard: str
    plan: bytes
    trace: bool = False
    scripts: bool = False
    index: int = 0
    count: int = 1
    start: int | None = None
    tables: bytes = field(default=b"", repr=False)
    duty: Duty | None = None
    groups: Groups | Distributed | None = None
    limits: Limits = field(default_factory=Limits)
    tokens: Mapping[str, str] | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it takes all events, and does all of its plan itself."""
        return self.duty is not None or self.groups is not None

    @staticmethod
    def of(
        node: int,
        shard: str,
        plan: Plan,
        *,
        trace: bool = False,
        scripts: bool = False,
        index: int = 0,
        count: int = 1,
        start: int | None = None,
        tables: bytes = b"",
        duty: Duty | None = None,
        groups: Groups | Distributed | None = None,
        limits: Limits | None = None,
        tokens: Mapping[str, str] | None = None,
    ) -> NodeSpec:
        return NodeSpec(
            node, shard, pickle.dumps(plan), trace, scripts, index, count, start, tables, duty, groups,
            Limits() if limits is None else limits, tokens,
        )  # fmt: skip


class NodeProcessor(StatefulProcessor):
    """Runs the nodes of `specs` (by key) over the entries of the inbox in `folder`. Large outputs go to the folder
    `outputs`, if any. `run` tells apart the lives of an app; `keep` allows the short cut.

    An error of the engine ends the query; with `isolate` it is a row of kind `failure` for that micro-batch, and the
    other nodes go on. `care`: what the nodes mind besides (None: nothing). With a `shared` address the workers do not
    see the folders, and take and leave there what would be in them.
    """

    def __init__(
        self,
        run: str,
        specs: Mapping[int, NodeSpec],
        folder: Path,
        outputs: Path | None = None,
        *,
        keep: bool = True,
        isolate: bool = False,
        care: Care | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.run, self.specs, self.folder = run, dict(specs), str(folder)
        self.outputs = None if outputs is None else str(outputs)
        self.keep, self.isolate, self.care = keep, isolate, care
        self.shared = shared

    def within(self, folder: Path) -> NodeProcessor:
        """The same with its folders in another one."""
        own = copy.copy(self)
        own.folder, own.outputs = str(folder / "inbox"), str(folder / "outputs")
        return own

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.version = handle.getValueState("version", "version string, pieces string")
        self.pieces = handle.getMapState("pieces", "digest string", "bytes binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        from .nodes import work

        yield work(self, key, rows)

    def close(self) -> None:
        """Nothing is held open."""
