"""Signatures: their text format, how they are read, and how a call is checked against them.

A signature is a row of a text table in `plan/signatures/` and reads like a declaration:

    str:substr(input.string string, begin.index int, length int) -> string

Several rows of one name are overloads, tried in order. After a type, `!` requires a constant;
`...` at the end repeats the last parameter any number of times, none included (Siddhi's
`InputParameterValidator`). Types may be joined by `|`; `num` is int|long|float|double, `prim` everything but
object, `any` every type, `dur` int|long. The result is a type, `$1` for the type of the first argument, or `?`
where a small function in `signatures/rules.py` decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ...errors import NotInThisBuild, SiddhiBindError, SiddhiError, Span, did_you_mean, near_to
from ...lang.keywords import UNIT_SPELLINGS
from ...types import Schema, Type
from ..extensions import extensions, not_included, owner_of
from ..nodes import Const, Expr

_GROUPS: Mapping[str, tuple[Type, ...]] = {
    "num": (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE),
    "prim": (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE, Type.STRING, Type.BOOL),
    "any": tuple(Type),
    "dur": (Type.INT, Type.LONG),
}


class RuleError(Exception):
    """A call violates a rule beyond the signature's types. `arg` is the position of the wrong argument, None for the
    call."""

    def __init__(self, message: str, arg: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.arg = arg
        self.hint = hint


@dataclass(frozen=True)
class Param:
    """`constant`: only a literal is accepted."""

    name: str
    types: tuple[Type, ...]
    constant: bool

    def __str__(self) -> str:
        names = {t: n for n, t in (("any", _GROUPS["any"]), ("prim", _GROUPS["prim"]), ("number", _GROUPS["num"]))}
        kind = names.get(self.types) or "|".join(map(str, self.types))
        return f"{self.name} {kind}{' constant' if self.constant else ''}"


Result = Type | str
Rule = Callable[[Sequence[Expr]], Type]
Check = Callable[[Sequence[Expr]], None]


@dataclass(frozen=True)
class Overload:
    """`repeats`: the last parameter can repeat. `result` is a type, "$1", "?" (a rule), or None (windows)."""

    params: tuple[Param, ...]
    repeats: bool
    result: Result | None

    def accepts(self, args: Sequence[Expr]) -> bool:
        """True if number and types of `args` fit."""
        if self.repeats:
            if len(args) < len(self.params):
                return False
        elif len(args) != len(self.params):
            return False
        return all(a.type in self.param(i).types for i, a in enumerate(args))

    def param(self, i: int) -> Param:
        """The parameter that argument `i` meets."""
        return self.params[min(i, len(self.params) - 1)]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.params)) + (", ..." if self.repeats else "") + ")"


@dataclass(frozen=True)
class Signature:
    """All overloads of one name. `rule` gives the result type where the table says `?`; `check` looks at the values."""

    key: str
    overloads: tuple[Overload, ...]
    rule: Rule | None = None
    check: Check | None = None


def signatures(
    text: str, rules: Mapping[str, Rule] | None = None, checks: Mapping[str, Check] | None = None
) -> dict[str, Signature]:
    """Reads a table of signatures. Raises ValueError for a malformed row."""
    overloads: dict[str, list[Overload]] = {}
    for line in text.splitlines():
        line = line.split("--")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"([\w:]+)\((.*?)\)(?:\s*->\s*(\S+))?", line)
        if match is None:
            raise ValueError(f"not a signature: {line}")
        key, params, result = match.groups()
        try:
            overload = _overload(params, result)
        except ValueError as error:
            raise ValueError(f"not a signature: {line} ({error})") from None
        overloads.setdefault(key, []).append(overload)
    return {
        key: Signature(key, tuple(rows), (rules or {}).get(key), (checks or {}).get(key))
        for key, rows in overloads.items()
    }


def _overload(text: str, result: str | None) -> Overload:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    repeats = bool(parts) and parts[-1] == "..."
    params = []
    for part in parts[:-1] if repeats else parts:
        name, _, kind = part.partition(" ")
        constant = kind.endswith("!")
        types: list[Type] = []
        for one in kind.rstrip("!").split("|"):
            types.extend(_GROUPS[one] if one in _GROUPS else (Type(one),))
        params.append(Param(name, tuple(types), constant))
    kind_of_result: Result | None = result if result in ("$1", "?", None) else Type(result)
    return Overload(tuple(params), repeats, kind_of_result)


def resolve(sig: Signature, args: Sequence[Expr], span: Span, what: str) -> Type | None:
    """The result type of calling `sig` with `args`; None for a window. `what` names the thing, such as "function".

    Raises SiddhiBindError (`SiddhiAppCreationException` in Siddhi) if no overload matches, a constant is
    required, or the signature's rule rejects the call.
    """
    overload = next((o for o in sig.overloads if o.accepts(args)), None)
    if overload is None:
        argument_types = ", ".join(str(a.type) for a in args)
        ways = " or ".join(f"{sig.key}{o}" for o in sig.overloads)
        culprit = _culprit(sig, args)
        raise SiddhiBindError(
            f"{what} '{sig.key}' does not take ({argument_types})",
            args[culprit].span if culprit is not None else span,
            hint=_without_quotes(sig.key, args) or f"Expected {ways}.",
        )
    for i, arg in enumerate(args):
        param = overload.param(i)
        if param.constant and not isinstance(arg, Const):
            raise SiddhiBindError(f"'{param.name}' of {what} '{sig.key}' must be a constant", arg.span)
    try:
        if sig.check is not None:
            sig.check(args)
        if overload.result is None or isinstance(overload.result, Type):
            return overload.result
        if overload.result == "$1":
            return args[0].type
        assert sig.rule is not None, sig.key
        return sig.rule(args)
    except RuleError as e:
        raise SiddhiBindError(e.message, span if e.arg is None else args[e.arg].span, hint=e.hint) from None


def _without_quotes(key: str, args: Sequence[Expr]) -> str | None:
    """A hint for a duration given as a string, such as '10 min'; None if no argument is one."""
    for arg in args:
        if isinstance(arg, Const) and isinstance(arg.value, str):
            count, _, unit = arg.value.strip().partition(" ")
            if count.isdigit() and unit.lower() in UNIT_SPELLINGS:
                return f"Leave the quotes out: {key}({count} {unit.lower()})."
    return None


def _culprit(sig: Signature, args: Sequence[Expr]) -> int | None:
    """The first argument of a wrong type in the only overload with that many parameters, if there is just one such."""
    same = [o for o in sig.overloads if len(o.params) == len(args) or (o.repeats and len(args) >= len(o.params))]
    if len(same) != 1:
        return None
    return next((i for i, a in enumerate(args) if a.type not in same[0].param(i).types), None)


_TUMBLING = "Write #window.timeBatch(1 min) for a tumbling window of time, #window.lengthBatch(100) for one of events."
_SLIDING = "Write #window.time(1 min) for a sliding window of time, #window.length(100) for one of events."
_HOPPING = "Write #window.time(1 min), and 'output last every 10 sec' before 'insert into', for a hopping window."
_FORMS = {
    "tumbling": _TUMBLING, "tumble": _TUMBLING, "tumblingwindow": _TUMBLING,
    "sliding": _SLIDING, "slide": _SLIDING, "slidingwindow": _SLIDING,
    "hopping": _HOPPING, "hop": _HOPPING, "hoppingwindow": _HOPPING,
    "median": "A median is math:percentile(attribute, 50.0).",
    **dict.fromkeys(("mean", "average"), "A mean is avg(attribute)."),
    **dict.fromkeys(("std", "stddev", "stdev", "stddev_pop"), "A standard deviation is stdDev(attribute)."),
    **dict.fromkeys(("nunique", "count_distinct", "countdistinct"), "Distinct values are distinctCount(attribute)."),
    **dict.fromkeys(("if", "iif", "case", "when", "where"), "Write ifThenElse(condition, value, other)."),
    **dict.fromkeys(("nvl", "ifnull", "fillna"), "Write coalesce(attribute, value)."),
    **dict.fromkeys(("isnull", "isna"), "Write 'attribute is null'."),
    **dict.fromkeys(("notnull", "notna"), "Write 'not attribute is null'."),
    **dict.fromkeys(
        ("to_number", "tonumber", "to_numeric", "todouble", "to_double", "float", "double"),
        "Write convert(attribute, 'double').",
    ),
    **dict.fromkeys(("to_int", "toint", "int", "integer"), "Write convert(attribute, 'int')."),
    **dict.fromkeys(("to_string", "tostring", "to_char", "str", "text"), "Write convert(attribute, 'string')."),
    **{
        unit: f"Write time:extract(eventTimestamp(), '{unit.upper()}') for that of an event's time, in UTC."
        for unit in ("year", "month", "week", "day", "hour", "minute", "second")
    },
    **dict.fromkeys(("now", "current_timestamp", "getdate"), "Write currentTimeMillis(), or eventTimestamp()."),
    **dict.fromkeys(("len", "char_length"), "Write str:length(text)."),
    **dict.fromkeys(("substring", "mid"), "Write str:substr(text, begin, length)."),
    **dict.fromkeys(("string_agg", "listagg", "group_concat"), "Write str:groupConcat(text, ',')."),
    **dict.fromkeys(("collect", "collect_list", "array_agg"), "Write list:collect(attribute)."),
    **dict.fromkeys(("approx_count_distinct", "uniq"), "Distinct values are distinctCount(attribute)."),
    **dict.fromkeys(("greatest", "least"), "The greatest value is maximum(a, b), the least minimum(a, b)."),
    **dict.fromkeys(
        ("to_timestamp", "strptime"), "Write time:timestampInMilliseconds(text, 'yyyy-MM-dd HH:mm:ss')."
    ),
    **dict.fromkeys(("date_format", "strftime"), "Write time:dateFormat(time, 'yyyy-MM-dd')."),
    **dict.fromkeys(
        ("lag", "prev", "previous", "shift"), "The event before is e1 of a sequence: from every e1=S, e2=S select ..."
    ),
}  # fmt: skip
"""Names of windows and functions in other systems, in small letters → the SiddhiQL syntax."""


@dataclass(frozen=True)
class KnownNames:
    """The names of a kind that this build has, and its namespaces, of all kinds."""

    names: tuple[str, ...]
    namespaces: Collection[str] = ()

    def has_namespace(self, namespace: str) -> bool:
        """True if a name of this build has the namespace."""
        return namespace in self.namespaces or any(k.startswith(f"{namespace}:") for k in self.names)


def unknown_name(what: str, key: str, names: KnownNames, span: Span, *, hint: str | None = None) -> SiddhiError:
    """The error for an unknown name (`ExtensionNotFoundException` in Siddhi); a gap, where one of WSO2's extensions has
    it."""
    bare = key.split(":")[-1]
    namespace = key.split(":")[0] if ":" in key else ""
    by_name = [k for k in names.names if k.split(":")[-1].lower() == bare.lower()]
    ours = names.has_namespace(namespace)
    owner = owner_of(key)
    if owner is not None and (key in extensions().names or not ours):
        suggestion = _find_sibling(namespace, bare) if key not in extensions().names else None
        if suggestion is not None:
            message = f"WSO2's extension {extensions().names[suggestion]} has '{suggestion}'; it is not included."
            return SiddhiBindError(f"unknown {what} '{key}'", span, hint=message, kind="ExtensionNotFoundException")
        instead = hint or "Leave it out, or use the windows and functions of this build instead."
        return NotInThisBuild("extension", not_included(f"{what} '{key}'", owner), span, hint=instead)
    near = f"Did you mean '{by_name[0]}'?" if by_name else _FORMS.get(key.lower()) or did_you_mean(key, names.names)
    if namespace and not ours:  # a namespace of somebody else's, or a misspelt one
        near = _foreign(key, namespace, by_name) or (None if by_name else near)
    return SiddhiBindError(f"unknown {what} '{key}'", span, hint=hint or near, kind="ExtensionNotFoundException")


def _find_sibling(namespace: str, bare: str) -> str | None:
    """A name of WSO2's in a namespace that is near to `bare`."""
    siblings = {n.split(":")[-1]: n for n in extensions().names if n.startswith(f"{namespace}:")}
    return next((siblings[n] for n in near_to(bare, siblings)), None)


def _foreign(key: str, namespace: str, by_name: Sequence[str]) -> str | None:
    """Hint for a name of a namespace that neither this build nor WSO2 has; `by_name`: what has it elsewhere."""
    spaces = {n.partition(":")[0]: n for n in reversed(by_name)}
    close = near_to(namespace, spaces)
    if close:
        return f"Did you mean '{spaces[close[0]]}'?"
    name = next((n for n in extensions().names if n.lower() == key.lower()), None)
    if name is not None:
        return f"WSO2's extension {extensions().names[name]} has '{name}'; it is not included."
    alike = [n for n in by_name if n.partition(":")[0] not in _CONTAINERS]
    return f"This build has '{alike[0]}'." if alike else None


_CONTAINERS = ("map", "list")
"""Namespaces whose names, such as `get` and `size`, say nothing about what a function of another namespace does."""


@dataclass(frozen=True)
class StreamFunction:
    """A stream function or processor: its signature, and the attributes that it appends given the bound arguments."""

    signature: Signature
    appends: Callable[[Sequence[Expr]], Schema]
