"""`cast(value, type)`: which values it makes of which, and which are errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reference.engine_cases import input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

ERROR = "an error"
LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1


def cast(source: str, value: Any, target: str) -> Any:
    """What the query puts out for one event with the value; `ERROR` where the event is one."""
    plan = compile_app(
        f"define stream S (x {source}); from S select cast(x, '{target}') as y, instanceOfString(x) as t insert into O;"
    )
    out = NodeEngine(plan).step(input_batch(plan, [["S", 1, [value]]]))
    if out.errors:
        assert "O" not in out.streams
        return ERROR
    ((_, (found, _)),) = out.streams["O"].rows()
    return found


@pytest.mark.parametrize(
    ("source", "value", "target", "expected"),
    [
        ("int", 7, "long", 7),
        ("int", 7, "double", 7.0),
        ("int", 7, "float", 7.0),
        ("int", -7, "string", "-7"),
        ("int", 1, "bool", ERROR),
        ("long", LARGEST_INT, "int", LARGEST_INT),
        ("long", LARGEST_INT + 1, "int", ERROR),
        ("long", -LARGEST_INT - 1, "int", -LARGEST_INT - 1),
        ("long", LARGEST_LONG, "double", float(LARGEST_LONG)),
        ("double", 2.9, "int", 2),
        ("double", -2.9, "long", -2),
        ("double", LARGEST_INT + 0.5, "int", LARGEST_INT),
        ("double", 2.0**31, "int", ERROR),
        ("double", 2.0**63, "long", ERROR),
        ("double", -(2.0**63), "long", -(2**63)),
        ("double", "NaN", "int", ERROR),
        ("double", 1e300, "float", ERROR),
        ("double", 2.5, "string", "2.5"),
        ("float", 2.5, "double", 2.5),
        ("string", "5", "int", 5),
        ("string", "5.5", "int", ERROR),
        ("string", "5.5", "double", 5.5),
        ("string", "x", "double", ERROR),
        ("string", "TRUE", "bool", True),
        ("string", "yes", "bool", ERROR),
        ("bool", True, "string", "true"),
        ("bool", True, "int", ERROR),
        ("object", 5, "int", 5),
        ("object", 5, "double", 5.0),
        ("object", 2.9, "int", 2),
        ("object", 3_000_000_000, "int", ERROR),
        ("object", "5", "long", 5),
        ("object", "x", "long", ERROR),
        ("object", True, "string", "true"),
        ("object", 2.5, "string", "2.5"),
        ("object", {"a": 1}, "string", ERROR),
    ],
)
def test_cast(source: str, value: Any, target: str, expected: Any) -> None:
    found = cast(source, value, target)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("target", ["int", "long", "float", "double", "string", "bool"])
@pytest.mark.parametrize("source", ["int", "long", "float", "double", "string", "bool", "object"])
def test_null_stays_null(source: str, target: str) -> None:
    found = cast(source, None, target)
    assert found is None or (target == "bool" and found is False)


def test_infinity_is_a_double_and_a_float() -> None:
    assert cast("double", "Infinity", "float") == math.inf
