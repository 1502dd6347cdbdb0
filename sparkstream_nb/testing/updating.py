"""Actual results written into test files: comments, layout and rows that were right stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .cell_values import write_rows, write_text
from .comparison import DiffRow
from .expectations import CheckedExpect
from .model import Table
from .siddhitest_parser import comment_start


@dataclass(frozen=True)
class _Edit:
    """Lines `first` to `last` (from 1, inclusive) of a file, and the lines that come in their place. With `last` below
    `first`, lines are added above `first`."""

    first: int
    last: int
    lines: tuple[str, ...]


def update_text(text: str, comparisons: Sequence[CheckedExpect]) -> str:
    """The text of a test file with the actual rows of these expectations, each of which is checked once."""
    lines = text.removesuffix("\n").split("\n")
    edits = [edit for c in comparisons if not c.holds for edit in _edits_of(c, lines)]
    for edit in sorted(edits, key=lambda e: (e.first, e.last), reverse=True):
        lines[edit.first - 1 : edit.last] = edit.lines
    return "\n".join(lines) + "\n"


def _edits_of(comparison: CheckedExpect, lines: Sequence[str]) -> list[_Edit]:
    line, table = comparison.expect.span.line, comparison.expect.table
    indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
    if table is None:
        if not comparison.actual:
            return [_say_nothing(line, lines)]
        names = tuple(write_text(c.name, first=i == 0) for i, c in enumerate(comparison.columns))
        rows = [names, *map(comparison.cells_of, range(len(comparison.actual)))]
        head = _without_nothing(lines[line - 1])
        return [_Edit(line, line, (head, *(indent + row for row in write_rows(rows))))]
    if not comparison.actual:
        removals = [_Edit(row, row, ()) for row in (table.line, *(r.line for r in table.rows))]
        return [_say_nothing(line, lines), *removals]
    return _edit_rows(comparison, table, lines)


def _edit_rows(comparison: CheckedExpect, table: Table, lines: Sequence[str]) -> list[_Edit]:
    """Edits that take missing rows away, and add unexpected ones at their places. Kept rows have their text."""
    heading = lines[table.line - 1]
    indent = heading[: len(heading) - len(heading.lstrip())]
    edits: list[_Edit] = []
    new_rows: list[int] = []
    place = table.line + 1
    rows_and_end = [*comparison.rows, DiffRow(" ", None, None)]
    for row in rows_and_end:
        if row.sign == "+" and row.actual is not None:
            new_rows.append(row.actual)
            continue
        if new_rows and row.sign == " ":
            new = tuple(indent + _align_cells(comparison, table, lines, number) for number in new_rows)
            edits.append(_Edit(place, place - 1, new))
            new_rows = []
        if row.expected is not None:
            line = table.rows[row.expected].line
            if row.sign == "-":
                edits.append(_Edit(line, line, ()))
            place = line + 1
    return _in_place(edits)


def _in_place(edits: Sequence[_Edit]) -> list[_Edit]:
    """Edits in which added lines take the place of the removed one above them."""
    out: list[_Edit] = []
    for edit in edits:
        above = out[-1] if out else None
        if above is not None and edit.last < edit.first and above.last >= above.first and above.last + 1 == edit.first:
            out[-1] = _Edit(above.first, above.last, (*above.lines, *edit.lines))
        else:
            out.append(edit)
    return out


def _align_cells(comparison: CheckedExpect, table: Table, lines: Sequence[str], number: int) -> str:
    """A row with its cells below the cells of the columns' names."""
    cells = comparison.cells_of(number)
    heading = lines[table.line - 1]
    starts = [c.span.column for c in table.columns]
    bars = [heading.rfind("|", 0, start) for start in starts[1:]]
    widths = [bar - start - 1 for start, bar in zip(starts, bars, strict=False)]
    padded_cells = [c.ljust(w) for c, w in zip(cells, [*widths, 0], strict=True)]
    return " | ".join(padded_cells).rstrip()


def _say_nothing(line: int, lines: Sequence[str]) -> _Edit:
    """The line of an expectation with `nothing`, before its comment."""
    text = lines[line - 1]
    at = comment_start(text)
    rule, comment = text[:at].rstrip(), text[at:]
    return _Edit(line, line, (f"{rule} nothing" + (f"  {comment}" if comment else ""),))


def _without_nothing(text: str) -> str:
    at = comment_start(text)
    rule, comment = text[:at], text[at:]
    before, nothing, after = rule.rpartition(" nothing")
    return (before + after).rstrip() + (f"  {comment}" if comment else "") if nothing else text
