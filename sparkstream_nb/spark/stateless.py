"""What of an app needs no state: worked on where the inbox is read, by as many tasks as there are pieces of it.

The results pass through the node to the commit, together with the journal's entries that the node itself works on.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..engine.node import NodeEngine
from ..plan.nodes import Plan
from ..plan.placement import split
from ..types import Schema
from . import journal, results, segments
from .journal import Entry
from .processor import NodeSpec
from .source import ROWS_PER_TRIGGER

_APPS = "apps.pickle"


@dataclass(frozen=True)
class SourceApp:
    """What the source knows of an app: the key and the number of every node, the schemas of its streams, and the part
    of its plan without state for each node (empty where there is none). Large results go to the folder `outputs`. With
    `trace`, an error of the engine is a row of kind `failure`."""

    keys: tuple[int, ...]
    nodes: tuple[int, ...]
    schemas: Mapping[str, Schema]
    stateless: tuple[Plan, ...] = ()
    shards: tuple[str, ...] = ()
    trace: bool = False
    outputs: str | None = None


def app_of(
    keys: Sequence[int], specs: Sequence[NodeSpec], schemas: Mapping[str, Schema], *, outputs: str | None = None
) -> SourceApp:
    """An app whose nodes are `specs`, by their keys."""
    parts = [split(pickle.loads(s.plan))[0] for s in specs]
    return SourceApp(
        tuple(keys),
        tuple(s.node for s in specs),
        schemas,
        tuple(p for p in parts if p is not None),
        tuple(s.shard for s in specs),
        any(s.trace for s in specs),
        outputs,
    )


def options_of(
    folder: Path, apps: Sequence[SourceApp | None], rows_per_trigger: int = ROWS_PER_TRIGGER
) -> dict[str, str]:
    """The source's options, for apps by their number in the journal. What they are is written into the folder."""
    new = folder / ".apps.new"
    new.write_bytes(pickle.dumps(list(apps)))
    new.replace(folder / _APPS)
    work = any(app is not None and app.stateless for app in apps)
    return {"folder": str(folder), "rows": str(rows_per_trigger), "work": str(int(work))}


def rows_of(folder: Path, entries: Sequence[Entry]) -> Iterator[pa.RecordBatch]:
    """Rows of `source.SCHEMA`, a batch for each app: its entries for every node, and the results for a piece.

    A row of kind `entries` has in `blob` a JSON list of the journal's entries; any other is a result, and passes.
    """
    apps: list[SourceApp | None] = pickle.loads((folder / _APPS).read_bytes())
    by_app: dict[int, list[Entry]] = {}
    for entry in entries:
        by_app.setdefault(entry["app"], []).append(entry)
    for number, found in by_app.items():
        app = apps[number]
        if app is None:
            continue
        blob = json.dumps(found, separators=(",", ":")).encode()
        low, high = found[0]["seq"], found[-1]["seq"]
        rows: list[tuple[Any, ...]] = [
            (key, node, low, high, "entries", "", 0, blob, "") for key, node in zip(app.keys, app.nodes, strict=True)
        ]
        if app.stateless:
            for run in journal.runs(e for e in found if e["kind"] in ("steps", "rows")):
                parts = segments.pieces(folder, run, app.schemas, range(len(app.keys)), len(app.keys))
                for k, (key, piece) in enumerate(zip(app.keys, parts, strict=True)):
                    rows += [(key, *row) for row in _results(app, k, piece)]
        yield _batch(rows)


def _results(app: SourceApp, k: int, piece: segments.Piece) -> list[results.Row]:
    """What node number `k` of an app puts out for a piece, as far as no state is needed."""
    engine = NodeEngine(app.stateless[k], shard=app.shards[k], trace=app.trace, stored=True)
    engine.now = piece.before
    spill = results.Spill(app.outputs)
    try:
        out = spill.encode(engine.step(piece.batch), app.nodes[k], piece)
    except Exception as error:
        if not app.trace:
            raise
        return [(app.nodes[k], 0, -1, "failure", type(error).__name__, 1, str(error).encode(), "")]
    return out + spill.close()


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    return pa.record_batch([pa.array(c, t) for c, t in zip(columns, _SCHEMA.types, strict=True)], schema=_SCHEMA)


_SCHEMA = pa.schema([("key", pa.int32()), *results.ARROW_SCHEMA])
