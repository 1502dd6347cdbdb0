"""Every case with the reference engine's answer comes out of the node engine as it did there, in both ways of running.

A test runs the cases of a file, or of a part of a long one, and names each that fails; `--case ID` runs single ones
(`tests/case_option.py`).

What may differ stands in two lists, and both are strict: the declared gaps of `plan/gaps.py`, each of which fails here
as soon as its cases pass, and `tests/cases/differences.toml`, whose cases must fail against Siddhi's answer and pass
against the one in `tests/cases/differences/`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from case_option import asked
from profiles import THIRDS, third
from reference import differences, replay
from reference.parts import Case, Part, failing, our_files, parts, siddhi_files
from sparkstream_nb.errors import NotInThisBuild
from sparkstream_nb.plan import gaps

# Gaps that no case can show, because of the reference engine.
NOT_SHOWN = {"script:r": "it has no R either"}
WAYS = [
    "by_operator",
    "by_chunk",
    pytest.param("by_chunk_others", marks=pytest.mark.thorough),
]
"""An app runs by chunk where it must, and by operator elsewhere: of those forced to, a third is enough for each run,
another one with each commit. The other two thirds are for `make thorough`."""
# What an app or its feed says where it may need a gap. A gap that is not named here is looked for in every case.
HINTS = {
    "script": "function", "mapping": r"@\s*(source|sink)", "sink": r"@\s*sink", "sink-option": r"@\s*sink",
    "source": r"@\s*source", "source-option": r"@\s*source", "store": r"@\s*store",
}  # fmt: skip


def named(found: list[Part]) -> list[object]:
    return [pytest.param(part, id=part.name) for part in found]


@cache
def listed() -> dict[str, str]:
    """The cases of `differences.toml`, with what is otherwise here."""
    return {case: d["here"] for d in replay.listed_differences() for case in d["cases"]}


def wrong(case: Case, by_chunk: bool) -> str | None:
    """What is wrong with how a case of Siddhi's comes out."""
    try:
        told = replay.verdict(case, by_chunk=by_chunk)
    except NotInThisBuild:
        if replay.needed(case):
            return None
        raise
    if case["id"] in listed():
        return None if told is not None else "listed in differences.toml, and comes out as in Siddhi: strike it there"
    return None if told is not None and replay.needed(case) else told


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", named(parts(siddhi_files())))
def test_as_siddhi(part: Part, way: str, pytestconfig: pytest.Config) -> None:
    chosen = {
        "by_operator": range(THIRDS), "by_chunk": [third()], "by_chunk_others": {*range(THIRDS)} - {third()}
    }[way]  # fmt: skip
    if way != "by_operator":
        print(f"by chunk: lines whose number leaves {sorted(chosen)} by {THIRDS}")
    cases = [case for i, case in asked(part, pytestconfig) if i % THIRDS in chosen]
    failing(cases, lambda case: wrong(case, way != "by_operator"))


@pytest.mark.parametrize("way", ["by_operator", "by_chunk"])
@pytest.mark.parametrize("part", named(parts(our_files())))
def test_as_the_manual_says(part: Part, way: str, pytestconfig: pytest.Config) -> None:
    cases = [case for _, case in asked(part, pytestconfig)]
    failing(cases, lambda case: replay.verdict(case, by_chunk=way == "by_chunk"))


@cache
def needing() -> dict[str, dict[str, frozenset[str]]]:
    """By gap, the cases that need it, each with all gaps that it needs."""
    found: dict[str, dict[str, frozenset[str]]] = {gap: {} for gap in gaps.GAPS}
    hints = {re.compile(HINTS.get(gap) or HINTS.get(gap.partition(":")[0], ""), re.IGNORECASE) for gap in gaps.GAPS}
    for case in replay.siddhi_cases():
        if any(hint.search(case["app"]) for hint in hints):
            needed = replay.needed(case)
            for gap in needed:
                found[gap][case["id"]] = needed
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("gap", gaps.GAPS)
def test_gap_is_open(gap: str) -> None:
    """A gap's cases are tried as if nothing were declared. Those that need no other gap decide, if there are any."""
    if gap in NOT_SHOWN:
        pytest.skip(f"no case can show '{gap}': {NOT_SHOWN[gap]}")
    ids = [i for i, needed in needing()[gap].items() if len(needed) == 1] or list(needing()[gap])
    if not ids:
        pytest.skip(f"no case needs the gap '{gap}'")
    cases = [case for case in replay.siddhi_cases() if case["id"] in ids]
    assert not all(replay.closed(case) for case in cases), f"all {len(cases)} cases pass: strike '{gap}' from gaps.py"


def test_ids_are_unique_and_parts_hold_all_cases() -> None:
    ids = [case["id"] for case in replay.siddhi_cases()]
    twice = [i for i, n in Counter(ids).items() if n > 1]
    assert not twice, twice
    assert len(ids) > 1000
    in_parts = [case["id"] for part in parts(siddhi_files()) for case in part.cases()]
    assert Counter(in_parts) == Counter(ids)


def test_differences_have_a_case_and_a_page() -> None:
    """Each difference is shown by a case of ours, each of those belongs to a difference, the page is up to date."""
    assert set(replay.our_cases()) == set(listed())
    page = differences.PAGE.read_text("utf-8")
    assert page == differences.page(), "run: python tests/reference/differences.py"
