"""Which name somebody meant: what is near is suggested, and what is not is not."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.errors import SparkStreamError, did_you_mean, near_to
from sparkstream_nb.sources.feed_check import check_source
from sparkstream_nb.sources.feeds import Shape
from sparkstream_nb.types import Attribute, Schema, Type

FUNCTIONS = ("min", "max", "sum", "avg", "count", "distinctCount", "stdDev", "timeBatch", "length", "session")


@pytest.mark.parametrize(
    ("name", "candidates", "near"),
    [
        ("lenght", FUNCTIONS, "length"),
        ("coutn", FUNCTIONS, "count"),
        ("mx", FUNCTIONS, "max"),
        ("stddev", FUNCTIONS, "stdDev"),
        ("cnt", FUNCTIONS, "count"),
        ("time_batch", FUNCTIONS, "timeBatch"),
        ("station", ("Action", "End Station", "Station Name"), "Station Name"),
        ("recver.url", ("receiver.url", "basic.auth.enabled"), "receiver.url"),
        ("header.present", ("header", "delimiter"), "header"),
        ("--shards", ("--shared", "--shard-ids"), "--shard-ids"),
        ("--node", ("--mode", "--nodes", "--name"), "--nodes"),
        ("median", FUNCTIONS, None),
        ("tumbling", FUNCTIONS, None),
        ("--shards", ("--shared",), None),
        ("select", ("sec", "seconds"), None),
        ("station", ("Action",), None),
        ("binaryPassThrough", ("binary", "passThrough"), None),
        ("websocket-server", ("websocket",), None),
        ("x", ("a", "b"), None),
        ("", ("a",), None),
    ],
)
def test_what_is_near(name: str, candidates: tuple[str, ...], near: str | None) -> None:
    assert did_you_mean(name, candidates) == (None if near is None else f"Did you mean '{near}'?")


@given(st.text("abc_.-A", max_size=8), st.lists(st.text("abc_.-A", max_size=8), max_size=5))
def test_a_name_that_is_there_is_the_nearest(name: str, others: list[str]) -> None:
    found = near_to(name, [*others, name])
    assert name in found
    assert set(found) <= {*others, name}


def test_a_missing_column_lists_those_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "rentals.csv"
    path.write_text("Action,Zeit,Old station,Station Name\nout,1,a,b\n")
    shape = Shape("Events", Schema((Attribute("station", Type.STRING),)), None, {})
    with pytest.raises(SparkStreamError) as raised:
        check_source(path, shape)
    assert str(raised.value) == (
        "rentals.csv has no column 'station' for stream Events. Did you mean 'Station Name'? "
        "Its columns: Station Name, Old station, Action, Zeit. "
        "Write columns={'station': 'Station Name'}; columns={'station': None} feeds null."
    )


def test_all_missing_columns_are_named_at_once() -> None:
    frame = pd.DataFrame({"Zeit": [1], "Station Name": ["a"], "Dauer (min)": [1], "Fahrrad-Nr": ["b"]})
    schema = Schema.of(("station", Type.STRING), ("dauer", Type.INT), ("rad", Type.STRING))
    with pytest.raises(SparkStreamError) as said:
        check_source(frame, Shape("A", schema, None, {}))
    assert str(said.value) == (
        "The frame has no columns 'station', 'dauer', 'rad' for stream A. Its columns: Zeit, Station Name, Dauer "
        "(min), Fahrrad-Nr. Write columns={'station': 'Station Name', 'dauer': 'Dauer (min)', 'rad': COLUMN}; None in "
        "place of a column feeds null."
    )
