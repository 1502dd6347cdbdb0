"""Disorder of feeds, chosen by a seed: events that are late, swapped, duplicated, dropped or held back, and skew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, Disorder
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import text as text_of

Run = Callable[..., App]
TEXT = """define stream A (n int); define stream B (n int);
from A select n insert into OutA;
from B select n insert into OutB;
"""
BEGIN = 1_700_000_000_000


def frame(n: int, offset: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"n": np.arange(n), "at": BEGIN + offset + 1000 * np.arange(n)})


def fed(run: Run, disorder: Disorder, n: int = 1000, **how: Any) -> tuple[App, Any]:
    app = run(TEXT, fresh=True, **how)
    return app, app.feed({"A": frame(n), "B": frame(n, 500)}, time="at", disorder=disorder)


def outputs(app: App, stream: str) -> list[tuple[int, int]]:
    """(timestamp, n) in the order in which they came out."""
    return [*app.output(stream).frame[["timestamp", "n"]].itertuples(index=False, name=None)]


def test_nothing_is_changed_without_a_share(run: Run) -> None:
    app, report = fed(run, Disorder(seed=3), 50)
    assert [n for _, n in outputs(app, "OutA")] == list(range(50))
    assert "Disorder of seed 3: nothing was changed." in report.notes


def test_shares_are_kept_and_counted(run: Run) -> None:
    disorder = Disorder(late=0.1, delay=3000, duplicated=0.05, dropped=0.02, swapped=0.03, seed=1)
    app, report = fed(run, disorder)
    found = Counter(n for _, n in outputs(app, "OutA") + outputs(app, "OutB"))
    counts = dict(reversed(word.split(" ", 1)) for word in report.notes[0].partition(": ")[2].rstrip(".").split(", "))
    dropped, twice = int(counts["dropped"]), int(counts["duplicated"])
    assert (report.rows, sum(found.values())) == (2000 - dropped + twice, 2000 - dropped + twice)
    assert 20 <= dropped <= 60
    assert 70 <= twice <= 140
    assert 40 <= int(counts["swapped"]) <= 80
    late = int(next(n for what, n in counts.items() if what.startswith("late")))
    times = [t for t, _ in outputs(app, "OutA")]
    assert late > 150
    assert times != sorted(times)


def test_the_same_seed_makes_the_same_changes(run: Run) -> None:
    disorder = Disorder(late=0.2, swapped=0.1, duplicated=0.1, dropped=0.1, held_every=60_000, held_for=5_000, seed=7)
    first = [outputs(fed(run, disorder, 200)[0], s) for s in ("OutA", "OutB")]
    again = [outputs(fed(run, disorder, 200)[0], s) for s in ("OutA", "OutB")]
    other = [outputs(fed(run, Disorder(late=0.2, seed=8), 200)[0], s) for s in ("OutA", "OutB")]
    assert first == again
    assert first != other


def test_events_that_are_held_back_come_together(run: Run) -> None:
    """One event a second; in each minute those of ten seconds come at once, in their order."""
    _, report = fed(run, Disorder(held_every=60_000, held_for=10_000, seed=2), 600)
    held = int(report.notes[0].partition(": ")[2].split(" ")[0])
    assert held == pytest.approx(1200 / 6, rel=0.2)


def test_a_node_whose_clock_is_off(run: Run) -> None:
    """Events that node-2 takes have times that are 3 s ahead; the others come before them on the app's clock."""
    app = run(TEXT, nodes=2, routing="round_robin", fresh=True)
    app.feed("A", frame(100), time="at", disorder=Disorder(skew={"node-2": 3000}))
    found = app.output("OutA").frame
    shift = found["timestamp"] - (BEGIN + 1000 * found["n"].astype("int64"))
    assert set(shift[found["node"] == "node-1"]) == {0}
    assert set(shift[found["node"] == "node-2"]) == {3000}


def test_late_events_reach_windows_late(run: Run) -> None:
    """A batch that is closed does not take them: with disorder, counts by batch differ, and none is lost in the sum."""
    text = "define stream A (n int); from A#window.timeBatch(10 sec) select count() as c insert into C;"
    app = run(text, fresh=True)
    app.feed("A", frame(300), time="at", disorder=Disorder(late=0.3, delay=20_000, seed=5))
    app.tick(BEGIN + 1_000_000)
    app.flush()
    counts = app.output("C").frame["c"].tolist()
    assert sum(counts) == 300
    assert set(counts) != {10}


def test_a_step_through_disorder_follows_the_order_in_which_events_come(run: Run) -> None:
    app = run(TEXT, fresh=True)
    feed = app.feed({"A": frame(20), "B": frame(20, 500)}, time="at", paused=True, disorder=Disorder(late=0.3, seed=1))
    feed.step(10)
    assert app.stats().events == 10
    feed.resume()
    assert feed.wait(60).events == 40


def test_written_as_an_option() -> None:
    text = "late=5%, delay=3 sec, distribution=uniform, swapped=0.01, held-every=1 min, held-for=500, node-2=-3 sec"
    assert Disorder.parse(text) == Disorder(
        late=0.05, delay=3000, distribution="uniform", swapped=0.01, held_every=60_000, held_for=500,
        skew={"node-2": -3000},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("late", "'late' is not NAME=VALUE"),
        ("late=120%", "late is a share such as 5%"),
        ("late=5%,delay=soon", "delay is a duration such as 500 ms"),
        ("lost=5%", "disorder has no lost"),
        ("seed=x", "seed is a whole number"),
        ("distribution=normal", "exponential, uniform, fixed"),
        ("held-for=2 min,held-every=1 min", "held_for is at most held_every"),
    ],
)
def test_wrong_options(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        Disorder.parse(text)


def test_wrong_arguments(run: Run) -> None:
    app = run(TEXT)
    with pytest.raises(Misuse, match=r"skew: .* has no node 'node-2'"):
        app.feed("A", frame(3), time="at", disorder=Disorder(skew={"node-2": 1}))
    with pytest.raises(Misuse, match="disorder goes by event time"):
        app.feed("A", frame(3), disorder=Disorder(late=0.1))
    with pytest.raises(Misuse, match="disorder is a Disorder"):
        app.feed("A", frame(3), time="at", disorder=0.1)  # type: ignore[call-overload]
    with pytest.raises(Misuse, match="late is a share from 0 to 1"):
        Disorder(late=2)


def test_a_study_of_lateness_and_nodes(run: Run) -> None:
    """Outputs that lateness costs on one node, and what several nodes add; the truth is one node in order."""
    text = """define stream A (n int); define stream B (n int);
    from every a=A -> b=B[n == a.n] within 2 sec select a.n as n insert into Pairs;"""
    app = run(text)
    disorders = [Disorder(late=share, delay=4_000, seed=1) for share in (0.1, 0.5)]
    found = app.study([1, 2], ["hash:n"], feed={"A": frame(200), "B": frame(200, 500)}, time="at", disorder=disorders)
    lost = found.frame.set_index(["disorder", "nodes"])["lost"]
    assert lost["in order", 1] == lost["in order", 2] == 0
    few, many = (lost[str(d), 1] for d in disorders)
    assert 0 < few < many
    assert found.frame["disorder"].unique().tolist() == ["in order", *map(str, disorders)]
    assert str(disorders[0]) in text_of(found)
    with pytest.raises(Misuse, match="disorder changes a feed"):
        app.study(disorder=disorders)
    with pytest.raises(Misuse, match="a skew is for a feed"):
        app.study(feed={"A": frame(3)}, time="at", disorder=Disorder(skew={"node-1": 1}))
