"""Every app and on-demand query that the reference engine was asked about parses, or is refused, as it did there."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from sparkstream_nb.errors import SiddhiSyntaxError
from sparkstream_nb.lang.parser import parse, parse_on_demand
from sparkstream_nb.lang.printer import to_text

FOLDER = Path(__file__).resolve().parents[1] / "cases" / "siddhi"
SYNTAX = ("SiddhiParserException", "NumberFormatException")

# Siddhi refuses these while it creates the app; the parser already can.
REFUSED_EARLIER = {
    "rejected/syntax_time_with_and": "not times",
    "rejected/param_offset_double": "takes an integer constant",
}


@cache
def texts_of_cases() -> tuple[list[tuple[str, str, bool]], list[tuple[str, str, bool]]]:
    """(id, text, whether Siddhi's parser refused it) of all apps, and of all on-demand queries."""
    apps: list[tuple[str, str, bool]] = []
    queries: list[tuple[str, str, bool]] = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            expect = case.get("expect", {})
            apps.append((case["id"], case["app"], expect.get("error") in SYNTAX))
            results = iter(expect.get("results", []))
            for step in case["feed"]:
                if isinstance(step, dict) and "query" in step:
                    queries.append((case["id"], step["query"], next(results, {}).get("error") in SYNTAX))
    return apps, queries


def test_apps_are_accepted_and_refused_as_by_siddhi() -> None:
    wrong = []
    apps, _ = texts_of_cases()
    for name, text, refused in apps:
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
    assert len(apps) > 1000


def test_on_demand_queries_are_accepted_and_refused_as_by_siddhi() -> None:
    wrong = []
    _, queries = texts_of_cases()
    for name, text, refused in queries:
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
    assert len(queries) > 100
