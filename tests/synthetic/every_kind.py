"""Events with every kind of column that is the same everywhere (names, which Faker makes, apart), and their digest.

python -m tests.synthetic.every_kind        prints the digest: that of `DIGEST` on every machine and Python
"""

from __future__ import annotations

import hashlib

import pandas as pd

from sparkstream_nb import columns as c
from sparkstream_nb.synthetic.arrivals import ArrivalProcess
from sparkstream_nb.synthetic.column import GeneratedColumn, Seed
from sparkstream_nb.synthetic.events import EventRequest, generate_events
from sparkstream_nb.types import Schema, Type

DIGEST = "f654b41fd262f589d1f7944bdab2b2eb1b65afe24977dcd9a110e72a1c309570"
ROWS = 3_000

COLUMNS: dict[str, tuple[Type, GeneratedColumn]] = {
    "symbol": (Type.STRING, c.choice(["a", "b", None], weights=[3, 2, 1])),
    "fair": (Type.STRING, c.choice(["x", "y", "z"])),
    "card": (Type.STRING, c.zipf(1000, exponent=1.1, prefix="card-")),
    "number": (Type.LONG, c.zipf(50, first=10)),
    "country": (Type.STRING, c.per_key("card", ["DE", "FR", "LK"])),
    "price": (Type.DOUBLE, c.walk(100, 0.1, low=0.01, key="symbol", spread=0.5, decimals=2)),
    "level": (Type.INT, c.walk(5, 2, low=0, high=10)),
    "noise": (Type.DOUBLE, c.normal(0, 1)),
    "warm": (Type.FLOAT, c.normal(20, 30, low=0, high=40)),
    "gap": (Type.DOUBLE, c.exponential(3)),
    "share": (Type.FLOAT, c.uniform(0, 1).nulls(0.1)),
    "dice": (Type.INT, c.uniform(1, 6).nulls(0.2)),
    "wide": (Type.LONG, c.uniform(-(2**63), 2**63 - 1)),
    "alarm": (Type.BOOL, c.chance(0.05)),
    "flag": (Type.BOOL, c.choice([True, False]).nulls(0.3)),
    "order": (Type.STRING, c.sequence(prefix="order-")),
    "count": (Type.LONG, c.sequence(5, -2)),
    "plate": (Type.STRING, c.regex(r"[A-Z]{1,3}-(\d{3,4}|x+y?)( [a-c]){0,2}")),
    "likeNumber": (Type.DOUBLE, c.like([k * k / 7 for k in range(50)])),
    "likeText": (Type.STRING, c.like(["u", "u", "v", None])),
    "written": (Type.STRING, c.event_time()),
    "temperature": (Type.DOUBLE, c.usual()),
    "nothing": (Type.OBJECT, c.usual()),
}


def frame_of_every_kind(n: int = ROWS, seed: int = 7, arrivals: ArrivalProcess | None = None) -> pd.DataFrame:
    """Events with all of `COLUMNS`, and the column `timestamp`."""
    schema = Schema.of(*((name, type) for name, (type, _) in COLUMNS.items()))
    columns = {name: column for name, (_, column) in COLUMNS.items()}
    request = EventRequest(n, Seed(seed, "Every"), columns=columns, arrivals=arrivals or c.bursts())
    return generate_events(schema, request).frame


def digest_of(frame: pd.DataFrame) -> str:
    """A digest of the values and types of a frame: numbers by their bits, texts by their characters."""
    found = hashlib.sha256()
    for name, values in frame.items():
        missing = values.isna().to_numpy()
        kind = "text" if values.dtype == object or str(values.dtype).startswith("str") else str(values.dtype).lower()
        found.update(f"{name} {kind}\n".encode())
        found.update(missing.tobytes())
        present = values[~missing]
        if kind == "text":
            found.update("\n".join(present).encode())
        else:
            found.update(present.to_numpy(dtype=kind.replace("boolean", "bool")).astype("<" + _code(kind)).tobytes())
    return found.hexdigest()


def _code(kind: str) -> str:
    return {"int32": "i4", "int64": "i8", "float32": "f4", "float64": "f8", "bool": "b1", "boolean": "b1"}[kind]


if __name__ == "__main__":
    print(digest_of(frame_of_every_kind()))
