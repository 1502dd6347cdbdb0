"""Apps and feeds of which each puts out an alert of one key, and ways to break one thing of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparkstream_nb.app.explaining.why_not import ChangeKind, WhyNot

KEY = "k-7"
START = 1_717_236_000_000


@dataclass(frozen=True)
class Event:
    """An event of a case: its stream, its values, its time (s after the start), and whether the alert needs it."""

    stream: str
    values: tuple[Any, ...]
    time: float
    planted: bool = False


@dataclass(frozen=True)
class Broken:
    """What was broken: the kind of change that mends it, the event, and the attribute."""

    kind: ChangeKind
    event: Event
    attribute: str = ""

    def is_named(self, answer: WhyNot, events: Sequence[Event]) -> bool:
        """True if the first change of the answer is one of this thing."""
        if not answer.changes:
            return False
        change = answer.changes[0]
        if self.kind is ChangeKind.ADDED:
            return change.kind is self.kind and change.event.stream == self.event.stream
        if self.kind is ChangeKind.NODE:
            return change.kind is self.kind
        if change.kind is not self.kind:
            return False
        named = events[change.event.number - 1]
        if self.kind is ChangeKind.TIME:  # that of another planted event does as well
            return named.planted
        if self.kind is ChangeKind.VALUE:  # a condition on two events names both
            number = events.index(self.event) + 1
            return f"event {number:,} had {self.attribute}" in answer.sentence
        return named is self.event


@dataclass(frozen=True)
class Template:
    """An app, the stream of its alerts, the planted events for a scale, a time beyond its limits (s; 0: it has none),
    the values that events of the key may not have by attribute, and an event that may not come in between."""

    text: str
    output: str
    planted: Sequence[tuple[str, tuple[Any, ...], float]]
    too_late: float = 0
    bad_values: Sequence[tuple[int, int, str, Any]] = ()
    """(planted event, place of the attribute, its name, a value that breaks the alert)"""
    intruder: tuple[str, tuple[Any, ...], float] | None = None
    breaks: Sequence[str] = ("missing",)


S = "define stream S (key string, amount double, kind string);\n"
P = "define stream P (key string, amount int);\n"
TEMPLATES = [
    Template(
        S + "@info(name='q') from every a=S[amount > 300] -> b=S[key == a.key and amount > 300] within 1 min "
        "select a.key as key, b.amount as amount insert into Out;",
        "Out", [("S", (KEY, 400.0, "x"), 0), ("S", (KEY, 500.0, "x"), 20)], 90,
        [(0, 1, "amount", 280.0), (1, 1, "amount", 250.0)], breaks=("missing", "time", "value", "node"),
    ),
    Template(
        S + P + "@info(name='q') from every a=S[kind == 'login'] -> b=P[key == a.key and amount >= 10] within 30 sec "
        "select a.key as key insert into Out;",
        "Out", [("S", (KEY, 1.0, "login"), 0), ("P", (KEY, 12), 10)], 47,
        [(1, 1, "amount", 8), (0, 2, "kind", "Login")], breaks=("missing", "time", "value", "order", "node"),
    ),
    Template(
        S + "partition with (key of S) begin @info(name='q') from every a=S[kind == 'up'], b=S[kind == 'down' and "
        "amount > a.amount] select a.key as key insert into Out; end;",
        "Out", [("S", (KEY, 4.0, "up"), 0), ("S", (KEY, 5.0, "down"), 5)], 0,
        [(1, 1, "amount", 3.5)], ("S", (KEY, 4.5, "flat"), 2), breaks=("missing", "value", "intruder", "node"),
    ),
    Template(
        S + P + "@info(name='q') from every a=S[amount > 10] -> not P[key == a.key] for 5 sec "
        "select a.key as key insert into Out;",
        "Out", [("S", (KEY, 40.0, "x"), 0)], 0, [(0, 1, "amount", 9.5)], ("P", (KEY, 1), 2),
        breaks=("missing", "value", "intruder"),
    ),
    Template(
        S + "@info(name='q') from S#window.time(30 sec) select key, sum(amount) as total group by key "
        "having total > 1000 insert into Out;",
        "Out", [("S", (KEY, 600.0, "x"), 0), ("S", (KEY, 600.0, "x"), 10)], 47,
        [(1, 1, "amount", 350.0), (0, 1, "amount", 350.0)], breaks=("time", "value", "node"),
    ),
    Template(
        S + P + "@info(name='q') from S#window.time(20 sec) as x join P#window.time(20 sec) as y on x.key == y.key and "
        "x.amount > y.amount select x.key as key insert into Out;",
        "Out", [("S", (KEY, 9.0, "x"), 0), ("P", (KEY, 5), 5)], 30, [(0, 1, "amount", 4.0), (1, 1, "amount", 11)],
        breaks=("missing", "time", "value", "node"),
    ),
    Template(
        S + "@info(name='big') from S[amount > 100] select key, amount * 2 as twice insert into Big; "
        "@info(name='q') from every a=Big -> b=Big[key == a.key and twice > a.twice] within 10 sec "
        "select a.key as key insert into Out;",
        "Out", [("S", (KEY, 120.0, "x"), 0), ("S", (KEY, 150.0, "x"), 4)], 13,
        [(0, 1, "amount", 90.0), (1, 1, "amount", 110.0)], breaks=("missing", "time", "value", "node"),
    ),
    Template(
        S + P + "define table T (key string, amount int);\n"
        "@info(name='fill') from P select key, amount insert into T; "
        "@info(name='q') from S[(T.key == key) in T and kind != 'test'] select key, amount insert into Out;",
        "Out", [("P", (KEY, 5), 0), ("S", (KEY, 1.0, "x"), 5)], 0, [(1, 2, "kind", "test")],
        breaks=("missing", "value", "order", "node"),
    ),
    Template(
        S + P + "@info(name='q') from every (a=S[amount > 10] and b=P[amount > 5]) within 20 sec "
        "select a.key as key, b.key as other insert into Out;",
        "Out", [("S", (KEY, 12.0, "x"), 0), ("P", (KEY, 7), 6)], 31,
        [(0, 1, "amount", 9.0), (1, 1, "amount", 4)], breaks=("value",),
    ),
    Template(
        S + "partition with (key of S) begin @info(name='q') from every a=S[kind == 'fail']<3:> -> b=S[kind == 'ok'] "
        "within 1 min select b.key as key insert into Out; end;",
        "Out", [("S", (KEY, 1.0, "fail"), 0), ("S", (KEY, 1.0, "fail"), 5), ("S", (KEY, 1.0, "fail"), 9),
                ("S", (KEY, 1.0, "ok"), 20)], 0, [(3, 2, "kind", "Ok")], breaks=("missing", "value", "node"),
    ),
    Template(
        S + "@info(name='q') from S[amount > 50 and kind == 'sale'] select key, amount insert into Out;",
        "Out", [("S", (KEY, 60.0, "sale"), 0)], 0, [(0, 1, "amount", 45.0), (0, 2, "kind", "Sale")],
        breaks=("missing", "value"),
    ),
    Template(
        S + "@info(name='q') from S#window.lengthBatch(4) select key, count() as n group by key having n >= 2 "
        "insert into Out;",
        "Out", [("S", (KEY, 1.0, "x"), 0), ("S", (KEY, 1.0, "x"), 1)], breaks=(),
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A broken app's input: its events in order, the number of nodes, and what was broken."""

    template: Template
    events: Sequence[Event]
    broken: Broken
    nodes: int = 1


def cases(seed: int, count: int) -> list[Case]:
    """Seeded cases."""
    rng = random.Random(seed)
    out = []
    while len(out) < count:
        template = rng.choice([t for t in TEMPLATES if t.breaks])
        out.append(_broken(template, rng.choice(list(template.breaks)), rng))
    return out


def _noise(template: Template, rng: random.Random) -> list[Event]:
    """Events of other keys."""
    out = []
    for _ in range(rng.randint(5, 60)):
        key, time = f"n-{rng.randint(0, 3)}", round(rng.uniform(-60, 120), 2)
        if "define stream P" in template.text and rng.random() < 0.4:
            out.append(Event("P", (key, rng.randint(0, 2)), time))
        else:
            kind = rng.choice(["login", "up", "down", "fail", "ok", "x"])
            limit = 9.0 if " and b=P" in template.text else 600.0
            out.append(Event("S", (key, round(rng.uniform(0, limit), 1), kind), time))
    return out


def _broken(template: Template, kind: str, rng: random.Random) -> Case:
    stretch = rng.uniform(0.8, 1.2)
    planted = [Event(s, v, round(t * stretch, 3), True) for s, v, t in template.planted]
    noise = _noise(template, rng)
    noise.append(Event("S", ("n-9", 0.0, "x"), 500.0))  # moves the clock
    whole = sorted([*noise, *planted], key=lambda e: e.time)
    events, nodes = list(whole), 1
    match kind:
        case "missing":
            gone = rng.choice(planted)
            events = [e for e in whole if e is not gone]
            broken = Broken(ChangeKind.ADDED, gone)
        case "time":
            late = replace(planted[-1], time=round(template.too_late * rng.uniform(1, 1.2), 3))
            events = [late if e is planted[-1] else e for e in whole]
            broken = Broken(ChangeKind.TIME, late)
        case "value":
            number, place, name, value = rng.choice(list(template.bad_values))
            values = list(planted[number].values)
            values[place] = value
            bad = replace(planted[number], values=tuple(values))
            events = [bad if e is planted[number] else e for e in whole]
            broken = Broken(ChangeKind.VALUE, bad, name)
        case "intruder":
            assert template.intruder is not None
            stream, values, time = template.intruder
            intruder = Event(stream, values, time)
            events = [*whole, intruder]
            broken = Broken(ChangeKind.LEFT_OUT, intruder)
        case "order":
            first, last = planted[0], planted[-1]
            events = [replace(e, time={id(first): last.time, id(last): first.time}.get(id(e), e.time)) for e in whole]
            broken = Broken(ChangeKind.TIME, replace(first, time=last.time))
        case _:
            nodes = 2
            broken = Broken(ChangeKind.NODE, planted[-1])
    return Case(template, sorted(events, key=lambda e: e.time), broken, nodes)
