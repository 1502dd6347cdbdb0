"""States of replays on disk: a new time machine goes on from them, and does without them where they are damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.replay import state_folder, time_machine
from sparkstream_nb.replay.replay import ReplayedNodes
from sparkstream_nb.replay.state_folder import StateFolder

TEXT = """
define stream S (card string, amount long);
define table T (card string, amount long);
@info(name='sums') from S#window.length(5) select card, sum(amount) as total group by card insert into Sums;
@info(name='twice') from every a=S -> b=S[card == a.card and amount > a.amount] select b.card as card insert into Twice;
@info(name='keep') from S insert into T;
"""
START = 1_717_236_000_000


@pytest.fixture
def app(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr(time_machine, "STRIDE", 10)
    monkeypatch.setattr(time_machine, "NEAR", 3)
    app = run(TEXT, nodes=2, routing="hash:card")
    send(app, 0, 45)
    return app


def send(app: App, first: int, count: int) -> None:
    for i in range(first, first + count):
        app.send("S", ["abc"[i % 3], i * 7 % 11], at=START + 1000 * i)


def steps_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of steps that nodes take from now on."""
    counts: list[int] = []
    take = ReplayedNodes.take

    def counted(self: ReplayedNodes, item: object, batches: list[object]) -> object:
        counts.append(max(len(b.clock) for b in batches if b is not None))  # type: ignore[attr-defined]
        return take(self, item, batches)  # type: ignore[arg-type]

    monkeypatch.setattr(ReplayedNodes, "take", counted)
    return counts


def anew(app: App) -> App:
    """The app without the machines of its moments, as after a restart."""
    app.moments._machine = app.moments._tracing = None
    return app


def files(app: App) -> list[Path]:
    return sorted(app.runtime.app_run.folder(app.home).glob("moments/*/*.state"), key=lambda f: int(f.stem))


def test_a_new_machine_goes_on_from_the_disk(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [str(app.at(event=e).nodes) for e in range(1, 46)]
    assert [f.stem for f in files(app)] == ["10", "20", "30", "40"]
    steps = steps_taken(monkeypatch)
    assert str(anew(app).at(event=44).nodes) == expected[43]
    assert sum(steps) <= 5
    for event in (12, 38, 3, 25, 41):
        assert str(anew(app).at(event=event).nodes) == expected[event - 1]


def test_more_events_and_queries_at_the_end(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    send(app, 45, 5)  # 50 steps: their end is a place for a state
    assert str(app.at(event=50).position) == "50"
    assert files(app)[-1].stem == "40"
    app.query("delete T on T.card == 'a'")
    send(app, 50, 5)
    anew(app)
    cards = app.at(event=55).rows("T")["card"].tolist()
    assert cards.count("a") == sum(i % 3 == 0 for i in range(50, 55))
    steps = steps_taken(monkeypatch)
    assert anew(app).at(event=54).position == 54
    assert sum(steps) <= 5


def test_a_damaged_state_is_done_without(app: App) -> None:
    expected = str(app.at(event=44).nodes)
    *_, last = files(app)
    data = bytearray(last.read_bytes())
    data[40] ^= 1
    last.write_bytes(data)
    assert str(anew(app).at(event=44).nodes) == expected
    assert last.exists()  # written again
    last.write_bytes(b"")
    assert str(anew(app).at(event=44).nodes) == expected


def test_another_way_or_text_has_states_of_its_own(app: App) -> None:
    app.at()
    app.at(nodes=3, routing="round_robin")
    assert len({f.parent for f in files(app)}) == 2


def test_the_oldest_states_go_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_folder, "MOST_BYTES", 1000)
    folder = StateFolder(tmp_path / "moments", "one")
    for position in range(5):
        folder.write(position, [bytes([position]) * 150, b"x" * 100])
    other = StateFolder(tmp_path / "moments", "other")
    other.write(7, [b"y" * 200])
    other.write(8, [b"y" * 2000])
    assert sorted(folder.positions()) == [3, 4]
    assert other.positions() == [7]
    assert folder.read(4, 2) == [b"\4" * 150, b"x" * 100]
    assert folder.read(1, 2) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "moments").write_text("a file")
    folder = StateFolder(tmp_path / "moments", "one")
    folder.write(1, [b"x"])
    assert folder.positions() == []
