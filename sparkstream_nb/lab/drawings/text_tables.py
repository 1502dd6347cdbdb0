"""Renders tables as plain text and as HTML: the same rows, limit and row count.

Both depend on the values alone, not on the terminal's width or pandas options, so that a saved notebook equals a new
run. The command line fits texts into its terminal (`fit_columns`).
"""

from __future__ import annotations

import html
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any

from ...charts.value_texts import TIME_COLUMNS, is_missing, is_number, text_of


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
