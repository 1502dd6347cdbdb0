"""Why a fault cannot be added to a node now, in words; empty where it can."""

from __future__ import annotations

from collections.abc import Sequence

from ...simulation.faults import Fault, Kill, Restart


def why_no_faults(start: int | None, *, is_random: bool) -> str:
    """Why no fault at all can be added. `start`: the time of the first event, if there was one; `is_random`: of the
    app's faults."""
    if is_random:
        return "the faults of this app are random"
    return "no event was received yet" if start is None else ""


def describe_wait(fault: Fault) -> str:
    """The objection to a fault that was added just now."""
    return f"{fault} waits for the clock"


def describe_state(node: str, soon: Sequence[Fault], *, is_down: bool) -> tuple[str, str]:
    """(why it cannot be killed, why it cannot be restarted). `soon`: faults of the node that were added just now, which
    come before those that are added next."""
    objections = (f"{node} is down", "") if is_down else ("", f"{node} is up")
    for fault in soon:
        if isinstance(fault, Kill):
            objections = describe_wait(fault), ""
        elif isinstance(fault, Restart):
            objections = "", describe_wait(fault)
    return objections
