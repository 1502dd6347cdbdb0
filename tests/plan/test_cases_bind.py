"""Every app and on-demand query that the reference engine was asked about binds, or is refused, as it did there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.errors import SiddhiBindError, SiddhiError
from sparkstream_nb.plan import compile_app, compile_retrieval, explain
from sparkstream_nb.types import Type

HERE = Path(__file__).resolve()
FOLDERS = (HERE.parents[1] / "cases" / "siddhi", HERE.parents[3] / "shared" / "cases")
FOLDER = next((f for f in FOLDERS if f.is_dir()), None)

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason=f"NO CASES CHECKED: none of {', '.join(map(str, FOLDERS))} is there"
)

# Refused here when created; Siddhi accepts them and fails when they run. Part of the message that says why.
REFUSED_EARLIER = {
    "expressions_and_nulls/accepted_string_plus_int_fails_at_run_time": "needs numbers",
    "expressions_and_nulls/accepted_bool_times_int_fails_at_run_time": "needs numbers",
    "expressions_and_nulls/accepted_window_length_negative_and_zero": "cannot be negative",
    "expressions_and_nulls/accepted_set_of_wrong_type": "the value is string",
}
# Scripts are in the language and not in the reference engine's build; here they are a declared gap.
BUILD_LIMITS = ("rejected/function_javascript_not_in_this_build", "rejected/function_r_not_in_this_build")
# Our parser says these; Siddhi finds out later, or with another exception.
OTHER_KIND = {"rejected/syntax_time_with_and", "rejected/syntax_int_literal_too_big", "rejected/param_offset_double"}
# Retrievals that Siddhi refuses because they hold a text that is no time, which a store says when it reads.
RETRIEVALS_ACCEPTED = (
    "within '2023-03-15 00:00:00', '2023-03-14",
    "within '2023-03-14' per",
    "within '2023-**-14",
)

VALUES: dict[Type, type | tuple[type, ...]] = {
    Type.STRING: str, Type.BOOL: bool, Type.INT: int, Type.LONG: int,
    Type.FLOAT: (float, int, str), Type.DOUBLE: (float, int, str), Type.OBJECT: object,
}  # fmt: skip


def _cases() -> Iterator[dict[str, Any]]:
    for path in sorted(FOLDER.glob("*.jsonl")) if FOLDER else []:
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


CASES = list(_cases())
REJECTED = [c for c in CASES if "error" in c["expect"]]
ACCEPTED = [c for c in CASES if "error" not in c["expect"]]


@pytest.mark.parametrize("case", REJECTED, ids=lambda c: c["id"])
def test_what_siddhi_rejects_is_refused(case: dict[str, Any]) -> None:
    if case["id"] in BUILD_LIMITS:
        compile_app(case["app"], case.get("properties"))
        return
    with pytest.raises(SiddhiError) as caught:
        compile_app(case["app"], case.get("properties"))
    error = caught.value
    if isinstance(error, SiddhiBindError) and case["id"] not in OTHER_KIND:
        assert error.kind == case["expect"]["error"]
    place = re.search(r"@ Line: (\d+)\..*?@ Line: (\d+)\.", case["expect"]["message"])
    if place is not None:
        assert int(place[1]) <= error.span.line <= int(place[2])
    assert str(error).count("\n") >= 2, "an error shows the text with a caret"


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda c: c["id"])
def test_what_siddhi_accepts_binds(case: dict[str, Any]) -> None:
    if case["id"] in REFUSED_EARLIER:
        with pytest.raises(SiddhiBindError, match=REFUSED_EARLIER[case["id"]]):
            compile_app(case["app"], case.get("properties"))
        return
    plan = compile_app(case["app"], case.get("properties"))
    assert explain(plan).startswith(f"app {plan.name}\n" if plan.name else "app\n")
    for stream, events in case["expect"].get("streams", {}).items():
        schema = plan.schema(stream)
        for _, row in events:
            assert len(row) == len(schema), stream
            if case["id"] != "fault_streams/cast_error_to_stream":  # a cast in Siddhi leaves the text as it was
                for value, attribute in zip(row, schema, strict=True):
                    assert value is None or isinstance(value, VALUES[attribute.type]), (stream, attribute, value)
    results = iter(case["expect"].get("results", []))
    for step in case["feed"]:
        if isinstance(step, dict) and "query" in step:
            _check_retrieval(plan, step["query"], next(results))


def _check_retrieval(plan: Any, query: str, result: dict[str, Any]) -> None:
    if "error" in result and not any(text in query for text in RETRIEVALS_ACCEPTED):
        with pytest.raises(SiddhiError):
            compile_retrieval(query, plan)
        return
    retrieval = compile_retrieval(query, plan)
    if "columns" in result:
        assert [str(a) for a in retrieval.columns] == result["columns"]
