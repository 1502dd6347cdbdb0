"""Large apps: what compiling them costs grows as they do, and a pattern that is too long is refused at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from sparkstream_nb.errors import SiddhiSyntaxError
from sparkstream_nb.lang.build_patterns import MOST_STATES
from sparkstream_nb.plan import compile_app, explain

S = "define stream S (k string, v int);\n"


def apart(n: int) -> str:
    return S + "".join(f"from S[v > {i}] select k, v insert into O{i};\n" for i in range(n))


def after_one_another(n: int) -> str:
    return S.replace("S", "S0") + "".join(f"from S{i}[v > {i}] select k, v insert into S{i + 1};\n" for i in range(n))


def against_the_text(n: int) -> str:
    """Each query reads what the next one in the text writes."""
    streams = "".join(f"define stream S{i} (k string, v int);\n" for i in range(n + 1))
    return streams + "".join(f"from S{i}[v > {i}] select k, v insert into S{i + 1};\n" for i in reversed(range(n)))


def in_a_partition(n: int) -> str:
    inside = "".join(f"from S[v > {i}] select k, sum(v) as s insert into O{i};\n" for i in range(n))
    return f"{S}partition with (k of S) begin\n{inside}end;"


def grouped_at_the_end(n: int) -> str:
    """Two queries write each stream, so that there are many ways to the end."""
    twice = "".join(f"from S{i}[v > {j}] select k, v insert into S{i + 1};\n" for i in range(n // 2) for j in range(2))
    end = f"from S{n // 2}#window.time(5) select k, sum(v) as s group by k insert into O;"
    return S.replace("S", "S0") + twice + end


def pattern(n: int) -> str:
    states = " -> ".join(f"e{i}=S[v > {i}]" for i in range(n))
    return f"{S}from every {states} select e0.k as k insert into O;"


def steps(work: Callable[[], object]) -> int:
    """How many calls of Python functions `work` makes: a measure of time that a busy machine does not change."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "app",
    [apart, after_one_another, against_the_text, in_a_partition, grouped_at_the_end],
    ids=lambda app: app.__name__,
)
def test_the_work_grows_as_the_app(app: Callable[[int], str]) -> None:
    compile_app(app(3))
    few, many = (steps(lambda n=n: explain(compile_app(app(n)))) for n in (50, 200))  # type: ignore[misc]
    assert many < 4.6 * few


@pytest.mark.parametrize("separator", [" -> ", ", "])
def test_the_work_grows_as_the_pattern(separator: str) -> None:
    compile_app(pattern(3))
    few, many = (steps(lambda n=n: compile_app(pattern(n).replace(" -> ", separator))) for n in (25, 100))  # type: ignore[misc]
    assert many < 4.8 * few


def test_a_pattern_that_is_too_long_is_refused_at_the_state_that_is_too_much() -> None:
    compile_app(pattern(MOST_STATES))
    text = pattern(2_000)
    with pytest.raises(SiddhiSyntaxError, match=r"a pattern of 2,000 states is too long: it may have 200") as caught:
        compile_app(text)
    assert text[caught.value.span.start :].startswith(f"e{MOST_STATES}=")
