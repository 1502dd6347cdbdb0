"""Texts that are not UTF-8, which Arrow and parquet take for texts: errors of their rows, and the app goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.ingest.ingest import python_values, type_rows
from sparkstream_nb.recovery.quarantine import errors_of
from sparkstream_nb.types import Attribute, Schema, Type

Run = Callable[..., App]
APP = """define stream S (k string, v int);
@info(name='all') from S[v > 0] select k, v insert into O;
@info(name='last') from S#window.length(3) select k, sum(v) as s group by k insert into P;
"""
SPOILT = b"b\xff\xfe"


def texts(*values: bytes | None) -> pa.Array:
    """Bytes that are said to be texts."""
    return pa.array(values, pa.binary()).view(pa.string())


KINDS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "string": lambda a: a,
    "large": lambda a: a.cast(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
    "dictionary": lambda a: a.dictionary_encode(),
    "view": lambda a: a.cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()),
    "bytes": lambda a: a.cast(pa.binary()),
    "large bytes": lambda a: a.cast(pa.binary()).cast(pa.large_binary()),
}


@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("way", [*KINDS, "parquet"])
def test_a_text_that_is_none_is_an_error_of_its_row(run: Run, tmp_path: Path, way: str) -> None:
    table = pa.table(
        {"k": KINDS.get(way, KINDS["string"])(texts(b"a", SPOILT, b"c")), "v": pa.array([1, 2, 3], pa.int32())}
    )
    if way == "parquet":
        pq.write_table(table, tmp_path / "x.parquet")
    app = run(APP)
    report = app.feed("S", tmp_path / "x.parquet" if way == "parquet" else table)
    assert (report.rows, report.rejected) == (3, 1)
    app.send("S", ["d", 4])
    app.flush()
    assert app.output("O").frame["k"].tolist() == ["a", "c", "d"]
    errors = app.errors.frame
    assert errors["values"].tolist() == [["b\ufffd\ufffd", 2]]
    assert errors["reason"].tolist() == ["k: the text is not valid UTF-8"]
    assert app.state == "running"


def test_setting_aside_survives_it() -> None:
    rows = StreamRows(np.arange(2), np.array([10, 20]), [texts(SPOILT, b"a"), pa.array([1, 2], pa.int32())])
    found = errors_of(InputBatch(np.array([10, 20]), {"S": rows}), "why")
    assert [(e.ts, e.values) for e in found] == [(10, ["b\ufffd\ufffd", 1]), (20, ["a", 2])]


def test_what_is_not_text_among_other_values() -> None:
    schema = Schema((Attribute("n", Type.INT), Attribute("o", Type.OBJECT)))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 2]), texts(b"x", SPOILT))
    typed = type_rows(pa.table({"n": texts(b"1", b"2", SPOILT), "o": lists}), schema)
    assert len(typed) == 1
    spoilt = "the text is not valid UTF-8"
    assert typed.rejected == [(None, ["2", None], f"o: {spoilt}"), (None, ["b\ufffd\ufffd", []], f"n: {spoilt}")]
    assert python_values(lists) == [["x"], spoilt, []]
    assert python_values(texts(b"x", None, SPOILT).dictionary_encode()) == ["x", None, "b\ufffd\ufffd"]
