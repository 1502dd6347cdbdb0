"""Nodes of apps: engines, the notes of their states, dropping of state, answers to retrieval queries."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from .. import checksums
from ..engine.expressions.function_checks import reason_of
from ..engine.node import NodeEngine
from ..engine.state.node_batch import EventError, InputBatch, OutputOptions, RetrievalAnswer
from ..errors import SparkStreamError
from ..journal.entries import Ask
from ..journal.result_codec import QueryFailed
from ..journal.segments import Needed, StepsOfNode
from ..lang.parser import parse_on_demand
from ..nodes.distributed import Distributed
from ..nodes.distributed_member import DistributedMember
from ..nodes.member import PairMember
from ..plan import bind_retrieval
from ..plan.distributed.placement import idle, idle_plan, split
from ..plan.needed import needed_attributes as find_needed
from ..plan.nodes import Plan
from ..plan.state_units import bound_units, state_units
from .node_host import ENGINES_KEPT, Engine, HostedNode
from .node_spec import NodeSpec, NodeState, PieceStore
from .node_state import ITS_CHECKPOINT, damaged_state

Answer = RetrievalAnswer | QueryFailed

_plans: OrderedDict[tuple[bytes, bool, bool], tuple[Plan, Plan, Needed | None]] = OrderedDict()


def _plan(spec: NodeSpec) -> tuple[Plan, Plan, Needed | None]:
    """The plan, its part for the node, and the attributes that this reads (None: all), unpickled once per worker: nodes
    with equal properties share it. One that takes all events does all of its plan itself; another app's node with the
    same plan may not."""
    key = hashlib.blake2b(spec.plan, digest_size=16).digest(), spec.takes_all, spec.trace
    if key not in _plans:
        plan = pickle.loads(spec.plan)
        part = plan if spec.takes_all else split(plan)[1]
        _plans[key] = plan, part, None if spec.takes_all or spec.trace else find_needed(part)
        while len(_plans) > ENGINES_KEPT:
            _plans.popitem(last=False)
    return _plans[key]


class AppNode(HostedNode[NodeSpec, Engine]):
    """A node of an app. `last`: the last entry of the journal that it took note of; None: all before the next one."""

    def __init__(self, key: tuple[str, int], spec: NodeSpec, place: str = ITS_CHECKPOINT) -> None:
        super().__init__(key, spec)
        self.last: int | None = None
        self._place = place

    @property
    def place(self) -> str:
        return self._place

    @property
    def plan(self) -> Plan:
        """The app's plan; the engine has the node's part of it."""
        return _plan(self.spec)[0]

    @property
    def needed_attributes(self) -> Needed | None:
        """The attributes of its input that it reads; None: all."""
        return _plan(self.spec)[2]

    @property
    def is_idle(self) -> bool:
        """True if it does not use its events."""
        return isinstance(self.engine, NodeEngine) and idle(self.engine.plan)

    def make_engine(self) -> Engine:
        """Aggregations that no query reads are kept by the store alone: the state stays small. In a pair they are in
        the state of the nodes, which has to be whole in a revision."""
        spec, plan = self.spec, _plan(self.spec)[1]
        if isinstance(spec.groups, Distributed):
            return self._make_distributed(spec.groups, plan)
        new = partial(
            NodeEngine,
            plan,
            shard=spec.shard,
            allow_scripts=spec.scripts,
            start=spec.start,
            limits=spec.limits,
        )
        if spec.groups is not None:
            return PairMember(spec.groups, spec.shard, plan, partial(new, outputs=OutputOptions(publishes=True)))
        outputs = OutputOptions(trace=spec.trace, stored=not spec.trace, publishes=True)
        return new(tokens=spec.tokens, outputs=outputs)

    def _make_distributed(self, app: Distributed, plan: Plan) -> Engine:
        """All nodes of a distributed app for the first of them; nothing to do for the others."""
        spec = self.spec
        if spec.index:
            return NodeEngine(idle_plan(plan), start=spec.start)
        return DistributedMember(
            plan,
            app,
            lambda part: NodeEngine(
                part,
                allow_scripts=spec.scripts,
                start=spec.start,
                limits=spec.limits,
                outputs=OutputOptions(chunks=True, publishes=True),
            ),
        )

    def write_note(self, store: PieceStore) -> str:
        return checksums.to_json({"pieces": self.pieces, "last": self.last})

    def read_note(self, note: str, state: NodeState) -> PieceStore:
        self.pieces, self.last = parse_note(note, self.place)
        return state

    def drop_state(self, piece: StepsOfNode, why: str) -> EventError | None:
        """Drops the state of a query, partition, window or trigger, if a step fails because of it."""
        if not isinstance(self.engine, NodeEngine) or self.spec.tokens is None:
            return None
        snapshot, step = self.engine.snapshot(), InputBatch(piece.batch.clock, {})
        if self._restore_without((), snapshot, step) is not None:
            return None  # it is the events
        for units in _droppable_units(self.plan):
            engine = self._restore_without(units, snapshot, step)
            if engine is not None:
                self.engine = engine
                reason = f"its state is dropped, as it cannot continue: {why}"
                return EventError(", ".join(sorted(units)), "", int(piece.batch.clock[-1]), [], reason)
        return None

    def _restore_without(self, units: Collection[str], snapshot: bytes, step: InputBatch) -> NodeEngine | None:
        """The node without the states of these units; None if the step fails for that as well."""
        assert self.spec.tokens is not None
        unit_tokens = [self.spec.tokens[key] for key in units]
        dropped_tokens = {  # and what belongs to a partition
            t for t in self.spec.tokens.values() if any(t == n or t.startswith(f"{n} ") for n in unit_tokens)
        }
        trial, engine = self.make_engine(), self.make_engine()
        assert isinstance(trial, NodeEngine)
        assert isinstance(engine, NodeEngine)
        try:
            trial.restore(snapshot, dropped_tokens)
            trial.step(step)
            engine.restore(snapshot, dropped_tokens)
        except Exception:
            return None
        return engine

    def answer(self, entry: Ask) -> Mapping[int, Answer]:
        """Its answer to a retrieval query, by node: in a distributed app the first node has that of each node that runs
        the queried source."""
        answer = self._answer(entry)
        return answer if isinstance(answer, Mapping) else {self.spec.node: answer}

    def _answer(self, entry: Ask) -> Answer | Mapping[int, Answer]:
        engine, spec, text = self.engine, self.spec, entry.text
        try:
            retrieval = bind_retrieval(parse_on_demand(text), self.plan, text)
            source = retrieval.source
            if retrieval.shared and spec.index != (entry.over[0] if entry.over else 0):
                return RetrievalAnswer([(a.name, str(a.type)) for a in retrieval.columns], [])
            if isinstance(engine, DistributedMember):
                return engine.answers(retrieval) or QueryFailed(
                    "SiddhiRuntimeError", "no node runs the partial app that has it"
                )
            if source is not None and source.kind == "aggregation" and source.id not in engine.plan.aggregations:
                raise SparkStreamError(f"Aggregation '{source.id}' is kept by its store.")
            return engine.answer(retrieval)
        except SparkStreamError as error:
            return QueryFailed.of(error)
        except (RecursionError, MemoryError) as error:
            return QueryFailed("SiddhiRuntimeError", f"The query asks for too much: {type(error).__name__}.")
        except Exception as error:  # it would fail again whenever the app is started
            return QueryFailed("SiddhiRuntimeError", f"The query cannot be answered: {reason_of(error)}")


def _droppable_units(plan: Plan) -> Iterator[frozenset[str]]:
    """Units of state that may be restarted, each with the units bound to it; then all of them."""
    groups = bound_units(plan)
    keys = [u.key for u in state_units(plan) if u.keeps and u.kind not in ("table", "aggregation")]
    for key in keys:
        yield frozenset({key}).union(*(group for group in groups if key in group))
    yield frozenset(keys)


def parse_note(text: str, place: str = ITS_CHECKPOINT) -> tuple[list[str], int | None]:
    """The digests of a state's pieces, and the last entry that its node took note of: former versions wrote the digests
    alone, as no node was left out. `place`: of the state, in words. Raises SparkStreamError if it is damaged."""
    try:
        note = checksums.from_json(text)
        return (note, None) if isinstance(note, list) else (note["pieces"], note["last"])
    except (ValueError, KeyError, TypeError) as error:
        reason = error if isinstance(error, ValueError) else "not what was written"
        raise damaged_state(f"the list of its pieces: {reason}", place) from None
