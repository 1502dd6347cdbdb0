"""Random patterns and sequences."""

from __future__ import annotations

from random import Random

from .expressions import Attr, Expressions


class States:
    """Writes a chain of states over `streams` (id → attributes), and what a select may name afterwards.

    Left out is where Siddhi is known to go wrong: counts other than `* + ?` in sequences, `+` as last state of one,
    and absent states at the start.
    """

    def __init__(self, r: Random, e: Expressions, streams: dict[str, dict[str, str]], sequence: bool) -> None:
        self.r, self.e, self.streams, self.sequence = r, e, streams, sequence
        self.scope: list[Attr] = []
        self.seen: list[Attr] = []
        self.number = 0

    def chain(self) -> tuple[str, list[Attr]]:
        """The text of the query's input, and the attributes that its select may name."""
        r = self.r
        length = r.choice((1, 2, 2, 2, 3, 3))
        parts = [self.state(i == 0, i == length - 1) for i in range(length)]
        if self.sequence:
            text = ", ".join(parts)
            if r.random() < 0.7:
                text = "every " + text
        else:
            text = self.patterned(parts)
        if r.random() < 0.35:
            text += f" within {r.choice(('500 millisec', '1 sec', '2 sec'))}"
        return text, self.scope or [Attr("'none'", "string")]

    def patterned(self, parts: list[str]) -> str:
        r = self.r
        if len(parts) > 1 and r.random() < 0.25:
            at = r.randrange(0, len(parts) - 1)
            group = f"({parts[at]} -> {parts[at + 1]})"
            if r.random() < 0.8:
                group = "every " + group
            return " -> ".join([*parts[:at], group, *parts[at + 2 :]])
        every = r.choice((0, 0, 0, 1, None))
        return " -> ".join(f"every {p}" if i == every else p for i, p in enumerate(parts))

    def state(self, first: bool, last: bool) -> str:
        r = self.r
        which = r.random()
        if which < 0.15:
            return self.logical(brackets=not (first and self.sequence))
        if which < 0.25 and not first:
            return self.absent()
        ref, text = self.event()
        if which < 0.5:
            if self.sequence:
                count = r.choice(("*", "?") if last else ("*", "+", "?"))
                if first and count != "+":
                    count = "+" if not last else ""
            else:
                count = r.choice(("<1:2>", "<2:>", "<2>") + (() if first else ("<0:2>", "<:2>", "<1:>")))
                if last and count in ("<0:2>", "<:2>"):
                    count = "<1:2>"
            if count:
                index = r.choice(("0", "0", "1", "last"))
                self.name(ref, f"{ref}[{index}].")
                return text + count
        self.name(ref, f"{ref}.")
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
            text += f"[{self.condition(own)}]"
        return ref, text

    def condition(self, own: list[Attr]) -> str:
        r = self.r
        earlier = [a for a in self.seen if any(b.type == a.type for b in own)]
        if earlier and r.random() < 0.55:
            a = r.choice(earlier)
            b = r.choice([b for b in own if b.type == a.type])
            op = r.choice(("==", "!=")) if a.type in ("string", "bool") else r.choice((">", "<", ">=", "!="))
            return f"{b.text} {op} {a.text}"
        return self.e.boolean(own, 1)

    def name(self, ref: str, prefix: str) -> None:
        attrs = [Attr(prefix + n, t) for n, t in self.streams[self.id].items()]
        self.scope += attrs
        self.seen += attrs

    def logical(self, brackets: bool) -> str:
        r = self.r
        ref, left = self.event()
        one = self.id
        if r.random() < 0.25:
            self.name(ref, f"{ref}.")
            other = r.choice(list(self.streams))
            wait = r.choice(("", f" for {r.choice((300, 1000))} millisec"))
            return self.bracketed(f"{left} and not {other}{wait}", brackets)
        other_ref, right = self.event()
        two = self.id
        self.id = one
        self.name(ref, f"{ref}.")
        self.id = two
        self.name(other_ref, f"{other_ref}.")
        return self.bracketed(f"{left} {r.choice(('and', 'or'))} {right}", brackets)

    def bracketed(self, text: str, brackets: bool) -> str:
        return f"({text})" if brackets else text

    def absent(self) -> str:
        r = self.r
        id = r.choice(list(self.streams))
        own = [Attr(n, t) for n, t in self.streams[id].items()]
        where = f"[{self.condition(own)}]" if r.random() < 0.5 else ""
        return f"not {id}{where} for {r.choice(('300 millisec', '1 sec', '2 sec'))}"
