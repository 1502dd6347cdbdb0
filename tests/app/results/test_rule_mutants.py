"""Random apps with one clause changed: both texts put out what the real Siddhi does, so the differences are its own,
and the cause of each is the clause."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest

from fuzz.oracle import Oracle, missing
from sparkstream_nb.app.results.output_matching import Alert
from sparkstream_nb.app.results.rule_comparison import RuleComparison
from sparkstream_nb.app.results.rule_trial import RuleTrial
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.lang import tree as t
from sparkstream_nb.lang.clause_changes import TextComparison
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.lang.printer import to_text
from sparkstream_nb.plan import compile_app
from sparkstream_nb.replay.replay import ONE, Nodes
from sparkstream_nb.types import Type
from tests.live.shares import Share, is_counted, outputs_equal, random_share, recorded_input, with_answers

SEED = int(os.environ.get("SPARKSTREAM_LIVE_SEED", "3"))
COUNT = int(os.environ.get("SPARKSTREAM_LIVE_CASES", "30"))
_OTHER_SIGNS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_OTHER_AGGREGATES = {"sum": "max", "max": "min", "min": "max", "avg": "sum"}


def mutants(node: Any, random: Random) -> Iterator[Any]:
    """The node with one of its parts in another form, for each part that has one."""
    match node:
        case t.In():  # Siddhi compares attributes with an index otherwise, which is listed
            return
        case t.Constant(type=Type.INT | Type.LONG | Type.FLOAT | Type.DOUBLE):
            yield replace(node, value=node.value + random.choice((1, 2, 5)))
        case t.TimeConstant():
            yield replace(node, millis=2 * node.millis, parts=tuple((2 * n, unit) for n, unit in node.parts))
        case t.Comparison():
            yield replace(node, op=_OTHER_SIGNS[node.op])
        case t.FunctionCall(name=name) if name in _OTHER_AGGREGATES:
            yield replace(node, name=_OTHER_AGGREGATES[name])
        case t.EveryState(state=t.StreamState()):
            yield node.state
        case t.Selection(group_by=(_, *rest)):
            yield replace(node, group_by=tuple(rest))
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("annotations", "definitions"):
            continue
        if isinstance(value, t.Node):
            yield from (replace(node, **{field.name: part}) for part in mutants(value, random))
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, t.Node):
                    for part in mutants(item, random):
                        yield replace(node, **{field.name: (*value[:i], part, *value[i + 1 :])})


def random_mutant(share: Share, random: Random) -> Share | None:
    """The app with one part in another form, which still runs; None if there is none."""
    all_mutants = list(mutants(parse(share.app), random))
    random.shuffle(all_mutants)
    for mutant in all_mutants[:5]:
        try:
            other = replace(share, app=to_text(mutant))
            if is_counted(other):
                return other
        except SparkStreamError:
            continue
    return None


def comparison_of(share: Share, mutant: Share) -> RuleComparison:
    texts = TextComparison.of(parse(share.app), parse(mutant.app))
    with recorded_input(share) as source:
        return RuleTrial("app", texts, Nodes(share.plan, 0), compile_app).over(source.read(), ONE)


def outputs(comparison: RuleComparison, side: Callable[[Any], Alert | None]) -> dict[str, list[Any]]:
    by_stream: dict[str, list[Any]] = {}
    for stream, pairs in comparison.pairs.items():
        by_stream[stream] = [alert for p in pairs if (alert := side(p)) is not None]
    return by_stream


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_random_apps_with_one_clause_changed() -> None:
    if needed := missing():
        pytest.skip(needed)
    random, tried, differing = Random(SEED), 0, 0
    with Oracle() as oracle:
        for number in range(COUNT):
            share = random_share(SEED, number)
            mutant = None if share is None else random_mutant(share, random)
            if share is None or mutant is None:
                continue
            answered = list(with_answers([share, mutant], oracle, nodes=False))
            if len(answered) < 2:
                continue
            tried += 1
            comparison = comparison_of(share, mutant)
            where = f"{share.app}\n{mutant.app}"
            assert len(comparison.changes) == 1, where
            for side, live in zip((lambda p: p.before, lambda p: p.after), answered, strict=True):
                for stream, alerts in outputs(comparison, side).items():
                    if stream in share.derived:
                        assert outputs_equal(alerts, live.answers[0].get(stream, [])), (where, stream)
            causes = comparison.frame.loc[comparison.frame["outcome"] != "same", "cause"]
            differing += bool(len(causes))
            assert all(cause.changes == comparison.changes for cause in causes), where
    assert tried > COUNT // 3
    assert differing > tried // 4
