"""What one event may ask for, by app."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App, Limits
from sparkstream_nb.errors import Misuse, SparkStreamError

Run = Callable[..., App]
APP = """define stream S (s string, n int, o object);
define trigger T at every 1 sec;
@info(name='plain') from S select n, str:repeat(s, n) as r insert into O;
@info(name='kept') from S#window.length(2) select n, str:repeat(s, n) as r, count() as c insert into P;
"""


def errors(app: App) -> list[str]:
    app.flush()
    return sorted(app.errors.frame["reason"])


@pytest.mark.contract
def test_two_apps_of_one_process_have_limits_of_their_own(run: Run, tmp_path: Path) -> None:
    """Both are in the same workers, one event after the other; a query that needs no state runs elsewhere than one that
    does. An app that is deployed again has its state, and the new limits."""
    low = run(APP, name="Low", home=tmp_path / "low", limits="characters=100,nesting=2,firings=5")
    high = run(APP, name="High", home=tmp_path / "high")
    for at in (1_000, 21_000):
        for app in (low, high):
            app.send("S", ["x", 101, None], at=at)
            app.send("S", ["x", 100, [[1]]], at=at)
    too_long = "a text of 101 characters is too long: 100 are the most"
    assert [e.split(" from ")[0] for e in errors(low)] == [
        "T: it did not fire",
        *[f"kept: {too_long}"] * 2,
        *[f"plain: {too_long}"] * 2,
    ]
    assert errors(high) == []
    assert [len(app.output("O").frame) for app in (low, high)] == [2, 4]
    with pytest.raises(SparkStreamError, match="the object is nested deeper than 2 levels"):
        low.send("S", ["x", 1, [[[1]]]], at=22_000)
    high.send("S", ["x", 1, [[[1]]]], at=22_000)
    deep = pd.DataFrame({"s": ["x"], "n": [1], "o": [[[[1]]]], "at": [23_000]})
    assert low.feed("S", deep, time="at").rejected == 1
    assert high.feed("S", deep, time="at").rejected == 0
    before = len(errors(low))

    again = run(APP, name="Low", home=tmp_path / "low", limits=Limits(characters=101))
    assert "kept" in (again.redeployed or "")
    again.send("S", ["x", 101, None], at=24_000)
    again.flush()
    assert again.output("P", last=1).frame["n"].tolist() == [101]
    assert again.output("P", last=1).frame["c"].tolist() == [2]
    assert len(errors(again)) == before


def test_nodes_of_a_pair_and_replays_have_them(run: Run) -> None:
    app = run(APP.replace("define trigger T at every 1 sec;", ""), mode="ha", limits="characters=100")
    for i, n in enumerate((101, 100)):
        app.send("S", ["x", n, None], at=1_000 + i)
    app.flush()
    assert app.output("O").frame["n"].tolist() == [100]
    each = app.failover().frame
    assert each["same"].tolist() == [1, 1]


def test_limits_that_cannot_be_are_refused(run: Run) -> None:
    for wrong, message in (
        ("nesting=0", "limits: nesting is a whole number from 1 to 200, not 0"),
        ("chars=3", "limits: 'chars=3' is not one of"),
        (3, "limits is a Limits, or a text"),
    ):
        with pytest.raises(Misuse, match=message):
            run(APP, limits=wrong)
