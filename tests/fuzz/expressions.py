"""Random typed expressions over the attributes in scope."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

NUMBERS = ("int", "long", "float", "double")
WORDS = ("a", "b", "c", "d")


# Functions of the extensions by their type; {n} is any number, {i}, {l}, {d} an int, a long, a double, {s} a string.
FUNCTIONS = {
    "int": ("str:length({s})", "str:strcmp({s}, {s})", "math:signum({n})",
            "math:getExponent({n})", "time:extract({l}, 'hour')", "time:extract({l}, 'second')",
            "time:extract('month', '2020-0{c}-11 10:20:30')", "sizeOfSet(createSet({i}))"),
    "long": ("eventTimestamp()", "math:round({d})", "time:dateDiff({l}, {l})", "math:parseLong('{c}7')",
             "time:timestampInMilliseconds('2021-0{c}-03 04:05:06.789')"),
    "double": ("math:abs({n})", "math:ceil({d})", "math:floor({n})", "math:sqrt({n})", "math:power({n}, {c})",
               "math:max({n}, {n})", "math:min({n}, {n})", "math:cbrt({n})", "math:ln({n})", "math:toRadians({n})",
               "math:sin({n})", "math:exp({c})", "math:log10({n})", "math:copySign({n}, {n})",
               "math:parseDouble('{c}.5')"),
    "string": ("str:substr({s}, 0)", "str:substr('abc{c}', 1, 2)", "str:repeat({s}, {c})",
               "str:replaceAll({s}, 'a', 'b{c}')",
               "str:replaceFirst({s}, '[ab]', 'x')", "str:hex({s})", "math:hex({i})", "math:bin({i})", "math:oct({l})",
               "time:dateFormat({l}, 'yyyy-MM-dd HH:mm:ss.SSS')", "time:dateAdd({l}, {c}, 'month')",
               "time:dateSub({l}, {c}, 'hour')", "str:split('a,b,c', ',', 1)", "regex:group('([a-c])', {s}, 1)",
               "str:charAt('abcdef', {c})", "time:dayOfWeek('2020-02-0{c}', 'yyyy-MM-dd')", "str:unhex('6{c}')"),
    "bool": ("str:contains({s}, {s})", "str:equalsIgnoreCase({s}, 'A')", "regex:matches('[ab]', {s})",
             "regex:find('b|c', {s})", "regex:lookingAt('a', {s})", "math:isNan({d})", "math:isInfinite({d})",
             "str:regexp({s}, '[a-b]')"),
}  # fmt: skip


@dataclass(frozen=True)
class Attr:
    """Something an expression may name: its text and its type."""

    text: str
    type: str


class Expressions:
    """Writes expressions. `tables` are the ids that `in` may ask; `safe` leaves out what fails on a null."""

    def __init__(self, r: Random, safe: bool) -> None:
        self.r, self.safe, self.functions = r, safe, False

    def constant(self, type: str) -> str:
        r = self.r
        if type == "string":
            return f"'{r.choice(WORDS)}'"
        if type == "bool":
            return r.choice(("true", "false"))
        n = r.choice((0, 1, 2, 3, 5, 7, 10, 10, 12))
        return {"int": f"{n}", "long": f"{n}L", "float": f"{n}.5f", "double": f"{n}.25"}[type]

    def attr(self, scope: list[Attr], types: tuple[str, ...]) -> Attr | None:
        fitting = [a for a in scope if a.type in types]
        return self.r.choice(fitting) if fitting else None

    def call(self, scope: list[Attr], type: str) -> str:
        """A function of the extensions that gives `type`."""
        text = self.r.choice(FUNCTIONS[type])
        kinds = {"i": ("int",), "l": ("long",), "d": ("double",), "s": ("string",), "n": NUMBERS}
        for mark, types in kinds.items():
            while f"{{{mark}}}" in text:
                found = self.attr(scope, types)
                text = text.replace(f"{{{mark}}}", found.text if found else self.constant(types[0]), 1)
        return text.replace("{c}", str(self.r.randrange(1, 5)))

    def any(self, scope: list[Attr], depth: int = 2) -> Attr:
        """An expression of any type, and that type."""
        which = self.r.random()
        if which < 0.5:
            return self.number(scope, depth)
        if which < 0.75:
            return self.string(scope, depth)
        return Attr(self.boolean(scope, depth), "bool")

    def number(self, scope: list[Attr], depth: int = 2) -> Attr:
        """An expression of a numeric type, by Siddhi's promotion."""
        r = self.r
        found = self.attr(scope, NUMBERS)
        if depth == 0 or r.random() < 0.35:
            if found is not None and r.random() < 0.85:
                return found
            type = r.choice(NUMBERS)
            return Attr(self.constant(type), type)
        if self.functions and r.random() < 0.25:
            type = r.choice(("int", "long", "double", "double"))
            return Attr(self.call(scope, type), type)
        which = r.randrange(10)
        left = self.number(scope, depth - 1)
        if which < 5:
            right = self.number(scope, depth - 1)
            type = NUMBERS[max(NUMBERS.index(left.type), NUMBERS.index(right.type))]
            return Attr(f"({left.text} {r.choice('++--**/%')} {right.text})", type)
        if which == 5:
            condition = self.boolean(scope, depth - 1)
            return Attr(f"ifThenElse({condition}, {left.text}, {self.like(scope, left)})", left.type)
        if which == 6:
            return Attr(f"coalesce({left.text}, {self.like(scope, left)})", left.type)
        if which == 7:
            type = r.choice(NUMBERS)
            return Attr(f"convert({left.text}, '{type}')", type)
        if which == 8:
            return Attr(f"{r.choice(('maximum', 'minimum'))}({left.text}, {self.like(scope, left)})", left.type)
        return Attr(f"default({left.text}, {self.constant(left.type)})", left.type)

    def like(self, scope: list[Attr], other: Attr) -> str:
        """An attribute or constant of the same type."""
        found = self.attr(scope, (other.type,))
        return found.text if found is not None and self.r.random() < 0.6 else self.constant(other.type)

    def string(self, scope: list[Attr], depth: int = 2) -> Attr:
        r = self.r
        found = self.attr(scope, ("string",))
        if depth == 0 or r.random() < 0.5:
            return found if found is not None and r.random() < 0.85 else Attr(self.constant("string"), "string")
        if self.functions and r.random() < 0.4:
            return Attr(self.call(scope, "string"), "string")
        left = self.string(scope, depth - 1)
        which = r.randrange(6)
        if which == 0:
            condition = self.boolean(scope, depth - 1)
            return Attr(f"ifThenElse({condition}, {left.text}, {self.like(scope, left)})", "string")
        if which == 1:
            return Attr(f"coalesce({left.text}, {self.like(scope, left)})", "string")
        if which == 2:
            return Attr(f"convert({self.number(scope, 0).text}, 'string')", "string")
        if which == 3 and not self.safe:
            return Attr(f"str:concat({left.text}, {self.string(scope, 0).text})", "string")
        if which == 4 and not self.safe:
            return Attr(f"str:{r.choice(('upper', 'lower', 'reverse', 'trim'))}({left.text})", "string")
        return left

    def boolean(self, scope: list[Attr], depth: int = 2) -> str:
        r = self.r
        if self.functions and depth and r.random() < 0.15:
            return self.call(scope, "bool")
        which = r.randrange(12)
        if depth and which < 3:
            return f"({self.boolean(scope, depth - 1)} {r.choice(('and', 'or'))} {self.boolean(scope, depth - 1)})"
        if depth and which == 3:
            return f"not ({self.boolean(scope, depth - 1)})"
        if which == 4 and scope:
            return f"{r.choice(scope).text} is null"
        if which == 5:
            found = self.attr(scope, ("bool",))
            if found is not None:
                return r.choice((found.text, f"{found.text} == {self.constant('bool')}"))
        if which in (6, 7) and self.attr(scope, ("string",)) is not None:
            return f"{self.string(scope, 0).text} {r.choice(('==', '!='))} {self.string(scope, min(depth, 1)).text}"
        if which == 8 and scope:
            type = r.choice(("Integer", "String", "Long", "Boolean", "Float", "Double"))
            return f"instanceOf{type}({r.choice(scope).text})"
        left = self.number(scope, min(depth, 1)).text
        return f"{left} {r.choice(('>', '<', '>=', '<=', '==', '!=', '>', '<'))} {self.number(scope, 0).text}"
