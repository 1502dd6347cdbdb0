"""Random apps whose nodes share a table of a database: changes, joins and `in` on each node, in the order of time."""

from __future__ import annotations

from random import Random
from typing import Any

START = 1_717_236_000_000
CHANGES = [
    "from S select k, v, w update or insert into T set T.v = v, T.w = w on T.k == k;",
    "from S select k, v update T set T.v = v on T.k == k;",
    "from S select k, v update T set T.v = T.v + v on T.k == k;",
    "from S[v > 20] delete T on T.k == k;",
    "from S[v < 10] select k, v delete T on T.v < v and T.k != k;",
    "from S[not (T.k == k in T)] select k, v, w insert into T;",
]
READS = [
    "from Q join T on Q.k == T.k select Q.k as k, T.v as v, T.w as w insert into O;",
    "from Q[T.k == k in T] select k, v insert into O;",
    "from Q[not (T.v > v in T)] select k, v insert into O;",
    "from Q join T on Q.v >= T.v select Q.k as k, T.k as other, T.v as v insert into O;",
    "from Q left outer join T on Q.k == T.k and T.v > 5 select Q.k as k, T.v as v insert into O;",
    "from Q#window.length(2) join T on Q.k == T.k select Q.v as q, T.v as v insert into O;",
    "from S#window.lengthBatch(2) join T on S.k == T.k select S.k as k, S.v as s, T.v as v insert into O;",
]


def case(seed: int, number: int) -> dict[str, Any]:
    """One case: the app, its nodes, and the steps: events, and retrievals of the whole table."""
    random = Random(f"{seed}-{number}")
    key = random.choice(["@primaryKey('k') ", "@primaryKey('k') ", ""])
    changes = ["from I select k, v, w update or insert into T set T.v = v, T.w = w on T.k == k;"]
    changes += random.sample(CHANGES, random.choice([1, 1, 2]))
    reads = [r.replace("into O;", f"into O{i};") for i, r in enumerate(random.sample(READS, random.choice([1, 2, 3])))]
    streams = "".join(f"define stream {s} (k string, v int, w double, ts long); " for s in "ISQ")
    app = f"@app:playback {streams}@stored {key}define table T (k string, v int, w double); {' '.join(changes + reads)}"
    nodes, at = random.choice([1, 2, 2, 3]), START
    steps: list[dict[str, Any]] = []
    for _ in range(random.randint(8, 25)):
        at += random.choice([1, 500, 1000])
        row = [random.choice("abcd"), random.randint(0, 30), random.choice([0.5, 1.25, 3.0]), at]
        steps.append({"node": random.randrange(nodes), "stream": random.choice("IISSQQ"), "data": row})
    steps += [{"node": node, "query": "from T select k, v, w"} for node in range(nodes)]
    watch = [f"O{i}" for i in range(len(reads))]
    return {"app": app, "nodes": [f"node-{i + 1}" for i in range(nodes)], "watch": watch, "steps": steps}
