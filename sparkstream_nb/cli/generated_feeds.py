"""Generated events as feeds: `--random` of `sparkstream run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..app.config.conf import node_files
from ..app.config.secrets import References
from ..app.deployment.grouping import mode_of_files
from ..app.generating import generate_usual, stream_in_plan
from ..errors import Misuse, nearest
from ..plan import Plan
from ..synthetic.events import GeneratedEvents

_SEEDED = ("ha", "scalable", "distributed")
"""Modes whose deployments follow a seed."""


def generate_feeds(plan: Plan, options: Any) -> dict[str, GeneratedEvents]:
    """The events of each stream that `--random` names. Raises `Misuse` for an unknown stream, and one that is named
    twice or fed from a file too."""
    _check_streams(plan, options.random, options.feed)
    if not options.random:
        return {}
    return {s: generate_usual(stream_in_plan(plan, s), n, options.seed, options.rate) for s, n in options.random}


def _check_streams(plan: Plan, random: Sequence[tuple[str, int]], feeds: Sequence[tuple[str, str]]) -> None:
    feed_by_stream = {stream: f"--feed {stream}={path}" for stream, path in feeds}
    for stream, n in random:
        if stream not in plan.streams:
            raise Misuse(nearest(f"--random: {plan.name or 'the app'} has no stream '{stream}'", stream, plan.streams))
        if stream in feed_by_stream:
            raise Misuse(f"--random {stream}={n} and {feed_by_stream[stream]} both feed {stream}: leave one out")
        feed_by_stream[stream] = f"--random {stream}={n}"


def deployment_seed(options: Any) -> int:
    """The deployment's part of `--seed`: 0 where it was given for `--random`, and the mode has no use for a seed."""
    if not options.random or options.mode in _SEEDED:
        return int(options.seed)
    if options.mode is None and options.conf:
        references = References(dict(options.param), tuple(options.allow_env))
        if mode_of_files(node_files(options.conf, ("", *_SEEDED), references)) in _SEEDED:
            return int(options.seed)
    return 0


def times_of(events_by_stream: Mapping[str, GeneratedEvents]) -> dict[str, str]:
    """The column of event times of each stream."""
    return {stream: events.time for stream, events in events_by_stream.items()}
