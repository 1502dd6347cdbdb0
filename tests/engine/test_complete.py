"""Whatever has a signature has an implementation, and the other way round; and a test names it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from sparkstream_nb.engine.aggregators import AGGREGATORS
from sparkstream_nb.engine.aggregators.collected import COLLECTED
from sparkstream_nb.engine.expressions.functions import FUNCTIONS
from sparkstream_nb.engine.select.streamfunctions import STREAM_FUNCTIONS
from sparkstream_nb.engine.windows import WINDOWS
from sparkstream_nb.plan import functions

TESTS = Path(__file__).parents[1]
INTERNAL = {"sameType"}
"""Functions that the binder puts into plans and that nobody can write."""

PROCESSORS = {"reorder:kslack", "reorder:akslack", "unique:deduplicate"}
"""Stream functions that are operators of their own, in `engine/reorder/` and `engine/windows/deduplicate.py`."""

KINDS = {
    "scalar function": (functions.SCALARS, FUNCTIONS, "engine/expressions/functions/", "scalars.py"),
    "aggregator": (
        functions.AGGREGATORS, {*AGGREGATORS, *COLLECTED, "unionSet"}, "engine/aggregators/", "aggregators.py"
    ),
    "window": (functions.WINDOWS, WINDOWS, "engine/windows/__init__.py", "windows.py"),
    "stream function": (
        functions.STREAM_FUNCTIONS, {*STREAM_FUNCTIONS, *PROCESSORS}, "engine/select/streamfunctions.py", "streams.py"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_and_implementations(kind: str) -> None:
    signed, made, where, signatures = KINDS[kind]
    lacking = sorted(set(signed) - set(made) - INTERNAL)
    assert not lacking, f"{kind} with a signature and no implementation in {where}: {lacking}"
    unsigned = sorted(set(made) - set(signed) - INTERNAL)
    assert not unsigned, f"{kind} with an implementation and no line in plan/signatures/{signatures}: {unsigned}"


@cache
def _written() -> str:
    """All that tests and cases say."""
    files = [*TESTS.glob("cases/**/*.jsonl"), *TESTS.glob("engine/*.py"), *TESTS.glob("plan/*.py")]
    return "\n".join(f.read_text("utf-8") for f in files)


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_a_case_or_a_test(kind: str) -> None:
    names: Iterable[str] = set(KINDS[kind][0]) - INTERNAL
    missing = sorted(n for n in names if f"{n}(" not in _written())
    assert not missing, f"{kind} that neither a case in tests/cases nor a test calls: {missing}"
