"""What windows declare (`plan.window_declarations`) is what they do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from engine import bounds
from sparkstream_nb.engine import warm
from sparkstream_nb.engine.columnar.column_data import Array, Column, StringPool
from sparkstream_nb.engine.columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, RESET, Clock, Rows, event_order
from sparkstream_nb.engine.expressions import Context
from sparkstream_nb.engine.select.steps import WindowNeeds, make_window
from sparkstream_nb.engine.state.services import Services
from sparkstream_nb.engine.windows import WINDOWS
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import StreamInput, WindowStep
from sparkstream_nb.plan.window_declarations import DECLARATIONS, SIGNATURES
from sparkstream_nb.types import Type

CASES = Path(__file__).parents[1] / "cases"
STREAM = "define stream S (key string, value double, at long, other int);"
STEPS, AT_ONCE, START = 120, 2, 1_600_000_000_000


def call(name: str) -> str:
    return DECLARATIONS[name].example_call(count=4, few=3, time="1 sec", at="at", key="key", value="value")


def declared(**claims: object) -> list[str]:
    return [name for name, d in DECLARATIONS.items() if all(getattr(d, c) == v for c, v in claims.items())]


# ------------------------------------------------------------------------------------------------ one place for all


def test_every_declared_window_has_all_it_needs_and_no_other_has() -> None:
    assert set(DECLARATIONS) == set(WINDOWS) == set(SIGNATURES)
    for name, d in DECLARATIONS.items():
        assert all(line.strip().startswith(f"{name}(") for line in d.signature.strip().splitlines())
        assert any(w.startswith(f"{name}(") for w in warm.WINDOWS) == (":" not in name), "compiled ahead"
        assert any(w.startswith(f"{name}(") for w in bounds.WINDOWS), "run with a look at all places in arrays"


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_window_has_a_case(name: str) -> None:
    files = [p for p in CASES.glob("**/*.jsonl") if f".{name}(" in p.read_text("utf-8")]
    apps = (json.loads(line)["app"] for p in files for line in p.read_text("utf-8").split("\n") if line.strip())
    assert any(f"#window.{name}(" in app for app in apps)


# --------------------------------------------------------------------------------------------------- what they do


@dataclass
class Events:
    """What a window under test gets: several events at once, at each of `STEPS` steps."""

    strings: StringPool = field(default_factory=StringPool)
    chosen: tuple[str, ...] = ("a", "b", "c", "d", "e")

    def rows(self, *, other: int = 0) -> Rows:
        """The events whose keys are `chosen`; `other` is the value of the attribute that no window is called with, and
        the last column, which no query names, their numbers."""
        n = STEPS * AT_ONCE
        r = np.random.default_rng(1)
        keys = r.choice(["a", "b", "c", "d", "e"], n)
        step, number = np.repeat(np.arange(STEPS), AT_ONCE), np.arange(n)
        at = START + self.times()[step]
        columns = [
            Column.of(Type.STRING, keys.tolist(), self.strings), Column(Type.DOUBLE, r.permutation(n) * 1.0),
            Column(Type.LONG, at.copy()), Column(Type.INT, np.full(n, other, np.int32)),
            Column(Type.LONG, number),
        ]  # fmt: skip
        rows = Rows(columns, at, *event_order(step, 1))
        return rows.where(np.isin(keys, self.chosen))

    @staticmethod
    def times() -> Array:
        """Now thick, now thin: a gap of more than the windows' time after each tenth step."""
        return np.cumsum(np.where(np.arange(STEPS) % 10 == 9, 2500, 120))

    @staticmethod
    def clock() -> Clock:
        return Clock.over(START + Events.times(), 0, 1)[0]


def put_out(text: str, events: Events, *, expired: bool = True, resets: bool = True, other: int = 0) -> Rows:
    """What the window `text` puts out as it is, for a query that wants expired events or not, and RESET rows or not."""
    plan = compile_app(f"{STREAM} from S#window.{text} select key, value, at, other insert all events into Out;")
    source = plan.queries[0].input
    assert isinstance(source, StreamInput)
    (step,) = source.steps
    assert isinstance(step, WindowStep)
    types = (*source.schema.types, Type.LONG)
    window = make_window(
        step, types, 0, WindowNeeds(expired, resets_per_chunk=not resets), dict(enumerate(source.schema.names)),
        services=Services(events.strings, Context()), query="q", stream="S",
    )  # fmt: skip
    return window.run(events.rows(other=other), events.clock(), 1, None)


def numbers(rows: Rows) -> list[int]:
    """Which events the rows are."""
    return rows.columns[-1].values.tolist()  # type: ignore[no-any-return]


def told(rows: Rows) -> list[tuple[int, int, int]]:
    """(event, kind, time) of CURRENT and EXPIRED rows."""
    rows = rows.where(rows.kinds() <= EXPIRED)
    return list(zip(numbers(rows), rows.kinds().tolist(), rows.ts.tolist(), strict=True))


def chunks(rows: Rows) -> list[tuple[list[int], list[int]]]:
    """(CURRENT, EXPIRED) events of each chunk."""
    return [tuple(numbers(c.where(c.kinds() == k)) for k in (CURRENT, EXPIRED)) for c in rows.by_chunk()]  # type: ignore[misc]


@pytest.mark.parametrize("name", DECLARATIONS)
def test_processing_mode(name: str) -> None:
    """`batch`: what comes out in a chunk expires in the next one, all of it and nothing else."""
    found = chunks(put_out(call(name), Events()))
    assert len(found) > 3
    in_batches = all(after == current for (current, _), (_, after) in pairwise(found) if current)
    mode = DECLARATIONS[name].processing_mode
    does = "expires" if in_batches else "does not expire"
    assert in_batches == (mode == "batch"), f"{name} is declared as '{mode}', and what it holds {does} chunk by chunk"


@pytest.mark.parametrize("name", declared(processing_mode="group"))
def test_groups_expire_together(name: str) -> None:
    """With an event that expires, all events of its key that came so far are gone."""
    events = Events()
    keys = events.rows().columns[0].to_list(events.strings)
    held: dict[str, set[int]] = {}
    together = 0
    for current, expired in chunks(put_out(call(name), events)):
        for i in current:
            held.setdefault(keys[i], set()).add(i)
        for i in expired:
            held[keys[i]].remove(i)
        assert not any(held[keys[i]] for i in expired)
        together += len(expired) > 1
    assert together


@pytest.mark.parametrize("name", DECLARATIONS)
def test_resets_per_chunk(name: str) -> None:
    rows = put_out(call(name), Events(), expired=False)
    begin = [c.kinds().tolist() for c in rows.by_chunk()]
    as_declared = all(k[0] == RESET for k in begin[1:]) and not any(RESET in k[1:] for k in begin)
    assert as_declared == DECLARATIONS[name].resets_per_chunk
    if as_declared:
        without = put_out(call(name), Events(), expired=False, resets=False)
        assert without.resets_per_chunk
        assert told(without) == told(rows)
        assert [c for c, _ in chunks(without)] == [c for c, _ in chunks(rows)]


@pytest.mark.parametrize("name", declared(single_chunk=True))
def test_single_chunk(name: str) -> None:
    events = Events()
    rows = put_out(call(name), events)
    came = events.rows()
    steps = set((came.order_key >> ORDER_KEY_BITS).tolist())
    assert set((rows.order_key >> ORDER_KEY_BITS).tolist()) <= steps
    for c in rows.by_chunk():
        assert len(set(c.order_key.tolist())) == 1
    assert len(rows.by_chunk()) <= len(came.by_chunk())


@pytest.mark.parametrize("name", declared(carries_group_id=True))
def test_carries_group_id(name: str) -> None:
    """The last column comes out with its event."""
    rows = put_out(call(name), Events())
    values = Events().rows().columns[1].values
    assert np.array_equal(rows.columns[1].values, values[numbers(rows)])
    assert len(rows) > 0


@pytest.mark.parametrize("name", DECLARATIONS)
def test_reads(name: str) -> None:
    """What is not among the arguments does not matter, unless it is declared that it may."""
    assert told(put_out(call(name), Events(), other=1)) == told(put_out(call(name), Events(), other=2))
    bare = {"frequent": "frequent(3)"}.get(name)
    reads = DECLARATIONS[name].reads
    plan = compile_app(f"{STREAM} from S#window.{call(name)} select key insert into Out;")
    (step,) = plan.queries[0].input.steps  # type: ignore[union-attr]
    assert (step.condition is not None) == (reads == "expression")  # type: ignore[union-attr]
    if bare is not None:
        assert reads == "selection"
        assert told(put_out(bare, Events())) != told(put_out(call(name), Events()))


RETAINED = {"start": "timeBatch(1 sec, 0 sec)"}


@pytest.mark.parametrize("name", [n for n in DECLARATIONS if DECLARATIONS[n].retained_by != "events"])
def test_retained_by(name: str) -> None:
    """Events of some keys come and go as they do among all events."""
    text = RETAINED.get(DECLARATIONS[name].retained_by, call(name))
    events = Events()
    everything, some = put_out(text, events), put_out(text, replace(events, chosen=("a", "c")))
    own = set(numbers(replace(events, chosen=("a", "c")).rows()))
    assert len(own) > 10
    assert sorted(told(some)) == sorted(t for t in told(everything) if t[0] in own)
