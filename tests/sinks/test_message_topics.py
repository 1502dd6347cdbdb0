"""Topics of type inMemory whose sinks send messages: what sources of the same app make of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import App, check
from sparkstream_nb.cli import main
from sparkstream_nb.errors import NotInThisBuild, SparkStreamError
from sparkstream_nb.journal.inbox import Ticket
from tests.apps.waiting import rows, until

TEXTS = '''
define stream Sweets (name string, amount double);

@sink(type='inMemory', topic='home', @map(type='text'))
define stream Plain (name string, amount double);
@source(type='inMemory', topic='home', @map(type='text'))
define stream Usage (name string, amount double);

@sink(type='inMemory', topic='home1', @map(type='text', @payload("""name:{{name}},
amount:{{amount}}""")))
define stream Custom (name string, amount double);
@source(type='inMemory', topic='home1', @map(type='text', regex.A='((?<=name:)(.*)(?=,))', regex.B='([-0-9]+)',
        @attributes(name='A', amount='B')))
define stream Usage2 (name string, amount double);

from Sweets select * insert into Plain;
from Sweets select * insert into Custom;
from Usage select * insert into O;
from Usage2 select * insert into O2;
'''


@pytest.mark.contract
def test_messages_of_texts(run: Callable[..., App]) -> None:
    app = run(TEXTS)
    app.send("Sweets", [["toffee", 25.0], ["cake", 3.0]])
    app.flush()
    for stream in ("O", "O2"):
        values = app.output(stream).frame[["name", "amount"]].to_numpy().tolist()
        assert values == [["toffee", 25.0], ["cake", 3.0]]
    assert app.catch_up(60)
    assert app.errors.frame.empty
    assert [(s.type, s.target, s.sent) for s in app.stats().sinks] == [
        ("inMemory", "topic home", 2), ("inMemory", "topic home1", 2),
    ]  # fmt: skip


def other_app(format_: str, topic: str = "{{k}}") -> str:
    return f"""
    define stream S (k string, v int);
    @sink(type='inMemory', topic='{topic}', on.error='STORE', @map(type='{format_}'))
    define stream Out (k string, v int);
    @source(type='inMemory', topic='a', @map(type='{format_}')) define stream A1 (k string, v int);
    @source(type='inMemory', topic='a', @map(type='{format_}')) define stream A2 (k string, v long);
    @source(type='inMemory', topic='b', @map(type='passThrough')) define stream B (k string, v int);
    from S select * insert into Out;
    from A1 select * insert into O1;
    from A2 select * insert into O2;
    """


@pytest.mark.parametrize("format_", ["json", "xml", "keyvalue", "binary"])
def test_several_sources_and_topics(run: Callable[..., App], format_: str) -> None:
    app = run(other_app(format_))
    app.send("S", [["a", 1], ["b", 2], ["a", 3]])
    app.flush()
    second = "O1" if format_ == "binary" else "O2"  # a binary message has an int where this stream has a long
    assert rows(app, "O1") == rows(app, second) == 2
    assert app.output("O1").frame[["k", "v"]].to_numpy().tolist() == [["a", 1], ["a", 3]]
    assert sum("no source listens to topic 'b'" in reason for reason in app.errors.frame["reason"]) == 1


def test_a_restart_and_a_full_disk_lose_nothing(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    text = other_app("json", "a")
    app = run(text)
    put, failures = app.runtime.inbox.put, [2]

    def failing_put(entries: Any) -> Ticket:
        if failures[0] and any(e.source for e in entries):
            failures[0] -= 1
            raise SparkStreamError("the inbox cannot be written to: No space left on device")
        return put(entries)

    monkeypatch.setattr(app.runtime.inbox, "put", failing_put)
    app.send("S", ["x", 1])
    until(app, lambda: rows(app, "O1") >= 1)
    assert failures == [0]
    app.stop()
    again = run(text)
    again.send("S", ["y", 2])
    until(again, lambda: "y" in again.output("O2").frame["k"].tolist())
    assert set(again.output("O1").frame["k"]) == {"x", "y"}


def test_what_is_refused(run: Callable[..., App]) -> None:
    with pytest.raises(SparkStreamError, match="an inMemory source or sink is in one process"):
        run(TEXTS, mode="distributed")
    with pytest.raises(NotInThisBuild, match="a sink with mapping 'protobuf'"):
        run(other_app("json").replace("on.error='STORE', @map(type='json')", "@map(type='protobuf')"))
    with pytest.raises(SparkStreamError, match="has no 'topic'"):
        run(other_app("json").replace("topic='{{k}}', ", ""))


def test_a_source_to_which_nothing_is_sent(run: Callable[..., App]) -> None:
    text = """
    define stream Foo (symbol string);
    @source(type='inMemory', topic='symbol', @map(type='json')) define stream Bar (symbol string);
    from Foo select symbol insert into Bar;
    """
    assert not check(text).gaps
    app = run(text)
    app.send("Foo", ["IBM"])
    app.flush()
    assert app.catch_up(60)


def test_offline_they_stay(run: Callable[..., App]) -> None:
    app = run(TEXTS, offline=True)
    app.send("Sweets", ["toffee", 25.0])
    until(app, lambda: rows(app, "O") == 1)


def test_the_command_line_ends_when_the_messages_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.siddhi").write_text(TEXTS)
    (tmp_path / "sweets.csv").write_text("name,amount\ntoffee,25.0\n")
    places = ["--feed", f"Sweets={tmp_path / 'sweets.csv'}", "--home", str(tmp_path / "home")]
    options = ["--master", "inline", "--output", "O"]
    assert main(["run", str(tmp_path / "app.siddhi"), *places, *options]) == 0
    assert "toffee" in capsys.readouterr().out


def test_messages_that_come_of_messages_are_waited_for(run: Callable[..., App]) -> None:
    text = """
    define stream S (n int);
    @sink(type='inMemory', topic='count', @map(type='json')) define stream Counted (n int);
    @source(type='inMemory', topic='count', @map(type='json')) define stream Counts (n int);
    from S select n insert into Counted;
    from Counts[n > 0] select n - 1 as n insert into Counted;
    from Counts select n insert into O;
    """
    app = run(text)
    app.send("S", [3])
    app.flush()
    assert app.output("O").frame["n"].tolist() == [3, 2, 1, 0]
