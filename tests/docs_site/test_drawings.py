"""Drawings on the reference pages: one for each window and each operator of patterns and sequences."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from docs.generator import examples, language, pattern_pages
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.window_declarations import DECLARATIONS

OPERATORS = [o for g in pattern_pages.groups() for o in g.operators]
_DRAWING = re.compile(r'<div class="drawing">(.*?)</div>', re.DOTALL)


def test_every_window_is_drawn() -> None:
    page = language.windows()
    for name in DECLARATIONS:
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        (drawn,) = _DRAWING.findall(section)
        title = ElementTree.fromstring(drawn).get("aria-label", "")
        assert title.startswith(f"q: {name}("), title


@pytest.mark.parametrize("name", DECLARATIONS)
def test_the_trace_of_a_window_has_the_outputs_of_its_table(name: str) -> None:
    """Both run the same app. The table's clock ticks twice a second, so it has the events that leave at other times a
    little later; those that come out once the trace has ended are left out."""
    found = examples.window_trace(name)
    traced = [(not o.expired, list(o.values.values())) for o in found.outputs]
    rows = [(kind == "CURRENT", values) for _, kind, values in examples.window_rows(name)]
    assert sorted(traced, key=str) == sorted(rows[: len(traced)], key=str)


def test_every_operator_is_drawn() -> None:
    page = pattern_pages.patterns()
    assert len(_DRAWING.findall(page)) == len(OPERATORS) >= 17
    anchors = [pattern_pages.anchor(o.title) for o in OPERATORS]
    assert len(set(anchors)) == len(anchors)
    for drawn in _DRAWING.findall(page):
        ElementTree.fromstring(drawn)


@pytest.mark.parametrize("operator", OPERATORS, ids=[o.title for o in OPERATORS])
def test_an_example_of_an_operator_matches(operator: pattern_pages.OperatorExample) -> None:
    compile_app(operator.app)
    found = operator.trace()
    assert found.matches
    assert len(found.outputs) == len(found.matches)


def test_the_examples_have_every_operator() -> None:
    text = "\n".join(o.query for o in OPERATORS)
    for sign in ("->", ", e2", "every", "within", "<2:3>", " and ", " or ", "not ", " for ", "+,", "*,", "?,"):
        assert sign in text, sign
