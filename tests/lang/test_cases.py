"""Every app and on-demand query that the reference engine was asked about parses, or is refused, as it did there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkstream_nb.errors import SiddhiSyntaxError
from sparkstream_nb.lang.parser import parse, parse_on_demand
from sparkstream_nb.lang.printer import to_text

HERE = Path(__file__).resolve()
FOLDERS = (HERE.parents[1] / "cases" / "siddhi", HERE.parents[3] / "shared" / "cases")
SYNTAX = ("SiddhiParserException", "NumberFormatException")

# Siddhi refuses these while it creates the app; the parser already can.
REFUSED_EARLIER = {
    "rejected/syntax_time_with_and": "not times",
    "rejected/param_offset_double": "takes an integer constant",
}


def _texts() -> tuple[list[tuple[str, str, bool]], list[tuple[str, str, bool]]]:
    """(id, text, whether Siddhi's parser refused it) of all apps, and of all on-demand queries."""
    folder = next((f for f in FOLDERS if f.is_dir()), None)
    apps: list[tuple[str, str, bool]] = []
    queries: list[tuple[str, str, bool]] = []
    for path in sorted(folder.glob("*.jsonl")) if folder else []:
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            expect = case.get("expect", {})
            apps.append((case["id"], case["app"], expect.get("error") in SYNTAX))
            results = iter(expect.get("results", []))
            for step in case["feed"]:
                if isinstance(step, dict) and "query" in step:
                    queries.append((case["id"], step["query"], next(results, {}).get("error") in SYNTAX))
    return apps, queries


APPS, QUERIES = _texts()
needs_cases = pytest.mark.skipif(
    not APPS, reason=f"no cases of the reference engine in any of {[str(f) for f in FOLDERS]}"
)


@needs_cases
def test_apps_are_accepted_and_refused_as_by_siddhi() -> None:
    wrong = []
    for name, text, refused in APPS:
        try:
            tree = parse(text)
        except SiddhiSyntaxError as e:
            if not refused and REFUSED_EARLIER.get(name, "\0") not in e.message:
                wrong.append(f"{name}: {e}")
            continue
        if refused:
            wrong.append(f"{name}: accepted")
        elif parse(to_text(tree)) != tree:
            wrong.append(f"{name}: not the same after printing")
    assert not wrong, "\n".join(wrong)
    assert len(APPS) > 1000


@needs_cases
def test_on_demand_queries_are_accepted_and_refused_as_by_siddhi() -> None:
    wrong = []
    for name, text, refused in QUERIES:
        try:
            tree = parse_on_demand(text)
        except SiddhiSyntaxError as e:
            if not refused:
                wrong.append(f"{name}: {e}")
            continue
        if refused:
            wrong.append(f"{name}: accepted: {text}")
        elif parse_on_demand(to_text(tree)) != tree:
            wrong.append(f"{name}: not the same after printing: {text}")
    assert not wrong, "\n".join(wrong)
    assert len(QUERIES) > 100
