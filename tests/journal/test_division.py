"""Events divided by node where the inbox is read: a node gets what `segments.pieces` gives it, by rows or files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal import division, result_rows
from sparkstream_nb.journal.entries import EventsEntry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from, runs
from sparkstream_nb.journal.parts import PARTS, forget_parts
from sparkstream_nb.journal.segments import StepsOfNode, pieces
from sparkstream_nb.types import Schema, Type

SCHEMAS = {"S": Schema.of(("k", Type.STRING), ("v", Type.INT)), "T": Schema.of(("v", Type.INT))}


def batch(first: int, steps: int, seed: int) -> InputBatch:
    """Steps with events of S, of T, of both or of none."""
    r = np.random.default_rng(seed)
    of_s, of_t = (np.flatnonzero(r.integers(0, 2, steps)) for _ in range(2))
    texts = pa.array([f"k{i % 7}" for i in of_s], pa.string()).dictionary_encode()
    return InputBatch(
        first + np.arange(steps),
        {
            "S": StreamRows(of_s, first + of_s, [texts, pa.array(of_s, pa.int32())]),
            "T": StreamRows(of_t, first + of_t, [pa.array(of_t, pa.int32())]),
        },
    )


def as_data(piece: StepsOfNode) -> object:
    found = {
        s: (r.step.tolist(), r.ts.tolist(), [c.to_pylist() for c in r.columns])
        for s, r in piece.batch.rows.items()
        if len(r.ts)
    }
    return piece.seq, piece.last, piece.step, piece.before, piece.batch.clock.tolist(), found


@pytest.mark.parametrize("inline", [True, False])
@settings(max_examples=examples(20), deadline=None)
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5), nodes=st.integers(1, 6), seed=st.integers(0, 9))
def test_a_node_gets_its_part(
    tmp_path_factory: pytest.TempPathFactory, inline: bool, sizes: list[int], nodes: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("inbox")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "INLINE_STEPS", 1000 if inline else 0)
        patch.setattr(division, "JOINED_EVENTS", 30)
        inbox = Inbox(folder)
        for n in sizes:
            inbox.append([inbox.batch(batch(inbox.position.step, n, seed), "hash:k")])
        found = [e for e, _ in entries_from(folder) if isinstance(e, EventsEntry)]
        whole = pieces(folder, found, SCHEMAS, range(nodes), nodes)
        parts: list[dict[int, result_rows.NodePart]] = [{} for _ in range(nodes)]
        for run in runs(found):
            own = pieces(folder, run, SCHEMAS, range(nodes), nodes)
            for node, part in enumerate(division.divide_entries(folder, range(nodes), own)):
                assert part is not None
                assert result_rows.decode(result_rows.encode(part)) == part
                parts[node][part.seq] = part
        assert (folder / PARTS).exists() != inline
        for node, given_to in enumerate(parts):
            (piece,) = division.pieces_of(folder, found, given_to)
            assert as_data(piece) == as_data(whole[node])
        forget_parts(folder, found[-1].seq)
        assert (folder / PARTS).exists() != inline
        forget_parts(folder, found[-1].seq + 1)
        assert not (folder / PARTS).exists() or not any((folder / PARTS).iterdir())


def test_parts_are_joined_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "JOINED_STEPS", 25)
    inbox = Inbox(tmp_path)
    for _ in range(5):
        inbox.append([inbox.batch(batch(inbox.position.step, 10, 1), "round_robin")])
    found = [e for e, _ in entries_from(tmp_path) if isinstance(e, EventsEntry)]
    own = {}
    for entry in found:
        part = next(division.divide_entries(tmp_path, [0], pieces(tmp_path, [entry], SCHEMAS, [0], 2)))
        assert part is not None
        own[part.seq] = part
    joined = list(division.pieces_of(tmp_path, found, own))
    assert [(p.seq, p.last, p.step, p.before, len(p.batch.clock)) for p in joined] == [
        (0, 1, 0, None, 20), (2, 3, 20, 19, 20), (4, 4, 40, 39, 10),
    ]  # fmt: skip


def test_a_long_dictionary_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node's file has the texts of its own rows alone."""
    monkeypatch.setattr(division, "INLINE_STEPS", 0)
    n = 2000
    at = np.arange(n)
    texts = pa.array([f"a text of some length {i}" for i in at]).dictionary_encode()
    events = InputBatch(at, {"S": StreamRows(at, at, [texts, pa.array(at, pa.int32())])})
    inbox = Inbox(tmp_path)
    inbox.append([inbox.batch(events, "round_robin")])
    found = [e for e, _ in entries_from(tmp_path) if isinstance(e, EventsEntry)]
    parts = list(division.divide_entries(tmp_path, range(20), pieces(tmp_path, found, SCHEMAS, range(20), 20)))
    assert all(p is not None and (tmp_path / p.file).stat().st_size < 20_000 for p in parts)
