"""Many small files of outputs become one; the oldest go, and are counted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.state.node_batch import Emitted
from sparkstream_nb.journal.result_codec import emitted_table, to_ipc
from sparkstream_nb.journal.result_rows import StreamEvents
from sparkstream_nb.outputs import merging as merging_module
from sparkstream_nb.outputs.merging import TOGETHER, Merging
from sparkstream_nb.outputs.output_files import OutputFiles
from sparkstream_nb.retention import Retention

NAMES = ("node", "step", "o")
ALL = 10**9


def events(node: int, steps: Sequence[int]) -> StreamEvents:
    """What a node put out at `steps`: attributes that are called as the files' own columns, and one of objects."""
    at = np.array(steps, np.int64)
    columns = [pa.array([f"n{s % 3}" for s in steps]), pa.array(at * 10), [{"s": s} for s in steps]]
    return StreamEvents(node, 0, 0, "O", len(at), to_ipc(emitted_table(Emitted(NAMES, at, at, columns), 0)))


def written(outputs: OutputFiles, merging: Merging | None, batches: Sequence[Sequence[StreamEvents]]) -> None:
    for batch, parts in enumerate(batches):
        found = {"O": parts} if parts else {}
        outputs.write(batch, found)
        if merging is not None:
            merging.note_commit(batch, {s: sum(p.rows for p in ps) for s, ps in found.items()})


def count(outputs: OutputFiles) -> int:
    return len(list(outputs.folder.glob("*/*.arrows")))


@settings(deadline=None, max_examples=examples(25))
@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=70, max_size=200), last=st.integers(0, 300)
)
def test_reading_is_the_same_merged_or_not(
    sizes: list[tuple[int, int]], last: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base, batches, last_steps = 0, [], []
    for sizes_of_nodes in sizes:
        total = sum(sizes_of_nodes)
        steps = np.random.default_rng(base).permutation(total) + base
        parts, at = [], 0
        for node, n in enumerate(sizes_of_nodes):
            if n:
                parts.append(events(node, sorted(steps[at : at + n].tolist())))
            at += n
        batches.append(parts)
        base += total
        last_steps += [base - 1] if total else []
    folder = tmp_path_factory.mktemp("outputs")
    plain, merged = OutputFiles(folder / "a", ["a", "b"]), OutputFiles(folder / "b", ["a", "b"])
    written(plain, None, batches)
    written(merged, Merging(merged, Retention()), batches)
    for wanted in (None, last):
        ours, theirs = (o.frame("O", NAMES, ALL, wanted) for o in (merged, plain))
        assert ours.values.tolist() == theirs.values.tolist()
    assert list(ours.columns) == ["event_node", "timestamp", *NAMES]
    whole = plain.frame("O", NAMES, ALL)
    assert ours.values.tolist() == whole.tail(last).values.tolist()
    latest = plain.latest("O", NAMES, ALL, last, "node")
    assert latest.values.tolist() == whole.tail(last).drop_duplicates("node", keep="last").values.tolist()
    assert merged.commit_steps() == plain.commit_steps() == last_steps
    if sum(any(s) for s in sizes) > TOGETHER:
        assert count(merged) < count(plain)


def test_the_number_of_files_stays_small(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path, ["a", "b"])
    written(
        outputs, Merging(outputs, Retention()), [[events(0, [2 * b]), events(1, [2 * b + 1])] for b in range(2_000)]
    )
    assert count(outputs) <= 2 * TOGETHER + 10
    assert outputs.frame("O", NAMES, ALL)["step"].tolist() == [10 * s for s in range(4_000)]


def test_a_merge_that_was_cut_off_repeats_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = OutputFiles(tmp_path, ["a"])
    unlink = Path.unlink

    def fail(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith(f"{TOGETHER // 2:012d}"):
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", fail)
    merging = Merging(outputs, Retention())
    with pytest.raises(KeyboardInterrupt):
        written(outputs, merging, [[events(0, [b])] for b in range(200)])
    monkeypatch.undo()
    assert count(outputs) > 10
    assert outputs.frame("O", NAMES, ALL)["step"].tolist() == [10 * s for s in range(TOGETHER)]
    again = Merging(outputs, Retention())
    for batch in range(TOGETHER, 3 * TOGETHER):
        outputs.write(batch, {"O": [events(0, [batch])]})
        again.note_commit(batch, {"O": 1})
    assert outputs.frame("O", NAMES, ALL)["step"].tolist() == [10 * s for s in range(3 * TOGETHER)]
    assert count(outputs) <= TOGETHER


def test_a_micro_batch_that_spark_repeats_is_there_once(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path, ["a"])
    merging = Merging(outputs, Retention())
    written(outputs, merging, [[events(0, [b])] for b in range(TOGETHER)])
    for _ in range(2):
        outputs.write(TOGETHER - 1, {"O": [events(0, [TOGETHER - 1])]})
        merging.note_commit(TOGETHER - 1, {"O": 1})
    assert outputs.frame("O", NAMES, ALL)["step"].tolist() == [10 * s for s in range(TOGETHER)]


@pytest.mark.parametrize("limit", [Retention(outputs=20_000), Retention(outputs=None, days=1)])
def test_the_oldest_outputs_go_and_are_counted(
    tmp_path: Path, limit: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging_module, "MANY", 10)
    monkeypatch.setattr(merging_module, "SMALL", 0)
    outputs = OutputFiles(tmp_path, ["a"])
    merging = Merging(outputs, limit)
    for batch in range(100):
        outputs.write(batch, {"O": [events(0, [batch])]})
        if batch < 50:
            for file in outputs.files("O"):
                os.utime(file.path, (0, 0))
        merging.note_commit(batch, {"O": 1})
    left = outputs.frame("O", NAMES, ALL)["step"].tolist()
    gone = outputs.dropped_events["O"]
    assert 20 < gone < 100
    assert left == [10 * s for s in range(gone, 100)]
    if limit.outputs is not None:
        assert sum(f.path.stat().st_size for f in outputs.files("O")) < 30_000
    else:
        assert gone == 50
