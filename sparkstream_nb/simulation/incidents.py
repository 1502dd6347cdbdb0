"""Incidents that operators of minimum HA have met, as ready-made schedules. Times are ms from the start on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import Misuse, nearest
from .faults import Cut, Fault, Kill, Pause
from .topology import DATABASE, Pair

Made = tuple[Pair, tuple[Fault, ...]]


def _two_active(pair: Pair) -> Made:
    """The active node is halted, and comes back without its database: its heartbeats are void by then and the other
    one takes over, but it regards itself as the active one until its own polls have failed for as long. Clients send to
    both in turn.
    """
    c, at = pair.coordination, _late(pair)
    still = max(c.oldest - c.heartbeat, 1)
    faults = (Pause(at, pair.nodes[0], at + still), Cut(at, pair.nodes[0], DATABASE, at + 3 * c.oldest))
    return replace(pair, balancer="round_robin"), faults


def _both_passive(pair: Pair) -> Made:
    """Neither node reaches the database for longer than heartbeats allow: each gives up its place."""
    at, until = _late(pair), _late(pair) + 3 * pair.coordination.oldest
    return pair, tuple(Cut(at, node, DATABASE, until) for node in pair.nodes)


def _repeated_outputs(pair: Pair) -> Made:
    """The active node dies late in its interval of persistence: its output since then is repeated."""
    return pair, (Kill(_late(pair), pair.nodes[0]),)


def _sent_to_passive(pair: Pair) -> Made:
    """The load balancer sends to both nodes in turn: every second request is lost."""
    return replace(pair, balancer="round_robin"), ()


def _queue_overflow(pair: Pair) -> Made:
    """The passive node's queue holds ten events, and the active node dies with more than these since its revision."""
    return replace(pair, queue=min(pair.queue, 10)), (Kill(_late(pair), pair.nodes[0]),)


def _late(pair: Pair) -> int:
    """A moment at nine tenths of an interval of persistence, the second one."""
    return pair.persist + 9 * pair.persist // 10


INCIDENTS: dict[str, Callable[[Pair], Made]] = {
    "two-active": _two_active,
    "both-passive": _both_passive,
    "repeated-outputs": _repeated_outputs,
    "sent-to-passive": _sent_to_passive,
    "queue-overflow": _queue_overflow,
}


def incident(name: str, pair: Pair) -> Made:
    """The pair as the incident needs it, and its faults. Raises `Misuse` for an unknown name."""
    if name not in INCIDENTS:
        raise Misuse(nearest(f"faults='{name}' is no incident, and there is no file of that name", name, INCIDENTS))
    return INCIDENTS[name](pair)
