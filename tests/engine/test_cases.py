"""Every case with the reference engine's answer comes out of the node engine as it did there, in both ways of running.

What may differ stands in two lists, and both are strict: the declared gaps of `plan/gaps.py`, each of which fails here
as soon as its cases pass, and `tests/cases/differences.toml`, whose cases must fail against Siddhi's answer and pass
against the one in `tests/cases/differences/`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from reference import differences, replay
from sparkstream_nb.plan import gaps

Case = dict[str, Any]

CASES = replay.siddhi_cases()
OURS = replay.our_cases()
LISTED = {case: d for d in replay.listed_differences() for case in d["cases"]}
BY_ID = {case["id"]: case for case in CASES}
# Gaps that no case can show, because of the reference engine.
NOT_SHOWN = {"script:r": "it has no R either"}
WAYS = [pytest.param(False, id="by_operator"), pytest.param(True, id="by_chunk")]
ANSWERED = [
    pytest.param(case, by_chunk, id=f"{case['id']}-by_{'chunk' if by_chunk else 'operator'}",
                 marks=[pytest.mark.thorough] if by_chunk and i % 3 else [])
    for i, case in enumerate(CASES) for by_chunk in (False, True)
]  # fmt: skip
"""An app runs by chunk where it must, and by operator elsewhere: of those forced to, a third is enough for each day."""


def name(case: Case) -> str:
    return str(case["id"])


@cache
def needed(case_id: str) -> frozenset[str]:
    """The declared gaps that a case needs; its app is bound when first asked for."""
    return replay.needed(BY_ID[case_id])


@pytest.mark.parametrize(("case", "by_chunk"), ANSWERED)
def test_as_siddhi(case: Case, by_chunk: bool) -> None:
    gap = needed(case["id"])
    if gap:
        pytest.xfail(f"declared gap {', '.join(sorted(gap))}")
    told = replay.verdict(case, by_chunk=by_chunk)
    if case["id"] in LISTED:
        assert told is not None, "listed in differences.toml, and comes out as in Siddhi: strike it there"
        pytest.xfail(LISTED[case["id"]]["here"])
    assert told is None, told


@pytest.mark.parametrize("by_chunk", WAYS)
@pytest.mark.parametrize("case", OURS.values(), ids=name)
def test_as_the_manual_says(case: Case, by_chunk: bool) -> None:
    told = replay.verdict(case, by_chunk=by_chunk)
    assert told is None, told


@pytest.mark.parametrize("gap", gaps.GAPS)
def test_gap_is_open(gap: str) -> None:
    """A gap's cases are tried as if nothing were declared. Those that need no other gap decide, if there are any."""
    cases = [case for case in CASES if gap in needed(case["id"])]
    cases = [case for case in cases if len(needed(case["id"])) == 1] or cases
    if gap in NOT_SHOWN:
        pytest.skip(f"no case can show '{gap}': {NOT_SHOWN[gap]}")
    if not cases:
        pytest.skip(f"no case needs the gap '{gap}'")
    assert not all(replay.closed(case) for case in cases), f"all {len(cases)} cases pass: strike '{gap}' from gaps.py"


def test_ids_are_unique() -> None:
    twice = [i for i, n in Counter(case["id"] for case in CASES).items() if n > 1]
    assert not twice, twice
    assert len(CASES) > 1000


def test_differences_have_a_case_and_a_page() -> None:
    """Each difference is shown by a case of ours, each of those belongs to a difference, the page is up to date."""
    assert set(OURS) == set(LISTED)
    page = differences.PAGE.read_text("utf-8")
    assert page == differences.page(), "run: python tests/reference/differences.py"
