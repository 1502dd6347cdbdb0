"""Text → tree → text → tree is the identity on trees, for generated trees and for written cases."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from profiles import examples
from sparkstream_nb.lang import tree as t
from sparkstream_nb.lang.parser import parse, parse_expression, parse_on_demand
from sparkstream_nb.lang.printer import to_text
from sparkstream_nb.types import Type

from . import strategies as some

generous = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@generous
@given(some.expressions)
def test_expressions_survive(expression: t.Expression) -> None:
    assert parse_expression(to_text(expression)) == expression


@generous
@given(some.queries)
def test_queries_survive(query: t.Query) -> None:
    assert parse(f"define stream S (a int); {to_text(query)}").elements == (query,)


@generous
@given(some.apps)
def test_apps_survive(app: t.App) -> None:
    assert parse(to_text(app)) == app


@generous
@given(some.on_demand_queries)
def test_on_demand_queries_survive(query: t.OnDemandQuery) -> None:
    assert parse_on_demand(to_text(query)) == query


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (t.Not(t.Comparison("==", t.Variable("a"), t.Variable("b"))), "not (a == b)"),
        (t.Comparison("==", t.Not(t.Variable("a")), t.Variable("b")), "not a == b"),
        (t.Arithmetic("-", t.Variable("a"), t.Arithmetic("-", t.Variable("b"), t.Variable("c"))), "a - (b - c)"),
        (t.Comparison("==", t.In(t.Variable("a"), "T"), t.Constant(True, Type.BOOL)), "(a in T) == true"),
        (t.Constant(-5, Type.INT), "-5"),
        (t.Constant(1.100000023841858, Type.FLOAT), "1.1f"),
        (t.Constant(float("inf"), Type.DOUBLE), "1e999"),
        (t.Constant("it's", Type.STRING), '"it\'s"'),
        (t.Constant('say "x" now', Type.STRING), '"""say "x" now"""'),
        (t.Variable("select"), "`select`"),
    ],
)
def test_text_is_the_plainest(tree: t.Expression, text: str) -> None:
    assert to_text(tree) == text
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "tree",
    [
        t.Variable("a`b"),
        t.Constant('ends with "', Type.STRING),
        t.Constant('holds """ quotes', Type.STRING),
        t.Constant(float("nan"), Type.DOUBLE),
        t.IsNull(t.Not(t.Variable("a"))),
    ],
)
def test_what_siddhiql_cannot_write_is_refused(tree: t.Expression) -> None:
    with pytest.raises(ValueError, match="SiddhiQL"):
        to_text(tree)


def test_an_app_is_laid_out_in_lines() -> None:
    app = parse("@app:name('x') define stream S(a int);@info(name='q')from S[a>1]select a group by a insert into O")
    assert to_text(app) == (
        "@app:name('x')\ndefine stream S (a int);\n"
        "@info(name='q')\nfrom S[a > 1]\nselect a\ngroup by a\ninsert into O;\n"
    )
