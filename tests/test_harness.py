"""What other tests rely on: the profiles, the thirds that rotate, and failures that name each case."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import profiles
from reference.parts import CASES, Case, Part, failing, parts

ROOT = Path(__file__).parents[1]
PROGRAM = "import profiles; from hypothesis import settings; print(settings(), profiles.examples(40), profiles.seed())"


@pytest.mark.parametrize(
    ("full", "numbers"), [(1, [1, 1, 10]), (5, [5, 5, 50]), (12, [5, 12, 120]), (800, [200, 800, 8000])]
)
def test_how_many_examples_a_profile_tries(full: int, numbers: list[int]) -> None:
    assert [profiles.scaled(full, profile) for profile in ("quick", "merge", "night")] == numbers


def test_a_variable_gives_the_number_for_all_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSTREAM_SCHEDULES", "1000")
    assert profiles.examples(30, "SPARKSTREAM_SCHEDULES") == 1000
    assert profiles.examples(30, "SPARKSTREAM_OTHER") == profiles.examples(30)


def test_continuous_integration_tries_the_same() -> None:
    told = []
    for more in ({}, {"CI": "true"}):
        env = {k: v for k, v in os.environ.items() if k != "CI"} | {"PYTHONPATH": str(ROOT / "tests")} | more
        command = [sys.executable, "-c", PROGRAM]
        told.append(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert told[0] == told[1]


def test_each_value_is_in_the_third_of_some_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of three windows, each query comes with one in any run."""
    singles, pairs = [], []
    for number in range(profiles.THIRDS):
        monkeypatch.setattr(profiles, "third", lambda number=number: number)
        singles.append([p.values[0] for p in profiles.a_third(range(10)) if not p.marks])
        pairs.append([p.values for p in profiles.a_third_of_pairs("abc", "xyz") if not p.marks])
    assert sorted(x for s in singles for x in s) == list(range(10))
    assert len({x for p in pairs for x in p}) == 9
    assert all({a for a, _ in p} == set("abc") and {b for _, b in p} == set("xyz") for p in pairs)


def test_one_of_several_is_of_some_commit_and_all_are_of_the_night(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in range(2 * profiles.SIXTHS):
        monkeypatch.setattr(profiles, "seed", lambda number=number: number)
        found += [(number % profiles.SIXTHS, *profiles.one_of("ab"))]
    assert len(set(found)) == 2 * profiles.SIXTHS  # a test that some commits have meets each of the values
    monkeypatch.setattr(profiles, "PROFILE", "night")
    assert profiles.one_of("ab") == ["a", "b"]


def test_parts_of_a_long_file_are_all_of_it() -> None:
    path = CASES / "siddhi" / "rejected.jsonl"
    (whole,) = parts([path], most=1000)
    found = parts([path], most=50)
    assert len(found) > 3
    assert sorted(p.first for p in found)[0] == 0
    numbers = [n for p in sorted(found, key=lambda p: p.first) for n, _ in p.numbered()]
    assert numbers == [n for n, _ in whole.numbered()]
    assert all(isinstance(p, Part) and p.end - p.first <= 50 for p in found)


def test_every_case_that_fails_is_named() -> None:
    def check(case: Case) -> str | None:
        if case["id"] == "dies":
            raise KeyError("S")
        assert case["id"] != "asserts", "a reason"
        return "differs by 1" if case["id"].startswith("differs") else None

    cases = [{"id": i} for i in ("differs", "right", "dies", "asserts", "differs too")]
    with pytest.raises(pytest.fail.Exception) as raised:
        failing(cases, check)
    told = str(raised.value)
    assert told.startswith("4 of 5 cases: differs, dies, asserts, differs too\ndiffers: differs by 1\n")
    assert "\ndies: KeyError: 'S'\n" in told
    assert "asserts: AssertionError: a reason" in told
    assert "\ndiffers too: differs by 1" in told
    failing(cases[1:2], check)
    with pytest.raises(KeyError):
        failing(cases[2:3], check)
