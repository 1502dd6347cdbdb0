"""What must not change an app's output, whatever the app.

How its feed is cut into batches, in which of the two ways it runs, and where it is stopped, saved and restored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from profiles import examples
from reference import replay
from reference.engine_cases import run_case

Case = dict[str, Any]


@cache
def long_cases() -> list[Case]:
    return [c for c in replay.siddhi_cases() if len(c["feed"]) > 2 and "error" not in c["expect"]]


@cache
def calm_cases() -> list[Case]:
    """Cases without a trigger at 'start', which fires once more when a node starts anew, and so it should."""
    return [c for c in long_cases() if not re.search(r"at\s*['\"]start", c["app"], re.IGNORECASE)]


def runnable(found: Callable[[], list[Case]]) -> st.SearchStrategy[Case]:
    """One of these cases that needs no declared gap."""
    return st.deferred(lambda: st.sampled_from(found()).filter(lambda case: not replay.needed(case)))


cases = runnable(long_cases)
places = st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=6)
# Which cases and places are tried follows from the test's name alone, so that a run repeats exactly. Nothing is gained
# by making a failing case smaller.
some = settings(
    max_examples=examples(250), deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def positions(case: Case, shares: list[float]) -> list[int]:
    """Positions in the case's feed, from shares of its length."""
    return sorted({int(share * len(case["feed"])) for share in shares})


def restarted(case: Case, at: list[int]) -> Case:
    """The case with a snapshot, a new node and a restore before the steps `at`."""
    feed = []
    for i, step in enumerate(case["feed"]):
        if i in at:
            feed.append({"restart": True})
        feed.append(step)
    return {**case, "feed": feed}


@some
@given(cases, places)
def test_batches_do_not_matter(case: Case, shares: list[float]) -> None:
    assert run_case(case, cuts=positions(case, shares)) == run_case(case), case["id"]


@some
@given(cases)
def test_ways_of_running_do_not_matter(case: Case) -> None:
    assert run_case(case, by_chunk=True) == run_case(case), case["id"]


@some
@given(runnable(calm_cases), places, st.booleans())
def test_restarts_do_not_matter(case: Case, shares: list[float], by_chunk: bool) -> None:
    restarts = restarted(case, positions(case, shares))
    assert run_case(restarts, by_chunk=by_chunk) == run_case(case, by_chunk=by_chunk), case["id"]


def test_there_are_cases() -> None:
    assert len(long_cases()) > 600
