"""Renders tables as plain text and as HTML: the same rows, limit and row count.

Both depend on the values alone, not on the terminal's width or pandas options, so that a saved notebook equals a new
run. The command line fits texts into its terminal (`fit_columns`).
"""

from __future__ import annotations

import html
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

# Columns that hold milliseconds and read better as a time.
TIME_COLUMNS = frozenset(
    {"AGG_TIMESTAMP", "AGG_EVENT_TIMESTAMP", "AGG_LAST_EVENT_TIMESTAMP", "timestamp", "event_timestamp"}
)
# A value longer than this is cut; the whole of it is in the data frame.
CELL_WIDTH = 60
_EARLIEST, _LATEST = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999


class CountCell(int):
    """A number of things, shown with thousands separators; other whole numbers may be years or identifiers."""


def when(ms: int) -> str:
    """Milliseconds since 1970 as a UTC time, without fractional seconds if they are zero."""
    if not _EARLIEST <= ms <= _LATEST:
        return str(ms)
    seconds, rest = divmod(ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{rest:03d}" if rest else text


def size(n: int) -> str:
    """A number of bytes in the unit that suits it: `512 B`, `1.5 KB`, `20.0 MB` (of 1,000 bytes each)."""
    if n < 1000:
        return f"{n} B"
    value, units = n / 1000, ["KB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:,.1f} {units[0]}"


def format_count(n: int, one: str, several: str | None = None) -> str:
    """`1 event`, `1,200 events`."""
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"


def text_of(value: Any, column: str = "") -> str:
    """One value as a cell: null for None, at most four decimals, a time for the columns of `TIME_COLUMNS`."""
    if is_missing(value):
        return "null"
    if isinstance(value, CountCell):
        return f"{value:,}"
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return when(value) if column in TIME_COLUMNS else str(value)
    if isinstance(value, float):
        return number(value)
    text = str(value).replace("\r", "\\r").replace("\n", "\\n")
    return text if len(text) <= CELL_WIDTH or isinstance(value, WholeText) else text[: CELL_WIDTH - 1] + "…"


def is_missing(value: Any) -> bool:
    """True if a cell is null: None, pandas' NA or NaT. NaN is a number."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def number(value: float) -> str:
    """A float with at most four decimals, or with six significant digits for small numbers."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and not 1e-3 <= abs(value) < 1e15:
        return f"{value:.6g}"
    text = f"{value:.4f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


class Figure(str):
    """A figure as it is to be read, with separators or a unit: aligned to the right."""

    __slots__ = ()


class WholeText(str):
    """A text that is shown whole, however long."""

    __slots__ = ()


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Figure)) or hasattr(value, "item")


class Grid:
    """Rows under named columns, cut at `limit`; `total` is the number of rows. `notes` are shown above the column
    names."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        total: int | None = None,
        limit: int | None = None,
        notes: Sequence[str] = (),
        what: str = "row",
    ) -> None:
        all_rows = list(rows)
        self.columns = [str(c) for c in columns]
        self.total = len(all_rows) if total is None else total
        first_rows = all_rows if limit is None else all_rows[:limit]
        self.values = [list(r) for r in first_rows]
        self.cells = [[text_of(v, c) for v, c in zip(r, self.columns, strict=True)] for r in first_rows]
        self.notes = list(notes) or [""] * len(self.columns)
        self.what = what

    @classmethod
    def of_frame(cls, frame: Any, *, limit: int | None = None, notes: Sequence[str] = (), what: str = "row") -> Grid:
        """The rows of a pandas frame."""
        from ...outputs.output_files import frame_rows  # it loads what frames are made of

        head = frame if limit is None else frame.head(limit)
        return cls(list(frame.columns), frame_rows(head), total=len(frame), notes=notes, what=what)

    @property
    def right(self) -> list[bool]:
        """Numeric columns, which are right-aligned."""
        out = []
        for i, name in enumerate(self.columns):
            present_values = [r[i] for r in self.values if not is_missing(r[i])]
            out.append(name not in TIME_COLUMNS and bool(present_values) and all(is_number(v) for v in present_values))
        return out

    @property
    def footer(self) -> str:
        """The number of rows, how many of them are shown, and the zone of their times."""
        many = f"{self.total:,} {self.what}{'' if self.total == 1 else 's'}"
        count_text = many if len(self.cells) == self.total else f"showing {len(self.cells):,} of {many}"
        return f"{count_text} · times in UTC" if self._has_times else count_text

    @property
    def _has_times(self) -> bool:
        """True if a cell shows a time; numpy's scalars are times too."""
        return any(
            name in TIME_COLUMNS and any(is_number(row[i]) and not is_missing(row[i]) for row in self.values)
            for i, name in enumerate(self.columns)
        )

    def text(self, *, footer: bool = True) -> str:
        """Aligned plain text, within the columns that `fit_columns` sets."""
        head = [f"{c} {n}".rstrip() for c, n in zip(self.columns, self.notes, strict=True)]
        widths = [max([len(h), *(len(r[i]) for r in self.cells)]) for i, h in enumerate(head)]
        right = self.right
        if (room := _columns.get()) is not None:
            widths = _narrow(widths, room)

        def line(cells: Sequence[str]) -> str:
            parts = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
            return "  ".join(parts).rstrip()

        def lines_of(cells: Sequence[str]) -> Iterator[str]:
            if all(len(c) <= w for c, w in zip(cells, widths, strict=True)):
                yield line(cells)
                return
            cell_lines = [textwrap.wrap(c, w) or [""] for c, w in zip(cells, widths, strict=True)]
            for part in zip_longest(*cell_lines, fillvalue=""):
                yield line(part)

        rows = [x for r in self.cells for x in lines_of(r)]
        lines = [*lines_of(head), line(["─" * w for w in widths]), *rows]
        return "\n".join([*lines, self.footer] if footer else lines)

    def html(self, *, footer: bool = True) -> str:
        """An HTML table, which JupyterLab's extension lets people sort and filter; every value is escaped."""
        aligns = ["right" if r else "left" for r in self.right]
        head = "".join(
            f'<th style="text-align:{a}">{html.escape(c)}{_small(n)}</th>'
            for c, n, a in zip(self.columns, self.notes, aligns, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{a};white-space:nowrap">{html.escape(c)}</td>'
                for c, a in zip(r, aligns, strict=True)
            )
            + "</tr>"
            for r in self.cells
        )
        out = f'<table class="sparkstream-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return f'{out}<div style="{MUTED}">{self.footer}</div>' if footer else out


_columns: ContextVar[int | None] = ContextVar("columns", default=None)
_LEAST = 12
"""Columns that a wrapped cell has at least."""


@contextmanager
def fit_columns(room: int | None) -> Iterator[None]:
    """In the block, the texts of tables are at most `room` columns wide, with long cells on several lines; None: as
    wide as their cells."""
    token = _columns.set(room)
    try:
        yield
    finally:
        _columns.reset(token)


@contextmanager
def fit_terminal() -> Iterator[None]:
    """In the block, tables are as wide as the terminal; where standard output is none, as wide as their cells."""
    with fit_columns(shutil.get_terminal_size().columns if sys.stdout.isatty() else None):
        yield


def _narrow(widths: Sequence[int], room: int) -> list[int]:
    """`widths` whose widest are made narrower until all fit in `room`, with two columns between them."""
    out = list(widths)
    excess = sum(out) + 2 * (len(out) - 1) - room
    while excess > 0 and max(out) > _LEAST:
        out[out.index(max(out))] -= 1
        excess -= 1
    return out


MUTED = "color:var(--jp-ui-font-color2,#666);font-size:90%"


def _small(note: str) -> str:
    return f' <span style="{MUTED};font-weight:normal">{html.escape(note)}</span>' if note else ""


def paragraph(markup: str) -> str:
    """HTML as a paragraph of its own."""
    return f'<div style="margin:.3em 0">{markup}</div>'


def escaped_lines(text: str) -> str:
    """Lines of plain text as HTML, as they are. JupyterLab would break long ones within words."""
    style = "margin:.3em 0;line-height:1.35;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
    return f'<pre style="{style}">{html.escape(text)}</pre>'
