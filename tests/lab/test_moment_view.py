"""The view of a moment without a browser: what its messages do, and what is saved."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import sparkstream_nb
from sparkstream_nb.app import App
from sparkstream_nb.charts.value_texts import row_text
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import bundle
from sparkstream_nb.lab.widgets.divergence_widget import DivergenceView
from sparkstream_nb.lab.widgets.live import LiveOutput
from sparkstream_nb.lab.widgets.moment_widget import MomentView

TEXT = """
define stream S (card string, amount double);
@info(name='spree') from every a=S[amount > 300] -> b=S[card == a.card and amount > 300] within 1 min
select a.card as card, a.amount + b.amount as total insert into Sprees;
@info(name='recent') from S#window.time(30 sec) select card, sum(amount) as total group by card insert into Sums;
"""
EVENTS = [("a", 400.0), ("<b>", 600.0), ("a", 100.0), ("<b>", 350.0), ("a", 301.0)]
"""One every 20 seconds."""
START = 1_717_236_000_000


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = sparkstream_nb.deploy(TEXT, name="app", master="inline", home=tmp_path)
    for i, event in enumerate(EVENTS):
        app.send("S", list(event), at=START + 20_000 * i)
    yield app
    app.stop()


class Page:
    """A page of a view: `send` gives the state that the view draws for a message."""

    def __init__(self, view: MomentView, monkeypatch: pytest.MonkeyPatch) -> None:
        self.view, self.states = view, []
        monkeypatch.setattr(LiveOutput, "show", lambda output, state: self.states.append(state))

    states: list[dict[str, Any]]

    def send(self, do: str, **arguments: Any) -> dict[str, Any]:
        self.view._handle_message({"do": do, **arguments})
        return self.states[-1]


@pytest.fixture
def page(app: App, monkeypatch: pytest.MonkeyPatch) -> Page:
    return Page(MomentView(app.at(event=2)), monkeypatch)


def test_steps_and_outputs(page: Page) -> None:
    state = page.send("here", width=700)
    assert (state["position"], state["steps"], state["clock"]) == (2, 5, "2024-06-01 10:00:20")
    assert state["streams"] == ["Sprees", "Sums"]
    assert 'width="700"' in state["timeline"]
    left, right, first, last = state["ends"]
    assert state["place"] == pytest.approx(left + (right - left) * (START + 20_000 - first) / (last - first))
    assert page.send("go", position=3)["position"] == 3
    assert page.view.controls.before is not None
    assert page.view.controls.before.position == 2
    assert page.send("go", position=99)["position"] == 5
    assert page.send("go", position=0)["clock"] == "before the first step"
    state = page.send("output", stream="Sprees", back=False)
    assert (state["position"], state["stream"]) == (4, "Sprees")
    state = page.send("output", stream="Sprees", back=False)
    assert (state["position"], state["failed"]) == (4, "there is no output of Sprees after step 4")
    assert page.send("output", stream="Sums", back=True)["position"] == 3


@pytest.mark.parametrize(
    ("place", "position"), [("4", 4), ("2024-06-01 10:00:45", 3), ("10:00:45", 3), (str(START + 60_000), 4)]
)
def test_places(page: Page, place: str, position: int) -> None:
    state = page.send("place", text=f" {place} ")
    assert (state["position"], state["failed"]) == (position, "")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("", "neither ms since 1970 nor a time"),
        ("0", "event is at least 1"),
        ("noon", "neither ms since 1970 nor a time"),
        ("09:00", "the input of app begins at 2024-06-01 10:00:00"),
        ("2024-06-02", "the input of app ends at"),
    ],
)
def test_places_that_are_none(page: Page, place: str, words: str) -> None:
    state = page.send("place", text=place)
    assert state["position"] == 2
    assert words in state["failed"]


def test_a_click_beside_the_ends_goes_to_them(page: Page) -> None:
    assert page.send("time", ms=START - 500.0)["position"] == 1
    assert page.send("time", ms=START + 999_000.0)["position"] == 5
    assert page.send("time", ms=START + 41_000.4)["position"] == 3


def test_a_search_forth_and_back(page: Page) -> None:
    assert [page.send("find", text="<b>", back=False)[key] for key in ("position", "found")] == [4, "2 of 2 steps"]
    assert "no event or output with the value <b> after step 4" in page.send("find", text="<b>", back=False)["failed"]
    assert page.send("find", text="<b>", back=True)["found"] == "1 of 2 steps"
    assert page.send("find", text="950", back=False)["position"] == 4, "an output's value"
    assert page.send("go", position=1)["found"] == "1 step"
    assert page.send("find", text=" ", back=False)["found"] == ""


def test_the_state_of_a_query(page: Page) -> None:
    assert page.send("here", width=800)["query"] == "spree"
    assert "came in this step" in page.send("go", position=4)["state"]
    state = page.send("query", query="recent")
    assert "recent: time(30 sec)" in state["state"]
    assert "<b>" not in "".join(str(v) for v in state.values()).replace("<b>app at", "")
    assert "&lt;b&gt;, 350.0" in state["state"]
    assert "recent: time(30 sec)" not in state["timeline"]


def test_groups_are_below_the_picture(page: Page) -> None:
    state = page.send("query", query="recent")
    assert state["state"].index("</svg>") < state["state"].index("<table")
    assert "2 groups" in unescape(state["state"])
    forms = page.view.controls.forms()
    assert "2 groups" in forms["text/html"]


def test_why_not_and_the_moment_at_which_it_comes(page: Page) -> None:
    state = page.send("ask", stream="Sprees", values="card='a', total=3 =4", at="")
    assert "values are like card='card-07', total=3: '=4' is not ATTRIBUTE=VALUE" in state["unanswered"]
    state = page.send("ask", stream="Sprees", values="card='a'", at="2024-06-01 10:00:45")
    while state["asking"]:
        state = page.states[-1]
    assert state["unanswered"] == ""
    assert "query spree: event 5 came 20 sec too late for within 1 min" in state["answer"]
    assert state["proved"]
    branch = page.send("proof")
    assert branch["branch"]
    assert "output: Sprees (a, 701.0)" in branch["head"]
    assert not page.send("own")["branch"]
    state = page.send("ask", stream="Sprees", values="card='<b>'", at="")
    while state["asking"]:
        state = page.states[-1]
    assert state["unanswered"], "an output that came is refused"
    assert not state["proved"]


@pytest.fixture
def divided(tmp_path: Path) -> Iterator[App]:
    """An app whose nodes share the events in turn; two events have the same clock."""
    app = sparkstream_nb.deploy(
        TEXT, name="divided", nodes=2, routing="round_robin", master="inline", home=tmp_path / "divided"
    )
    for event, second in zip([*EVENTS, ("a", 500.0), ("a", 500.0)], [0, 20, 40, 60, 60, 61, 62], strict=True):
        app.send("S", list(event), at=START + 1000 * second)
    yield app
    app.stop()


def test_each_output_of_a_divergence_has_its_moment(divided: App) -> None:
    divergence = divided.divergence()
    asked = 0
    for stream, matches in divergence.matches.items():
        for m in matches:
            for alert, on_one_node in ((m.true, True), (m.found, False)):
                if alert is not None:
                    moment = divergence.moment_of(stream, m, on_one_node=on_one_node)
                    node = "node-1" if on_one_node else divergence.shards[alert.node or 0]
                    outputs = [(o.stream, o.node, tuple(o.values), o.time) for o in moment.outputs]
                    assert (stream, node, alert.values, alert.ts) in outputs
                    assert len(moment.nodes) == (1 if on_one_node else 2)
                    asked += 1
                else:
                    with pytest.raises(Misuse, match="there is no moment of this output"):
                        divergence.moment_of(stream, m, on_one_node=on_one_node)
    assert asked > 10


def test_a_mark_of_a_divergence_shows_its_moment_below(divided: App, monkeypatch: pytest.MonkeyPatch) -> None:
    view = DivergenceView(divided.divergence())
    states: list[dict[str, Any]] = []
    monkeypatch.setattr(LiveOutput, "show", lambda output, state: states.append(state))
    view._handle_message({"do": "here", "width": 800})
    assert states[-1]["moment"] is None
    marks = view.timeline().marks
    for number, mark in enumerate(marks):
        view._handle_message({"do": "pin", "mark": number})
        moment = states[-1]["moment"]
        assert states[-1]["failed"] == ""
        alert = mark.alert(mark.matches[0])
        assert f"output: {view.choice.stream} {row_text(alert.values)}" in unescape(moment["head"])
        assert moment["query"] == alert.query
    position = states[-1]["moment"]["position"]
    view._handle_message({"do": "moment", "message": {"do": "go", "position": position - 1}})
    assert states[-1]["moment"]["position"] == position - 1
    view._handle_message({"do": "pin", "mark": len(marks) - 1})
    assert states[-1]["moment"] is None, "a second click lets go of the mark"
    view._handle_message({"do": "moment", "message": {"do": "go", "position": 1}})
    assert states[-1]["moment"] is None


def test_what_is_saved_has_the_pictures_and_the_text_of_a_terminal(app: App, page: Page) -> None:
    page.send("go", position=3)
    page.send("query", query="recent")
    forms = page.view.controls.forms()
    moment = app.at(event=3)
    assert forms["text/plain"] == bundle(moment)["text/plain"]
    assert forms["text/html"].count("data:image/svg+xml;base64,") == 2
    assert "<button" not in forms["text/html"]
    assert 'alt="recent: time(30 sec)"' in forms["text/html"]
