"""Rows that do not fit: their reasons in groups, with an example and the expected format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.reasons import ReasonGroup, group_reasons
from sparkstream_nb.ingest.ingest import too_late
from sparkstream_nb.lab.display import text
from sparkstream_nb.wording import speak_of_options

Run = Callable[..., App]


def test_values_that_do_not_fit_are_one_kind_for_each_column() -> None:
    found = group_reasons({
        "price: '1,5' is not a double": 3, "price: '2,5' is not a double": 1,
        "price: 'a: b is not a c' is not a double": 1,
        "qty: 'x' is not an int": 2, "line 3 has 2 values, not 3": 9,
    })  # fmt: skip
    number = "; a whole number is written as 1234"
    comma = "; with a decimal comma: --decimal ,"
    assert found == [
        ReasonGroup(9, "line 3 has 2 values, not 3"),
        ReasonGroup(5, f"price is not a double: 3 values, such as '1,5'{comma}"),
        ReasonGroup(2, f"qty: 'x' is not an int{number}"),
    ]
    missing = "at: null is not a time"
    assert group_reasons({missing: 7}) == [ReasonGroup(7, missing)], "no way to write it"
    assert group_reasons({}) == []


def test_the_example_is_of_the_kind_that_most_rows_have() -> None:
    """Each price has other digits, and so `n/a` was the most frequent value: "a number is written as 1234.5"."""
    prices = {f"price: '{i},38' is not a double": 1 for i in range(100)}
    (found,) = group_reasons({**prices, "price: 'n/a' is not a double": 20, "price: '-' is not a double": 9})
    assert found == ReasonGroup(
        129, "price is not a double: 102 values, such as '0,38'; with a decimal comma: --decimal ,; if they stand for "
        'a missing value: --missing "n/a,-"',
    )  # fmt: skip


def test_a_row_counts_for_each_column_that_does_not_fit_and_times_come_first() -> None:
    """A wrong --time-format hid behind the prices, as only the first fault of a row was counted."""
    found = group_reasons({
        "Zeit: '03.06.' is not a time like 2024-06-01; preis: '8,38' is not a double; n: 'a; is not' is not an int": 3,
        "Zeit: '04.06.' is not a time like 2024-06-01; preis: 'x' is not a double": 2,
        "preis: the text is not valid UTF-8; n: 'y' is not an int": 1,
    })  # fmt: skip
    assert [(g.count, g.words.partition(";")[0]) for g in found] == [
        (5, "Zeit is not a time like 2024-06-01: 2 values, such as '03.06.'"),
        (5, "preis is not a double: 2 values, such as '8,38'"),
        (4, "n is not an int: 2 values, such as 'a"),
        (1, "preis: the text is not valid UTF-8"),
    ]


def test_a_feed_in_another_format_is_told_in_a_few_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time column that no row of fits was 9,500 lines."""
    monkeypatch.setattr("sparkstream_nb.lab.results_shown.has_magics", lambda: False)
    n = 2_000
    frame = pd.DataFrame({
        "k": "a", "v": ["1.00 EUR" if i % 2 else "1.5" for i in range(n)],
        "Zeit": [f"03.06.2024 {i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(n)],
    })  # fmt: skip
    app = run("define stream S (k string, v double); from S select k insert into O;")
    lines = text(app.feed("S", frame, time="Zeit")).splitlines()
    assert lines[1] == "  ! 2,000 of 2,000 rows did not fit the stream and are kept: app.errors"
    assert len(lines) <= 5
    assert "2,000 × Zeit is not a time: 2,000 values, such as '03.06.2024 00:00:" in "\n".join(lines)
    assert "; they look like time_format='%d.%m.%Y %H:%M:%S'" in "\n".join(lines)
    assert "1,000 × v: '1.00 EUR' is not a double; a number is written as 1234.5" in "\n".join(lines)
    shown = text(app.errors)
    assert [line[:15] for line in shown.splitlines()[2:4]] == ["2,000  Zeit is ", "1,000  v: '1.00"]
    assert "showing 20 of 2,000 errors" in shown


@pytest.mark.parametrize(
    ("texts", "what", "hint"),
    [
        (("28.11.2026 06:00:01", "n/a"), "", "they look like --time-format '%d.%m.%Y %H:%M:%S'"),
        (("01/02/2024", "01/31/2024"), "", "they look like --time-format '%m/%d/%Y'"),
        (("11/28/2026 06:00:01 PM",), " like 2024-06-01", "they look like --time-format '%m/%d/%Y %I:%M:%S %p'"),
        (("2026-11-28T06:00:01Z",), " like 06/01/2024", "without --time-format they are read"),
        (("soon",), " like 06/01/2024", "--time-format names another format"),
        (("soon",), "", "(--time-format and --time-zone name others)"),
    ],
)
def test_the_format_of_times_is_guessed(texts: Sequence[str], what: str, hint: str) -> None:
    """Of the values that are most: a day above 12 tells which number is the month."""
    with speak_of_options():
        (group,) = group_reasons({f"at: {text!r} is not a time{what}": 1 for text in texts})
    assert group.words.endswith(hint)


@pytest.mark.parametrize("end", ["(max_ahead)", "(--max-ahead)"])
def test_a_time_too_far_ahead_is_a_fault_of_its_own(end: str) -> None:
    """Beside others of its row; the second form is that of 0.2.0. The option is the reader's."""
    ahead = "at: the time 2100-01-01 00:00:00 UTC is too far ahead: after 2026-01-01 00:00:00 UTC no event is taken "
    reasons = {f"{ahead}{end}; v: 'x' is not an int": 2, f"{ahead}{end}": 1}
    first = group_reasons(reasons)[0]
    assert (first.count, first.words.rpartition(" ")[2]) == (3, "(max_ahead)")
    with speak_of_options():
        assert {g.words.partition("; ")[0] for g in group_reasons(reasons)} == {
            f"{ahead}(--max-ahead)", "v: 'x' is not an int",
        }  # fmt: skip
    assert too_late(4_102_444_800_000, 1_767_225_600_000) == f"{ahead.removeprefix('at: ')}(max_ahead)"
