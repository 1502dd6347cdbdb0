"""Random apps, area by area, each with a feed: `compose(seed, number, area)` always gives the same case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Any

from .aggregations import Aggregation
from .expressions import NUMBERS, Attr, Expressions
from .feeds import Stream, feed, habits
from .states import States
from .tables import Table, columns

EXTRA = {"l": "long", "f": "float", "d": "double", "b": "bool", "n": "string"}
RATES = ("", "", "", "", "all every {n} events", "first every {n} events", "last every {n} events", "every {n} events",
         "first every {t} sec")  # fmt: skip


UNIQUE = "execution-unique" in os.environ.get("SIDDHI_REFERENCE_JARS", "")
"""Whether the reference engine knows siddhi-execution-unique, which Maven Central lacks."""

_TWICE = ", true, true"
"""Arguments of `expressionBatch` that let an event expire that never came in."""


class Composer:
    """Writes one case. Statements are collected while streams, tables and outputs become known to later queries."""

    def __init__(self, r: Random) -> None:
        self.r = r
        self.habits = habits(r)
        self.e = Expressions(r, safe=self.habits.null > 0)
        self.definitions: list[str] = []
        self.queries: list[str] = []
        self.streams = [self.stream(name) for name in ("S", "R", "Q")[: r.choice((1, 2, 2, 3))]]
        self.known = {s.id: dict(s.types) for s in self.streams}
        self.parted = False
        self.outputs = 0

    def stream(self, name: str) -> Stream:
        extra = self.r.sample(list(EXTRA), self.r.choice((0, 1, 2, 3)))
        types = {"k": "string", "v": "int", **{x: EXTRA[x] for x in extra}, "t": "long"}
        self.definitions.append(f"define stream {name} ({columns(types)});")
        return Stream(name, types)

    # ------------------------------------------------------------------------------------------------- clauses

    def scope(self, id: str, prefix: str = "") -> list[Attr]:
        return [Attr(prefix + name, type) for name, type in self.known[id].items()]

    def handlers(self, id: str, window: float, join: bool = False) -> tuple[str, bool]:
        """Filters, stream functions and at most one window over a stream; whether there is a window."""
        r, scope, text = self.r, self.scope(id), ""
        if r.random() < 0.35:
            text += f"[{self.e.boolean(scope)}]"
        has = r.random() < window
        if has:
            text += "#window." + self.window(id, join)
            if r.random() < 0.12 and not join:
                text += f"[{self.e.boolean(scope, 1)}]"
        return text, has

    def window(self, id: str, join: bool = False) -> str:
        r = self.r
        n, t = r.choice((1, 2, 3, 3, 4, 5)), r.choice((200, 500, 800, 1000, 2000))
        time = f"{t}" if r.random() < 0.3 else f"{t} millisec" if t % 1000 else f"{t // 1000} sec"
        forms = [f"length({n})", f"lengthBatch({n})", f"time({time})", f"timeBatch({time})"] * 3
        forms += [f"lengthBatch({n}, true)", f"timeBatch({time}, 0)", f"timeBatch({time}, true)",
                  f"timeBatch({time}, 300L)", f"timeLength({time}, {n})", "batch()", f"delay({time})", "batch(2)",
                  f"expression('count() <= {n}')", f"expressionBatch('count() <= {n}')"]  # fmt: skip
        known = self.known[id]
        if "v" in known:
            forms += [f"sort({n}, v)", f"sort({n}, v, 'desc')", f"sort({n}, k, 'asc')", f"sort({n}, k, v, 'desc')"]
            held = r.choice((f"last.v - first.v < {n + 3}", f"sum(v) < {4 * n}", f"max(v) - min(v) <= {n + 3}",
                             f"avg(v) < 6 or count() <= {n}", f"eventTimestamp(last) - eventTimestamp(first) < {t}",
                             f"not (sum(v) > {4 * n}) and last.v > 1",
                             f"math:abs(last.v - first.v) < {n + 3}"))  # fmt: skip
            forms += [f"expression('{held}')", f"expressionBatch('{held}'{r.choice(('', ', true', _TWICE))})"]
        if "k" in known:
            forms += [f"frequent({n}, k)", f"session({t} millisec, k)", "lossyFrequent(0.3, 0.1, k)",
                      f"session({t} millisec, k, 100 millisec)"]  # fmt: skip
            if not join:  # their key is what is selected, and without that of a side Siddhi fails on every event
                forms += [f"frequent({n})", "lossyFrequent(0.3, 0.1)"]
        if known.get("t") == "long":
            forms += [f"externalTime(t, {time})", f"externalTimeBatch(t, {time})", f"externalTimeBatch(t, {time}, 0)"]
        if UNIQUE and r.random() < 0.7:
            forms = self.unique_windows(id, n, time, join or id not in {s.id for s in self.streams})
        return r.choice([*forms, f"session({t} millisec)"])

    def unique_windows(self, id: str, n: int, time: str, looked_into: bool) -> list[str]:
        """Windows of siddhi-execution-unique, by a key that may be computed. `looked_into`: a join may do so."""
        r, known = self.r, self.known[id]
        key = r.choice(["k", *known, "k"])
        if "v" in known and r.random() < 0.15:
            key = r.choice(("v % 3", "v * 16", "convert(v, 'string')", "'one'"))
        other = r.choice(list(known))
        forms = [f"ever({key})", f"ever({key}, {other})", f"first({key}, {other})", f"time({key}, {time})",
                 f"timeBatch({key}, {time})", f"timeBatch({key}, {time}, 300)", f"firstTimeBatch({key}, {time})",
                 f"firstTimeBatch({key}, {time}, 0)", f"timeLengthBatch({key}, {time}, {n})",
                 f"timeLengthBatch({key}, {time}, 100, {n})"]  # fmt: skip
        # Left out is what comes out otherwise here: several batches of a chunk, lists that joins look into, the last
        # batch of all partition instances.
        if not self.habits.batch:
            forms += [f"lengthBatch({key}, {n})", f"firstLengthBatch({key}, {n})"]
        if not looked_into:
            forms.append(f"length({key}, {n})")
        if known.get("t") == "long" and not self.parted:
            rest = r.choice(("", ", 0", ", 100, 700 millisec", ", 0, 300"))
            forms += [f"externalTimeBatch({key}, t, {time}{rest})"] * 2
        return [f"unique:{form}" for form in forms]

    def aggregate(self, scope: list[Attr], fragile: bool = True, grouped: bool = False) -> Attr:
        """An aggregate; one that fails when a value goes that never came only where `fragile`. Left out is what comes
        out otherwise here (see the differences): groups of `str:groupConcat`, `stdDev` where values leave."""
        r = self.r
        number = self.e.attr(scope, NUMBERS) or Attr("1", "int")
        arg = number if r.random() < 0.8 else self.e.number(scope, 1)
        kind = r.choice(("sum", "sum", "avg", "count", "count", "min", "max", "min", "max", "distinctCount", "avg",
                         "minForever", "maxForever", "bool", "groupConcat"))  # fmt: skip
        text = self.e.attr(scope, ("string",))
        if kind == "groupConcat" and text is not None and fragile and not self.habits.null:  # fails when a null goes
            if grouped or self.parted:
                return Attr("count()", "long")
            return Attr(f"str:groupConcat({text.text})", "string")
        if kind == "count":
            return Attr(r.choice(("count()", f"count({arg.text})")), "long")
        if kind == "distinctCount" and fragile:
            return Attr(f"distinctCount({(self.e.attr(scope, (*NUMBERS, 'string')) or number).text})", "long")
        if kind in ("sum", "distinctCount"):
            return Attr(f"sum({arg.text})", "long" if arg.type in ("int", "long") else "double")
        if kind == "avg":
            return Attr(f"avg({arg.text})", "double")
        if kind == "bool":
            truth = self.e.boolean(scope, 0)
            if self.habits.null:  # fails on null
                truth = f"coalesce({truth}, false)"
            return Attr(f"{r.choice(('and', 'or'))}({truth})", "bool")
        return Attr(f"{kind}({arg.text})", arg.type)

    def select(self, scope: list[Attr], aggregates: float, fragile: bool = True) -> tuple[str, dict[str, str]]:
        """A whole select with group by, having, order by, limit, offset; and the output's attributes."""
        r = self.r
        grouped = [a for a in scope if "[" not in a.text]
        by = min(len(grouped), r.choice((1, 1, 2))) if r.random() < aggregates * 0.6 else 0
        keys = r.sample(grouped, by)
        out: dict[str, str] = {}
        items = []
        for a in keys:
            if r.random() < 0.85:
                items.append(self.item(a, out))
        for _ in range(r.choice((1, 2, 2, 3))):
            if r.random() < aggregates:
                a = self.aggregate(scope, fragile, bool(keys))
                if r.random() < 0.15 and a.type in NUMBERS:
                    a = Attr(f"({a.text} {r.choice('+-*')} {self.e.number(scope, 0).text})", "double")
                    a = Attr(f"convert({a.text}, 'double')", "double")
            else:
                a = r.choice(scope) if r.random() < 0.6 else self.e.any(scope)
            items.append(self.item(a, out))
        text = "select " + ", ".join(items)
        mine = [Attr(name, type) for name, type in out.items()]
        if keys:
            text += " group by " + ", ".join(a.text for a in keys)
        if r.random() < 0.2:
            text += f" having {self.e.boolean(mine, 1)}"
        if r.random() < 0.12:
            by = r.sample(mine, 1)
            text += " order by " + ", ".join(a.text + r.choice(("", " asc", " desc")) for a in by)
        if r.random() < 0.12:
            text += f" limit {r.choice((1, 2, 3))}"
            if r.random() < 0.4:
                text += f" offset {r.choice((0, 1, 2))}"
        return text, out

    def item(self, a: Attr, out: dict[str, str]) -> str:
        name = f"x{len(out)}"
        out[name] = a.type
        return f"{a.text} as {name}"

    def rate(self, share: float) -> str:
        if self.r.random() >= share:
            return ""
        form = self.r.choice(RATES)
        return f" output {form.format(n=self.r.choice((1, 2, 3)), t=self.r.choice((1, 2)))}" if form else ""

    def insert(
        self, out: dict[str, str], windowed: bool, inner: bool = False, kinds: Sequence[str] | None = None
    ) -> str:
        """`insert into` a new stream, which later queries may read."""
        if kinds is None:
            kinds = ("", "", "all events ", "expired events ", "current events ") if windowed else ("",)
        self.outputs += 1
        id = f"{'#' if inner else ''}O{self.outputs}"
        self.known[id] = out
        return f" insert {self.r.choice(kinds)}into {id};"

    def add(self, text: str) -> str:
        query = f"@info(name='q{self.count()}') {text}"
        self.queries.append(query)
        return query

    def count(self) -> int:
        self.numbered = getattr(self, "numbered", 0) + 1
        return self.numbered

    def source(self) -> str:
        """A stream to read: an input, or what an earlier query puts out."""
        inner = [id for id in self.known if not id.startswith(("T", "W", "#"))]
        inputs = [s.id for s in self.streams]
        return self.r.choice(inputs if self.r.random() < 0.75 else inner)

    # ------------------------------------------------------------------------------------------------- queries

    def simple(self, window: float = 0.0, aggregates: float = 0.0, rate: float = 0.0) -> None:
        id = self.source()
        handlers, windowed = self.handlers(id, window)
        if self.r.random() < 0.1:
            select, out = "select *", dict(self.known[id])
        else:
            select, out = self.select(self.scope(id), aggregates, fragile=_TWICE not in handlers)
        self.add(f"from {id}{handlers} {select}{self.rate(rate)}{self.insert(out, windowed)}")

    def join(self, right: str | None = None, left: str | None = None) -> None:
        """A join of two streams, or of a stream with the table or named window `right`."""
        r = self.r
        ids = [left or self.source(), right or self.source()]
        sides = []
        for id, alias in zip(ids, "xy", strict=True):
            handlers = "" if id == right else self.handlers(id, 0.8, join=True)[0]
            sides.append(f"{id}{handlers} as {alias}")
        kind = r.choice(("join", "join", "left outer join", "right outer join", "full outer join", "inner join"))
        if right and right.startswith("T"):
            kind = r.choice(("join", "left outer join"))
        way = r.choice(("", "", "", " unidirectional")) if right is None or not right.startswith("T") else ""
        first = r.random() < 0.5 and way
        scopes = [self.scope(id, f"{alias}.") for id, alias in zip(ids, "xy", strict=True)]
        both = [*scopes[0], *scopes[1]]
        safe, self.e.safe = self.e.safe, True  # the RESET rows of a window have no other side to select from
        condition = self.join_condition(scopes[0], scopes[1])
        # A pair may go that never came, and then Siddhi fails in silence where a timer asked.
        select, out = self.select(both, r.choice((0.0, 0.0, 0.3)), fragile=False)
        self.e.safe = safe
        a, b = sides
        if first:
            text = f"from {a}{way} {kind} {b}{condition}"
        else:
            text = f"from {a} {kind} {b}{way}{condition}"
        self.add(f"{text} {select}{self.insert(out, True)}")

    def join_condition(self, left: list[Attr], right: list[Attr]) -> str:
        r = self.r
        if r.random() < 0.1:
            return ""
        parts = []
        a, b = self.e.attr(left, ("string",)), self.e.attr(right, ("string",))
        if a and b and r.random() < 0.75:
            parts.append(f"{a.text} == {b.text}")
        if not parts or r.random() < 0.3:
            parts.append(self.e.boolean([*left, *right], 1))
        return " on " + " and ".join(parts)

    def table(self) -> None:
        """A table, queries that change it, ones that read it, and questions about it in the feed."""
        Table(self).write()

    def ask(self, id: str, types: dict[str, str], covered: tuple[str, ...] = ()) -> None:
        """On-demand queries over a table or window; no condition names the attributes `covered` by an index."""
        r = self.r
        for _ in range(r.choice((1, 1, 2))):
            scope = [Attr(n, t) for n, t in types.items()]
            free = [a for a in scope if a.text not in covered]
            on = f" on {self.e.boolean(free, 1)}" if r.random() < 0.4 and free else ""
            if r.random() < 0.6:
                order = ", ".join(types)
                self.habits.queries.append(f"from {id}{on} select {order} order by {order}")
            else:
                found = [self.aggregate(scope, grouped=True).text for _ in range(2)]
                items = [f"{x} as x{i}" for i, x in enumerate(found)]
                group = "k, " if r.random() < 0.5 else ""
                by = " group by k" if group else ""
                self.habits.queries.append(f"from {id}{on} select {group}{', '.join(items)}{by}")

    def named_window(self) -> None:
        r = self.r
        source = r.choice(self.streams)
        types = dict(source.types)
        events = r.choice(("", "", " output all events", " output current events", " output expired events"))
        self.known["W"] = types
        window = self.window("W")
        while window.startswith("session"):  # a listed difference
            window = self.window("W")
        self.definitions.append(f"define window W ({columns(types)}) {window}{events};")
        where = f"[{self.e.boolean(self.scope(source.id), 1)}]" if r.random() < 0.3 else ""
        self.add(f"from {source.id}{where} select * insert into W;")
        for _ in range(r.choice((1, 2))):
            if r.random() < 0.6:
                handlers = f"[{self.e.boolean(self.scope('W'), 1)}]" if r.random() < 0.3 else ""
                fragile = "expired" not in events and _TWICE not in window and "lossy" not in window
                select, out = self.select(self.scope("W"), 0.6, fragile)
                self.add(f"from W{handlers} {select}{self.rate(0.1)}{self.insert(out, True)}")
            else:
                by = r.choice(self.streams).id
                self.join("W", by)
                if r.random() < 0.2:  # no `str:groupConcat` is in a join
                    inside = self.queries.pop()
                    self.queries.append(f"partition with (k of {by})\nbegin\n{inside}\nend;")
        if r.random() < 0.5:
            self.ask("W", types)

    def partition(self) -> None:
        """A partition by value or range over one or two streams, with inner streams at times."""
        r = self.r
        keyed = self.streams[: r.choice((1, 2))]
        keys = []
        for s in keyed:
            if r.random() < 0.8:
                forms = ["k"] * 6 + ["v % 2", "v > 5", "convert(v, 'double') / 2"]
                if len(keyed) == 1:  # of a logical state Siddhi looks for both keys in one stream
                    forms += [x for x in "lfdb" if x in s.types]
                keys.append(f"{r.choice(forms)} of {s.id}")
            else:
                keys.append(f"v < {r.randrange(2, 12)} as 'low' or v >= {r.randrange(2, 12)} as 'high' of {s.id}")
        before, self.queries, self.parted = self.queries, [], True
        shared = r.random() < 0.2
        if shared:
            self.known["T"] = {"k": "string", "v": "int"}
            self.definitions.append(f"define table T ({columns(self.known['T'])});")
            self.add(f"from {r.choice(keyed).id} select k, v insert into T;")
        for i in range(r.choice((1, 1, 2, 3))):
            if shared and r.random() < 0.4:
                self.join("T", r.choice(keyed).id)
                continue
            inner = [id for id in self.known if id.startswith("#")]
            id = r.choice(inner) if inner and r.random() < 0.6 else r.choice(self.streams if i else keyed).id
            which = r.random()
            if which < 0.15 and len(keyed) > 1:
                self.join(None, id)
            elif which < 0.3:
                self.pattern(streams=[s.id for s in keyed])
            else:
                handlers, windowed = self.handlers(id, 0.7)
                select, out = self.select(self.scope(id), 0.6, fragile=_TWICE not in handlers)
                # Without expired events Siddhi drops what a batch window keeps of an instance.
                kinds = ("all events ", "expired events ") if "window.batch(" in handlers else None
                to = self.insert(out, windowed, inner=i == 0 and r.random() < 0.4, kinds=kinds)
                self.add(f"from {id}{handlers} {select}{self.rate(0.15)}{to}")
        inside, self.queries, self.parted = self.queries, before, False
        self.known = {id: types for id, types in self.known.items() if not id.startswith("#")}
        self.queries.append("partition with (" + ", ".join(keys) + ")\nbegin\n" + "\n".join(inside) + "\nend;")

    def pattern(self, sequence: bool = False, streams: list[str] | None = None) -> None:
        ids = streams or [s.id for s in self.streams]
        states = States(self.r, self.e, {id: self.known[id] for id in ids}, sequence)
        text, scope = states.chain()
        select, out = self.select(scope, self.r.choice((0.0, 0.0, 0.2)))
        self.add(f"from {text} {select}{self.rate(0.05)}{self.insert(out, False)}")

    def aggregation(self) -> None:
        """An incremental aggregation and questions about it."""
        Aggregation(self).write()

    def case(self, id: str, steps: int) -> dict[str, Any]:
        """The case, with a feed to all input streams."""
        app = "\n".join([*self.definitions, *self.queries])
        return {"id": id, "app": app, "feed": feed(self.r, self.habits, self.streams, steps)}


def _selects(c: Composer) -> None:
    c.e.functions = not c.e.safe
    for _ in range(c.r.choice((1, 2, 2, 3))):
        c.simple(aggregates=c.r.choice((0.0, 0.5)))


def _windows(c: Composer) -> None:
    for _ in range(c.r.choice((1, 2, 2))):
        c.simple(window=0.9, aggregates=0.6)


def _rates(c: Composer) -> None:
    for _ in range(c.r.choice((1, 2))):
        c.simple(window=0.5, aggregates=0.5, rate=1.0)


def _joins(c: Composer) -> None:
    for _ in range(c.r.choice((1, 1, 2))):
        c.join()


def _mixed(c: Composer) -> None:
    for _ in range(c.r.choice((2, 3, 4))):
        c.r.choice((_selects, _windows, _joins, _patterns, _sequences, Composer.partition))(c)
    if c.r.random() < 0.4:
        c.table()
    if c.r.random() < 0.3:
        c.named_window()


def _patterns(c: Composer) -> None:
    c.pattern()


def _sequences(c: Composer) -> None:
    c.pattern(sequence=True)


def _keyed_patterns(c: Composer) -> None:
    """Patterns and sequences over keyed and unkeyed streams, in one partition."""
    keyed = c.streams[: c.r.choice((1, 2, 2))]
    keys = ", ".join(f"{c.r.choice(('k', 'k', 'k', 'v % 2'))} of {s.id}" for s in keyed)
    before, c.queries = c.queries, []
    for _ in range(c.r.choice((1, 1, 2))):
        c.pattern(sequence=c.r.random() < 0.4, streams=None if c.r.random() < 0.3 else [s.id for s in keyed])
    inside, c.queries = c.queries, before
    c.queries.append(f"partition with ({keys})\nbegin\n" + "\n".join(inside) + "\nend;")


AREAS = {
    "selects": _selects,
    "windows": _windows,
    "rates": _rates,
    "joins": _joins,
    "tables": Composer.table,
    "named_windows": Composer.named_window,
    "partitions": Composer.partition,
    "aggregations": Composer.aggregation,
    "patterns": _patterns,
    "sequences": _sequences,
    "keyed_patterns": _keyed_patterns,
    "mixed": _mixed,
}


def compose(seed: int, number: int, area: str) -> dict[str, Any]:
    """Case `number` of a seed, of an area of `AREAS`."""
    r = Random(f"{seed}/{number}/{area}")
    c = Composer(r)
    AREAS[area](c)
    return c.case(f"fuzz/{area}/{seed}-{number}", r.choice((8, 15, 25)))
