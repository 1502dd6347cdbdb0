"""An app that is stopped and started again and again holds no more than before."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App
from tests.chaos.cycles import APP, held, jvm_of

WARM, CYCLES = 4, 12
WAIT = 20
"""Seconds that threads and files which were told to end may take on a busy machine."""
ALLOWED = {"JVM's sockets": 2, "JVM's selectors": 2}
COMES_AND_GOES = CYCLES // 2
"""What else may be more, of each kind: files of a state store, processes that end. What each cycle leaves is more."""


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_stopping_and_starting_leaves_nothing_behind(run: Callable[..., App], spark: Any) -> None:
    app = run(APP, nodes=2)
    jvm = jvm_of(app)

    def cycle(value: int) -> None:
        app.stop()
        app.send("S", [value])
        app.flush()

    for i in range(WARM):
        cycle(i)
    before = held(jvm)
    for i in range(CYCLES):
        cycle(i)
    end = time.monotonic() + WAIT
    while (grown := growth(held(jvm), before)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not grown
    assert len(app.output("O")) == WARM + CYCLES


def growth(now: Counter[str], before: Counter[str]) -> dict[str, int]:
    """What is held more than before, by more than is allowed."""
    more = {what: n - before[what] for what, n in now.items()}
    return {what: n for what, n in more.items() if n > ALLOWED.get(what, COMES_AND_GOES)}
