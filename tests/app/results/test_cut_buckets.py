"""A range that begins or ends inside a bucket of an aggregation: what is said of the bucket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.lab.card import warnings_of
from sparkstream_nb.lab.display import html, text

Run = Callable[..., App]
HOUR, MINUTE = 3_600_000, 60_000
NOON = 1_600_000_000_000 // (24 * HOUR) * 24 * HOUR + 12 * HOUR  # of 2020-09-13
APP = """
define stream S (k string, v int, at long);
define stream P (k string, v int, at long);
define aggregation A from S select k, sum(v) as total group by k aggregate by at every {durations};
"""
LEFT_OUT = "the {} of 2020-09-13{} (UTC) is left out, as the range begins inside it; ask from its start{}"
WHOLE = (
    "the {} of 2020-09-13{} (UTC) is counted as a whole, as the range ends inside it; ask until its start or its end{}"
)


def fill(app: App) -> None:
    """Sends 1, 2, 4 and 8 at 12:00, 12:10, 12:50 and 13:30."""
    for minute, v in ((0, 1), (10, 2), (50, 4), (90, 8)):
        app.send("S", ["a", v, NOON + minute * MINUTE], at=NOON + minute * MINUTE)


def filled(run: Run, durations: str = "sec ... day") -> App:
    app = run(APP.format(durations=durations))
    fill(app)
    return app


def asked(app: App, first: float, last: float, per: str) -> tuple[list[int], str | None]:
    """Totals and hint of a range in minutes from noon on."""
    bounds = f"{NOON + int(first * MINUTE)}L, {NOON + int(last * MINUTE)}L"
    found = app.query(f"from A within {bounds} per '{per}' select total")
    return [row[0] for row in found.rows], found.hint


def test_what_is_left_out_and_what_is_whole_is_said(run: Run) -> None:
    app = filled(run)
    noon, one = " 12:00:00", " 13:00:00"
    assert asked(app, 0, 120, "hours") == ([7, 8], None)
    assert asked(app, 20, 120, "hours") == ([8], LEFT_OUT.format("hour", noon, ", or per 'minutes'"))
    assert asked(app, 20.5, 120, "hours") == ([8], LEFT_OUT.format("hour", noon, ", or per 'seconds'"))
    assert asked(app, 0, 70, "hours") == ([7, 8], WHOLE.format("hour", one, ", or per 'minutes'"))
    assert asked(app, 20, 70, "hours")[1] == "; ".join(
        (LEFT_OUT.format("hour", noon, ", or per 'minutes'"), WHOLE.format("hour", one, ", or per 'minutes'"))
    )
    assert asked(app, 60, 120, "days") == ([], LEFT_OUT.format("day", "", ", or per 'hours'"))
    assert asked(app, 20, 120, "minutes") == ([4, 8], None)


def test_nothing_is_said_where_nothing_is_left_out(run: Run) -> None:
    app = filled(run)
    assert asked(app, 55, 120, "hours") == ([8], None)  # nothing at 12:55 or later
    assert asked(app, 0, 100, "hours") == ([7, 8], None)  # nothing at 13:40 or later
    assert asked(app, -30, 70, "minutes") == ([1, 2, 4], None)
    assert asked(app, -90, -30, "hours")[1].startswith("nothing within")  # type: ignore[union-attr]


def test_of_the_smallest_duration_there_is_nothing_finer(run: Run) -> None:
    app = filled(run, "hour ... day")
    assert asked(app, 20, 120, "hours") == ([8], LEFT_OUT.format("hour", " 12:00:00", ""))
    assert asked(app, 0, 70, "hours") == ([7, 8], None)  # what came after 13:10 cannot be told


def test_nodes_that_keep_it_in_memory_say_it_too(run: Run) -> None:
    text = APP.format(durations="sec ... day").replace("from S", "from P") + "from S select * insert into P;"
    app = run(text, mode="ha")
    fill(app)
    assert asked(app, 20, 120, "hours") == ([8], LEFT_OUT.format("hour", " 12:00:00", ", or per 'minutes'"))


def test_it_is_displayed(run: Run) -> None:
    found = filled(run).query(f"from A within {NOON + MINUTE}L, {NOON + 2 * HOUR}L per 'hours' select total")
    assert "is left out, as the range begins inside it" in text(found)
    assert "is left out, as the range begins inside it" in html(found)


@pytest.mark.parametrize(
    ("within", "said"),
    [
        ("'2020-09-13 12:00:00', '2020-09-13 14:00:00'", []),
        ("'2020-09-13 12:20:00', '2020-09-13 14:00:00'", [LEFT_OUT.format("hour", " 12:00:00", ", or per 'minutes'")]),
        ("'2020-09-13 12:00:00', '2020-09-13 13:00:30'", [WHOLE.format("hour", " 13:00:00", ", or per 'seconds'")]),
        ("at, 1600000000000L", []),
        ("'2020-09-13 14:00:00', '2020-09-13 12:00:00'", []),
    ],
)
def test_a_join_whose_range_stands_in_the_text(run: Run, within: str, said: list[str]) -> None:
    join = f"from S as s join A as a on s.k == a.k within {within} per 'hours' select total insert into O;"
    app = run(APP.format(durations="sec ... day") + "@info(name='j') " + join)
    assert warnings_of(app) == [f"j joins A: {one}." for one in said]
