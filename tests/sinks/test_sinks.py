"""Sinks that publish outside: what an app puts out reaches files, through stops, crashes and targets that are away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import App
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


@pytest.mark.contract
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


def test_a_file_that_depends_on_the_event(run: Callable[..., App], out: Path) -> None:
    text = app_with(file_sink(out / "of {{k}}" / "{{v}}.csv", more="on.error='STORE',"))
    app = run(text, allow=[f"file={out}"])
    app.send("S", [["a", 1], ["b", 1], ["a", 2], ["a", 1], ["../../up", 1], [None, 1]])
    app.flush()
    assert app.drain() == 0
    found = {str(p.relative_to(out)): p.read_text() for p in out.rglob("*.csv")}
    assert found == {
        "of a/1.csv": "a,1\na,1\n", "of b/1.csv": "b,1\n", "of a/2.csv": "a,2\n", "of null/1.csv": "null,1\n"}
    assert "is not the name of a file" in app.errors.frame["reason"].tolist()[0]
    (figures,) = app.stats().sinks
    assert (figures.sent, figures.failed, figures.target) == (5, 1, str(out / "of {{k}}" / "{{v}}.csv"))
    assert len(list(out.parent.iterdir())) == 2
    app.stop()
    app.send("S", [["a", 1]])
    app.flush()
    assert app.drain() == 0
    assert (out / "of a" / "1.csv").read_text() == "a,1\n" * 3


@pytest.mark.contract(thorough=True)
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
    lines = [json.loads(line) for line in (out / "in.json").read_text().splitlines()]
    found = [e for line in lines for e in (line if isinstance(line, list) else [line])]  # each node has its own
    assert sorted(e["event"]["v"] for e in found) == [0, 1, 2]
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
    pairs = [[{"event": {"k": f"k{i}", "v": i}} for i in (2 * n, 2 * n + 1)] for n in range(3)]
    assert [json.loads(line) for line in "".join(rolled).splitlines()] == pairs


MAPPED = [
    ("@map(type='csv', header='true', @payload(v='0', k='1'))", "v,k\n1,a\n2,b\nnull,null\n3,c\n"),
    ("@map(type='csv', event.grouping.enabled='true')", "a,1\nb,2\nnull,null\nc,3\n"),
    ("@map(type='json', @payload('{{v}}'))", "[1,\n2]\nundefined\n3\n"),
    (
        "@map(type='json', enclosing.element='$.all', enable.null.attribute.value='true')",
        '{"all":[{"event":{"k":"a","v":1}},{"event":{"k":"b","v":2}}]}\n'
        '{"all":{"event":{"k":null,"v":null}}}\n{"all":{"event":{"k":"c","v":3}}}\n',
    ),
    ("@map(type='text', @payload('{{k}} is {{v}}'))", "a is 1\nb is 2\nnull is null\nc is 3\n"),
    (
        "@map(type='text', event.grouping.enabled='true', delimiter='--', @payload('{{k}}'))",
        "a\n--\nb\nnull\nc\n",
    ),
    ("@map(type='keyvalue')", "k=a&v=1\nk=b&v=2\n\nk=c&v=3\n"),
    (
        "@map(type='xml', enclosing.element='<all>', @payload('<e>{{v}}</e>'))",
        "<all><e>1</e><e>2</e></all>\n<all><e>null</e></all>\n<all><e>3</e></all>\n",
    ),
]


def test_every_mapping_writes_to_files(run: Callable[..., App], out: Path) -> None:
    """What was sent at once is one message where the mapping groups events."""
    sinks = "\n".join(f"@sink(type='file', file.uri='{out}/{i}', {m})" for i, (m, _) in enumerate(MAPPED))
    app = run(app_with(sinks, "from S select k, v insert into Alerts;"), allow=[f"file={out}"])
    app.send("S", [["a", 1], ["b", 2]])
    app.send("S", [None, None])
    app.send("S", ["c", 3])
    assert app.drain() == 0
    for i, (mapping, written) in enumerate(MAPPED):
        assert (out / str(i)).read_text() == written, mapping
    assert {f.sent for f in app.stats().sinks} == {4}


REFUSED: list[tuple[str, str]] = [
    (
        "file.uri='/etc/alerts.csv', @map(type='csv')",
        "writes to /etc/alerts.csv, which is not allowed. Add --allow file=/etc,",
    ),
    ("file.uri='{out}/../alerts.csv', @map(type='csv')", "is not allowed. Add --allow "),
    ("file.uri='{out}/way/alerts.csv', @map(type='csv')", "is not allowed. Add --allow "),
    ("file.uri='s3://bucket/alerts.csv', @map(type='csv')", "a path of this machine, not an address"),
    ('file.uri="""{out}/a\nb.csv""", @map(type="csv")', "control character"),
    ("file.uri='{{{{k}}}}.csv', @map(type='csv')", "depends on the event is FOLDER/NAME, as 'out/{{symbol}}.csv'"),
    ("file.uri='{out}/{{{{k}}}}/', @map(type='csv')", "depends on the event is FOLDER/NAME"),
    ("file.uri='{out}/{{{{kk}}}}.csv', @map(type='csv')", "has no attribute 'kk'"),
    ("file.uri='{out}/.{{{{k}}}}', @map(type='csv')", "cannot be empty or begin with a dot"),
    ("file.uri='{out}/{{{{k}}}}/../x', @map(type='csv')", "cannot be empty or begin with a dot"),
    ("file.uri='/etc/{{{{k}}}}.csv', @map(type='csv')", "is not allowed. Add --allow "),
    ("file.uri='{out}/{{{{k}}}}.csv', roll.size='1MB', @map(type='csv')", "roll.size is for a folder"),
    ("file.uri='{out}/a.csv'", "has no @map"),
    ("@map(type='csv')", "has no 'file.uri'"),
    ("file.uri='{out}/a.bin', @map(type='binary')", "with mapping 'binary'"),
    ("file.uri='{out}/a.avro', @map(type='avro')", "with mapping 'avro'"),
    ("file.uri='{out}/a.bin', @map(type='passThrough')", "with mapping 'passThrough'"),
    ("file.uri='{out}/a.json', @map(type='json', @payload('{{{{kk}}}}'))", "no attribute 'kk'"),
    ("file.uri='{out}/a.csv', append='maybe', @map(type='csv')", "'append' of @sink(type='file') is 'true' or 'false'"),
    ("file.uri='{out}/a.csv', roll.size='1MB', @map(type='csv')", "roll.size is for a folder"),
    ("file.uri='{out}/a.csv', file.system.options='x', @map(type='csv')", "'file.system.options' of a sink"),
    ("file.uri='{out}/a.csv', @map(type='csv', delimiter='')", "cannot be a delimiter"),
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
    assert json.loads((out / "last.json").read_text()) == [{"event": {"k": f"k{i}", "v": i}} for i in (1, 2, 3)]
    assert [p.name for p in out.iterdir()] == ["last.json"]


@pytest.mark.contract
def test_a_sink_that_is_added_begins_with_the_next_outputs(run: Callable[..., App], out: Path) -> None:
    plain = app_with("")
    app = run(plain)
    send(app, 1, 2)
    app.flush()
    app = run(app_with(file_sink(out / "a.csv")), allow=[f"file={out}"])
    assert app.redeployed == "The state was kept: no change affects it."
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


@pytest.mark.contract(thorough=True)
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
        with pytest.raises(SparkStreamError, match="mode distributed has no sinks on input streams"):
            run(both, allow=[f"file={out}"], **how)
        both = text
    app = run(both, allow=[f"file={out}"], **how)
    send(app, 0, 6)
    send(app, 6, 2)
    assert app.drain() == 0
    for name in ("alerts.csv", "in.csv")[: 1 if both is text else 2]:
        assert sorted((out / name).read_text().split()) == sorted(f"k{i},{i}" for i in range(8)), name


@pytest.mark.contract
def test_scaling_keeps_the_sinks(run: Callable[..., App], out: Path) -> None:
    app = run(app_with(file_sink(out / "a.csv")), allow=[f"file={out}"], nodes=2)
    send(app, 1, 4)
    app.scale(nodes=3)
    send(app, 5, 4)
    assert app.drain() == 0
    assert sorted((out / "a.csv").read_text().split()) == [f"k{i},{i}" for i in range(1, 9)]
    assert app.stats().sinks[0].sent == 8
