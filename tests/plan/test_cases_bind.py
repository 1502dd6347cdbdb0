"""Every app and on-demand query that the reference engine was asked about binds, or is refused, as it did there.

A test takes the cases of a file, or of a part of a long one, and names each that fails; `--case ID` takes single ones.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from case_option import asked
from reference.parts import CASES, Case, Part, failing, parts
from sparkstream_nb.errors import SiddhiBindError, SiddhiError
from sparkstream_nb.plan import compile_app, compile_retrieval, explain
from sparkstream_nb.types import Type

PARTS = parts(sorted((CASES / "siddhi").glob("*.jsonl")))

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


@pytest.mark.parametrize("part", [pytest.param(part, id=part.name) for part in PARTS])
def test_what_siddhi_accepts_binds_and_what_it_rejects_is_refused(part: Part, pytestconfig: pytest.Config) -> None:
    cases = [case for _, case in asked(part, pytestconfig)]
    failing(cases, lambda case: _refused(case) if "error" in case["expect"] else _binds(case))


def test_there_are_cases() -> None:
    cases = [case for part in PARTS for case in part.cases()]
    assert len(cases) > 1000
    assert sum("error" in case["expect"] for case in cases) > 100


def _refused(case: Case) -> None:
    """Asserts that an app which Siddhi rejects is refused, for the same reason and at the same place."""
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


def _binds(case: Case) -> None:
    """Asserts that an app which Siddhi accepts binds, and that its streams have the attributes that came out there."""
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
