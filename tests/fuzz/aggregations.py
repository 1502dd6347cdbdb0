"""Random incremental aggregations: over time by the clock, by a long or by a text, read by questions and by joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .expressions import NUMBERS, Attr
from .tables import columns

if TYPE_CHECKING:
    from .compose import Composer

UNITS = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000}
NAMES = {"sec": "seconds", "min": "minutes", "hour": "hours", "day": "days", "month": "months", "year": "years"}
EVERY = (
    ("sec ... day", ("sec", "min", "hour", "day")),
    ("sec ... day", ("sec", "min", "hour", "day")),
    ("sec, min, hour", ("sec", "min", "hour")),
    ("hour, sec", ("sec", "hour")),
    ("min ... month", ("min", "hour", "day", "month")),
    ("day, year", ("day", "year")),
)


class Aggregation:
    """Writes an aggregation `A` of the first stream, and what reads it, into a composer.

    avg meets no nulls, which Siddhi counts. Ranges of time begin and end where buckets do: of a bucket that lies in one
    in part Siddhi shows the parts that are still in memory. A join reads one bucket, as those of several come in the
    order of a hash map.
    """

    def __init__(self, c: Composer) -> None:
        self.c, self.r = c, c.r
        c.habits.start = 1_600_000_000_000 + self.r.choice((0, 55_000, 3_590_000))
        c.habits.gap = self.r.choice((400, 2000, 20_000))
        s = c.streams[0]
        self.by = self.r.choice(("", "", " by t", " by t", " by g"))
        if self.by == " by g":
            s.types["g"] = "string"
            c.definitions[0] = f"define stream {s.id} ({columns(s.types)});"
            c.known[s.id]["g"] = "string"
        self.scope = [a for a in c.scope(s.id) if a.text != "g"]
        self.keys = self.r.choice(("k", "k", "", "k, v"))
        self.every, self.durations = self.r.choice(EVERY)
        self.columns = self.keys.split(", ") if self.keys else []

    def write(self) -> None:
        c, r = self.c, self.r
        items = [*self.columns]
        for i in range(r.choice((1, 2, 3))):
            items.append(f"{self.item()} as x{i}")
            self.columns.append(f"x{i}")
        group = f" group by {self.keys}" if self.keys else ""
        source = c.streams[0].id
        select = f"select {', '.join(items)}{group} aggregate{self.by} every {self.every}"
        c.definitions.append(f"define aggregation A from {source} {select};")
        if r.random() < 0.4 and self.keys in ("", "k") and "day" in self.durations:
            self.join()
        for _ in range(r.choice((1, 2))):
            self.ask()

    def number(self) -> Attr:
        found = self.c.e.attr(self.scope, NUMBERS)
        assert found is not None
        return found

    def item(self) -> str:
        """An aggregate, now and then an expression over some, or a plain attribute: the latest."""
        r, null = self.r, self.c.habits.null > 0
        kinds = ["sum", "sum", "count", "count", "min", "max", "distinctCount", "latest", "running"]
        kind = r.choice(kinds if null else [*kinds, "avg", "avg"])
        if kind == "count":
            return "count()"
        if kind == "latest":
            return r.choice(self.scope).text
        if kind == "running":
            a = self.number().text
            return r.choice((f"max({a}) - min({a})", "count() * 2", f"ifThenElse(count() > 2, 1, 2) + {a}"))
        return f"{kind}({(r.choice(self.scope) if kind == 'distinctCount' else self.number()).text})"

    def range(self, unit: int) -> str:
        """A range of time about the feed's, from a start of a bucket of `unit` ms to another."""
        r, h = self.r, self.c.habits
        start = (h.start + r.randrange(-2, 15) * h.gap) // unit * unit
        end = start + unit * r.choice((1, 1, 2, 5, 60, 1000))
        return f"{start}L, {end}L"

    def ask(self) -> None:
        r = self.r
        per = r.choice(self.durations)
        ranges = ["'2020-**-** **:**:**'"] if per != "year" else ["'2020-01-01 00:00:00', '2021-01-01 00:00:00'"]
        if per in UNITS:
            ranges += ["'2020-09-13 **:**:**'", self.range(UNITS[per])]
        within = r.choice(ranges)
        names = ["AGG_TIMESTAMP", *self.columns]
        on = f" on {r.choice((*self.columns, 'AGG_TIMESTAMP'))} is null" if r.random() < 0.1 else ""
        if "k" in names and r.random() < 0.15:
            on = f" on k {r.choice(('==', '!='))} 'a'"
        select = f"select {', '.join(names)} order by {', '.join(names)}"
        if r.random() < 0.2:
            select = "select count() as n"
        elif "k" in names and r.random() < 0.15:
            select = "select k, count() as n group by k having n > 1 order by k limit 2"
        self.c.habits.queries.append(f"from A{on} within {within} per '{NAMES[per]}' {select}")

    def join(self) -> None:
        c, r = self.c, self.r
        id = r.choice(c.streams).id
        on = " on x.k == y.k" if self.keys else ""
        if not self.keys and r.random() < 0.5:
            on = r.choice((" on y.AGG_TIMESTAMP > 0L", " on y.AGG_TIMESTAMP >= _START"))
        kind = r.choice(("join", "left outer join"))
        taken = [f"y.{name} as y{i}" for i, name in enumerate(self.columns)]
        select = f"select x.k as x0, {', '.join(taken)}, y.AGG_TIMESTAMP as at"
        if r.random() < 0.3:
            select = r.choice((f"{select}, _START, x._END as until", ""))
        within = r.choice(("'2020-09-13 **:**:**'", "'2020-09-01 00:00:00', '2020-10-01 00:00:00'"))
        c.add(f"from {id} as x {kind} A as y{on} within {within} per 'days' {select} insert into J;")
