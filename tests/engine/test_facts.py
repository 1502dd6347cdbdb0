"""Expressions and functions answer what Siddhi answers: the facts under tests/cases (see tests/cases/ask_facts.py)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.engine_cases import input_batch
from sparkstream_nb.engine.expressions.objects import jsonable
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.plan import compile_app

CASES = Path(__file__).parents[1] / "cases"

# What is done otherwise on purpose: (fact, expression) → why. A fact listed here that starts to agree fails the run.
OTHERWISE: dict[tuple[str, str], str] = {
    **{
        ("functions/cast", f"cast(o, '{t}')"): "the value is one of the type, or the event is an error at the cast"
        for t in ("string", "int", "long", "float", "double", "bool")
    },
    (
        "functions/str:replaceAll",
        "str:replaceAll(s,'x*','-')",
    ): "patterns see whole characters, not halves of surrogates",
    ("functions/str:split", "str:split(s,'',1)"): "patterns see whole characters, not halves of surrogates",
    ("functions/time:dateFormat", "time:dateFormat(l,'F')"): "the month in which the calendar changed, October 1582",
}


def facts() -> list[Any]:
    out = []
    for file in sorted([*CASES.glob("expressions/*.jsonl"), *CASES.glob("functions/*.jsonl")]):
        for line in file.read_text("utf-8").split("\n"):
            if line:
                fact = json.loads(line)
                out.append(pytest.param(fact, id=fact["id"]))
    return out


def ours(fact: dict[str, Any], expression: str) -> Any:
    """Our answer to one expression, in the form of the file: a value per row, or `{"rejected": ...}`."""
    app = f"define stream S ({fact['stream']});\nfrom S select {expression} as x insert into Out;"
    try:
        plan = compile_app(app)
        node = NodeEngine(plan)
    except SiddhiError as e:
        return {"rejected": str(e)}
    feed = [["S", 1000 * (i + 1), row] for i, row in enumerate(fact["rows"])]
    out = node.step(input_batch(plan, feed))
    by_time = {ts: jsonable(values[0]) for ts, values in out.streams["Out"].rows()} if "Out" in out.streams else {}
    assert len(by_time) + len(out.errors) == len(feed)
    return [by_time.get(1000 * (i + 1), {"fails": True}) for i in range(len(feed))]


def same(want: Any, have: Any) -> bool:
    if isinstance(want, bool) or isinstance(have, bool) or want is None or have is None:
        return want is have
    if isinstance(want, int | float) and isinstance(have, int | float):
        # The oracle prints floats in their shortest form.
        return math.isclose(want, have, rel_tol=1e-9) or (np.float32(want) == np.float32(have) == have)
    if isinstance(want, list) and isinstance(have, list):
        return len(want) == len(have) and all(map(same, want, have))
    if isinstance(want, dict) and isinstance(have, dict):
        if "rejected" in want or "rejected" in have:
            return "rejected" in want and "rejected" in have
        return want.keys() == have.keys() and all(same(want[k], have[k]) for k in want)
    return bool(want == have)


@pytest.mark.parametrize("fact", facts())
def test_fact(fact: dict[str, Any]) -> None:
    wrong = []
    for expression, want in zip(fact["select"], fact["expect"], strict=True):
        have = ours(fact, expression)
        reason = OTHERWISE.get((fact["id"], expression))
        if same(want, have):
            if reason:
                wrong.append(f"{expression}: agrees with Siddhi; strike it from OTHERWISE")
            continue
        if reason:
            continue
        if isinstance(want, list) and isinstance(have, list):
            at = [i for i, (w, h) in enumerate(zip(want, have, strict=True)) if not same(w, h)]
            wrong += [f"{expression} row {i} {fact['rows'][i]}: expected {want[i]!r}, got {have[i]!r}" for i in at[:8]]
        else:
            wrong.append(f"{expression}: expected {want!r}, got {have!r}")
    assert not wrong, "\n".join(wrong)
