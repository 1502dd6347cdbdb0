"""CSV files: read with pyarrow, every value as a text, so that each row is judged by itself.

Spark's reader drops values of rows that have too few or too many in columns that are not read, takes a quoted line
break for the end of a row unless it reads a file as a whole, and needs to be told separator and encoding. Arrow's
reader reports every row that does not fit, in any column.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from ..errors import SparkStreamError

MALFORMED = "_sparkstream_malformed"
"""The column that says why a row could not be read; null where it could."""
ROW = "_sparkstream_row"
"""The column with the text of such a row, if it is kept; null if its values are known."""
_ROW_KEPT = 2_000
"""Characters of that text."""
_SEPARATORS = ",;\t|"
_BLOCK = 8 << 20
"""Bytes that are parsed at once; a row must fit."""
_SHOWN = 60
_UNDEFINED = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
"""Bytes that mean nothing in Windows-1252, and do in Latin-1."""


@dataclass(frozen=True)
class CsvFile:
    """A file with its header. `separator`: a comma, semicolon, tab or bar. `encoding`: UTF-8, or UTF-16 by its mark;
    of other bytes Windows-1252, or Latin-1 if that has no such characters."""

    path: Path
    separator: str
    encoding: str
    header: tuple[str, ...]

    @staticmethod
    def of(path: Path, column_names: Iterable[str] = (), *, looked_at: int | None = None) -> CsvFile:
        """Inspect the file: the separator is the one with which the first line has most of the `column_names`, or most
        columns at all. The encoding is detected from all bytes, or from the first `looked_at`. Raises
        SparkStreamError for an empty file, OSError for one that cannot be read.
        """
        file_stat = path.stat()
        encoding = _detect_encoding(path, file_stat.st_size, file_stat.st_mtime_ns, looked_at)
        best: tuple[tuple[int, int], str, list[str]] | None = None
        for separator in _SEPARATORS:
            text = "utf-8-sig" if encoding == "utf-8" else encoding
            with path.open(newline="", encoding=text, errors="replace") as file:
                try:
                    header = next(csv.reader(file, delimiter=separator), [])
                except csv.Error as e:
                    raise SparkStreamError(f"{path.name}, line 1 is not CSV: {e}.") from None
            score = (len(set(column_names) & set(header)), len(header))
            if best is None or score > best[0]:
                best = (score, separator, header)
        assert best is not None
        if not best[2]:
            raise SparkStreamError(f"{path.name} is empty: its first line must name the columns.")
        return CsvFile(path, best[1], encoding, tuple(best[2]))

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows, some at a time: the texts of `columns` (null where a value is empty and not quoted), then
        `MALFORMED` and `ROW`. Raises SparkStreamError for invalid CSV, such as a quote that never ends.
        """
        unfit: list[_Unfit] = []

        def keep(row: pa.csv.InvalidRow) -> str:
            has = "1 value" if row.actual_columns == 1 else f"{row.actual_columns} values"
            why = f"not a whole row: {has}, and the header names {row.expected_columns}: {_shorten(row.text)}"
            unfit.append(_Unfit(why, row.text))
            return "skip"

        places = {name: f"c{self.header.index(name)}" for name in columns}
        names = [f"c{i}" for i in range(len(self.header))]
        try:
            reader = pa.csv.open_csv(
                self.path,
                pa.csv.ReadOptions(
                    column_names=names,
                    skip_rows_after_names=1,
                    block_size=_BLOCK,
                    encoding="utf8" if self.encoding == "utf-8" else self.encoding,
                ),
                pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True, invalid_row_handler=keep),
                pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()),
                    include_columns=list(dict.fromkeys([*places.values(), names[-1]])),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
            before: pa.RecordBatch | None = None
            for batch in reader:
                if before is not None:
                    yield _texts(before, places)
                if batch.num_rows:
                    before = batch
                yield from _unfit_rows(unfit, columns)
            if before is not None:
                yield from self._end(before, places)
        except pa.ArrowInvalid as e:
            raise SparkStreamError(f"{self.path.name} cannot be read as CSV: {_plain(e)}.") from None
        except UnicodeDecodeError as e:
            raise SparkStreamError(f"{self.path.name} is not {self.encoding} text: {e.reason}.") from None
        yield from _unfit_rows(unfit, columns)

    def _end(self, batch: pa.RecordBatch, places: dict[str, str]) -> Iterator[pa.Table]:
        """The last rows. A quote that is not closed makes one value of all that follows."""
        last = batch.column(f"c{len(self.header) - 1}")[-1].as_py()
        rows = _texts(batch, places)
        if last is None or b"\n" not in last or _ends_with_quote(self.path):
            yield rows
            return
        yield rows.slice(0, len(rows) - 1)
        text = last.decode(errors="backslashreplace")
        yield from _unfit_rows(
            [_Unfit(f"not a whole row: a quote is not closed before {_shorten(text)}", text)], places
        )


def _ends_with_quote(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        return file.read().rstrip(b" \t\r\n\0").endswith((b'"', b'"\0'))


def _texts(batch: pa.RecordBatch, places: dict[str, str]) -> pa.Table:
    """Bytes as texts; a row with bytes that are none is malformed."""
    arrays, errors = [], pa.nulls(batch.num_rows, pa.string())
    for name, place in places.items():
        column = batch.column(place)
        try:
            arrays.append(column.cast(pa.string()))
        except pa.ArrowInvalid:
            texts = [None if v is None else v.decode(errors="backslashreplace") for v in column.to_pylist()]
            arrays.append(pa.array(texts, pa.string()))
            whys = [
                f"not UTF-8 text in '{name}': {_shorten(text)}" if text is not None and text.encode() != raw else None
                for text, raw in zip(texts, column.to_pylist(), strict=True)
            ]
            errors = pa.array([a or b for a, b in zip(errors.to_pylist(), whys, strict=True)], pa.string())
    return pa.table([*arrays, errors, pa.nulls(len(errors), pa.string())], [*places, MALFORMED, ROW])


@dataclass(frozen=True)
class _Unfit:
    """A row that is not whole: why, and its text."""

    why: str
    text: str


def _unfit_rows(unfit: list[_Unfit], columns: Collection[str]) -> Iterator[pa.Table]:
    """The rows that did not fit since the last call."""
    if unfit:
        empty = [pa.nulls(len(unfit), pa.string()) for _ in columns]
        whys = pa.array([row.why for row in unfit], pa.string())
        texts = pa.array([row.text.rstrip("\r\n")[:_ROW_KEPT] for row in unfit], pa.string())
        yield pa.table([*empty, whys, texts], [*columns, MALFORMED, ROW])
        unfit.clear()


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _plain(error: pa.ArrowInvalid) -> str:
    text = str(error)
    if "straddling" in text:
        return f"a row is longer than {_BLOCK >> 20} MiB, or a quote is not closed"
    return text.removeprefix("CSV parse error: ").rstrip(".")


@lru_cache(maxsize=64)
def _detect_encoding(path: Path, size: int, modified_ns: int, most: int | None) -> str:
    """`utf-8` where all or most bytes outside ASCII are that. The whole file is read (or `most` bytes), and again only
    where its `size` or `modified_ns`, its time of modification, are others: a feed is looked at several times before
    it is read."""
    good = bad = 0
    last_byte = b""
    with path.open("rb") as file:
        while (most is None or file.tell() < most) and (chunk := file.read(1 << 20)):
            if not last_byte and chunk[:2] in (b"\xff\xfe", b"\xfe\xff"):
                return "utf-16"
            last_byte = chunk[:1]
            if chunk.isascii():
                continue
            text = (chunk + file.readline()).decode(errors="replace")
            bad += text.count("\ufffd")
            good += sum(c > "\x7f" for c in text) - text.count("\ufffd")
    if bad <= good:
        return "utf-8"
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            if any(b in chunk for b in _UNDEFINED):
                return "latin-1"
    return "cp1252"
