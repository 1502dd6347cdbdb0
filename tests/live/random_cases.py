"""Random apps with a partitioned aggregation, events by node in the order of time, retrievals from each node."""

from __future__ import annotations

from random import Random
from typing import Any

DURATIONS = [
    ["sec", "min", "hour", "day", "month", "year"], ["sec", "min", "hour"], ["min", "hour", "day"],
    ["hour", "day", "month"], ["sec", "min"], ["day", "month", "year"],
]  # fmt: skip
PER = {"sec": "seconds", "min": "minutes", "hour": "hours", "day": "days", "month": "months", "year": "years"}
LENGTH = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000, "month": 2_592_000_000}
MEASURES = [
    "avg(price) as a1", "sum(quantity) as a2", "min(price) as a3", "max(price) as a4", "count() as a5",
    "max(quantity) as a6", "avg(quantity) as a7",
]  # fmt: skip
START = 1_717_236_000_000


def case(seed: int, number: int, restart: str = "") -> dict[str, Any]:
    """One case: the app, the shard ids of its nodes, and the steps, events and retrievals. `restart`: nodes are started
    anew, with their state ("persisted"), without it ("empty"), or with it and as another shard ("renamed")."""
    random = Random(f"{seed}-{number}")
    durations, nodes = random.choice(DURATIONS), random.choice([1, 2, 2, 3, 4])
    measures = random.sample(MEASURES, random.randint(1, 4))
    group = random.choice([[], ["symbol"], ["symbol", "side"]])
    by = f" group by {', '.join(group)}" if group else ""
    app = (
        "@app:playback define stream T (symbol string, side string, price double, quantity long, ts long); "
        f"@PartitionById(enable='true') define aggregation A from T select {', '.join(group + measures)}{by} "
        f"aggregate by ts every {durations[0]} ... {durations[-1]};"
    )
    first = at = START + random.randint(0, 10**9)
    span = LENGTH[random.choice(durations[:2])]
    steps: list[dict[str, Any]] = []
    shards = [f"node-{i + 1}" for i in range(nodes)]
    first_shards = list(shards)
    names = [c.split(" as ")[-1] for c in group + measures]
    for _ in range(random.randint(4, 40)):
        at += int(random.expovariate(1.0) * span / random.choice([1, 3, 10]))
        row = [random.choice("ABC"), random.choice("bs"), round(random.uniform(5, 120), 2), random.randint(1, 50), at]
        steps.append({"node": random.randrange(nodes), "data": row})
        if restart and random.random() < 0.15:
            node = random.randrange(nodes)
            shards[node] += "b" if restart == "renamed" else ""
            steps.append({"node": node, "restart": shards[node], "persisted": restart != "empty"})
        if random.random() < 0.06:
            steps.append(_retrieval(random, durations, names, nodes, (first, at)))
    steps += [_retrieval(random, durations, names, nodes, (first, at)) for _ in range(2)]
    return {"app": app, "nodes": first_shards, "steps": steps}


def _retrieval(
    random: Random, durations: list[str], names: list[str], nodes: int, between: tuple[int, int]
) -> dict[str, Any]:
    """A retrieval from a random node; its bounds lie around all events, or among them."""
    first, last = between
    start, end = first - 10**11, last + 10**11
    if random.random() < 0.4:
        start = first + (last - first) // 3
    if random.random() < 0.4:
        end = max(start + 1000, first + 2 * (last - first) // 3)
    select = ", ".join(["AGG_TIMESTAMP", *names])
    per = PER[random.choice(durations)]
    return {"node": random.randrange(nodes), "query": f"from A within {start}L, {end}L per '{per}' select {select}"}
