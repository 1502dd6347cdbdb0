"""How much the tests try: the profiles `quick`, `merge` and `night`, and the draw that each commit makes.

`SPARKSTREAM_PROFILE` names the profile; `quick` is the default. The numbers that tests give to `examples` are those of
`merge`; `quick` tries a quarter of them, `night` ten times as many.

What is left out rotates: the examples of hypothesis, and the third of further ways that an ordinary run takes, follow
from the hash of the commit, so that a run of one commit repeats exactly and another commit tries others. The header of
a test run shows the draw; `SPARKSTREAM_SEED=NUMBER` repeats it at another commit.

This module is a plugin of pytest: `tests/conftest.py` names it in `pytest_plugins`.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

TIMES = {"quick": 0.25, "merge": 1, "night": 10}
"""By profile, the factor of the numbers that stand in the tests."""
LEAST = 5
"""So many examples are tried in any profile, or all where a test asks for fewer."""
THIRDS = 3
SIXTHS = 6
T = TypeVar("T")

PROFILE = os.environ.get("SPARKSTREAM_PROFILE") or "quick"
if PROFILE not in TIMES:
    raise pytest.UsageError(f"SPARKSTREAM_PROFILE is '{PROFILE}', which is none of {', '.join(TIMES)}")


def examples(full: int, variable: str | None = None) -> int:
    """How many examples a test tries whose number at `merge` is `full`. An environment variable of the name `variable`
    gives the number for all profiles."""
    given = os.environ.get(variable) if variable else None
    return int(given) if given else scaled(full, PROFILE)


def scaled(full: int, profile: str) -> int:
    """The number of examples under a profile."""
    return min(full, max(LEAST, round(full * TIMES[profile]))) if TIMES[profile] < 1 else full * int(TIMES[profile])


@cache
def seed() -> int:
    """What this run draws by: `SPARKSTREAM_SEED`, else from the hash of the commit, 0 without git."""
    given = os.environ.get("SPARKSTREAM_SEED")
    if given:
        return int(given)
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


def third() -> int:
    """Which third an ordinary run takes: 0, 1 or 2."""
    return seed() % THIRDS


def a_third(values: Iterable[Any]) -> list[Any]:
    """Values of a parameter: a third of them, drawn by the commit, for any run, and the others for `make thorough`."""
    return [pytest.param(v, marks=_marks(i)) for i, v in enumerate(values)]


def a_sixth(values: Iterable[Any]) -> list[Any]:
    """As `a_third`, of a test whose thirds take ten seconds and more: a sixth for any run."""
    return [pytest.param(v, marks=[] if i % SIXTHS == seed() % SIXTHS else [pytest.mark.thorough])
            for i, v in enumerate(values)]  # fmt: skip


def one_of(values: Iterable[Any]) -> list[Any]:
    """Values of a parameter of a test that takes minutes: one of them, drawn by the commit, and all in `night`."""
    every = list(values)
    return every if PROFILE == "night" else [one_of_these(every)]


def one_of_these(values: Sequence[T]) -> T:
    """One of some values, drawn by the commit: apart from thirds and sixths, so that each value meets each of them."""
    return values[seed() // SIXTHS % len(values)]


def drawn_items(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests that a run with `--sixth` has.

    Notebooks, and files that drive a browser, whose tests continue one another: a sixth of the files. Other tests that
    start Spark, a kernel or a server: a sixth of each file, at least one test. Tests that are slow (`rotates`), or
    whose subject `make test` covers without Spark (`contract`) or with fewer examples: a sixth. The rest: all.
    """
    by_file: dict[str, list[pytest.Item]] = defaultdict(list)
    whole: dict[str, list[pytest.Item]] = defaultdict(list)
    kept = set()
    for item in items:
        file, marks = item.nodeid.partition("::")[0], {mark.name for mark in item.iter_markers()}
        starts = marks & {"server", "notebook"} or ("spark" in marks and "contract" not in marks)
        further = marks & {"hypothesis", "thorough", "contract"}
        if "rotates" in marks:
            drawn = _is_drawn(item.nodeid)
        elif "browser" in marks or file.endswith(".ipynb"):
            whole[file].append(item)
            continue
        elif starts:
            by_file[file].append(item)
            continue
        else:
            drawn = not further or _is_drawn(item.nodeid)
        if drawn:
            kept.add(item.nodeid)
    for tests in by_file.values():
        tests.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        kept |= {item.nodeid for item in _sixth(tests)}
    for file in _sixth(sorted(whole)):
        kept |= {item.nodeid for item in whole[file]}
    return [item for item in items if item.nodeid in kept]


def _is_drawn(name: str) -> bool:
    """True if the commit draws a test of this name: it draws a sixth."""
    return zlib.crc32(name.encode()) % SIXTHS == seed() % SIXTHS


def _sixth(values: Sequence[T]) -> Sequence[T]:
    """A sixth of some values, drawn by the commit: at least one, if there is one."""
    return values[seed() % SIXTHS :: SIXTHS] or (values and [one_of_these(values)])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sixth", action="store_true",
        help="run the sixth of the tests that the commit draws, and of each file at least one that starts a server",
    )  # fmt: skip


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `--sixth` does."""
    if not config.getoption("sixth") or PROFILE == "night":
        return
    kept = drawn_items(items)
    left_out = set(items) - set(kept)
    items[:] = kept
    config.hook.pytest_deselected(items=list(left_out))


def a_third_of_pairs(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """The same for each value of two parameters with each other. Of three values of one of them, each value of the
    other comes with one for any run."""
    others = list(second)
    return [pytest.param(a, b, marks=_marks(i + j)) for i, a in enumerate(first) for j, b in enumerate(others)]


def _marks(number: int) -> list[pytest.MarkDecorator]:
    return [] if number % THIRDS == third() else [pytest.mark.thorough]


# CI=true makes hypothesis load a profile of its own: these do not derive from it, and are the same anywhere.
settings.register_profile(
    "sparkstream", settings.get_profile("default"),
    deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
for _name in TIMES:
    _default = settings.get_profile("sparkstream")
    settings.register_profile(_name, _default, max_examples=scaled(_default.max_examples, _name))
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Gives hypothesis its seed. The workers of pytest-xdist get the same one."""
    os.environ["SPARKSTREAM_SEED"] = str(seed())
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(seed())


def pytest_report_header() -> str:
    again = f"SPARKSTREAM_PROFILE={PROFILE} SPARKSTREAM_SEED={seed()}"
    return f"profile {PROFILE}, sixth {seed() % SIXTHS + 1} of {SIXTHS} ({again} repeats it)"
