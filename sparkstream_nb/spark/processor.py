"""The node engine inside Spark: one key per node, its state in Spark's state store.

The state is the engine's snapshot, cut into pieces; a piece that did not change is not written again. What a worker
keeps in memory between micro-batches is only a short cut: it is used where its version is the one that the state store
holds, else the engine is restored from the store.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..engine.batch import InputBatch
from ..engine.node import NodeEngine
from ..errors import SparkStreamError
from ..lang.parser import parse_on_demand
from ..plan import bind_retrieval
from ..plan.nodes import Plan
from . import results
from .segments import join

PIECE_BYTES = 1 << 20
ENGINES_KEPT = 64


@dataclass(frozen=True)
class NodeSpec:
    """A node as the workers need it: `plan` pickled, so that it is unpickled only where an engine is made."""

    node: int
    shard: str
    plan: bytes
    trace: bool = False
    scripts: bool = False

    @staticmethod
    def of(node: int, shard: str, plan: Plan, *, trace: bool = False, scripts: bool = False) -> NodeSpec:
        return NodeSpec(node, shard, pickle.dumps(plan), trace, scripts)


@dataclass
class _Kept:
    version: str
    engine: NodeEngine
    pieces: list[str]


_engines: OrderedDict[tuple[str, int], _Kept] = OrderedDict()
_plans: OrderedDict[bytes, Plan] = OrderedDict()


def _plan(blob: bytes) -> Plan:
    """The plan, unpickled once per worker: nodes of one app share it where their properties are the same."""
    key = hashlib.blake2b(blob, digest_size=16).digest()
    if key not in _plans:
        _plans[key] = pickle.loads(blob)
        while len(_plans) > ENGINES_KEPT:
            _plans.popitem(last=False)
    return _plans[key]


def _engine(spec: NodeSpec) -> NodeEngine:
    """A node at its start. Aggregations that no query reads are kept by the store alone: the state stays small."""
    return NodeEngine(
        _plan(spec.plan), shard=spec.shard, trace=spec.trace, stored=not spec.trace, allow_scripts=spec.scripts
    )


class NodeProcessor(StatefulProcessor):
    """Runs the nodes of `specs` (by key). `run` tells apart the lives of an app; `keep` allows the short cut.

    An error of the engine ends the query; with `isolate` it is a row of kind `failure` for that micro-batch, and the
    other nodes go on.
    """

    def __init__(self, run: str, specs: Mapping[int, NodeSpec], *, keep: bool = True, isolate: bool = False) -> None:
        self.run, self.specs, self.keep, self.isolate = run, dict(specs), keep, isolate

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.version = handle.getValueState("version", "version string, pieces string")
        self.pieces = handle.getMapState("pieces", "number int", "bytes binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        try:
            out = self._take(key, rows)
        except Exception as error:
            if not self.isolate:
                raise
            out = [(self.specs[key[0]].node, 0, -1, "failure", type(error).__name__, 1, str(error).encode())]
        yield pd.DataFrame({c: [r[i] for r in out] for i, c in enumerate(results.COLUMNS)})

    def _take(self, key: Any, rows: Iterator[pd.DataFrame]) -> list[results.Row]:
        began = time.perf_counter()
        spec = self.specs[key[0]]
        entries = sorted(
            (
                e
                for frame in rows
                for e in zip(*(frame[c] for c in ("seq", "last", "step", "kind", "blob")), strict=True)
            ),
            key=lambda e: e[0],
        )
        stored = self.version.get()
        # Taken out while it works: an engine that fails half-way must not be found again.
        kept = _engines.pop((self.run, key[0]), None)
        restored = False
        if kept is None or not self.keep or stored is None or kept.version != stored[0]:
            kept = _Kept("", _engine(spec), [])
            if stored is not None:
                restored = True
                kept.pieces = json.loads(stored[1])
                kept.engine.restore(b"".join(self._piece(i) for i in range(len(kept.pieces))))
        out: list[results.Row] = []
        partials: dict[str, list[pa.Table]] = {}
        steps = 0
        for kind, run in groupby(entries, key=lambda e: str(e[3])):
            if kind == "steps":
                blobs = list(run)
                batch = join([InputBatch.from_bytes(e[4]) for e in blobs])
                outputs = kept.engine.step(batch)
                steps += len(batch.clock)
                out += results.encode(outputs, spec.node, int(blobs[0][0]), int(blobs[-1][1]), int(blobs[0][2]))
                for aggregation, table in outputs.partials.items():
                    partials.setdefault(aggregation, []).append(table)
                continue
            for seq, last, _, _, blob in run:
                where = (spec.node, int(seq), int(last))
                if kind == "reject":
                    out.append((*where, "error", "", blob.count(b"\n"), bytes(blob)))
                else:
                    out.append((*where, "answer", "", 1, self._answer(kept.engine, blob.decode())))
        low, high = (min(int(e[0]) for e in entries), max(int(e[1]) for e in entries)) if entries else (0, -1)
        for aggregation, tables in partials.items():
            whole = results.merged_partials(kept.engine.plan.aggregations[aggregation], tables)
            if whole.num_rows:
                out.append((spec.node, low, high, "partial", aggregation, whole.num_rows, results.to_ipc(whole)))
        size = self._store(key[0], kept)
        mark = {
            "shard": spec.shard,
            "ms": round(1000 * (time.perf_counter() - began), 1),
            "restored": restored,
            "state_bytes": size,
            "engine": kept.engine.stats(),
        }
        out.append((spec.node, low, high, "mark", "", steps, json.dumps(mark, default=str).encode()))
        return out

    def _piece(self, number: int) -> bytes:
        found = self.pieces.getValue((number,))
        assert found is not None, f"piece {number} of a node's state is missing"
        return bytes(found[0])

    def _answer(self, engine: NodeEngine, text: str) -> bytes:
        try:
            plan = engine.plan
            return results.encode_answer(engine.answer(bind_retrieval(parse_on_demand(text), plan, text)))
        except SparkStreamError as error:
            return results.encode_answer(error)

    def _store(self, key: int, kept: _Kept) -> int:
        """Writes the engine's state; returns its size in bytes."""
        blob = kept.engine.snapshot()
        former, kept.pieces = kept.pieces, []
        for i, at in enumerate(range(0, len(blob), PIECE_BYTES)):
            piece = blob[at : at + PIECE_BYTES]
            digest = hashlib.blake2b(piece, digest_size=12).hexdigest()
            kept.pieces.append(digest)
            if i >= len(former) or former[i] != digest:
                self.pieces.updateValue((i,), (piece,))
        for i in range(len(kept.pieces), len(former)):
            self.pieces.removeKey((i,))
        kept.version = os.urandom(12).hex()
        self.version.update((kept.version, json.dumps(kept.pieces)))
        if self.keep:
            _engines[self.run, key] = kept
            while len(_engines) > ENGINES_KEPT:
                _engines.popitem(last=False)
        return len(blob)

    def close(self) -> None:
        """Nothing is held open."""
