"""`within` of patterns holds for each match, whatever other partial matches are open."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reference.engine_cases import run_case
from tests.profiles import examples

WITHIN = 10
APP = """define stream A (k string, v int);
@info(name='q') from every e1=A -> e2=A[k == e1.k] -> e3=A[k == e1.k] within 10 milliseconds
select e1.v as a, e2.v as b, e3.v as c insert into O;"""
KEYS_AND_STEPS = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 3)), min_size=20, max_size=60)


@given(KEYS_AND_STEPS)
@settings(max_examples=examples(200), deadline=None)
def test_three_of_a_key(events: list[tuple[str, int]]) -> None:
    at, feed = 1000, []
    for number, (key, step) in enumerate(events):
        at += step
        feed.append(["A", at, [key, number]])
    expected = []
    of_key: dict[str, list[tuple[int, int]]] = {}
    for _, time, (key, number) in feed:
        seen = of_key.setdefault(key, [])
        seen.append((time, number))
        if len(seen) >= 3 and time - seen[-3][0] <= WITHIN:
            expected.append([time, [n for _, n in seen[-3:]]])
    found = run_case({"id": "within", "app": APP, "feed": feed})
    assert found["streams"].get("O", []) == expected
