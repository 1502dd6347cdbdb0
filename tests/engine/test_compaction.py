"""Long feeds come out as plain Python has it, in many micro-batches: what windows and joins hold is moved together once
most of it is gone, and timers of many partition instances wait together."""

from __future__ import annotations

from collections import defaultdict, deque
from random import Random
from typing import Any

import pytest

from reference.engine_cases import run_case

EVENTS, BATCH, KEYS = 12_000, 5000, ["a", "b", "c", None]
both = pytest.mark.parametrize("restarts", [False, True])


def fed(app: str, feed: list[Any], restarts: bool) -> list[list[Any]]:
    """What comes into O; with `restarts` the node is saved and restored soon after things were moved together."""
    cuts, steps = [], []
    for i, step in enumerate(feed):
        if i % BATCH == 0:
            cuts.append(len(steps))
        if restarts and i > BATCH and i % BATCH == 3:
            steps.append({"restart": True})
        steps.append(step)
    got = run_case({"id": "long", "app": app, "feed": steps}, cuts=cuts)
    return [values for _, values in got["streams"]["O"]]


@both
def test_a_join_of_windows_whose_rows_left(restarts: bool) -> None:
    r = Random(1)
    feed = [[r.choice("SR"), i, [r.choice(KEYS), i]] for i in range(EVENTS)]
    app = (
        "define stream S (k string, v long); define stream R (k string, v long); "
        "from S#window.length(30) as s join R#window.length(20) as r on s.k == r.k select s.v as s, r.v as r "
        "insert into O;"
    )
    held: dict[str, deque[tuple[Any, int]]] = {"S": deque(maxlen=30), "R": deque(maxlen=20)}
    want = []
    for stream, _, (k, v) in feed:
        held[stream].append((k, v))
        for other, w in held["R" if stream == "S" else "S"]:
            if k is not None and other == k:
                want.append([v, w] if stream == "S" else [w, v])
    assert fed(app, feed, restarts) == want


@pytest.mark.thorough
@both
def test_time_windows_of_instances_whose_events_left(restarts: bool) -> None:
    r, now = Random(2), 0
    feed = []
    for i in range(EVENTS):
        now += r.choice([0, 1, 1, 4])
        # One instance gets an event now and then, and keeps those behind it from being dropped.
        feed.append(["S", now, [r.choice("abc") if i % 500 else "rare", i]])
    app = (
        "define stream S (k string, v long); partition with (k of S) begin "
        "from S#window.time(1 sec) select k, count() as n, sum(v) as s insert into O; end;"
    )
    held: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    want = []
    for _, ts, (k, v) in feed:
        while held[k] and held[k][0][0] + 1000 <= ts:
            held[k].popleft()
        held[k].append((ts, v))
        want.append([k, len(held[k]), sum(w for _, w in held[k])])
    assert fed(app, feed, restarts) == want


def test_timers_of_late_events_of_many_instances() -> None:
    """Each event is older than one of another instance, but the newest of its own, so that it needs a timer."""
    keys = [f"k{i}" for i in range(40)]
    times = [9000 + 7 * i for i in range(len(keys))]
    Random(5).shuffle(times)
    feed: list[Any] = [["S", 10_000, ["first"]]]
    feed += [["S", ts, [k]] for ts, k in zip(times, keys, strict=True)]
    feed += [{"tick": now} for now in range(10_001, 11_002)]
    app = (
        "define stream S (k string); partition with (k of S) begin "
        "from S#window.time(1 sec) select k, currentTimeMillis() as now insert expired events into O; end;"
    )
    want = sorted((max(ts + 1000, 10_001), k) for ts, k in [*zip(times, keys, strict=True), (10_000, "first")])
    assert fed(app, feed, restarts=False) == [[k, now] for now, k in want]


def test_timers_of_one_time_that_wait_when_the_log_is_moved() -> None:
    """Of instances whose timers are due at the same time one fires with each movement of the clock: the others hold
    events that are before all whose timers are still to come."""
    r = Random(6)
    feed = [["S", 7 * i, [k]] for i in range(1200) for k in r.sample([f"k{j}" for j in range(30)], 3)]
    app = (
        "define stream S (k string); partition with (k of S) begin "
        "from S#window.time(1 sec) select k, currentTimeMillis() as now insert expired events into O; end;"
    )
    whole = run_case({"id": "whole", "app": app, "feed": feed})
    assert len(whole["streams"]["O"]) > 3000
    assert run_case({"id": "cut", "app": app, "feed": feed}, cuts=range(0, len(feed), 100)) == whole
