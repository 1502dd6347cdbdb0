"""Ctrl-C at any moment of any call: the app is the one of before or the one asked for, and the process stays usable.

An interrupt comes at a line of the package that a seed draws, in the thread that made the call, as the Stop button's
does.
"""

from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb.app import App, attach, deploy, get
from sparkstream_nb.app.deploying import close_app
from sparkstream_nb.journal.inbox import Ticket
from tests.profiles import examples

Run = Callable[..., App]

PACKAGE = str(Path(sparkstream_nb.__file__).parent)
ONE = """
define stream R (v long);
define table T (v long);
define aggregation A from R select count() as n aggregate every sec...year;
@info(name = 'out') from R select v insert into O;
@info(name = 'kept') from R select v insert into T;
"""
OTHER = ONE + "@info(name = 'more') from R[v < 0] select v insert into Never;"


SOON = 50e-6
"""Seconds from the line that is drawn to its interrupt. A signal that came while the tracing function runs would be
raised at places where Python raises none."""


class Line:
    """Interrupts the call just after the `at`-th line of the package's code that it executes."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __enter__(self) -> None:
        self.former = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.former)

    def _called(self, frame: Any, event: str, _: Any) -> Any:
        return self._within if self.left >= 0 and frame.f_code.co_filename.startswith(PACKAGE) else None

    def _within(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                signal.setitimer(signal.ITIMER_REAL, SOON)
        return self._within


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Interrupts are errors, as at a terminal: a process that was started in the background ignores them."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@dataclass
class Session:
    """A person at a kernel: what they do with an app, and what has to come out of it by then."""

    home: Path
    draw: random.Random
    master: str | None
    certain: list[int] = field(default_factory=list)
    """Events whose call returned."""
    possible: set[int] = field(default_factory=set)
    """Events whose call was interrupted."""
    texts: set[str] = field(default_factory=lambda: {ONE})
    """What the app may be now."""
    number: int = 0

    @property
    def app(self) -> App:
        return get("app")

    def _values(self, count: int) -> list[int]:
        self.number += count
        return list(range(self.number - count, self.number))

    def deploy(self) -> Callable[[], Any]:
        wanted = self.draw.choice([ONE, OTHER])
        self.texts.add(wanted)

        def call() -> None:
            deploy(wanted, name="app", home=self.home, master=self.master, nodes=2, mode="active-active")
            self.texts = {wanted}

        return call

    def send(self) -> Callable[[], Any]:
        values = self._values(self.draw.randint(1, 3))
        self.possible.update(values)

        def call() -> None:
            self.app.send("R", [[v] for v in values])
            self.certain.extend(values)

        return call

    def feed(self) -> Callable[[], Any]:
        values = self._values(50)
        self.possible.update(values)

        def call() -> None:
            self.app.feed("R", pd.DataFrame({"v": values}))
            self.certain.extend(values)

        return call

    def attach(self) -> Callable[[], Any]:
        def call() -> None:
            close_app("app")
            attach("app", self.home)

        return call

    def scale(self) -> Callable[[], Any]:
        return lambda: self.app.scale(self.draw.choice([1, 2, 3]))

    def stop(self) -> Callable[[], Any]:
        return lambda: self.app.stop()

    def flush(self) -> Callable[[], Any]:
        return lambda: self.app.flush()

    def query(self) -> Callable[[], Any]:
        texts = ["from T select v", "from A within 0L, 4000000000000L per 'year' select n"]
        return lambda: self.app.query(self.draw.choice(texts))

    def check(self) -> None:
        """Raises AssertionError where the app is neither the one of before nor the one asked for, or lost or doubled
        something, or where the process cannot go on with it."""
        self.app.send("R", [-1])
        self.app.flush()
        assert self.app.plan.text in self.texts
        came = Counter(self.app.output("O").frame["v"].tolist())
        assert not [v for v in self.certain if came[v] != 1], "an event whose call returned"
        assert not [v for v, n in came.items() if v >= 0 and n != 1], "an event that came twice"
        assert set(came) - {-1} <= set(self.certain) | self.possible
        kept = Counter(self.app.query("from T select v").frame["v"].tolist())  # a node that is gone has its part
        assert kept <= came
        merged, _ = self.app.aggregation("A", per="year")
        assert merged["n"].sum() == came.total()


CALLS = ("deploy", "send", "feed", "attach", "scale", "stop", "flush", "query")


def interrupted_session(run: Run, home: Path, seed: int, wanted: int) -> None:
    """Does what a person may do until so many calls were interrupted, and checks the app in between."""
    master = run(ONE, nodes=2, mode="active-active").deployment.runner
    session = Session(home, random.Random(seed), "inline" if master == "inline" else None)
    handler = signal.getsignal(signal.SIGINT)
    interrupted = tries = 0
    while interrupted < wanted:
        tries += 1
        assert tries < 20 * wanted, "calls are interrupted"
        call = getattr(session, CALLS[tries % len(CALLS)])()
        line = Line(int(10 ** session.draw.uniform(0, 4.5)))
        try:
            with line:
                call()
        except KeyboardInterrupt:
            interrupted += 1
            if "app" not in sparkstream_nb.apps():  # between removing and attaching
                attach("app", home)
        if tries % 5 == 0:
            session.check()
    session.check()
    assert signal.getsignal(signal.SIGINT) is handler
    assert "fresh was asked for" in run(OTHER, fresh=True).redeployed


# An interrupt while Python ends a generator that nobody holds is told by Python itself, and goes no further.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", range(examples(8)))
def test_an_interrupt_at_any_moment_leaves_the_old_app_or_the_new_one(run: Run, tmp_path: Path, seed: int) -> None:
    interrupted_session(run, tmp_path / "home", seed, 25)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_moment_on_spark(run: Run, spark: Any, tmp_path: Path) -> None:
    interrupted_session(run, tmp_path / "home", 1, 25)


@pytest.mark.contract
def test_an_interrupted_flush_takes_back_nothing_that_was_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(ONE)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    app.stop()
    monkeypatch.setattr(app.runtime.stream, "start", lambda: None)  # no micro-batch begins with any of them
    monkeypatch.setattr(app.runtime.stream, "wait", interrupted)
    for v in range(40):
        app.send("R", [v])
    with pytest.raises(KeyboardInterrupt) as stopped:
        app.flush()
    assert app.state == "stopped"
    assert not hasattr(stopped.value, "__notes__")
    monkeypatch.undo()
    app.flush()
    assert app.output("O").frame["v"].tolist() == list(range(40))


@pytest.mark.contract
def test_an_interrupted_feed_says_what_of_it_was_taken_back(run: Run) -> None:
    app = run(ONE)
    app.send("R", [7])
    app.flush()

    put = app.runtime.inbox.put

    def interrupted(entries: Any) -> Ticket:
        """The interrupt comes when the feed has come in and nothing has begun with it."""
        app.stop()
        app.runtime.inbox.settle(put(entries))
        raise KeyboardInterrupt

    app.runtime.inbox.put = interrupted
    with pytest.raises(KeyboardInterrupt) as stopped:
        app.feed("R", pd.DataFrame({"v": range(50)}))
    app.runtime.inbox.put = put
    said = "Interrupted: events of feeds that were not begun with were taken back: 50 of R. Feed them again."
    assert stopped.value.__notes__ == [said]
    assert app.logs[-1] == said
    app.send("R", [8])
    app.flush()
    assert app.output("O").frame["v"].tolist() == [7, 8]
