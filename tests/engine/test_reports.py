"""Public bug reports and questions about Siddhi: what is right comes out here, or is refused with the reason.

`tests/cases/reports/*.jsonl`: a case a line, as `tests/reference/README.md` has them, with `source` (the reports),
`right` instead of `expect`, and `why` that is right. `right` has the values of streams, without times, or the rows of
`results`, or the beginning of the message of an `error`.
"""

from __future__ import annotations

import json

import pytest

from reference.compare import same
from reference.engine_cases import run_case
from reference.parts import REPORTS, Case

CASES = [json.loads(line) for path in sorted(REPORTS.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]


def came_out(case: Case, by_chunk: bool) -> dict[str, object]:
    """What the engine makes of a case, in the form of `right`."""
    got = run_case(case, by_chunk=by_chunk)
    if "error" in got:
        return {"error": got["message"].split(": ", 1)[1]}
    streams = {stream: [values for _, values in events] for stream, events in got["streams"].items()}
    return {**streams, "results": [answer["rows"] for answer in got.get("results", [])]}


@pytest.mark.parametrize("way", ["by_operator", "by_chunk"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_report(case: Case, way: str) -> None:
    found = came_out(case, way == "by_chunk")
    for what, right in case["right"].items():
        if what == "error":
            assert str(found[what]).startswith(right)
        else:
            assert same(found.get(what, []), right), f"{case['why']}: {found}"


def test_every_report_names_its_source_and_why_that_is_right() -> None:
    assert len(CASES) > 30
    assert all(case["source"] and case["why"] for case in CASES)
    assert len({case["id"] for case in CASES}) == len(CASES)
