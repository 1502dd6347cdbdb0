"""Sinks that publish outside: what an app puts out reaches files, through stops, crashes and targets that are away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.cluster import App
from sparkstream_nb.errors import SparkStreamError

EVENTS = "define stream S (k string, v int);\n"


def app_with(sink: str, query: str = "@info(name='q') from S[v > 0] select k, v insert into Alerts;") -> str:
    return f"{EVENTS}{sink}\ndefine stream Alerts (k string, v int);\n{query}"


def file_sink(path: Path | str, mapping: str = "csv", more: str = "") -> str:
    return f"@sink(type='file', file.uri='{path}', {more} @map(type='{mapping}'))"


def send(app: App, first: int, count: int) -> None:
    app.send("S", [[f"k{i}", i] for i in range(first, first + count)])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_a_file_that_grows(run: Callable[..., App], out: Path) -> None:
    path = out / "deep" / "alerts.csv"
    app = run(app_with(file_sink(path, more="add.line.separator='true',")), allow=[f"file={out}"])
    send(app, 0, 4)
    send(app, 4, 3)
    app.flush()
    assert app.drain() == 0
    assert path.read_text() == "".join(f"k{i},{i}\n" for i in range(1, 7))
    (figures,) = app.stats().sinks
    assert (figures.sent, figures.pending, figures.failed, figures.dropped) == (6, 0, 0, 0)
    assert figures.name == "Alerts-file-1"
    assert figures.target == str(path)
    assert "exactly once" in str(app.explain())
    app.stop()
    send(app, 7, 2)
    app.flush()
    assert app.drain() == 0
    assert path.read_text().splitlines()[-2:] == ["k7,7", "k8,8"]


def test_what_comes_in_is_published_too(run: Callable[..., App], out: Path) -> None:
    """A stream without a query that writes to it, and one that is sent to beside its query."""
    text = (
        f"{file_sink(out / 'in.json', 'json')}\n{EVENTS}{file_sink(out / 'both.csv')}\n"
        "define stream Alerts (k string, v int);\nfrom S[v > 1] select k, v insert into Alerts;"
    )
    app = run(text, allow=[f"file={out}"], nodes=2)
    send(app, 0, 3)
    app.send("Alerts", ["own", 9])
    app.flush()
    assert app.drain() == 0
    lines = [json.loads(line)["event"] for line in (out / "in.json").read_text().splitlines()]
    assert sorted(e["v"] for e in lines) == [0, 1, 2]
    assert sorted((out / "both.csv").read_text().splitlines()) == ["k2,2", "own,9"]


def test_folders_of_files(run: Callable[..., App], out: Path) -> None:
    text = (
        EVENTS
        + file_sink(f"{out}/batches/", "csv").replace("@map(type='csv')", "@map(type='csv', header='true')")
        + file_sink(f"{out}/rolled/", "json", "roll.size='100B',")
        + "\ndefine stream Alerts (k string, v int);\nfrom S select k, v insert into Alerts;"
    )
    app = run(text, allow=[f"file={out}"])
    for i in range(3):
        send(app, 2 * i, 2)
        app.flush()
    assert app.drain() == 0
    batches = sorted((out / "batches").iterdir())
    assert len(batches) == 3
    assert [p.read_text() for p in batches] == [f"k,v\nk{i},{i}\nk{i + 1},{i + 1}\n" for i in (0, 2, 4)]
    rolled = [p.read_text() for p in sorted((out / "rolled").iterdir())]
    assert len(rolled) > 1
    assert "".join(rolled) == "".join(f'{{"event":{{"k":"k{i}","v":{i}}}}}\n' for i in range(6))


REFUSED: list[tuple[str, str]] = [
    (
        "file.uri='/etc/alerts.csv', @map(type='csv')",
        "writes to /etc/alerts.csv is not allowed. Add --allow file=/etc,",
    ),
    ("file.uri='{out}/../alerts.csv', @map(type='csv')", "is not allowed. Add --allow "),
    ("file.uri='{out}/way/alerts.csv', @map(type='csv')", "is not allowed. Add --allow "),
    ("file.uri='s3://bucket/alerts.csv', @map(type='csv')", "a path of this machine, not an address"),
    ('file.uri="""{out}/a\nb.csv""", @map(type="csv")', "control character"),
    ("file.uri='{out}/{{{{k}}}}.csv', @map(type='csv')", "'file.uri' that depends on the event"),
    ("file.uri='{out}/a.csv'", "has no @map"),
    ("@map(type='csv')", "has no 'file.uri'"),
    ("file.uri='{out}/a.xml', @map(type='xml')", "with mapping 'xml'"),
    ("file.uri='{out}/a.json', @map(type='json', @payload('x'))", "@payload in the mapping"),
    ("file.uri='{out}/a.csv', append='maybe', @map(type='csv')", "append is 'true' or 'false'"),
    ("file.uri='{out}/a.csv', roll.size='1MB', @map(type='csv')", "roll.size is for a folder"),
    ("file.uri='{out}/a.csv', file.system.options='x', @map(type='csv')", "'file.system.options' of a sink"),
    ("file.uri='{out}/a.csv', on.error='STREAM', @map(type='csv')", "on.error='STREAM'"),
    ("file.uri='{out}/a.csv', @map(type='csv', delimiter='ab')", "delimiter is one character"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_sinks_that_are_refused(run: Callable[..., App], out: Path, options: str, message: str) -> None:
    (out / "way").symlink_to(out.parent)
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(f"@sink(type='file', {options.format(out=out)})"), allow=[f"file={out}"])
    assert message in str(raised.value)
    assert str(raised.value).startswith("line 2, ")
    assert "Traceback" not in str(raised.value)


def test_two_sinks_with_one_file(run: Callable[..., App], out: Path) -> None:
    sink = file_sink(out / "a.csv")
    with pytest.raises(SparkStreamError, match="two sinks of this app write to"):
        run(app_with(sink + sink), allow=[f"file={out}"])


def test_nothing_is_allowed_by_default(run: Callable[..., App], out: Path) -> None:
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(file_sink(out / "a.csv")))
    assert "the sink of stream 'Alerts' writes to" in str(raised.value)
    assert f"--allow 'file={out}'" in str(raised.value)
    assert not list(out.iterdir())


def test_each_message_in_place_of_the_last(run: Callable[..., App], out: Path) -> None:
    app = run(app_with(file_sink(out / "last.json", "json", "append='false',")), allow=[f"file={out}"])
    send(app, 1, 3)
    app.flush()
    assert app.drain() == 0
    assert (out / "last.json").read_text() == '{"event":{"k":"k3","v":3}}\n'
    assert [p.name for p in out.iterdir()] == ["last.json"]


def test_a_sink_that_is_added_begins_with_the_next_outputs(run: Callable[..., App], out: Path) -> None:
    plain = app_with("")
    app = run(plain)
    send(app, 1, 2)
    app.flush()
    app = run(app_with(file_sink(out / "a.csv")), allow=[f"file={out}"])
    assert app.redeployed == "The state was kept: the app means what it meant before."
    send(app, 3, 2)
    assert app.drain() == 0
    assert (out / "a.csv").read_text().splitlines() == ["k3,3", "k4,4"]
    run(plain).stop()
    app = run(app_with(file_sink(out / "a.csv")), allow=[f"file={out}"])
    send(app, 5, 1)
    assert app.drain() == 0
    assert (out / "a.csv").read_text().splitlines() == ["k3,3", "k4,4", "k5,5"]
    app = run(app_with(file_sink(out / "a.csv")), allow=[f"file={out}"], fresh=True)
    send(app, 6, 1)
    assert app.drain() == 0
    assert (out / "a.csv").read_text().splitlines()[-2:] == ["k5,5", "k6,6"]


@pytest.mark.parametrize(
    "how",
    [
        {"mode": "ha"},
        {"nodes": 2, "alerts": "leader"},
        {"mode": "distributed", "nodes": 2},
        {"mode": "scalable", "routing": "hash:k", "nodes": 4},
    ],
    ids=str,
)
def test_every_mode_publishes_each_output_once(run: Callable[..., App], out: Path, how: dict[str, Any]) -> None:
    """Also what comes in, but in mode distributed, which refuses that."""
    window = "from S#window.length(100) select k, v insert into Alerts;"
    text = app_with(file_sink(out / "alerts.csv"), window)
    both = f"{file_sink(out / 'in.csv')}\n{text}"
    if how["mode" if "mode" in how else "nodes"] == "distributed":
        with pytest.raises(SparkStreamError, match="mode distributed has no sinks on streams that come in"):
            run(both, allow=[f"file={out}"], **how)
        both = text
    app = run(both, allow=[f"file={out}"], **how)
    send(app, 0, 6)
    send(app, 6, 2)
    assert app.drain() == 0
    for name in ("alerts.csv", "in.csv")[: 1 if both is text else 2]:
        assert sorted((out / name).read_text().split()) == sorted(f"k{i},{i}" for i in range(8)), name


def test_scaling_keeps_the_sinks(run: Callable[..., App], out: Path) -> None:
    app = run(app_with(file_sink(out / "a.csv")), allow=[f"file={out}"], nodes=2)
    send(app, 1, 4)
    app.scale(nodes=3)
    send(app, 5, 4)
    assert app.drain() == 0
    assert sorted((out / "a.csv").read_text().split()) == [f"k{i},{i}" for i in range(1, 9)]
    assert app.stats().sinks[0].sent == 8
