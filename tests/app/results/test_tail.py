"""The end of a stream: what a tail shows of it, what it counts as not shown, and how little it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.stream_cursor import StreamEnd
from sparkstream_nb.app.results.stream_tail import LOOKED_AT, MOST_KEYS, Tail, TailCursor, TailShape
from sparkstream_nb.errors import Misuse

Run = Callable[..., App]


@dataclass
class Ends:
    """A stream in memory; `read_so_far` has the sizes of all reads."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    read_so_far: list[int] = field(default_factory=list)

    def total(self) -> int:
        return len(self.rows)

    def read(self, most: int, key: str | None) -> StreamEnd:
        self.read_so_far.append(most)
        frame = pd.DataFrame(self.rows[-most:], columns=["k", "v"], dtype=object)
        found = frame if key is None else frame.drop_duplicates(key, keep="last").tail(MOST_KEYS)
        return StreamEnd(found, len(self.rows))


def cursor(ends: Ends, **shape: Any) -> TailCursor:
    seconds = iter(range(100, 200))
    return TailCursor(Tail("App", "S", TailShape(**shape), ends, lambda c: lambda: None), lambda: float(next(seconds)))


def test_the_last_events_and_how_many_were_not_among_them() -> None:
    ends = Ends()
    tail = cursor(ends, rows=3, newest="last")
    assert tail.advance().rows == ()
    ends.rows += [("a", n) for n in range(2)]
    assert [v for _, v in tail.advance().rows] == [0, 1]
    ends.rows += [("a", n) for n in range(2, 4)]
    found = tail.advance()
    assert ([v for _, v in found.rows], found.not_shown, found.total) == ([1, 2, 3], 0, 4)
    ends.rows += [("a", n) for n in range(4, 1004)]
    found = tail.advance()
    assert ([v for _, v in found.rows], found.not_shown, found.since) == ([1001, 1002, 1003], 997, 100.0)
    before = len(ends.read_so_far)
    assert tail.advance().rows == found.rows
    assert len(ends.read_so_far) == before, "nothing new, nothing read"
    assert max(ends.read_so_far) == 3


def test_events_that_are_committed_before_the_reading_are_shown_too() -> None:
    class Growing(Ends):
        def read(self, most: int, key: str | None) -> StreamEnd:
            if len(self.read_so_far) == 1:
                self.rows += [("a", n) for n in range(10, 15)]
            return super().read(most, key)

    ends = Growing()
    tail = cursor(ends, rows=20, newest="last")
    tail.advance()
    ends.rows += [("a", n) for n in range(10)]
    found = tail.advance()
    assert [v for _, v in found.rows] == [*range(15)]
    assert (found.not_shown, found.total, ends.read_so_far) == (0, 15, [20, 10, 15])


def test_what_was_there_before_is_shown_and_not_counted() -> None:
    ends = Ends([("a", n) for n in range(50)])
    found = cursor(ends, rows=3).advance()
    assert ([v for _, v in found.rows], found.not_shown, found.total) == ([49, 48, 47], 0, 50)


def test_a_pause_keeps_the_rows_and_counts() -> None:
    ends = Ends([("a", 1)])
    tail = cursor(ends, rows=2)
    tail.advance()
    tail.pause()
    tail.pause()
    ends.rows += [("a", n) for n in range(2, 12)]
    found = tail.advance()
    assert ([v for _, v in found.rows], found.waiting, found.not_shown, found.paused) == ([1], 10, 0, 101.0)
    assert len(ends.read_so_far) == 1, "nothing is read while it is paused"
    tail.resume()
    found = tail.advance()
    assert ([v for _, v in found.rows], found.waiting, found.not_shown, found.paused) == ([11, 10], 0, 8, None)


def test_the_latest_of_each_key() -> None:
    ends = Ends([("b", 1), ("a", 2), (None, 3)])
    tail = cursor(ends, latest="k", rows=3)
    assert tail.advance().rows == (("a", 2), ("b", 1), (None, 3))
    ends.rows += [("b", 4), ("c", 5), ("b", 6), (None, 7), (None, 8)]
    found = tail.advance()
    assert found.rows[:3] == (("a", 2), ("b", 6), ("c", 5)), "in the order of keys"
    assert (found.keys, found.not_shown) == (4, 3), "4, and both of null, as three rows are shown"
    assert max(ends.read_so_far) == LOOKED_AT
    ends.rows += [(str(n), n) for n in range(MOST_KEYS + 10)]
    assert tail.advance().keys == MOST_KEYS


def test_one_number() -> None:
    ends = Ends([("a", 1)])
    tail = cursor(ends, number="v")
    assert tail.advance().number == 1
    ends.rows += [("b", 2), ("b", 3)]
    found = tail.advance()
    assert (found.number, found.not_shown, ends.read_so_far) == (3, 1, [1, 1])


APP = """define stream S (k string, v int);
define stream Hidden (o object);
from S[v >= 0] select k, v insert into O;
"""


@pytest.mark.contract(thorough=True)
def test_outputs_and_arrivals_of_an_app(run: Run) -> None:
    app = run(APP, nodes=2, mode="active-active")
    outputs, arrivals = (TailCursor(app.tail(s, last=3)) for s in ("O", "S"))
    assert outputs.advance().rows == arrivals.advance().rows == ()
    frame = pd.DataFrame({"k": np.array(["a", "b"])[np.arange(1000) % 2], "v": np.arange(1000) - 1})
    app.feed("S", frame)
    found = outputs.advance()
    assert found.frame["v"].tolist() == [998, 997, 996]
    assert (found.total, found.not_shown) == (999, 996)
    found = arrivals.advance()
    assert found.frame["v"].tolist() == [998, 997, 996]
    assert (found.total, found.not_shown) == (1000, 997)
    for stream in ("O", "S"):
        assert app.tail(stream, latest="k").frame[["k", "v"]].values.tolist() == [["a", 997], ["b", 998]]
    assert app.tail("O", number="v").snapshot().number == 998
    stats = app.stats()
    assert (stats.came, stats.lag, stats.faulty) == ({"S": 1000}, 0, {})
    assert stats.rates.processing is not None
    assert stats.times.count == stats.micro_batches
    assert stats.recent[-1].committed == stats.recent[-1].arrived == 1000
    app.feed("S", pd.DataFrame({"k": ["a", "b"], "v": ["1", "no number"]}))
    stats = app.stats()
    assert (stats.errors, stats.faulty, stats.came) == (1, {"S": 1}, {"S": 1001})
    assert 'sparkstream_errors_total{app="app",stream="S"} 1\n' in stats.prometheus()
    app.scale(nodes=3)
    app.feed("S", frame[:100])
    for tail in (outputs, arrivals):
        assert "node-3" in tail.advance().frame["node"].tolist()


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"stream": "Oo"}, "app has no stream 'Oo'. Did you mean 'O'?"),
    ({"stream": "O", "latest": "kk"}, "latest: app.O has no attribute 'kk'. Did you mean 'k'?"),
    ({"stream": "O", "number": "w"}, "number: app.O has no attribute 'w'."),
    ({"stream": "O", "number": "v", "latest": "k"}, "give latest or number, not both"),
    ({"stream": "O", "newest": "top"}, "newest is 'first' or 'last', not 'top'"),
    ({"stream": "O", "last": 0}, "last"),
    ({"stream": "Hidden", "latest": "o"}, "latest: 'o' of app.Hidden is an object"),
]


def test_mistakes(run: Run) -> None:
    app = run(APP)
    for arguments, said in MISTAKES:
        with pytest.raises(Misuse) as caught:
            app.tail(**arguments)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
