"""Wrong inputs: each answers one short message with its cause, the app goes on, and nothing of them is kept."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.cluster import App, deploy
from sparkstream_nb.errors import SparkStreamError, brief, printable

LONGEST = 600
APP = """
define stream S (k string, v int, o object, b bool, d double, l long);
define aggregation A from S select k, sum(v) as s group by k aggregate every sec;
from S select k, v insert into O;
"""
EVENT = {"k": "a", "v": 1, "o": None, "b": True, "d": 1.0, "l": 1}
FRAME = pd.DataFrame([EVENT, EVENT])

CYCLE: list[Any] = []
CYCLE.append(CYCLE)
CYCLE.append(CYCLE)
CIRCLE: dict[str, Any] = {}
CIRCLE["a"] = CIRCLE
DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]


class Unprintable:
    """An object whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


ODD = Unprintable()

# Attribute, value, what the message says.
VALUES: list[tuple[str, Any, str]] = [
    *(("k", v, "S.k: ") for v in ("\ud800", "a\udc00b")),
    *(("k", v, " is not a string.") for v in (5, b"a", float("nan"), ODD, {"a": 1}, dt.date(2024, 1, 1))),
    *(
        ("v", v, " is not an int.")
        for v in ("1", 1.5, float("nan"), float("inf"), 2**31, 10**400, 10**5_000, True, [1])
    ),
    *(("v", v, " is not an int.") for v in (decimal.Decimal("NaN"), dt.datetime(2024, 1, 1), 1j, pd.NaT, pd.NA, ODD)),
    *(("v", v, " is not an int.") for v in (np.array([1, 2]), np.datetime64("2024-01-01"), np.float64(1.5))),
    *(("d", v, " is not a double.") for v in ("1", 10**400, decimal.Decimal("sNaN"), [1], b"1")),
    *(("l", v, " is not a long.") for v in (2**63, -(2**63) - 1, 1e300, "1")),
    *(("b", v, " is not a bool.") for v in (1, "true", 0.0)),
    *(("o", v, "S.o: the object is nested deeper than 200 levels.") for v in (CYCLE, CIRCLE, DEEP)),
    *(("o", v, "cannot be kept") for v in (ODD, threading.Lock(), len, dt.datetime(2024, 1, 1), FRAME, 1j)),
    *(("o", v, "cannot be kept") for v in ([decimal.Decimal(1)], {"a": {1: (i for i in ())}}, np.zeros(2))),
]

EVENTS: list[Any] = [
    None,
    "abc",
    b"abc",
    5,
    {"k"},
    {},
    {1: 2},
    {"\ud800": 1},
    {"k": "a"},
    [*EVENT.values(), 1],
    [list(EVENT.values()), 5],
    [list(EVENT.values()), "x"],
    [[list(EVENT.values())]],
    np.array([1]),
    FRAME,
    iter([1]),
    range(9),
    ODD,
]

TIMES: list[Any] = [
    "",
    "noon",
    "\ud800",
    "9" * 30,
    "9" * 5_000,
    2**63,
    -(2**63) - 1,
    10**400,
    10**5_000,
    1.5,
    float("nan"),
    [1],
    True,
    b"1",
    dt.date(2024, 1, 1),
    pd.NaT,
    np.datetime64("2024-01-01"),
    ODD,
    "2024-13-01",
    "2024-01-01T25:00:00",
]

CALLS: dict[str, tuple[Callable[[App], Any], str]] = {
    **{
        f"stream {brief(s)}": (lambda a, s=s: a.send(s, EVENT), "app has no stream")
        for s in (None, 5, "", "\ud800", ["S"], {})
    },
    **{f"tick {brief(t)}": (lambda a, t=t: a.tick(t), "ms: ") for t in (None, "a", 1.5, 2**63, [], True)},
    **{
        f"node {brief(n)}": (lambda a, n=n: a.send("S", EVENT, node=n), "node") for n in (0, -1, 2, "a", 1.5, [1], True)
    },
    **{
        f"feed with {brief(kw)}": (lambda a, kw=kw: a.feed("S", FRAME, **kw), said)
        for kw, said in [
            ({"time": "at"}, "no column 'at' of event times"),
            ({"time": 5}, "time: 5"),
            ({"time": ["l"]}, "time: ['l']"),
            ({"route": "x"}, "'x' is not a valid route"),
            ({"route": 5}, "route: 5"),
            ({"route": "node:2"}, "no node 2"),
            ({"limit": -1}, "limit must be 0 or more"),
            ({"limit": "a"}, "limit: 'a'"),
            ({"limit": 1.5}, "limit: 1.5"),
            ({"columns": "kv"}, "columns: 'kv'"),
            ({"columns": 5}, "columns: 5"),
            ({"columns": {"x": "k"}}, "no attribute 'x'"),
            ({"columns": {"k": "x"}}, "no column 'x'"),
            ({"progress": 5}, "progress must be a function"),
        ]
    },
    **{
        f"query {brief(q)}": (lambda a, q=q: a.query(q), said)
        for q, said in [
            (None, "text: null"),
            (5, "text: 5"),
            ("", "expected 'from'"),
            ("from \ud800", "surrogate"),
            ("from Z select *", "'Z'"),
        ]
    },
    "limit of a query": (lambda a: a.query("from A within 0L, 1L per 'sec' select k", limit="a"), "limit: 'a'"),  # type: ignore[arg-type]
    "last of an output": (lambda a: a.output("O", last="a"), "last: 'a'"),  # type: ignore[arg-type]
    "output of a list": (lambda a: a.output(["O"]), "app has no stream"),  # type: ignore[arg-type]
    "aggregation": (lambda a: a.aggregation(["A"]), "app has no aggregation"),  # type: ignore[arg-type]
    "nodes of a divergence": (lambda a: a.divergence("2"), "nodes: '2'"),  # type: ignore[arg-type]
    "routing of a divergence": (lambda a: a.divergence(2, 5), "routing: 5"),  # type: ignore[arg-type]
}


@pytest.fixture(scope="module")
def app(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    app = deploy(APP, name="app", home=tmp_path_factory.mktemp("wrong"))
    yield app
    app.send("S", EVENT, at=1_000)
    app.flush()
    assert len(app.output("O").frame) == 1
    assert len(app.errors.frame) == 0
    app.stop()
    app.close()


def refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(SparkStreamError) as wrong:
        call()
    message = str(wrong.value)
    assert said in message
    assert len(message) <= LONGEST
    assert message == printable(message)
    assert message.encode()


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_values(number: int, app: App) -> None:
    name, value, said = VALUES[number]
    refused(lambda: app.send("S", {**EVENT, name: value}), said)


@pytest.mark.parametrize("number", range(len(EVENTS)))
def test_events(number: int, app: App) -> None:
    refused(lambda: app.send("S", EVENTS[number]), "S")


@pytest.mark.parametrize("number", range(len(TIMES)))
def test_times(number: int, app: App) -> None:
    refused(lambda: app.send("S", EVENT, at=TIMES[number]), "at: ")


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, app: App) -> None:
    call, said = CALLS[name]
    refused(lambda: call(app), said)


def sources(folder: Path) -> dict[str, tuple[Any, str]]:
    """Sources that are none, and what is said of each."""
    columns = {
        **{n: [v] * 1_000 for n, v in EVENT.items()},
        "k": [f"text {i}" for i in range(1_000)],
        "o": ["x"] * 1_000,
    }
    pq.write_table(pa.table(columns), folder / "good.parquet")
    raw = (folder / "good.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(raw[: len(raw) // 2])
    (folder / "damaged.parquet").write_bytes(raw[:20] + b"\xff" * (len(raw) // 2) + raw[20 + len(raw) // 2 :])
    (folder / "none.parquet").write_bytes(b"")
    (folder / "text.parquet").write_text("k,v\n")
    (folder / "folder.parquet").mkdir()
    (folder / "folder.csv").mkdir()
    with zipfile.ZipFile(folder / "a.zip", "w") as file:
        file.writestr("a.csv", "k,v\n1,2\n" * 1_000)
    (folder / "zip.csv").write_bytes((folder / "a.zip").read_bytes())
    (folder / "cut.csv").write_bytes((folder / "a.zip").read_bytes()[:50])
    (folder / "zeros.csv").write_bytes(b"\0" * 5_000)
    broken = "is not a parquet file, or it is not complete"
    files = {
        "cut.parquet": broken,
        "damaged.parquet": "damaged.parquet cannot be read as parquet",
        "none.parquet": broken,
        "text.parquet": broken,
        "folder.parquet": "no column 'k'",
        "folder.csv": "is a folder",
        "zip.csv": "no column 'k'",
        "cut.csv": "no column 'k'",
        "zeros.csv": "no column 'k'",
        "a.zip": "give a .csv or a .parquet file",
        "good.csv": "file not found",
        "a\0b.csv": "is not the name of a file",
        "\ud800.csv": "is not the name of a file",
        f"{'x' * 5_000}.csv": "cannot be read: File name too long",
    }
    twice = pd.DataFrame([[1, 2]], columns=["k", "k"])
    others: list[tuple[Any, str]] = [
        (None, "cannot be fed"),
        (5, "cannot be fed"),
        (b"a.csv", "cannot be fed"),
        ([EVENT], "cannot be fed"),
        (EVENT, "cannot be fed"),
        (pd.Series([1]), "cannot be fed"),
        (np.zeros((2, 2)), "cannot be fed"),
        (pd.DataFrame, "cannot be fed"),
        (pd.DataFrame(), "no column 'k'"),
        (pd.DataFrame({1: [1]}), "no column 'k'"),
        (twice, "2 columns 'k'"),
        (pa.Table.from_pandas(FRAME).append_column("k", pa.array([1, 2])), "2 columns 'k'"),
        (FRAME.T, "no column 'k'"),
        (FRAME.set_axis(pd.MultiIndex.from_product([["a"], FRAME.columns]), axis=1), "no column"),
    ]
    return {**{n[:20]: (folder / n, said) for n, said in files.items()}, **{brief(s): (s, said) for s, said in others}}


def test_sources(app: App, tmp_path: Path) -> None:
    for source, said in sources(tmp_path).values():
        refused(lambda source=source: app.feed("S", source), said)  # type: ignore[misc]


ARGUMENTS: list[tuple[str, Any]] = [
    *(("text", v) for v in (None, 5, b"a", "", " ", "\0", "\ud800", [APP], Path("x"))),
    *(("name", v) for v in (5, "a\0b", "\ud800", ["a"])),
    *(("nodes", v) for v in (0, -1, "2", 1.5, True, 10**9, 10**5_000)),
    *(("mode", v) for v in ("x", 5)),
    *(("routing", v) for v in ("x", 5, None)),
    *(("shard_ids", v) for v in ("a", 5, [1], ["a\0"], ["\ud800"], [""], [None])),
    *(("master", v) for v in ("zz", 5)),
    *(("conf", v) for v in ("none.yaml", 5, [], "a\0b")),
    *(("store", v) for v in ("/", 5, "a\0b")),
    *(("variables", v) for v in (5, {"a": 5}, ["a"])),
    *(("allow_env", v) for v in (5, "A")),
    *(("home", v) for v in (5, "a\0b", "\ud800", "/dev/null")),
    *(("rows_per_micro_batch", v) for v in (0, -1, "a")),
    *(("start", v) for v in ("noon", [1], 2**63, 1.5)),
    *(("timezone", v) for v in ("x", 5, None, "a\0b", "../../etc/passwd", "")),
    *(("max_ahead", v) for v in ("a", -1, 1.5)),
    *(("alerts", v) for v in ("x", None, ["on"])),
]


@pytest.mark.parametrize("number", range(len(ARGUMENTS)))
def test_arguments_of_deploy(number: int, tmp_path: Path) -> None:
    name, value = ARGUMENTS[number]
    refused(lambda: deploy(**{"text": APP, "home": tmp_path / "home", name: value}), "")
    assert not (tmp_path / "home").exists()
