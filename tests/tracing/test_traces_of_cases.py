"""Traces of the apps of the cases against Siddhi: every match has its output, and every trace can be drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sparkstream_nb.app.results.traces import PatternTrace
from sparkstream_nb.app.tracing.pattern_traces import trace_pattern
from sparkstream_nb.app.tracing.trace_feed import FeedStep, TraceFeed
from sparkstream_nb.app.tracing.traced_node import TracedNode
from sparkstream_nb.app.tracing.tracing import subjects
from sparkstream_nb.app.tracing.window_traces import trace_windows
from sparkstream_nb.lab.display import text
from sparkstream_nb.lab.traces_shown import trace_svg
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan

CASES = Path(__file__).parents[1] / "cases"
PATTERNS = ("absent", "counts", "every", "logical", "sequences", "patterns", "partitions", "within")
SENT_AGAIN = {"pattern_mix/absent_34"}
"""Cases in which a chunk is sent with other matches than those that were made in it, as in Siddhi."""
_STEPS = 40


def cases_of(files: list[Path], each: int) -> list[Any]:
    """Some cases of each file, as parameters."""
    out: list[Any] = []
    for file in files:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        found = [json.loads(line) for line in lines[: 2 * each]]
        apps = [c for c in found if c.get("feed") and "app" in c and "error" not in c.get("expect", {})]
        out += [pytest.param(c, id=c.get("id", f"{file.stem}-{i}")) for i, c in enumerate(apps[:each])]
    return out


def steps_of(case: dict[str, Any], plan: Plan) -> list[FeedStep]:
    def rows(stream: str, events: list[Any]) -> list[list[Any]]:
        width = len(plan.schema(stream).types)
        return [[*values, *[None] * (width - len(values))] for _, values in events]

    out = []
    for s in case["feed"]:
        if isinstance(s, list):
            out.append(FeedStep(s[1], s[0], rows(s[0], [s[1:]])))
        elif "batch" in s:
            out.append(FeedStep(s["batch"][-1][0], s["stream"], rows(s["stream"], s["batch"])))
    return out[:_STEPS]


def traces(case: dict[str, Any]) -> Iterator[tuple[Plan, str, Any]]:
    """The trace of each query of a case that can be traced."""
    plan = compile_app(case["app"], properties=case.get("properties", {}))
    steps = steps_of(case, plan)
    for name, subject in subjects(plan).items() if steps else ():
        node = TracedNode(plan, subject.operator, name, start=case.get("start", 0))
        run = trace_pattern if subject.is_pattern else trace_windows
        yield plan, name, run(node, name, TraceFeed(steps, len(steps)))


@pytest.mark.parametrize("case", cases_of([f for n in PATTERNS if (f := CASES / f"patterns/{n}.jsonl").exists()], 12))
def test_matches_of_patterns_are_their_outputs(case: dict[str, Any]) -> None:
    for plan, name, found in traces(case):
        ElementTree.fromstring(trace_svg(found))
        query = next(q for q in plan.queries if q.name == name)
        if not isinstance(found, PatternTrace) or query.rate is not None or query.select.having is not None:
            continue
        assert len(found.matches) == len(found.outputs) or case.get("id") in SENT_AGAIN
        assert all(p.captures or p.waits or p.end == "match" for p in found.partials)


@pytest.mark.parametrize("case", cases_of(sorted((CASES / "windows").glob("*.jsonl")), 4))
def test_windows_of_cases_are_traced_and_drawn(case: dict[str, Any]) -> None:
    for _, _, found in traces(case):
        ElementTree.fromstring(trace_svg(found))
        assert text(found)
