"""Random patterns and sequences."""

from __future__ import annotations

from random import Random

from .expressions import Attr, Expressions

WAITS = ("300 millisec", "1 sec", "2 sec")


class States:
    """Writes a chain of states over `streams` (id → attributes), and what a select may name afterwards.

    Left out are the counts of a sequence that mean something else here than in Siddhi (see the differences): a least
    number of two or more, of one or more in the last state, and of none in both the first and the last state; and an
    `and` of two events that is the whole pattern.
    """

    def __init__(self, r: Random, e: Expressions, streams: dict[str, dict[str, str]], sequence: bool) -> None:
        self.r, self.e, self.streams, self.sequence = r, e, streams, sequence
        self.scope: list[Attr] = []
        self.seen: list[Attr] = []
        self.events: list[str] = []
        self.number = 0
        self.empty_first = self.whole = False

    def chain(self) -> tuple[str, list[Attr]]:
        """The text of the query's input, and the attributes that its select may name."""
        r = self.r
        length = r.choice((1, 2, 2, 2, 2, 3, 3, 3, 4)) + (self.sequence and r.random() < 0.8)
        self.whole = length == 1
        parts = [self.state(i == 0, i == length - 1) for i in range(length)]
        text = self.sequenced(parts) if self.sequence else self.patterned(parts)
        if r.random() < 0.35:
            text += f" within {r.choice(('500 millisec', '1 sec', '2 sec'))}"
        return text, self.scope or [Attr("'none'", "string")]

    def sequenced(self, parts: list[str]) -> str:
        r = self.r
        if len(parts) > 2 and r.random() < 0.1:
            parts = [parts[0], f"({', '.join(parts[1:])})"]
        return ("every " if r.random() < 0.7 else "") + ", ".join(parts)

    def patterned(self, parts: list[str]) -> str:
        r = self.r
        if len(parts) > 1 and r.random() < 0.3:
            at = r.randrange(0, len(parts) - 1)
            end = r.choice((at + 2, len(parts)))
            group = f"({' -> '.join(parts[at:end])})"
            if r.random() < 0.8:
                group = "every " + group
            if r.random() < 0.15 and end < len(parts):
                group = f"({group} -> {parts[end]})"
                end += 1
            return " -> ".join([*parts[:at], group, *parts[end:]])
        every = r.choice((0, 0, 0, 0, 1, len(parts) - 1, None))
        return " -> ".join(f"every {p}" if i == every else p for i, p in enumerate(parts))

    def state(self, first: bool, last: bool) -> str:
        r = self.r
        which = r.random()
        if which < 0.18:
            return self.logical(brackets=r.random() < 0.8)
        if which < 0.3:
            return self.absent()
        ref, text = self.event()
        if which < 0.55:
            if self.sequence:
                none, some = ("*", "*", "?", "<0:2>", "<:2>", "<0:>"), ("+", "+", "<1:2>", "<1>", "<1:3>")
                count = r.choice((*none, *some) if not last else ("",) if self.empty_first else none)
                self.empty_first |= first and count in none
            else:
                count = r.choice(("<1:2>", "<2:>", "<2>", "<2:3>", "<1:>", "<0:2>", "<:2>", "<0:>", "<1>"))
            if not count or r.random() < 0.15:
                self.name(ref, f"{ref}.", listed=bool(count))
                self.events.append(ref)
            else:
                index = r.choice(("0", "0", "1", "2", "last", "last", "last - 1", "last - 2"))
                self.events.append(f"{ref}[{index}]")
                self.name(ref, f"{ref}[{index}].")
            return text + count
        self.name(ref, f"{ref}.")
        self.events.append(ref)
        return text

    def event(self) -> tuple[str, str]:
        """A plain state: its name and text. Its filter may name what came before."""
        r = self.r
        self.number += 1
        ref, id = f"e{self.number}", r.choice(list(self.streams))
        own = [Attr(n, t) for n, t in self.streams[id].items()]
        self.id = id
        text = f"{ref}={id}"
        if r.random() < 0.6:
            text += f"[{self.condition(own, ref)}]"
            if r.random() < 0.1:
                text += f"[{self.condition(own, ref)}]"
        return ref, text

    def condition(self, own: list[Attr], ref: str | None = None) -> str:
        """A filter of the state `ref`, over its own attributes and those of what came before."""
        r = self.r
        if self.events and r.random() < 0.05:
            return f"{r.choice(self.events)} is {r.choice(('', 'not '))}null"
        if ref is not None and r.random() < 0.08:  # the event before, where the state is counted
            own = [*own, *(Attr(f"{ref}[{r.choice(('last', '0'))}].{a.text}", a.type) for a in own)]
        earlier = [a for a in self.seen if any(b.type == a.type for b in own)]
        if not earlier or r.random() > 0.6:
            return self.e.boolean(own, 1)
        parts = []
        for _ in range(r.choice((1, 1, 1, 2))):
            if r.random() < 0.3:
                parts.append(self.e.boolean([*own, *earlier, *earlier], r.choice((1, 1, 2, 3))))
                continue
            a = r.choice(earlier)
            b = r.choice([b for b in own if b.type == a.type])
            op = r.choice(("==", "!=")) if a.type in ("string", "bool") else r.choice((">", "<", ">=", "!=", "=="))
            parts.append(f"{b.text} {op} {a.text}")
        text = r.choice((" and ", " and ", " or ")).join(parts)
        return f"not ({text})" if r.random() < 0.1 else text

    def name(self, ref: str, prefix: str, listed: bool = False) -> None:
        attrs = [Attr(prefix + n, "object" if listed else t) for n, t in self.streams[self.id].items()]
        self.scope += attrs
        self.seen += [Attr(a.text, t) for a, t in zip(attrs, self.streams[self.id].values(), strict=True)]

    def logical(self, brackets: bool) -> str:
        """Two sides, each of which may be absent; without `for` only beside `and`."""
        r = self.r
        op = r.choice(("and", "or"))
        kinds = r.choice(("both", "both", "both", "left", "right", "neither"))
        if self.whole and kinds == "both":
            op = "or"
        sides: list[str] = []
        named: list[tuple[str, str]] = []
        for side in ("left", "right"):
            if kinds in ("both", side):
                ref, text = self.event()
                named.append((ref, self.id))
                sides.append(text)
            else:
                sides.append(self.absent(op == "and" and kinds != "neither" and r.random() < 0.5))
        for ref, self.id in named:  # neither side may name the other
            self.name(ref, f"{ref}.")
        text = f" {op} ".join(sides)
        return f"({text})" if brackets else text

    def absent(self, timeless: bool = False) -> str:
        r = self.r
        id = r.choice(list(self.streams))
        own = [Attr(n, t) for n, t in self.streams[id].items()]
        where = f"[{self.condition(own)}]" if r.random() < 0.5 else ""
        return f"not {id}{where}" + ("" if timeless else f" for {r.choice(WAITS)}")
