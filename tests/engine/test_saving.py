"""What is saved by change is what the whole state is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import replay
from sparkstream_nb.engine import blocks, pieces
from sparkstream_nb.engine.cases import run_case

from .test_metamorphic import Case, calm_cases, long_cases, places, positions, restarted, runnable, some


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and chunks so small that a few events fill some."""
    monkeypatch.setattr(blocks, "BLOCK", 32)
    monkeypatch.setattr(pieces, "LEAST", 64)


@some
@given(runnable(calm_cases), places, places, st.booleans())
def test_restarts_by_what_was_saved_do_not_matter(
    case: Case, shares: list[float], more: list[float], by_chunk: bool
) -> None:
    at = positions(case, shares)
    cuts = [p + sum(r <= p for r in at) for p in positions(case, more)]
    got = run_case(restarted(case, at), by_chunk=by_chunk, cuts=cuts, saves=True)
    assert got == run_case(case, by_chunk=by_chunk), case["id"]


def test_each_case_saved_and_restarted() -> None:
    """Every case, saved after some steps each, and restarted at three places: by what was saved, and by the whole state.
    """
    for case in long_cases():
        if replay.needed(case):
            continue
        n = len(case["feed"])
        steps = restarted(case, sorted({n // 4, n // 2, 3 * n // 4}))
        cuts = range(0, len(steps["feed"]), 3)
        assert run_case(steps, cuts=cuts, saves=True) == run_case(steps, cuts=cuts), case["id"]
