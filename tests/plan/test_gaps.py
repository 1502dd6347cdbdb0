"""The list of declared gaps: names that stand, and refusal by name and place."""

from __future__ import annotations

import re

import pytest

from sparkstream_nb.errors import NotInThisBuild
from sparkstream_nb.plan import compile_app, gaps
from sparkstream_nb.plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS

S = "define stream S (k string, v int);\n"


def test_names_of_the_list_exist() -> None:
    """A gap about an operator names one that has a signature, so that a struck or misspelt line is seen."""
    tables = {"function": SCALARS, "aggregator": AGGREGATORS, "window": WINDOWS, "stream-function": STREAM_FUNCTIONS}
    for name, what in gaps.GAPS.items():
        assert what, name
        assert re.fullmatch(r"[a-z-]+(:[\w:-]+)?", name), name
        kind, _, key = name.partition(":")
        if kind in tables:
            assert key in tables[kind], name


def test_what_runs_since_the_beginning_is_no_gap() -> None:
    plan = compile_app(
        S
        + """
        define aggregation A from S[v > 0] select k, sum(v) as s, avg(v) as a group by k aggregate every sec ... year;
        from S[v > 1 and k == 'x']#window.time(1 sec) select k, sum(v) as s group by k having s > 1 insert into O;
        from S#window.lengthBatch(3) select max(v) as m insert all events into P;
        from every (e1=S -> e2=S[v > e1.v]) within 1 sec select e1.k insert into Q;
    """
    )
    assert gaps.needed(plan) == ()
    gaps.refuse(plan)


@pytest.mark.skipif("script:r" not in gaps.GAPS, reason="R runs now; show the refusal with another gap")
def test_refusal_names_gap_and_place() -> None:
    plan = compile_app(
        S + "define function f[r] return int { return(1) };\nfrom S select f(v) as x insert into O;"
    )
    assert {u.name for u in gaps.needed(plan)} == {"script:r"}
    with pytest.raises(NotInThisBuild, match="Declared gap 'script:r'") as caught:
        gaps.refuse(plan)
    assert caught.value.gap == "script:r"
