"""Many plain CSV messages at once, by Arrow's reader, with the results of `csv_reader.py`.

Lines without quotes are plain; their values are read as texts, and converted to numbers of the usual form column by
column. A message with another line is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ..engine.columnar.column_data import ARROW, Array
from ..plan.connectors.mapping import CsvSource, SourceMapping
from ..types import Schema, Type
from .attribute_values import Values
from .batch_readers import BatchReader, EventBatch
from .csv_reader import places_of

_FORMS = {
    Type.INT: r"^[+-]?[0-9]{1,9}$",
    Type.LONG: r"^[+-]?[0-9]{1,18}$",
    Type.DOUBLE: r"^[+-]?([0-9]{1,17}(\.[0-9]{0,17})?|\.[0-9]{1,17})([eE][+-]?[0-9]{1,2})?$",
}
_FORMS[Type.FLOAT] = _FORMS[Type.DOUBLE]
_BLOCK = 1 << 20


def csv_batch_reader(mapping: SourceMapping, schema: Schema) -> BatchReader | None:
    """The fast reader of a mapping; None if it has none."""
    assert isinstance(mapping.format, CsvSource)
    delimiter = mapping.format.delimiter
    places = places_of(mapping, schema)
    if len(delimiter) != 1 or ord(delimiter) > 127 or delimiter in "\\\t ":
        return None
    if any(a.type is Type.OBJECT for a in schema) or all(p is None for p in places):
        return None
    return _CsvBatchReader(schema, places, delimiter)


class _CsvBatchReader:
    def __init__(self, schema: Schema, places: list[int | None], delimiter: str) -> None:
        self.schema, self.places, self.delimiter = schema, places, delimiter
        self.least_columns = 1 + max(p for p in places if p is not None)

    def __call__(self, messages: Sequence[bytes]) -> EventBatch | None:
        """See `BatchReader`."""
        if not any(b"\n" in m for m in messages):
            return self._lines(messages)
        lines: list[bytes] = []
        counts: list[int] = []
        for m in messages:
            some = [b'"'] if b'"' in m else [line.rstrip(b"\r") for line in m.split(b"\n")]
            some = [line for line in some if line]
            lines += some
            counts.append(len(some))
        events = self._lines(lines) if lines else None
        if events is None:
            return None
        of = np.repeat(np.arange(len(messages)), counts)[events.messages]
        keep = (np.bincount(of, minlength=len(messages)) == np.array(counts))[of]
        return EventBatch(_filter_columns(events.columns, keep), of[keep])

    def _lines(self, messages: Sequence[bytes]) -> EventBatch | None:
        """The events of messages that are one line each."""
        width, message_numbers = self._chosen(messages)
        if len(message_numbers) == 0:
            return None
        if len(message_numbers) < len(messages):
            messages = [messages[i] for i in message_numbers.tolist()]
        texts = self._texts(messages, width)
        if texts is None or texts.num_rows != len(messages):
            return None
        keep = np.ones(len(messages), np.bool_)
        columns: list[Values] = []
        for a, place in zip(self.schema, self.places, strict=True):
            if place is None:
                columns.append(pa.nulls(len(messages), ARROW[a.type]))
                continue
            column, fits = _convert_texts(a.type, texts.column(f"c{place}").combine_chunks())
            columns.append(column)
            if fits is not None:
                keep &= fits
        return EventBatch(_filter_columns(columns, keep), message_numbers[keep])

    def _chosen(self, messages: Sequence[bytes]) -> tuple[int, Array]:
        """The number of columns of most of the first lines, and the plain messages with that number."""
        d = self.delimiter.encode()
        width = Counter(m.count(d) for m in messages[:100]).most_common(1)[0][0] + 1
        if width < self.least_columns:
            return width, np.empty(0, np.int64)
        plain = np.fromiter(
            (
                m.count(d) + 1 == width and m != b"" and not (b'"' in m or b"\n" in m or b"\r" in m)
                and m[:3] != b"\xef\xbb\xbf"
                for m in messages
            ),
            np.bool_,
            len(messages),
        )  # fmt: skip
        return width, np.flatnonzero(plain)

    def _texts(self, messages: Sequence[bytes], width: int) -> pa.Table | None:
        data = b"\n".join(messages) + b"\n"
        names = [f"c{i}" for i in range(width)]
        column_numbers = sorted({p for p in self.places if p is not None})
        try:
            data.isascii() or data.decode()
            return pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(column_names=names, block_size=max(_BLOCK, 2 * max(map(len, messages)) + 2)),
                pa.csv.ParseOptions(delimiter=self.delimiter, quote_char=False, ignore_empty_lines=False),
                pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=[f"c{i}" for i in column_numbers],
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except (UnicodeDecodeError, pa.ArrowException):
            return None


def _filter_columns(columns: list[Values], keep: Array) -> list[Values]:
    if keep.all():
        return columns
    mask = pa.array(keep)
    return [c.filter(mask) for c in columns if isinstance(c, pa.Array)]


def _convert_texts(type: Type, texts: pa.Array) -> tuple[pa.Array, Array | None]:
    """Texts as values, and which of them fit (None: all)."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.chunk(0)
    if type is Type.STRING:
        return texts, None
    if type is Type.BOOL:
        return pc.equal(pc.ascii_lower(texts), "true"), None
    fits = pc.match_substring_regex(texts, _FORMS[type])
    if not pc.all(fits).as_py():
        texts = pc.if_else(fits, texts, "0")
    if type in (Type.INT, Type.LONG):
        texts = pc.utf8_ltrim(texts, "+")
        column = texts.cast(pa.int64()).cast(ARROW[type])
    else:
        column = pc.utf8_ltrim(texts, "+").cast(pa.float64()).cast(ARROW[type], safe=False)
    return column, fits.to_numpy(zero_copy_only=False)
