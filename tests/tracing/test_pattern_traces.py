"""Traces of patterns and sequences: partial matches, when they begin, go on and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sparkstream_nb import trace
from sparkstream_nb.app.results.traces import PartialTrace, PatternTrace

STREAMS = "define stream A (v int); define stream B (v int); define stream C (v int);"


def traced(pattern: str, feed: str, select: str = "1 as one", **how: Any) -> PatternTrace:
    """`feed`: `A0 B1.5:7` is an event of A at 0 s, and one of B at 1.5 s with the value 7."""
    events = []
    for word in feed.split():
        time, _, value = word[1:].partition(":")
        events.append((word[0], round(1000 * float(time)), [int(value or 0)]))
    text = f"{STREAMS} @info(name = 'q') from {pattern} select {select} insert into Out;"
    found = trace(text, "q", events, **how)
    assert isinstance(found, PatternTrace)
    return found


def written(t: PatternTrace) -> list[str]:
    """Each partial match as `e1@0 e2@1 match@1`: its captures and its end in seconds; `not` for an absence."""

    def one(p: PartialTrace) -> str:
        captures = [f"{t.states[c.state].name}@{c.time / 1000:g}" for c in p.captures]
        named = [f"not {x}" if c.event is None else x for x, c in zip(captures, p.captures, strict=True)]
        branch = "" if p.parent is None else f"{p.parent}> "
        return branch + " ".join([*named, p.end if p.ended is None else f"{p.end}@{p.ended / 1000:g}"])

    return [one(p) for p in t.partials]


OPERATORS = {
    # the next state, at any later time
    "e1=A -> e2=B": ("A0 C1 A2 B3 A4 B5", ["e1@0 e2@3 match@3"]),
    # strictly the next event of the sequence's streams
    "e1=A, e2=B": ("A0 B1", ["e1@0 e2@1 match@1"]),
    "every e1=A, e2=B": ("A0 A1 B2 B3", ["e1@0 dropped@1", "e1@1 e2@2 match@2"]),
    # every: a partial match begins with each event, or after each match
    "every e1=A -> e2=B": ("A0 A1 B2 A3", ["e1@0 e2@2 match@2", "e1@1 e2@2 match@2", "e1@3 waiting"]),
    "every (e1=A -> e2=B)": ("A0 A1 B2 A3", ["e1@0 e2@2 match@2", "e1@3 waiting"]),
    "e1=A -> every e2=B": ("A0 B1 B2", ["e1@0 e2@1 match@1", "1> e1@0 e2@2 match@2", "2> e1@0 waiting"]),
    # counts
    "e1=A<2:3> -> e2=B": ("A0 A1 A2 A3 B4", ["e1@0 e1@1 e1@2 e2@4 match@4"]),
    "e1=A<2> -> e2=B": ("A0 B1 A2 B3", ["e1@0 e1@2 e2@3 match@3"]),
    "e1=A<2:> -> e2=B": ("A0 A1 A2 A3 B4", ["e1@0 e1@1 e1@2 e1@3 e2@4 match@4"]),
    "e1=A+, e2=B": ("A0 A1 B2", ["e1@0 e1@1 e2@2 match@2"]),
    "e1=A, e2=B*, e3=C": ("A0 B1 B2 C3", ["e1@0 e2@1 e2@2 e3@3 match@3"]),
    "every e1=A, e2=B?, e3=C": (
        "A0 C1 A2 B3 C4 A5 B6 B7", ["e1@0 e3@1 match@1", "e1@2 e2@3 e3@4 match@4", "e1@5 e2@6 dropped@7"],
    ),
    # logical
    "e1=A and e2=B -> e3=C": ("B0 A1 C2", ["e2@0 e1@1 e3@2 match@2"]),
    "e1=A or e2=B -> e3=C": ("B0 A1 C2", ["e2@0 e3@2 match@2"]),
    # absent
    "e1=A -> not B for 5 sec": ("A0 C1", ["e1@0 not B@5 match@5"]),
    "every e1=A -> not B for 5 sec": ("A0 A1 B3 A4", ["e1@0 dropped@3", "e1@1 dropped@3", "e1@4 not B@9 match@9"]),
    "not A for 5 sec -> e2=B": ("C0 B6", ["not A@5 e2@6 match@6"]),
    "e1=A -> not B and e3=C": ("A0 C1", ["e1@0 e3@1 match@1"]),
    "every e1=A -> not B and e3=C": ("A0 B1 A2 C3", ["e1@0 B@1 dropped@1", "e1@2 e3@3 match@3"]),
    "e1=A -> not B for 3 sec and e3=C": ("A0 C1", ["e1@0 e3@1 not B@3 match@3"]),
    "e1=A -> not B for 3 sec or e3=C": ("A0 B1 C2", ["e1@0 e3@2 match@2"]),
    # within
    "every e1=A -> e2=B within 2 sec": ("A0 A2 B3 A4 C8", ["e1@0 expired@2", "e1@2 e2@3 match@3", "e1@4 expired@6"]),
    "every e1=A, e2=B within 2 sec": ("A0 B1 A2 B5", ["e1@0 e2@1 match@1", "e1@2 expired@4"]),
}  # fmt: skip
"""By pattern: its feed, and the partial matches over it."""


@pytest.mark.parametrize("pattern", OPERATORS)
def test_partial_matches_of_each_operator(pattern: str) -> None:
    feed, expected = OPERATORS[pattern]
    found = traced(pattern, feed)
    assert found.text == pattern
    assert written(found) == expected


@pytest.mark.parametrize("pattern", OPERATORS)
def test_each_match_has_its_output(pattern: str) -> None:
    found = traced(pattern, OPERATORS[pattern][0])
    assert len(found.matches) == len(found.outputs)
    assert [(p.ended, p.outputs) for p in sorted(found.matches, key=lambda p: p.ended or 0)] == [
        (o.time, [o]) for o in found.outputs
    ]


@pytest.mark.parametrize("seed", range(60))
def test_matches_are_the_outputs_of_random_feeds(seed: int) -> None:
    """Values of the captured events are those that the query selects, for patterns of all operators."""
    import random

    rng = random.Random(seed)
    words = [f"{rng.choice('AABBC')}{i}:{rng.randrange(9)}" for i in range(24)]
    pattern, select = rng.choice(_SELECTING)
    found = traced(pattern, " ".join(words), select)
    for p in found.partials:  # each was seen from its first event on
        assert p.parent is not None or p.waits or p.start == p.captures[0].time
    outputs = [tuple(o.values.values()) for o in found.outputs]
    assert sorted(outputs, key=str) == sorted((_selected(found, p) for p in found.matches), key=str)


_SELECTING: Sequence[tuple[str, str]] = [
    ("every e1=A -> e2=B", "e1.v as e1, e2.v as e2"),
    ("every (e1=A[v > 3] -> e2=B[v > e1.v] -> e3=C)", "e1.v as e1, e2.v as e2, e3.v as e3"),
    ("every e1=A -> e2=A[v > e1.v] within 5 sec", "e1.v as e1, e2.v as e2"),
    ("every e1=A, e2=B", "e1.v as e1, e2.v as e2"),
    ("every e1=A, e2=B*, e3=C", "e1.v as e1, e2[0].v as e2, e3.v as e3"),
    ("every e1=A+, e2=B?, e3=C", "e1[0].v as e1, e2[0].v as e2, e3.v as e3"),
    ("every e1=A<2:3> -> e2=B", "e1[0].v as e1, e2.v as e2"),
    ("every e1=A and e2=B -> e3=C", "e1.v as e1, e2.v as e2, e3.v as e3"),
    ("every e1=A or e2=B -> e3=C", "e1.v as e1, e2.v as e2, e3.v as e3"),
    ("every e1=A -> not B for 2 sec", "e1.v as e1"),
    ("every e1=A -> not B and e2=C", "e1.v as e1, e2.v as e2"),
    ("e1=A -> every e2=B -> e3=C", "e1.v as e1, e2.v as e2, e3.v as e3"),
    ("every e1=A -> not B for 3 sec -> e2=C within 10 sec", "e1.v as e1, e2.v as e2"),
]


def _selected(t: PatternTrace, p: PartialTrace) -> tuple[Any, ...]:
    """The first event's value of each state, in the order of the text, as `_SELECTING` selects it."""
    values: dict[str, Any] = {}
    for c in p.captures:
        if c.event is not None:
            values.setdefault(t.states[c.state].name, c.event.values["v"])
    names = sorted(s.name for s in t.states if s.name.startswith("e"))
    return tuple(values.get(n) for n in names)


def test_an_event_that_comes_after_the_other_side_spoils_nothing() -> None:
    found = traced("every (not A and e1=B) -> e2=C", "B0 A1 C2 A3 B4 C5")
    assert written(found) == ["e1@0 e2@2 match@2"]


def test_an_every_within_the_pattern_keeps_the_events_before_it() -> None:
    found = traced("e1=A -> every (e2=B -> e3=C)", "A0 B1 C2 B3 C4 B5")
    assert written(found) == ["e1@0 e2@1 e3@2 match@2", "1> e1@0 e2@3 e3@4 match@4", "2> e1@0 e2@5 waiting"]


def test_a_filter_that_looks_back_is_written_with_its_name() -> None:
    found = traced("every e1=A<2:> -> e2=A[e2[last].v is null]<0:2> -> e3=B", "A0 A1 B2")
    assert [s.text for s in found.states] == ["e1=A<2:>", "e2=A[e2[last].v is null]<0:2>", "e3=B"]


def test_absences_are_spans() -> None:
    found = traced("every e1=A -> not B for 5 sec", "A0 A1 B3 A4")
    assert [[(w.start, w.end) for w in p.waits] for p in found.partials] == [
        [(0, 3000)], [(1000, 3000)], [(4000, 9000)],
    ]  # fmt: skip
    assert [p.reason for p in found.partials] == ["an event of B came", "an event of B came", ""]


def test_an_absence_from_the_beginning_is_waited_for_again() -> None:
    found = traced("not A for 5 sec -> e2=B", "C0 A2 B8")
    assert written(found) == ["dropped@2", "not A@7 e2@8 match@8"]
    assert [[(w.start, w.end) for w in p.waits] for p in found.partials] == [[(0, 2000)], [(2000, 7000)]]


def test_a_clock_that_starts_before_the_first_event() -> None:
    assert written(traced("not A for 5 sec -> e2=B", "B6", start=0)) == ["not A@5 e2@6 match@6"]


def test_the_reasons_of_ends() -> None:
    assert traced("every e1=A, e2=B", "A0 A1").partials[0].reason == "the next event did not fit"
    assert traced("e1=A -> e2=B within 1 min 30 sec", "A0 A100").partials[0].reason == "1 min 30 sec passed"
    assert traced("e1=A -> e2=B", "A0").partials[0].reason == ""


def test_partitions_and_filters() -> None:
    text = (
        "define stream S (k string, v int); partition with (k of S) begin @info(name = 'q') "
        "from every e1=S[v > 5] -> e2=S[v < e1.v] select e1.k as k, e2.v as v insert into Out; end;"
    )
    feed = [(0, ["x", 9]), (1000, ["y", 7]), (2000, ["y", 8]), (3000, ["x", 2])]
    found = trace(text, "q", feed)
    assert isinstance(found, PatternTrace)
    assert [(p.key, p.end) for p in found.partials] == [("x", "match"), ("y", "waiting"), ("y", "waiting")]
    assert found.matches[0].outputs[0].values == {"k": "x", "v": 2}
    assert [s.text for s in found.states] == ["e1=S[v > 5]", "e2=S[v < e1.v]"]


def test_outputs_of_a_pattern_with_having_are_not_assigned() -> None:
    found = traced("every e1=A -> e2=B", "A0:1 B1 A2:5 B3", "e1.v as v having v > 3")
    assert len(found.matches) == 2
    assert [o.values for o in found.outputs] == [{"v": 5}]


def test_the_frame_of_a_trace() -> None:
    frame = traced("every e1=A -> e2=B", "A0:1 A1:2 B2:3").frame
    assert frame["end"].tolist() == ["match", "match"]
    assert frame["e1"].tolist() == [[{"v": 1}], [{"v": 2}]]
