"""What is saved by change is what the whole state is."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import replay
from reference.engine_cases import events, input_batch, run_case, whole
from sparkstream_nb import engine
from sparkstream_nb.engine.columnar import blocks
from sparkstream_nb.engine.columnar.blocks import Blocks, Tracked, digest_of
from sparkstream_nb.engine.columnar.column_data import Array, Column, StringPool
from sparkstream_nb.engine.columnar.eventlog import EventLog
from sparkstream_nb.engine.columnar.rows import Rows
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.patterns import pools
from sparkstream_nb.engine.state import content_chunking as pieces
from sparkstream_nb.engine.state.snapshot import save_parts, unpack
from sparkstream_nb.plan import compile_app
from sparkstream_nb.types import Type

from .test_metamorphic import Case, long_cases, places, positions, restarted, runnable, some


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and chunks so small that a few events fill some."""
    monkeypatch.setattr(blocks, "BLOCK", 64)
    monkeypatch.setattr(blocks, "CHECKED", False)  # `whole` does so
    monkeypatch.setattr(pieces, "LEAST", 64)
    monkeypatch.setattr(pools, "LEAST_SAVED", 0)


@pytest.mark.thorough
@some
@given(runnable(long_cases), places, places, st.booleans())
def test_what_was_saved_is_the_whole_state(
    case: Case, shares: list[float], more: list[float], by_chunk: bool
) -> None:
    at = positions(case, shares)
    cuts = [p + sum(r <= p for r in at) for p in positions(case, more)]
    steps = restarted(case, at)
    got = run_case(steps, by_chunk=by_chunk, cuts=cuts, saves=True)
    assert got == run_case(steps, by_chunk=by_chunk, cuts=cuts), case["id"]


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.parametrize("share", range(10))
def test_each_case_saved_and_restarted(share: int) -> None:
    """Every case is saved after some steps each, and restarted at three places, by what was saved and by all state."""
    for case in long_cases()[share::10]:
        if replay.needed(case):
            continue
        n = len(case["feed"])
        steps = restarted(case, sorted({n // 4, n // 2, 3 * n // 4}))
        cuts = range(0, len(steps["feed"]), 3)
        assert run_case(steps, cuts=cuts, saves=True) == run_case(steps, cuts=cuts), case["id"]


# ------------------------------------------------------------------------------------------------------------ one array


class _Model:
    """A log with numbers, and a list that has the same."""

    def __init__(self) -> None:
        self.log = EventLog((Type.LONG, Type.STRING), is_partitioned=False)
        self.want: list[tuple[int, int | None]] = []

    def append(self, n: int, at: int) -> None:
        new = [(at + i, None if i % 3 == 0 else i) for i in range(n)]
        null = np.array([x is None for _, x in new], bool)
        columns = [
            Column(Type.LONG, np.array([v for v, _ in new], np.int64)),
            Column(Type.STRING, np.array([-1 if x is None else x for _, x in new], np.int32), null if n else None),
        ]
        ts = np.arange(n)
        self.log.append(Rows(columns, ts, ts, ts))
        self.want += new

    def let_go(self, n: int, at: int) -> None:
        n = min(n, len(self.want))
        self.log.move(n, max(1, len(self.want) - n + at % 7))
        del self.want[:n]

    def assign(self, n: int, at: int) -> None:
        places = np.unique(np.arange(at, at + n) % max(1, len(self.want)))[: len(self.want)]
        self.log.assign(0, places, Column(Type.LONG, -places - at))
        for i in places.tolist():
            self.want[i] = -i - at, self.want[i][1]

    def compact(self, n: int, at: int) -> None:
        keep = np.array([i for i in range(len(self.want)) if (i + at) % (n + 2)], np.int64)
        self.log.compact(keep)
        self.want = [self.want[i] for i in keep.tolist()]

    def take_back(self, n: int, at: int) -> None:
        n = min(n, len(self.want))
        self.log.end -= n
        del self.want[len(self.want) - n :]

    def save(self, n: int, at: int) -> None:
        low = min(n, len(self.want))
        strings = StringPool()
        strings.encode([str(i) for i in range(100)])
        parts = save_parts(self.log.save_state(low, self.log.end), strings)
        assert parts is not None
        again = EventLog((Type.LONG, Type.STRING), is_partitioned=False)
        again.load(unpack(whole(parts), strings))
        columns = again.between(0, again.end)
        found = zip(columns[0].to_list(strings), columns[1].to_list(strings), strict=True)
        assert list(found) == [(v, None if x is None else str(x)) for v, x in self.want[low:]]
        assert again.base == self.log.base + low


@given(st.lists(st.tuples(st.sampled_from(["append", "let_go", "assign", "compact", "take_back", "save", "save"]),
                          st.integers(0, 40), st.integers(0, 99)), max_size=25))  # fmt: skip
def test_a_log_is_saved_as_it_is(does: list[tuple[str, int, int]]) -> None:
    model = _Model()
    for name, n, at in [("append", 30, 0), ("save", 0, 0), *does, ("save", 0, 0)]:
        getattr(model, name)(n, at)


@given(st.lists(st.lists(st.integers(0, 499)), max_size=8), st.integers(0, 50))
def test_only_what_was_written_is_read_again(writes: list[list[int]], first: int) -> None:
    array, known, read = np.zeros(500, np.int64), Blocks(8), []

    def seen(a: int, b: int) -> Array:
        read.append((a + first) // known.per)
        return array[a:b]

    tracked = Tracked(known, first, 500, array.dtype, seen)
    list(tracked.pieces())
    ends = {first // known.per, (first + 500) // known.per}
    for at in writes:
        read.clear()
        array[at] += 1
        known.touch(np.array(at, np.int64) + first)
        found = [p.digest for p in tracked.pieces()]
        assert found == [digest_of(p.data()) for p in Tracked.of(Blocks(8), first, array).pieces()]
        few = len(at) <= 4 * (500 // known.per - 1)
        assert not few or set(read) <= ends | {(p + first) // known.per for p in at}


def test_who_has_another_state_has_it_saved_as_well() -> None:
    """A class that says what its state is says so of both forms, or of one alone."""
    for module in pkgutil.walk_packages(engine.__path__, "sparkstream_nb.engine."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and hasattr(kind, "save_state") and hasattr(kind, "state"):
                of = {name: next(c for c in kind.__mro__ if name in vars(c)) for name in ("save_state", "state")}
                assert of["save_state"] is of["state"], kind


# -------------------------------------------------------------------------------------------------------- whole states


def fed(node: NodeEngine, a: int, b: int) -> Any:
    """What comes of the events a ≤ i < b."""
    steps = [
        ["S", 1000 + 100 * i, [["a", "b", None, "d"][i * 7 % 4], i * 3 % 11, None if i % 5 == 0 else i / 8]]
        for i in range(a, b)
    ]
    return {s: events(e) for s, e in node.step(input_batch(node.plan, steps)).streams.items()}


FOLDER = Path(__file__).parent
FORMER = compile_app((FOLDER / "former_state.siddhi").read_text())


def test_a_state_of_a_former_version_goes_on() -> None:
    """The file is what the version before states were saved by change stored after the first 40 events."""
    node, again = NodeEngine(FORMER, start=0), NodeEngine(FORMER, start=0)
    fed(node, 0, 40)
    again.restore((FOLDER / "former_state.bin").read_bytes())
    assert again.snapshot() == node.snapshot()
    assert fed(again, 40, 90) == fed(node, 40, 90)


def test_what_is_saved_does_not_depend_on_restarts() -> None:
    """So that what is stored already is not written again."""
    node, again = NodeEngine(FORMER, start=0), NodeEngine(FORMER, start=0)
    for i in range(0, 60, 5):
        fed(node, i, i + 5)
        whole(node.saved_parts())
    again.restore(whole(node.saved_parts()))
    kept = {p.digest for p in pieces.pieces(node.saved_parts())}
    assert {p.digest for p in pieces.pieces(again.saved_parts())} == kept


def test_half_a_character_is_saved() -> None:
    plan = compile_app("define stream S (k string); from S#window.length(3) select k insert into O;")
    node, again = NodeEngine(plan, start=0), NodeEngine(plan, start=0)
    assert node.services.strings.code("\ud800") == 0
    node.step(input_batch(plan, [["S", 1, ["a"]], ["S", 2, [None]]]))
    again.restore(whole(node.saved_parts()))
    assert again.snapshot() == node.snapshot()


def test_strings_of_no_use_are_left_behind() -> None:
    plan = compile_app("define stream S (k string); from S#window.length(3) select k insert into O;")
    node, again = NodeEngine(plan, start=0), NodeEngine(plan, start=0)
    for a in range(0, 200_000, 50_000):
        node.step(input_batch(plan, [{"stream": "S", "batch": [[1, [f"text {i}"]] for i in range(a, a + 50_000)]}]))
        whole(node.saved_parts())
    assert node.stale
    again.restore(whole(node.saved_parts()))
    assert not again.stale
    assert len(again.services.strings) < 100
    assert again.snapshot() == node.snapshot()
