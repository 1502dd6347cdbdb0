"""Replays cases of the reference format on the node engine: which there are, what they need, and how they end.

Run as a script it replays all cases and prints, per topic, how many come out as expected:
`python tests/reference/replay.py [PART_OF_ID...]` shows the differences of the cases whose id has such a part.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference.compare import difference
from reference.engine_cases import run_case
from reference.parts import CASES, Case, our_files, read, siddhi_files
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.plan import bind_retrieval, compile_app, gaps

DIFFERENCES = CASES / "differences.toml"


@cache
def siddhi_cases() -> tuple[Case, ...]:
    """All cases that hold Siddhi's answer. They are shared: change none of them. To read them takes more than a second:
    ask for them in a test, not when a module is imported.
    """
    return tuple(case for path in siddhi_files() for case in read(path))


def our_cases() -> dict[str, Case]:
    """The cases by id whose answer is the manual's and not Siddhi's."""
    return {case["id"]: case for path in our_files() for case in read(path)}


def listed_differences() -> list[dict[str, Any]]:
    """The differences of `differences.toml`: `topic`, `siddhi`, `here`, `cases`."""
    return tomllib.loads(DIFFERENCES.read_text("utf-8"))["difference"]  # type: ignore[no-any-return]


def needed(case: Case) -> frozenset[str]:
    """The declared gaps that a case's app, its on-demand queries or its feed need. To bind an app takes milliseconds,
    and there are thousands: ask for a case when it runs, not when a module is imported.
    """
    names: set[str] = set()
    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
    except SiddhiError:
        return frozenset()
    names.update(use.name for use in gaps.find_gaps(plan))
    for step in case["feed"]:
        if isinstance(step, dict) and "query" in step:
            try:
                text = step["query"]
                retrieval = bind_retrieval(parse_on_demand(text), plan, text)
            except SiddhiError:
                continue
            names.update(use.name for use in gaps.needed_by_retrieval(retrieval))
        elif isinstance(step, dict) and "restart" in step and "restart" in gaps.GAPS:
            names.add("restart")
    return frozenset(names)


def verdict(case: Case, *, by_chunk: bool = False, cuts: Sequence[int] = ()) -> str | None:
    """How the engine's answer differs from the case's, in words, or None where it does not."""
    return difference({**case, "got": run_case(case, by_chunk=by_chunk, cuts=cuts)})


def closed(case: Case) -> bool:
    """Whether a case that needs declared gaps comes out as expected all the same, with no app refused for a gap."""
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    with (
        mock.patch("sparkstream_nb.engine.node.refuse", nothing),
        mock.patch("sparkstream_nb.plan.gaps.refuse", nothing),
        mock.patch("sparkstream_nb.plan.gaps.refuse_retrieval", nothing),
    ):
        try:
            return verdict(case) is None
        except Exception:  # whatever a half-built part does, it does not pass
            return False


def main(parts: Sequence[str]) -> int:
    """Prints passes by topic, what is a gap or a listed difference, and the differences of the cases asked for."""
    listed = {i for d in listed_differences() for i in d["cases"]}
    total, passed, gap, known = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for case in siddhi_cases():
        topic = case["id"].split("/")[0]
        asked = any(p in case["id"] for p in parts)
        if parts and not asked:
            continue
        total[topic] += 1
        if needed(case):
            gap[topic] += 1
            continue
        for by_chunk in (False, True):
            try:
                told = verdict(case, by_chunk=by_chunk)
            except Exception as e:
                told = f"{type(e).__name__}: {e}"
            if told is not None:
                break
        if told is None:
            passed[topic] += 1
        elif case["id"] in listed:
            known[topic] += 1
        if told is not None and (asked or case["id"] not in listed):
            print(f"{case['id']}{' (by chunk)' if by_chunk else ''}: {told[:300]}")
    for topic in sorted(total):
        print(f"{topic:30} {passed[topic]:5} / {total[topic]:<5} {gap[topic]:5} gaps {known[topic]:5} differences")
    n, k = sum(total.values()), sum(passed.values())
    print(f"{k} of {n} as Siddhi, {sum(gap.values())} gaps, {sum(known.values())} listed differences")
    return n != k + sum(gap.values()) + sum(known.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
