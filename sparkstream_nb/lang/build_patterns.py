"""Patterns and sequences: builds their syntax trees and applies the rules of Siddhi's grammar.

Siddhi's grammar restricts where absent events (`not S for t`) and `every` can occur in a chain. Its rules go by short
names of the element types, the *kinds* of a chain. They pair neighbours, and the language of accepted chains is
regular, so a chain is read once, link by link.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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

MOST_STATES = 200
"""A pattern or sequence has no more states: programs that walk them go as deep as there are states."""

Unit = StreamState | CountState | AbsentState | LogicalState


@dataclass(frozen=True)
class ChainLink:
    """One link of a chain as written; `suffix` is the `*`, `+` or `?` of a counted event."""

    unit: Unit | ChainGroup
    every: bool
    span: Span
    suffix: str | None = None


@dataclass(frozen=True)
class Chain:
    """Links with `->` or `,` between them; `separators` holds each one's text and span."""

    links: tuple[ChainLink, ...]
    separators: tuple[tuple[str, Span], ...]


@dataclass(frozen=True)
class ChainGroup:
    """A chain in parentheses."""

    chain: Chain
    span: Span


Kinds = frozenset[str]


@dataclass(frozen=True)
class _ChainRules:
    """The kinds of one sort of chain. `plain` events chain to `plain`; a chain of those in `alone` is of that kind too.
    With an `absent` event in it a chain is of kind

    - L, if it is (P* (E P+ | L) E*)+: from the rules L = E P, L L, L E, P L;
    - R, if it is (E* (P+ E | R) P*)+: from the rules R = P E, R R, E R, R P;

    where P is a plain event, E an absent one, L and R a group of that kind.
    """

    plain: str
    absent: str
    alone: str = ""


# Pattern: C pattern_source_chain, P every_pattern_source_chain, E every_absent_pattern_source, L and R left_ and
# right_absent_pattern_source, A absent_pattern_source_chain (only ever a whole pattern).
_PATTERN: Final = _ChainRules("P", "E", "C")
# Sequence: S sequence_source_chain, N basic_absent_pattern_source, L and R left_ and right_absent_sequence_source,
# A absent_sequence_source_chain, O one sequence_source.
_SEQUENCE: Final = _ChainRules("S", "N")
_ABSENT_CHAIN: Final = frozenset("NLRA")


def state_stream(chain: Chain, within: TimeConstant | None, span: Span) -> StateStream:
    """The pattern or sequence that a chain is. Raises SiddhiSyntaxError if Siddhi's grammar has no such chain, and
    for one of more than `MOST_STATES`."""
    units = list(_units(chain))
    if len(units) > MOST_STATES:
        raise SiddhiSyntaxError(
            f"a pattern of {len(units):,} states is too long: it may have {MOST_STATES}", units[MOST_STATES].span,
            hint="Let one query match the beginning and insert it into a stream, and a second one continue from there.",
        )  # fmt: skip
    kind = _kind(chain)
    if kind == "sequence":
        return StateStream("sequence", _sequence(chain), within, span=span)
    kinds = _pattern_kinds(chain)
    if not kinds & {"P", "A"}:
        _refuse_pattern(chain)
    return StateStream("pattern", _flat(chain.links), within, span=span)


def _units(chain: Chain) -> Iterator[Unit]:
    for link in chain.links:
        if isinstance(link.unit, ChainGroup):
            yield from _units(link.unit.chain)
        else:
            yield link.unit


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
        if isinstance(link.unit, ChainGroup):
            out += _separators(link.unit.chain)
    return sorted(out, key=lambda s: s[1])


def _flat(links: tuple[ChainLink, ...]) -> StateElement:
    """The links as a tree that leans to the right, groups without `every` dissolved."""
    states: list[StateElement] = []
    for link in links:
        state = _flat(link.unit.chain.links) if isinstance(link.unit, ChainGroup) else link.unit
        states += [EveryState(state, span=link.span)] if link.every else _spread(state)
    return _next(states)


def _spread(state: StateElement) -> list[StateElement]:
    out = []
    while isinstance(state, NextState):
        out.append(state.first)
        state = state.then
    return [*out, state]


def _next(states: list[StateElement]) -> StateElement:
    out = states[-1]
    for state in reversed(states[:-1]):
        out = NextState(state, out, span=state.span.to(out.span))
    return out


_Moves = dict[tuple[str, str], str]
# From a state, by an event or group, to states. `begun` is in what may stand before the middle part of a round, the
# part in inner parentheses; `core` in that part; `core+` at its end, which may be longer; `done` behind it.
_LEFT: Final[_Moves] = {
    ("begun", "P"): "begun", ("begun", "E"): "core", ("begun", "T"): "done",
    ("core", "P"): "core+",
    ("core+", "P"): "core+ begun", ("core+", "E"): "done core", ("core+", "T"): "done",
    ("done", "P"): "begun", ("done", "E"): "done core", ("done", "T"): "done",
}  # fmt: skip
_RIGHT: Final[_Moves] = {
    ("begun", "E"): "begun", ("begun", "P"): "core", ("begun", "T"): "done",
    ("core", "P"): "core", ("core", "E"): "done",
    ("done", "P"): "done core", ("done", "E"): "begun", ("done", "T"): "done",
}  # fmt: skip
_ENDS: Final = frozenset({"core+", "done"})


def _accept_moves(leaves: list[Kinds], rules: _ChainRules, moves: _Moves, group: str) -> list[bool]:
    """For each start of a chain whether `moves` accept it, with groups of kind `group`."""
    names = (("P", rules.plain), ("E", rules.absent), ("T", group))
    states: frozenset[str] = frozenset({"begun"})
    out = []
    for leaf in leaves:
        read = [name for name, kind in names if kind in leaf]
        states = frozenset(to for s in states for name in read for to in moves.get((s, name), "").split())
        out.append(bool(states & _ENDS))
    return out


def _starts(leaves: list[Kinds], rules: _ChainRules, *, backwards: bool = False) -> list[Kinds]:
    """The kinds of links 0..j of a chain, for each j; `backwards`: for a chain given from its end on, with the kinds of
    the same links read forwards.
    """
    left = _accept_moves(leaves, rules, _RIGHT if backwards else _LEFT, "L")
    right = _accept_moves(leaves, rules, _LEFT if backwards else _RIGHT, "R")
    every = {rules.plain, *rules.alone}
    out = [leaves[0]]
    for j in range(1, len(leaves)):
        every &= leaves[j - 1] & leaves[j]
        out.append(frozenset([*every, *"L" * left[j], *"R" * right[j]]))
    return out


# ------------------------------------------------------------------------------------------------------- patterns


def _pattern_kinds(chain: Chain) -> Kinds:
    kinds = _starts([_pattern_leaf(link) for link in chain.links], _PATTERN)[-1]
    return kinds | {"A"} if kinds & set("ELR") else kinds


def _pattern_leaf(link: ChainLink) -> Kinds:
    if isinstance(link.unit, ChainGroup):
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
        if isinstance(link.unit, ChainGroup):
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


def _sequence_leaf(link: ChainLink) -> Kinds:
    if isinstance(link.unit, ChainGroup):
        kinds = _sequence_kinds(link.unit.chain)
        only = link.unit.chain.links
        single = len(only) == 1 and "O" in _sequence_leaf(only[0]) and _is_logical_absent(only[0])
        return (kinds & set("SLRA")) | (frozenset("O") if single else frozenset())
    if isinstance(link.unit, AbsentState):
        _need_wait(link.unit)
        return frozenset("N")
    return frozenset("OS")


def _is_logical_absent(link: ChainLink) -> bool:
    if isinstance(link.unit, ChainGroup):
        return len(link.unit.chain.links) == 1 and _is_logical_absent(link.unit.chain.links[0])
    sides = (link.unit.left, link.unit.right) if isinstance(link.unit, LogicalState) else ()
    return any(isinstance(side, AbsentState) for side in sides)


def _sequence_kinds(chain: Chain) -> Kinds:
    for link in chain.links:
        if link.every:
            _refuse_every(link)
    kinds = _starts([_sequence_leaf(link) for link in chain.links], _SEQUENCE)[-1]
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
    extent = _extent_of_every(links, [_sequence_leaf(link) for link in links])
    if not links[0].every:
        return _flat(links)
    plain = (ChainLink(links[0].unit, False, links[0].span, links[0].suffix), *links[1:])
    every = EveryState(_flat(plain[:extent]), span=links[0].span.to(links[extent - 1].span))
    return _next([every, *_spread(_flat(links[extent:]))])


def _extent_of_every(links: tuple[ChainLink, ...], leaves: list[Kinds]) -> int:
    """Number of links that a leading `every` covers, by the order in which Siddhi's grammar tries its alternatives.

    One, except in a chain with an absent event inside: there the longest start that is itself an absent chain.
    """
    until, rest = _starts(leaves, _SEQUENCE), _starts(leaves[::-1], _SEQUENCE, backwards=True)[::-1]
    if leaves[0] & {"O", "N"} and "S" in rest[1]:
        return 1
    for extent in range(len(links) - 1, 0, -1):
        if until[extent - 1] & _ABSENT_CHAIN and "S" in rest[extent]:
            return extent
    if "O" in leaves[0] and rest[1] & _ABSENT_CHAIN:
        return 1
    for link, next_link in itertools.pairwise(links):
        if isinstance(link.unit, AbsentState) and isinstance(next_link.unit, AbsentState):
            raise SiddhiSyntaxError(
                "two absent events cannot follow one another here", link.span.to(next_link.span),
                hint="Join them as 'not A for t and not B for t', or put an event between them.",
            )  # fmt: skip
    if isinstance(links[0].unit, ChainGroup):
        raise SiddhiSyntaxError(
            "a sequence cannot begin with a group in parentheses", links[0].span, hint="Leave out the parentheses."
        )
    raise SiddhiSyntaxError("Siddhi does not support this sequence", links[0].span.to(links[-1].span))


def _refuse_every(link: ChainLink) -> NoReturn:
    raise SiddhiSyntaxError(
        "in a sequence, 'every' is allowed only before the first event",
        link.span,
        hint="Or write a pattern, with '->'.",
    )
