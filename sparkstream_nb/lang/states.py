"""Patterns and sequences: builds their syntax trees and applies the rules of Siddhi's grammar.

Siddhi's grammar restricts where absent events (`not S for t`) and `every` can occur in a chain. Its rules are two
tables over short names of those element types here, and a chain is parsed with them bottom-up (CYK).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from ..errors import SiddhiSyntaxError, Span
from .tree import (
    AbsentState,
    CountState,
    EveryState,
    LogicalState,
    NextState,
    StateElement,
    StateStream,
    StreamState,
    TimeConstant,
)

Unit = StreamState | CountState | AbsentState | LogicalState


@dataclass(frozen=True)
class Link:
    """One link of a chain as written; `suffix` is the `*`, `+` or `?` of a counted event."""

    unit: Unit | Group
    every: bool
    span: Span
    suffix: str | None = None


@dataclass(frozen=True)
class Chain:
    """Links with `->` or `,` between them; `separators` holds each one's text and span."""

    links: tuple[Link, ...]
    separators: tuple[tuple[str, Span], ...]


@dataclass(frozen=True)
class Group:
    """A chain in parentheses."""

    chain: Chain
    span: Span


Kinds = frozenset[str]
_Table = dict[tuple[str, str], str]

# Pattern: C pattern_source_chain, P every_pattern_source_chain, E every_absent_pattern_source, L and R left_ and
# right_absent_pattern_source, A absent_pattern_source_chain (only ever a whole pattern).
_PATTERN: Final[_Table] = {
    ("C", "C"): "C", ("P", "P"): "P",
    ("E", "P"): "L", ("L", "L"): "L", ("L", "E"): "L", ("P", "L"): "L",
    ("P", "E"): "R", ("R", "R"): "R", ("E", "R"): "R", ("R", "P"): "R",
}  # fmt: skip
# Sequence: S sequence_source_chain, N basic_absent_pattern_source, L and R left_ and right_absent_sequence_source,
# A absent_sequence_source_chain, O one sequence_source.
_SEQUENCE: Final[_Table] = {
    ("S", "S"): "S",
    ("N", "S"): "L", ("L", "L"): "L", ("L", "N"): "L", ("S", "L"): "L",
    ("S", "N"): "R", ("R", "R"): "R", ("N", "R"): "R", ("R", "S"): "R",
}  # fmt: skip
_ABSENT_CHAIN: Final = frozenset("NLRA")


def state_stream(chain: Chain, within: TimeConstant | None, span: Span) -> StateStream:
    """The pattern or sequence that a chain is. Raises SiddhiSyntaxError where Siddhi's grammar has no such chain."""
    kind = _kind(chain)
    if kind == "sequence":
        return StateStream("sequence", _sequence(chain), within, span=span)
    kinds = _pattern_kinds(chain)
    if not kinds & {"P", "A"}:
        _refuse_pattern(chain)
    return StateStream("pattern", _flat(chain.links), within, span=span)


def _kind(chain: Chain) -> Literal["pattern", "sequence"]:
    separators = list(_separators(chain))
    for text, span in separators:
        if text != separators[0][0]:
            raise SiddhiSyntaxError(
                f"'{text}' in a chain that began with '{separators[0][0]}'", span,
                hint="A pattern joins its events by '->', a sequence by ','; one query cannot do both.",
            )  # fmt: skip
    return "sequence" if separators and separators[0][0] == "," else "pattern"


def _separators(chain: Chain) -> list[tuple[str, Span]]:
    out = list(chain.separators)
    for link in chain.links:
        if isinstance(link.unit, Group):
            out += _separators(link.unit.chain)
    return sorted(out, key=lambda s: s[1])


def _flat(links: tuple[Link, ...]) -> StateElement:
    """The links as a tree that leans to the right, groups without `every` dissolved."""
    states: list[StateElement] = []
    for link in links:
        state = _flat(link.unit.chain.links) if isinstance(link.unit, Group) else link.unit
        states += [EveryState(state, span=link.span)] if link.every else _spread(state)
    return _next(states)


def _spread(state: StateElement) -> list[StateElement]:
    return [state.first, *_spread(state.then)] if isinstance(state, NextState) else [state]


def _next(states: list[StateElement]) -> StateElement:
    out = states[-1]
    for state in reversed(states[:-1]):
        out = NextState(state, out, span=state.span.to(out.span))
    return out


def _cyk(leaves: list[Kinds], table: _Table) -> list[list[Kinds]]:
    """`out[i][j]`: the kinds that links i..j together can be."""
    n = len(leaves)
    out: list[list[Kinds]] = [[frozenset()] * n for _ in range(n)]
    for i, leaf in enumerate(leaves):
        out[i][i] = leaf
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width - 1
            found = {
                table[a, b] for k in range(i, j) for a in out[i][k] for b in out[k + 1][j] if (a, b) in table
            }  # fmt: skip
            out[i][j] = frozenset(found | {"P"} if "C" in found else found)
    return out


# ------------------------------------------------------------------------------------------------------- patterns


def _pattern_kinds(chain: Chain) -> Kinds:
    kinds = _cyk([_pattern_leaf(link) for link in chain.links], _PATTERN)[0][-1]
    return kinds | {"A"} if kinds & set("ELR") else kinds


def _pattern_leaf(link: Link) -> Kinds:
    if isinstance(link.unit, Group):
        inner = _pattern_kinds(link.unit.chain)
        if link.every:
            return frozenset(inner & set("LRA")) | (frozenset("P") if "C" in inner else frozenset())
        return frozenset(inner & set("CPLRA"))
    if link.suffix:
        raise SiddhiSyntaxError(
            f"'{link.suffix}' counts events in a sequence only, and this is a pattern", link.span,
            hint="In a pattern write <1:> for one or more, <0:> for any number, <0:1> for at most one.",
        )  # fmt: skip
    if isinstance(link.unit, AbsentState):
        _need_wait(link.unit)
        return frozenset("E")
    return frozenset("P" if link.every else "CP")


def _refuse_pattern(chain: Chain) -> NoReturn:
    for link, next_link in zip(chain.links, chain.links[1:], strict=False):
        if isinstance(link.unit, AbsentState) and isinstance(next_link.unit, AbsentState):
            raise SiddhiSyntaxError(
                "two absent events cannot follow one another here", link.span.to(next_link.span),
                hint="Join them as 'not A for t and not B for t', or put an event between them.",
            )  # fmt: skip
    for link in chain.links:
        if isinstance(link.unit, Group):
            inner = _pattern_kinds(link.unit.chain)
            if not inner:
                _refuse_pattern(link.unit.chain)
            if link.every and not inner & set("CLRA"):
                raise SiddhiSyntaxError(
                    "'every' cannot contain another 'every'", link.span, hint="Keep one of the two."
                )
            if "A" in inner and not inner & set("LR"):
                raise SiddhiSyntaxError(
                    "an absent event in a chain takes no parentheses", link.span, hint="Leave them out."
                )
    raise SiddhiSyntaxError("Siddhi does not support this pattern", chain.links[0].span.to(chain.links[-1].span))


def _need_wait(state: AbsentState) -> None:
    if state.wait is None:
        raise SiddhiSyntaxError(
            "an absent event needs a waiting time", state.span,
            hint="Write 'not S for 5 sec'. Only 'not A and b=B' needs none.",
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ sequences


def _sequence_leaf(link: Link) -> Kinds:
    if isinstance(link.unit, Group):
        kinds = _sequence_kinds(link.unit.chain)
        only = link.unit.chain.links
        single = len(only) == 1 and "O" in _sequence_leaf(only[0]) and _is_logical_absent(only[0])
        return (kinds & set("SLRA")) | (frozenset("O") if single else frozenset())
    if isinstance(link.unit, AbsentState):
        _need_wait(link.unit)
        return frozenset("N")
    return frozenset("OS")


def _is_logical_absent(link: Link) -> bool:
    if isinstance(link.unit, Group):
        return len(link.unit.chain.links) == 1 and _is_logical_absent(link.unit.chain.links[0])
    sides = (link.unit.left, link.unit.right) if isinstance(link.unit, LogicalState) else ()
    return any(isinstance(side, AbsentState) for side in sides)


def _sequence_kinds(chain: Chain) -> Kinds:
    for link in chain.links:
        if link.every:
            _refuse_every(link)
    kinds = _cyk([_sequence_leaf(link) for link in chain.links], _SEQUENCE)[0][-1]
    return kinds | {"A"} if kinds & set("NLR") else kinds


def _sequence(chain: Chain) -> StateElement:
    links = chain.links
    for link in links[1:]:
        if link.every:
            _refuse_every(link)
    if len(links) == 1:
        raise SiddhiSyntaxError(
            "a whole sequence cannot be in parentheses", links[0].span, hint="Leave out the outer parentheses."
        )
    kinds = _cyk([_sequence_leaf(link) for link in links], _SEQUENCE)
    extent = _extent_of_every(links, kinds)
    if not links[0].every:
        return _flat(links)
    plain = (Link(links[0].unit, False, links[0].span, links[0].suffix), *links[1:])
    every = EveryState(_flat(plain[:extent]), span=links[0].span.to(links[extent - 1].span))
    return _next([every, *_spread(_flat(links[extent:]))])


def _extent_of_every(links: tuple[Link, ...], kinds: list[list[Kinds]]) -> int:
    """How many links a leading `every` covers, by the order in which Siddhi's grammar tries its alternatives.

    One, but a chain with an absent event inside: there the longest start that is an absent chain by itself.
    """
    last = len(links) - 1
    first = kinds[0][0]
    if "O" in first and "S" in kinds[1][last]:
        return 1
    if "N" in first and "S" in kinds[1][last]:
        return 1
    for extent in range(last, 0, -1):
        if kinds[0][extent - 1] & _ABSENT_CHAIN and "S" in kinds[extent][last]:
            return extent
    if "O" in first and kinds[1][last] & _ABSENT_CHAIN:
        return 1
    for link, next_link in itertools.pairwise(links):
        if isinstance(link.unit, AbsentState) and isinstance(next_link.unit, AbsentState):
            raise SiddhiSyntaxError(
                "two absent events cannot follow one another here", link.span.to(next_link.span),
                hint="Join them as 'not A for t and not B for t', or put an event between them.",
            )  # fmt: skip
    if isinstance(links[0].unit, Group):
        raise SiddhiSyntaxError(
            "a sequence cannot begin with a group in parentheses", links[0].span, hint="Leave out the parentheses."
        )
    raise SiddhiSyntaxError("Siddhi does not support this sequence", links[0].span.to(links[-1].span))


def _refuse_every(link: Link) -> NoReturn:
    raise SiddhiSyntaxError(
        "in a sequence, 'every' is allowed only before the first event",
        link.span,
        hint="Or write a pattern, with '->'.",
    )
