"""Faults that cannot be added to a node now."""

from __future__ import annotations

import pytest

from sparkstream_nb.app.views.objections import describe_state, describe_wait, why_no_faults
from sparkstream_nb.simulation.faults import Fault, Kill, Restart

KILL, RESTART = Kill(at=8, node="n1"), Restart(at=8, node="n1")


@pytest.mark.parametrize(
    ("soon", "is_down", "objections"),
    [
        ([], False, ("", "n1 is up")),
        ([], True, ("n1 is down", "")),
        ([KILL], False, (describe_wait(KILL), "")),
        ([KILL, RESTART], False, ("", describe_wait(RESTART))),
        ([RESTART, KILL], True, (describe_wait(KILL), "")),
    ],
)
def test_the_last_fault_that_waits_for_the_clock_counts(
    soon: list[Fault], is_down: bool, objections: tuple[str, str]
) -> None:
    assert describe_state("n1", soon, is_down=is_down) == objections


def test_no_fault_is_added_before_the_first_event_and_beside_random_ones() -> None:
    assert why_no_faults(5, is_random=False) == ""
    assert "no event" in why_no_faults(None, is_random=False)
    assert "random" in why_no_faults(None, is_random=True)
