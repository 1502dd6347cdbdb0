"""Random apps with an aggregation in a database, events by node, retrievals from each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

DURATIONS = [
    ["sec", "min", "hour", "day", "month", "year"], ["sec", "min", "hour"], ["min", "hour", "day"],
    ["hour", "day", "month"], ["sec", "min"], ["day", "month", "year"],
]  # fmt: skip
PER = {"sec": "seconds", "min": "minutes", "hour": "hours", "day": "days", "month": "months", "year": "years"}
LENGTH = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000, "month": 2_592_000_000}
PRICE, QUANTITY = 2, 3
"""Their places in an event: symbol, side, price, quantity, time."""
Measure = Callable[[Sequence[Any]], float]
MEASURES: dict[str, Measure] = {
    "avg(price) as a1": lambda events: sum(e[PRICE] for e in events) / len(events),
    "sum(quantity) as a2": lambda events: sum(e[QUANTITY] for e in events),
    "min(price) as a3": lambda events: min(e[PRICE] for e in events),
    "max(price) as a4": lambda events: max(e[PRICE] for e in events),
    "count() as a5": len,
    "max(quantity) as a6": lambda events: max(e[QUANTITY] for e in events),
    "avg(quantity) as a7": lambda events: float(sum(e[QUANTITY] for e in events) // len(events)),
}
"""What apps select, and its value over some events: Siddhi divides two longs."""
PARTITIONED = "@PartitionById(enable='true')"
START = 1_717_236_000_000


@dataclass(frozen=True)
class Kind:
    """A kind of cases. `restart`: nodes are started anew, with their state ("persisted"), without it ("empty"), or with
    what they last persisted, which they do now and then ("killed"); as other shards if `is_renamed`. `is_late`: some
    events come late. `is_alive`: the nodes' clock is the wall's. `is_partitioned`: by id."""

    restart: str = ""
    is_renamed: bool = False
    is_late: bool = False
    is_alive: bool = False
    is_partitioned: bool = True


KINDS = {
    "playback": Kind(),
    "renamed": Kind(restart="empty", is_renamed=True),
    "alive": Kind(is_alive=True),
    "late": Kind(is_late=True),
    "persisted": Kind(restart="persisted"),
    "empty": Kind(restart="empty"),
    "killed": Kind(restart="killed"),
    "killed_late": Kind(restart="killed", is_late=True),
    "not_partitioned": Kind(is_partitioned=False),
    "not_partitioned_killed": Kind(is_partitioned=False, restart="killed", is_late=True),
}


def case(seed: int, number: int, kind: Kind = KINDS["playback"], queries: int = 1) -> dict[str, Any]:
    """One case: the app, the shard ids of its nodes, and the steps: events, and `queries` retrievals now and then."""
    random = Random(f"{seed}-{number}")
    durations, nodes = random.choice(DURATIONS), random.choice([1, 2, 2, 3, 4])
    if kind.is_alive:  # seconds are closed while the test waits
        durations = random.choice([d for d in DURATIONS if d[0] == "sec"])
    measures = random.sample([*MEASURES], random.randint(1, 4))
    group = random.choice([[], ["symbol"], ["symbol", "side"]])
    by = f" group by {', '.join(group)}" if group else ""
    app = (
        f"@app:name('Live') {'' if kind.is_alive else '@app:playback '}define stream T "
        "(symbol string, side string, price double, quantity long, ts long); "
        f"{PARTITIONED if kind.is_partitioned else '@stored'} define aggregation A "
        f"from T select {', '.join(group + measures)}{by} aggregate by ts every {durations[0]} ... {durations[-1]};"
    )
    first = at = START + random.randint(0, 10**9)
    span = LENGTH[random.choice(durations[:2])]
    steps: list[dict[str, Any]] = []
    shards = [f"node-{i + 1}" if kind.is_partitioned else None for i in range(nodes)]
    first_shards = list(shards)
    names = [c.split(" as ")[-1] for c in group + measures]

    def retrievals() -> Iterator[dict[str, Any]]:
        if kind.is_alive:
            yield {"wait": 1500}
        for _ in range(queries):
            yield {"node": random.randrange(nodes), **_retrieval(random, durations, names, (first, at))}

    for _ in range(random.randint(4, 40)):
        at += int(random.expovariate(1.0) * span / random.choice([1, 3, 10]))
        time = at - int(random.random() * span * 2) if kind.is_late and random.random() < 0.15 else at
        row = [random.choice("ABC"), random.choice("bs"), round(random.uniform(5, 120), 2), random.randint(1, 50), time]
        steps.append({"node": random.randrange(nodes), "data": row})
        if kind.restart and random.random() < 0.15:
            node = random.randrange(nodes)
            if kind.is_renamed:
                shards[node] = f"{shards[node]}b"
            if kind.restart == "persisted":
                steps.append({"node": node, "persist": True})
            steps.append({"node": node, "restart": shards[node]})
            if kind.restart != "empty":
                steps.append({"node": node, "restore": True})
        if kind.restart == "killed" and random.random() < 0.2:
            steps.append({"node": random.randrange(nodes), "persist": True})
        if random.random() < 0.06:
            steps += retrievals()
    steps += retrievals()
    shape = {"durations": durations, "group": group, "measures": measures}
    return {"app": app, **shape, "nodes": first_shards, "steps": steps}


def _retrieval(random: Random, durations: list[str], names: list[str], between: tuple[int, int]) -> dict[str, Any]:
    """A retrieval whose bounds lie around all events, among them, or where a bucket begins; of some groups alone."""
    first, last = between
    start, end = first - 10**11, last + 10**11
    if random.random() < 0.6:
        start = _bound(random, durations, first, last)
    if random.random() < 0.6:
        end = max(start + 1000, _bound(random, durations, first, last))
    per = random.choice(durations)
    without = "B" if names[0] == "symbol" and random.random() < 0.2 else ""
    on = f"on symbol != '{without}' " if without else ""
    query = f"from A {on}within {start}L, {end}L per '{PER[per]}' select {', '.join(['AGG_TIMESTAMP', *names])}"
    return {"query": query, "within": [start, end], "per": per, "without": without}


def _bound(random: Random, durations: list[str], first: int, last: int) -> int:
    at = random.randint(first, last)
    length = LENGTH[random.choice(durations[:-1])]
    return at if random.random() < 0.5 else at - at % length
