"""Values of a feed that are written with a decimal comma, and texts that mean that there is no value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkstream_nb.errors import Misuse
from sparkstream_nb.ingest.row_typing import RowReading, type_rows
from sparkstream_nb.ingest.value_formats import ValueFormat
from sparkstream_nb.runners.inline import InlineSession
from sparkstream_nb.sources.feeds import ChunkPlace, Shape, read_feed
from sparkstream_nb.types import Schema, Type

COMMA = ValueFormat.of(",", ["n/a", "-"])


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("8,38", Type.DOUBLE, 8.38),
        (" -1.234.567,5 ", Type.DOUBLE, -1234567.5),
        ("1.234", Type.DOUBLE, 1234.0),
        ("1.234", Type.INT, 1234),
        ("17", Type.LONG, 17),
        (",5", Type.FLOAT, 0.5),
        ("2,5e3", Type.DOUBLE, 2500.0),
        ("nan", Type.DOUBLE, "nan"),
        ("n/a", Type.DOUBLE, None),
        (" - ", Type.INT, None),
        ("n/a", Type.STRING, None),
        ("8,38 and 1.5", Type.STRING, "8,38 and 1.5"),
        (None, Type.DOUBLE, None),
    ],
)
def test_a_text_is_read(text: str | None, type: Type, value: Any) -> None:
    typed = type_rows(pa.table({"v": pa.array([text], pa.string())}), Schema.of(("v", type)), RowReading(values=COMMA))
    assert typed.rejected == []
    assert typed.columns[0].to_pylist()[0] == value or value == "nan"


@pytest.mark.parametrize("text", ["8.38", "1.2345", "1,234.5", "1,2,3", "12.34,5", "x", "1,5 EUR"])
def test_a_text_is_no_number_with_a_comma(text: str) -> None:
    typed = type_rows(pa.table({"v": ["1,5", text]}), Schema.of(("v", Type.DOUBLE)), RowReading(values=COMMA))
    assert typed.columns[0].to_pylist() == [1.5]
    assert typed.rejected == [(None, [text], f"v: {text!r} is not a double")]


def test_only_texts_are_read_so() -> None:
    typed = type_rows(pa.table({"v": [1.5, None]}), Schema.of(("v", Type.DOUBLE)), RowReading(values=COMMA))
    assert typed.columns[0].to_pylist() == [1.5, None]


def test_a_parquet_file_is_looked_at(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"v": ["a", "n/a"]}), tmp_path / "a.parquet")
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    shape = Shape("S", Schema.of(("v", Type.STRING)), None, {}, values=COMMA)
    (chunk,) = read_feed(tmp_path / "a.parquet", shape, ChunkPlace(inbox, InlineSession()), None).chunks
    with pa.memory_map(str(inbox / chunk.file)) as source:
        assert pa.ipc.open_file(source).read_all()["a0"].to_pylist() == ["a", None]


def test_no_separator() -> None:
    with pytest.raises(Misuse, match=r"decimal is ',' or '\.', not ';'"):
        ValueFormat.of(";", None)
