"""Random tables: queries that change one, that read it, and questions about it.

What Siddhi itself gets wrong is kept out (`docs/differences.md`, the section on tables). `Rules` says what that is for
each kind of table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .expressions import Attr

if TYPE_CHECKING:
    from .compose import Composer


@dataclass(frozen=True)
class Kind:
    """A kind of table: its annotation, and which attributes a key or an index covers.

    Rules for every covered table: `set` names no attribute of the table, and a condition names the covered attributes
    only to ask for the row's own key. A delete, and an `in`, asks for nothing beside the key; an update that changes a
    key asks for one row; part of a composite key never changes. An index table, whose rows lie in Java's hash sets,
    holds no two rows alike (`t` tells them apart, and one query inserts), is not joined, and is either changed in place
    or deleted from. A table without any loses rows when the last one is deleted, so it is emptied from its front, where
    `t` is least.
    """

    annotation: str = ""
    covered: tuple[str, ...] = ()
    timed: bool = False

    @property
    def primary(self) -> bool:
        return self.annotation.startswith("@Primary")


KINDS = (
    Kind(),
    Kind(timed=True),
    Kind("@PrimaryKey('k') ", ("k",)),
    Kind("@PrimaryKey('k') ", ("k",)),
    Kind("@PrimaryKey('v') ", ("v",)),
    Kind("@PrimaryKey('k', 'v') ", ("k", "v")),
    Kind("@Index('k') ", ("k",), timed=True),
)


class Table:
    """Writes a table `T` and what goes with it, into a composer."""

    def __init__(self, c: Composer) -> None:
        self.c, self.r = c, c.r
        self.kind = self.r.choice(KINDS)
        self.types = {"k": "string", "v": "int"} | ({"d": "double"} if self.r.random() < 0.5 else {})
        if self.kind.timed:
            self.types["t"] = "long"
            c.habits.late = 0.0
            if self.kind.covered:
                c.habits.tie = c.habits.batch = 0.0
        # What is set in place stays in Java's hash sets under its old hash.
        self.index_set = self.r.choice(("k", "v")) if self.kind.covered and self.kind.timed else ""
        self.deletes = (self.kind.primary or self.kind.timed) and self.index_set != "v"

    def write(self) -> None:
        """The definition, an insert, and up to four more queries."""
        c, r = self.c, self.r
        c.definitions.append(f"{self.kind.annotation}define table T ({columns(self.types)});")
        c.known["T"] = self.types
        id, text = self.source()
        c.add(f"{text} {self.row(id)} insert into T;")
        for _ in range(r.choice((1, 2, 3, 4))):
            r.choice((self.change, self.change, self.change, self.read))()
        self.ask()

    def source(self) -> tuple[str, str]:
        """A stream and the text that reads it; no window holds back rows that must come in the order of `t`."""
        id = self.r.choice(self.c.streams).id
        return id, f"from {id}{self.c.handlers(id, 0.0 if self.kind.timed else 0.15)[0]}"

    def row(self, id: str) -> str:
        """A select of a row for the table."""
        scope, items = self.c.scope(id), []
        for name, type in self.types.items():
            found = self.c.e.attr(scope, (type,)) if name != "t" else Attr("t", "long")
            items.append(f"{found.text if found and self.r.random() < 0.95 else self.c.e.constant(type)} as {name}")
            if name == "t":
                items[-1] = "t"
        return f"select {', '.join(items)}"

    def own(self) -> list[Attr]:
        """The table's attributes that a condition may name freely."""
        return [Attr(f"T.{n}", t) for n, t in self.types.items() if n not in self.kind.covered]

    def event(self) -> list[Attr]:
        return [Attr(n, t) for n, t in self.types.items()]

    def by_key(self) -> str:
        """The condition that asks for the row's own key, or for equal `k`."""
        return " and ".join(f"T.{n} == {n}" for n in self.kind.covered or ("k",))

    def free(self) -> str:
        """A condition that names the table, but not what is covered."""
        own = self.own()
        if not own:
            return self.by_key()
        text = self.c.e.boolean([*own, *self.event()], 1)
        return text if "T." in text else f"({text} or {self.r.choice(own).text} is null)"

    def condition(self) -> str:
        which = self.r.random()
        if which < 0.55:
            return self.by_key()
        return f"{self.by_key()} and {self.free()}" if which < 0.7 else self.free()

    def assign(self, one: bool) -> str:
        """A `set`. `one`: the condition finds one row at most."""
        r, own = self.r, [] if self.kind.covered else self.own()
        free = [n for n in self.types if n not in self.kind.covered and n != "t"]
        if one and len(self.kind.covered) == 1 and r.random() < 0.3:
            free = [*self.kind.covered]
        if self.index_set:
            free = [self.index_set]
        items = []
        for name in r.sample(free, min(len(free), r.choice((1, 1, 2)))):
            scope = [a for a in [*self.event(), *own] if a.type == self.types[name]]
            value = r.choice(scope).text if r.random() < 0.7 else self.c.e.constant(self.types[name])
            if self.types[name] == "int" and r.random() < 0.4:
                value = f"{value} {r.choice('+-*')} {r.randrange(1, 4)}"
            items.append(f"T.{name} = {value}")
        return " set " + ", ".join(items) if items else ""

    def change(self) -> None:
        c, r, kind = self.c, self.r, self.kind
        if self.index_set == "k" and any("update T set" in q for q in c.queries):
            return  # a second one may find a row under both keys that it had (a listed difference)
        id, text = self.source()
        text += f" {self.row(id)} "
        action = r.randrange(5)
        if action == 0 and self.deletes:
            if kind.timed and not kind.covered:
                on = r.choice((f"T.t < t - {r.choice((0, 200, 900))}", f"t - T.t > {r.choice((100, 400))}", "v > 8"))
            else:
                on = self.by_key() if r.random() < 0.6 else self.free()
            c.add(f"{text}delete T on {on};")
            return
        if action <= 2 or self.index_set:
            on = self.condition()
            sets = self.assign(on == self.by_key() and kind.primary)
            whole = not kind.timed and (not kind.covered or self.by_key() in on)
            if whole and r.random() < 0.4:
                sets = ""
            if sets or whole:
                c.add(f"{text}update T{sets} on {on};")
            return
        on = self.condition()
        pure = on == self.by_key()
        sets = "" if kind.primary and pure else self.assign(False)
        whole = not kind.timed and (not kind.covered or self.by_key() in on)
        if whole and r.random() < 0.5:
            sets = ""
        if sets or whole:
            c.add(f"{text}update or insert into T{sets} on {on};")

    def read(self) -> None:
        c, r = self.c, self.r
        id = r.choice(c.streams).id
        if r.random() < 0.5 and not self.index_set:
            c.join("T", id)
            return
        scope = c.scope(id)
        test = self.own() or [Attr("T.k", "string")]
        item = c.e.attr(scope, ("string",)) or Attr("'a'", "string")
        covered = self.kind.covered
        tests = [f"T.v == {r.randrange(10)}" if covered == ("v",) else f"T.k == {item.text}"]
        if covered == ("k", "v"):
            tests = [f"T.k == {item.text} and T.v == {r.randrange(10)}", f"T.v > {r.randrange(10)}"]
        elif any(a.type == "int" for a in test):
            tests += [f"T.v > {r.randrange(10)}"]
        text = f"({r.choice(tests)} in T)"
        select, out = c.select(scope, 0.0)
        c.add(f"from {id}[{r.choice((text, f'not ({text})'))}] {select}{c.insert(out, False)}")

    def ask(self) -> None:
        """Questions about the table, and changes between them."""
        c, r, kind = self.c, self.r, self.kind
        c.ask("T", self.types, self.kind.covered)
        if r.random() > 0.3:
            return
        word, number = r.choice("abcd"), r.randrange(12)
        values = {"k": f"'{word}'", "v": str(number), "d": "2.5", "t": "5L"}
        row = ", ".join(f"{values[n]} as {n}" for n in self.types)
        key = " and ".join(f"T.{n} == {values[n]}" for n in kind.covered or ("k",))
        changes = [f"select {row} insert into T", f"update T set T.v = {number} on {key}"]
        if kind.primary:
            changes += [f"delete T on {key}", f"select {row} update or insert into T on {key}"]
            if "v" in kind.covered:
                changes.pop(1)
        if not kind.timed:
            c.habits.queries.insert(0, r.choice(changes))


def columns(types: dict[str, str]) -> str:
    return ", ".join(f"{name} {type}" for name, type in types.items())
