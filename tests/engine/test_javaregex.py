"""Patterns of Java that are wrong or ask for too much: each is one error, before it costs anything."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.expressions import javaregex
from sparkstream_nb.engine.expressions.java_values import RowFailure
from sparkstream_nb.engine.expressions.javaregex import MOST_CHARACTERS, compile_java
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.errors import SiddhiBindError
from sparkstream_nb.plan import compile_app


def refused(pattern: str) -> str:
    with pytest.raises(RowFailure) as caught:
        compile_java(pattern)
    assert len(str(caught.value)) < 200
    return str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("a{20000000}", "repeats too much"),
        ("a{2000000000,}", "repeats too much"),
        ("(a{1000}){1000}", "repeats too much"),
        ("(?:(?<n>a{50}b){50}(?i)){50}", "repeats too much"),
        ("(\\Q" + "a." * 500 + "\\E){1000}", "repeats too much"),
        ("([a-z]\\d){90000}", "repeats too much"),
        ("(" * 150 + "a" + "){1,2}" * 150, "repeats too much"),
        ("(" * 14 + "a" + "){2}" * 14, "repeats too much"),
        ("(" * 18 + "a" + "|b)++" * 18, "repeats too much"),
        ("(?x)(a{30000}) # c\n {30000}", "repeats too much"),
        ("(a{30000})\\Q\\E{30000}", "repeats too much"),
        ("a" * (MOST_CHARACTERS + 1), "has 100,001 characters"),
        ("." * MOST_CHARACTERS, "is too long"),
        ("(" * 20_000, "nested too deep"),
        ("[" * 20_000, "nested too deep"),
        ("(?:" * 190 + ")" * 190 + "(" * 20_000, "nested too deep"),
    ],
)
def test_what_asks_for_too_much(pattern: str, said: str) -> None:
    began = time.process_time()
    assert said in refused(pattern)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("\\x{", "\\x{...}"),
        ("\\x{}", "\\x{...}"),
        ("\\x{110000}", "\\x{...}"),
        ("\\x{1_0}", "\\x{...}"),
        ("\\x+1", "\\x escape"),
        ("\\u12", "\\u escape"),
        ("\\u 123", "\\u escape"),
        ("a{3,1}", "illegal repetition range, {3,1}"),
        ("a{0,99999999999999999999}", "illegal repetition range"),
        ("a{99999999999999999999}", "illegal repetition range"),
        ("a{x}", "illegal repetition"),
        ("a{", "illegal repetition"),
        ("[a", "ends too early"),
        ("a\\", "ends too early"),
        ("\\p{Nothing}", "character property 'Nothing'"),
        ("*a", "nothing to repeat"),
        ("a)", "unbalanced"),
    ],
)
def test_what_java_does_not_compile(pattern: str, said: str) -> None:
    assert said in refused(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a{3}", "aaa"), ("a{1000}", "a" * 1000), ("(ab){2,3}c{0,2000000000}", "ababcc"), ("\\x{1F600}", "😀"),
        ("\\x{0000041}", "A"), ("(((a{2}){3}){4}){5}", "a" * 120), ("a{2}+}", "aa}"),
        ("(" * 100 + "x" + ")" * 100, "x"), ("(" * 100 + "x" + ")*" * 100, "x"),
        ("(" * 100 + "x" + "){1}" * 100, "x"), ("(?x) (ab) {2} # c\n c*+", "ababcc"),
    ],
)  # fmt: skip
def test_what_is_compiled(pattern: str, text: str) -> None:
    assert compile_java(pattern).fullmatch(text)


@settings(max_examples=examples(300), deadline=None)
@given(pattern=st.text(st.sampled_from("ab\\[](){}*+?|^$.-&,:<>=!QEpPxux0123kK \n#z"), max_size=14))
def test_a_pattern_compiles_or_fails(pattern: str) -> None:
    said = "the pattern '"
    try:
        compile_java(pattern)
    except RowFailure as e:
        said = str(e)
    assert said.startswith("the pattern '")


def test_large_patterns_stay_compiled_only_as_far_as_there_is_room() -> None:
    kept = javaregex._Compiled()
    first = kept.of("first")
    assert kept.of("first") is first
    for i in range(30):
        kept.of(f"a{{{90_000 + i}}}")
    assert kept._weight <= javaregex._KEPT
    assert kept._weight == sum(weight for _, weight in kept._entries.values())
    assert len(kept._entries) < 10
    assert kept.of("first") is not first


def test_a_pattern_of_an_event_is_an_error_of_that_event() -> None:
    app = "define stream S (t string, p string); from S select regex:matches(p, t) as m insert into O;"
    patterns = ["a+", "a{20000000}", "\\x{", "(" * 5000, "b" * 200_000, "a*"]
    got = run_case({"app": app, "feed": [["S", i, ["aaa", p]] for i, p in enumerate(patterns)]})
    assert got["streams"]["O"] == [[0, [True]], [5, [True]]]
    assert got["fault"]


@pytest.mark.parametrize("call", ["regex:find('a{20000000}', t)", "str:substr(t, 'a{20000000}')"])
def test_a_pattern_of_the_text_is_told_when_the_app_is_created(call: str) -> None:
    with pytest.raises(SiddhiBindError, match=r"repeats too much: at most 100,000 pieces are compiled"):
        NodeEngine(compile_app(f"define stream S (t string); from S select {call} as m insert into O;"))
