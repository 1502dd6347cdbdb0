"""Each rewrite, before and after, as `explain` shows it."""

from __future__ import annotations

import pytest

from sparkstream_nb.lang.parser import parse
from sparkstream_nb.plan.bind import bind
from sparkstream_nb.plan.nodes import FilterStep, Plan, StreamInput
from sparkstream_nb.plan.reports.show import show
from sparkstream_nb.plan.rewrites import RULES, rewrite
from sparkstream_nb.plan.rewrites.constants import fold_constants
from sparkstream_nb.plan.rewrites.filters import drop_true_filters


def _plan(query: str) -> Plan:
    text = f"define stream S (v int, d double, b bool); {query}"
    return bind(parse(text), text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1 + 2 * 3", "7"),
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("2147483647 + 1", "-2147483648"),
        ("9223372036854775807L + 1", "-9223372036854775808L"),
        ("3000000000L * 4000000000L", "-6446744073709551616L"),
        ("1 + 2L", "3L"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 / 0", "1 / 0"),
        ("1.5f + 2", "1.5f + 2"),
        ("v + (1 + 1)", "v + 2"),
        ("v + 1 + 1", "v + 1 + 1"),
        ("1 < 2", "true"),
        ("1 == 1.0", "true"),
        ("not (1 > 2)", "true"),
        ("b and (1 == 1)", "b and true"),
        ("'a' == 'b'", "false"),
        ("ifThenElse(1 > 2, v, 1 + 1)", "ifThenElse(false, v, 2)"),
    ],
)
def test_fold_constants(before: str, after: str) -> None:
    folded = fold_constants(_plan(f"from S select {before} as x insert into O;"))
    assert show(folded.queries[0].select.items[0].expr) == after


def test_fold_keeps_what_it_does_not_change() -> None:
    plan = _plan("from S[v > 3] select v + d as x insert into O;")
    assert fold_constants(plan) is plan


def test_drop_true_filters() -> None:
    plan = drop_true_filters(_plan("from S[true][v > 3][false] select v insert into O;"))
    input_ = plan.queries[0].input
    assert isinstance(input_, StreamInput)
    assert [show(s.condition) for s in input_.steps if isinstance(s, FilterStep)] == ["v > 3", "false"]


def test_rules_run_in_order() -> None:
    assert (fold_constants, drop_true_filters) == RULES
    input_ = rewrite(_plan("from S[1 < 2] select v insert into O;")).queries[0].input
    assert isinstance(input_, StreamInput)
    assert input_.steps == ()
