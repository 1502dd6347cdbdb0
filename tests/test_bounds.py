"""Arguments and files far from any use: a short error of this package, before any work. Without Spark."""

from __future__ import annotations

import copy
import json
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sparkstream_nb import columns
from sparkstream_nb.app import Disorder
from sparkstream_nb.app.running.input_recording import check_place
from sparkstream_nb.app.running.pace import Pace, Pacer
from sparkstream_nb.errors import Misuse, Span, SparkStreamError
from sparkstream_nb.options import CannotRead, read_text
from sparkstream_nb.seeded import uniforms, uniforms_at
from sparkstream_nb.sources.disorder import LONGEST, _arrivals
from sparkstream_nb.synthetic.column import GeneratedColumn, Seed
from sparkstream_nb.synthetic.events import EventRequest, generate_events
from sparkstream_nb.synthetic.profile import Profile
from sparkstream_nb.testing.cell_values import read_value
from sparkstream_nb.testing.model import Cell
from sparkstream_nb.testing.siddhitest_errors import AppTestError
from sparkstream_nb.testing.siddhitest_parser import parse_test_file
from sparkstream_nb.types import Attribute, Schema, Type


@given(st.lists(st.integers(0, 400), max_size=20))
@example([0, 3, 4, 399])
def test_numbers_at_places_are_those_of_the_sequence(places: list[int]) -> None:
    at = np.array(places, np.int64)
    assert uniforms_at(7, "held", at).tolist() == uniforms(7, "held", 401)[at].tolist()


def test_memory_of_a_disorder_goes_by_its_events() -> None:
    ts = np.array([0, 10**15, 1_700_000_000_000, 1_700_000_010_000], np.int64)
    tracemalloc.start()
    for period in (1, 1000, LONGEST):
        _, comes, _ = _arrivals(ts, Disorder(held_every=period, held_for=period // 3 or 1))
        assert (comes >= ts).all()
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


WHOLE = st.integers() | st.integers(-(10**40), 10**40) | st.just(5000).map(lambda digits: 10**digits)
ODD = st.one_of(st.none(), st.booleans(), st.floats(), WHOLE, st.text(max_size=3), st.lists(st.integers(), max_size=2))
FIELDS = ("late", "delay", "distribution", "swapped", "duplicated", "dropped", "held_every", "held_for", "seed", "skew")


SKEWS = st.dictionaries(ODD.filter(lambda v: not isinstance(v, list)), WHOLE, max_size=2)


@given(st.dictionaries(st.sampled_from(FIELDS), ODD | SKEWS))
@example({"skew": {"node-1": 10**30}})
@example({"skew": {5: 3}})
@example({"seed": 10**5000})
@example({"held_every": 10**18, "held_for": 10**17})
def test_a_disorder_of_any_values(values: dict[str, Any]) -> None:
    with suppress(Misuse):
        _arrivals(np.array([-5, 1_700_000_000_000], np.int64), Disorder(**values))


@given(st.text(max_size=12) | st.sampled_from(["seed=" + "9" * 5000, "node-1=+" + "9" * 5000 + " sec", "late=1e999%"]))
def test_a_disorder_of_any_text(text: str) -> None:
    with suppress(SparkStreamError):
        Disorder.parse(text)


@pytest.mark.parametrize("value", [1e308, 10**400, 1e-308, 1e13])
@pytest.mark.parametrize("name", ["speed", "rate"])
def test_paces_have_bounds(name: str, value: float) -> None:
    with pytest.raises(Misuse, match=f"{name} is 1e-09 to 1e"):
        Pace.of(**{"speed": None, "rate": None, name: value})


@pytest.mark.parametrize("pace", [Pace.of(1e-9, None), Pace.of(1e12, None), Pace.of(None, 1e-9), Pace.of(None, 1e12)])
def test_waits_of_a_slow_pace_have_a_bound(pace: Pace) -> None:
    now = iter([0.0, 1e6])
    pacer = Pacer(pace, lambda: next(now))
    pacer.due(0, 0)
    assert pacer.due(5, 10**15).wait <= 3600


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(" * 5000, "groups are nested more than 50 deep"),
        ("(" * 51 + "a" + ")" * 51, "groups are nested more than 50 deep"),
        ("a{" + "9" * 5000 + "}", "a repetition is written"),
        ("((){1000}){1000}", "has texts of more than 1,000 characters"),
        ("[\x01-\uffff]", "has halves of surrogate pairs in it"),
    ],
)
def test_expressions_have_bounds(pattern: str, reason: str) -> None:
    with pytest.raises(Misuse, match=reason) as raised:
        columns.regex(pattern)
    assert len(str(raised.value)) < 200


SCHEMA = Schema((Attribute("v", Type.DOUBLE), Attribute("k", Type.STRING), Attribute("id", Type.STRING)))


def draw(generators: dict[str, GeneratedColumn]) -> pd.DataFrame:
    return generate_events(SCHEMA, EventRequest(n=20, seed=Seed(7), columns=generators)).frame


@given(st.text("()[]{}|*+?.^$\\a1,-:", max_size=15))
def test_any_expression_draws_texts_or_is_refused(pattern: str) -> None:
    try:
        column = columns.regex(pattern)
    except Misuse:
        return
    assert draw({"k": column})["k"].map(len).max() <= 1000


PROFILE: dict[str, Any] = {
    "format": 1,
    "rate": 2.0,
    "columns": [
        {"kind": "numbers", "name": "v", "quantiles": [1.0, 2.0, 5.0], "decimals": 1, "nulls": 0.1},
        {"kind": "values", "name": "k", "values": ["a", "b"], "counts": [3, 4], "nulls": 0.0},
        {"kind": "keys", "name": "id", "distinct": 3, "counts": [3, 2], "rest": 1, "texts": True, "nulls": 0.0},
    ],
}


@st.composite
def damaged_profiles(draw_value: Any) -> str:
    """A profile with one odd value, or without one."""
    document = copy.deepcopy(PROFILE)
    node: Any = document
    while True:
        key = draw_value(st.sampled_from([*node] if isinstance(node, dict) else range(len(node))))
        if isinstance(node[key], dict | list) and node[key] and draw_value(st.integers(0, 3)):
            node = node[key]
            continue
        if draw_value(st.integers(0, 5)):
            node[key] = draw_value(ODD | st.sampled_from([1e308, -1e308, 2**63, 1e999, [], {}, [[]], ["\ud800"]]))
        else:
            del node[key]
        break
    with long_numbers():
        return json.dumps(document)


@contextmanager
def long_numbers() -> Iterator[None]:
    """Python writes numbers of any length."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged_profiles() | st.text(max_size=5))
@example("[" * 100_000)
@example(json.dumps(PROFILE))
def test_a_profile_of_odd_values_is_refused_or_generates(tmp_path: Path, text: str) -> None:
    file = tmp_path / "p.json"
    file.write_text(text, encoding="utf-8")
    try:
        profile = Profile.load(file)
    except SparkStreamError:
        return
    for name in ("v", "k", "id"):
        column = profile.column_of(name)
        if column is not None:
            with suppress(Misuse):  # a name or a number that the stream cannot have
                draw({name: column})


def test_a_profile_that_is_no_file_is_refused() -> None:
    for path in ("/dev/zero", "a\0b", 5):
        with pytest.raises(SparkStreamError):
            Profile.load(path)  # type: ignore[arg-type]


def test_texts_of_files_have_bounds(tmp_path: Path) -> None:
    (tmp_path / "marked.siddhi").write_bytes(b"\xef\xbb\xbfdefine stream S (a int);\r\n")
    assert read_text(str(tmp_path / "marked.siddhi")) == "define stream S (a int);\n"
    for path in ("/dev/zero", "a\0b", str(tmp_path)):
        with pytest.raises(CannotRead):
            read_text(path)


@given(st.text("app:senwitxp |\"'0123456789\n", max_size=40))
@example("::::::")
@example("wait " + "9" * 21 + " days")
@example("wait " + "9" * 5000 + " days")
@example("start: " + "9" * 5000)
def test_a_test_file_of_any_text(text: str) -> None:
    with suppress(SparkStreamError):
        parse_test_file(Path("a.siddhitest"), text)


@pytest.mark.parametrize(("text", "type"), [("[" * 5000, Type.OBJECT), ("9" * 5000, Type.LONG), ("9" * 5000, Type.INT)])
def test_cells_of_odd_values(text: str, type: Type) -> None:
    with pytest.raises(AppTestError):
        read_value(Cell(text, False, Span(0, 1, 1, 0)), type)


@pytest.mark.parametrize(
    ("path", "reason"), [("no/such/x.parquet", "the folder no/such does not exist"), ("/dev/full", "not a plain file")]
)
def test_a_recording_is_written_into_a_plain_file(path: str, reason: str) -> None:
    with pytest.raises(SparkStreamError, match=reason):
        check_place(Path(path))
