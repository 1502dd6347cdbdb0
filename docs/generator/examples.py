"""Examples of windows, functions, aggregators and stream functions: small apps, and what the engine makes of them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkstream_nb import trace
from sparkstream_nb.app.results.traces import WindowTrace
from sparkstream_nb.plan.window_declarations import DECLARATIONS
from tests.reference.engine_cases import run_case

from .markdown import code, table

Step = list[Any]
"""`[stream, timestamp, values]`, as cases have it."""

WINDOW_STREAM = "define stream S (symbol string, price double, at long);"
WINDOW_FEED: list[Step] = [
    ["S", t, [symbol, price, t]]
    for t, symbol, price in (
        (1000, "A", 10.0), (1500, "B", 20.0), (2000, "A", 30.0),
        (4000, "B", 40.0), (4500, "A", 50.0), (7000, "A", 60.0),
    )
]  # fmt: skip
WINDOW_END = 12_000
"""The clock's last time, so that timers fire."""
AGGREGATE_STREAM = "define stream S (symbol string, price double, volume int, ok bool);"
AGGREGATE_FEED: list[Step] = [
    ["S", 1000, ["A", 10.0, 1, True]],
    ["S", 2000, ["B", 20.0, 2, True]],
    ["S", 3000, ["A", 30.0, 3, False]],
    ["S", 4000, ["A", 20.0, 4, True]],
]
CHANGING = {
    "UUID()": "a new text such as `0b1f2c9a-6b0e-4b7e-9d7c-2f3f5a1e8c11` for each event",
    "time:currentDate()": "a text such as `2024-06-01`",
    "time:currentTime()": "a text such as `10:30:00`",
    "time:currentTimestamp()": "a text such as `2024-06-01 10:30:00`",
    "time:utcTimestamp()": "a text such as `2024-06-01 10:30:00`",
    "math:rand()": "a number such as `0.7308781907032909`",
}
"""Calls whose value is another one each time, with words about it."""


@dataclass(frozen=True)
class Page:
    """A page of one parameter, made when it is called."""

    make: Callable[[str], str]
    name: str

    def __call__(self) -> str:
        return self.make(self.name)


@cache
def _written() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "examples.toml").read_text(encoding="utf-8"))


def call_of(kind: str, name: str) -> str:
    """The example call of a function or aggregator. Raises KeyError where there is none."""
    return str(_written()[kind][name])


def run(app: str, feed: Sequence[Step], end: int | None = None) -> dict[str, list[list[Any]]]:
    """What each stream of an app puts out for a feed: `[timestamp, values]` for each event. With `end` the clock goes
    on to there. Raises ValueError where the app is wrong."""
    got = run_case({"app": app, "feed": [*feed, *([] if end is None else [{"tick": end}])]})
    if "error" in got:
        raise ValueError(got["message"])
    fed = {step[0] for step in feed}
    return {name: events for name, events in got["streams"].items() if name not in fed}


def values(calls: Sequence[str]) -> list[Any]:
    """The values of calls of scalar functions."""
    app = f"define stream S (x int);\nfrom S select {_columns(calls)} insert into Out;"
    return list(run(app, [["S", 1000, [1]]])["Out"][0][1])


def aggregates(calls: Sequence[str]) -> list[Any]:
    """The values of aggregators after the events of `AGGREGATE_FEED`."""
    app = f"{AGGREGATE_STREAM}\nfrom S select {_columns(calls)} insert into Out;"
    return list(run(app, AGGREGATE_FEED)["Out"][-1][1])


def _columns(calls: Sequence[str]) -> str:
    return ", ".join(f"{call} as v{i}" for i, call in enumerate(calls))


def window_rows(name: str) -> list[tuple[int, str, list[Any]]]:
    """What the window of `window_app` puts out for `WINDOW_FEED`: time, CURRENT or EXPIRED, and values."""
    steps: list[Any] = [*WINDOW_FEED, *({"tick": t} for t in range(500, WINDOW_END + 1, 500))]
    steps.sort(key=lambda s: s["tick"] if isinstance(s, dict) else s[1])
    got = run_case({"app": window_app(name), "feed": steps})
    if "error" in got:
        raise ValueError(got["message"])
    entered = list(got["queries"]["q"]["in"])
    rows = []
    for t, values in got["streams"].get("Out", []):
        current = bool(entered) and entered[0] == [t, values]
        if current:
            entered.pop(0)
        rows.append((t, "CURRENT" if current else "EXPIRED", values))
    return rows


def window_trace(name: str) -> WindowTrace:
    """What the window of `window_app` holds over `WINDOW_FEED`."""
    found = trace(window_app(name), "q", WINDOW_FEED)
    assert isinstance(found, WindowTrace)
    return found


def window_app(name: str) -> str:
    """A small app with a window."""
    call = DECLARATIONS[name].example_call(count=3, few=2, time="2 sec", at="at", key="symbol", value="price")
    call = call.replace("0.01, 0.005", "0.4, 0.1")
    query = f"@info(name='q')\nfrom S#window.{call}\nselect symbol, price\ninsert all events into Out;"
    return f"{WINDOW_STREAM}\n\n{query}"


def stream_function_app(name: str) -> tuple[str, list[Step], int]:
    """A small app with a stream function, its feed, and the clock's last time."""
    found = _written()["stream_functions"][name]
    return found["app"], [["S", t, values] for t, values in found["feed"]], found.get("end", 10_000)


def shown(value: Any) -> str:
    """A value as a page shows it."""
    return json.dumps(value, ensure_ascii=False)


def event(values: Sequence[Any]) -> str:
    """The values of an event, as a cell of a table has them."""
    return ", ".join(shown(v) for v in values)


def feed_table(feed: Sequence[Step]) -> str:
    """A table of the events of a feed."""
    return table(["time (ms)", "stream", "event"], [(str(t), s, code(event(v))) for s, t, v in feed])


def window_table(name: str) -> str:
    """A table of what a window puts out."""
    rows = [(str(t), kind, code(event(v))) for t, kind, v in window_rows(name)]
    return table(["time (ms)", "event type", "event"], rows) or "Nothing.\n"


def output_table(streams: dict[str, list[list[Any]]]) -> str:
    """A table of outputs: in the order of their times where each stream is in that order, else by stream."""
    rows = [(t, s, v) for s, events in streams.items() for t, v in events]
    if all(events == sorted(events, key=lambda e: e[0]) for events in streams.values()):
        rows.sort(key=lambda r: r[0])
    return table(["time (ms)", "stream", "event"], [(str(t), s, code(event(v))) for t, s, v in rows]) or "Nothing.\n"
