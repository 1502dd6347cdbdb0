"""An app split by @dist into apps of their own: what comes out, with a real broker between them."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kafka.admin import KafkaAdminClient

from sparkstream_nb import cli
from sparkstream_nb.app import App, SplitApp, split
from sparkstream_nb.app.audit import splitting
from sparkstream_nb.app.config.grants import NotAllowed
from sparkstream_nb.errors import Misuse, SiddhiBindError, SparkStreamError
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.plan import compile_app
from tests.apps.waiting import rows, until
from tests.broker import Broker
from tests.nats_server import NatsServer
from tests.servers import free_port

START = 1_700_000_000_000
COUNT = 600
TEXT = """
@app:name('Trades')
define stream S (k string, price double, volume long);
@info(name='big') @dist(execGroup='filter')
from S[not(volume < 5)] select k, price, volume insert into Big;
@info(name='sums') @dist(execGroup='sums', parallel='2')
partition with (k of Big) begin
from Big#window.time(20 sec) select k, price, sum(volume) as total, count() as n insert into Sums;
end;
@info(name='rises') @dist(execGroup='rises')
partition with (k of Sums) begin
from every a=Sums -> b=Sums[total > a.total and price > a.price] within 30 sec
select a.k as k, a.price as low, b.price as high, a.total as before, b.total as after insert into Rises;
end;
"""


@pytest.fixture
def events() -> pd.DataFrame:
    """Trades of seven symbols, some without a price, a second apart."""
    rng = np.random.default_rng(3)
    price = np.where(rng.random(COUNT) < 0.05, None, rng.normal(75, 9, COUNT))
    return pd.DataFrame(
        {
            "k": rng.choice([*"abcdef", "ü'\"\\"], COUNT),
            "price": price.astype("float64"),
            "volume": rng.integers(0, 2**62, COUNT) >> rng.integers(0, 62, COUNT),
            "at": START + 1000 * np.arange(COUNT),
        }
    )


@pytest.fixture
def parts(spark: Any, tmp_path: Path) -> Iterator[Callable[..., dict[str, App]]]:
    """Deploys the apps of a split in a temporary folder; they are stopped after the test."""
    from sparkstream_nb.app import stop_all

    def start(found: SplitApp, **arguments: Any) -> dict[str, App]:
        return found.deploy(home=tmp_path / "parts", **arguments)

    yield start
    stop_all()


def bag(apps: list[App], stream: str) -> Counter[tuple[object, ...]]:
    """The outputs of a stream, with their times, of all apps."""
    found: Counter[tuple[object, ...]] = Counter()
    for app in apps:
        frame = app.output(stream).frame.drop(columns=["node"], errors="ignore").astype(object)
        found.update(frame.where(frame.notna(), None).itertuples(index=False, name=None))
    return found


@pytest.mark.timeout(600)
def test_the_parts_put_out_what_one_app_does(
    run: Callable[..., App], parts: Callable[..., dict[str, App]], broker: Broker, events: pd.DataFrame, tmp_path: Path
) -> None:
    """Each event goes through three apps and two topics, one of which is divided by key; its time goes along."""
    alone = run(TEXT, name="alone", home=tmp_path / "alone")
    simulated = run(TEXT, name="Trades", mode="distributed", nodes=3)
    for app in (alone, simulated):
        app.feed("S", events, time="at")
        app.flush()
    expected = {s: bag([alone], s) for s in ("Big", "Sums", "Rises")}
    assert expected == {s: bag([simulated], s) for s in expected}
    assert sum(expected["Rises"].values()) > 50
    found = split(TEXT, kafka=broker.address)
    apps = parts(found, allow=[f"kafka={broker.address}"])
    first, one, two, last = (apps[f"Trades-{g}"] for g in ("filter-1", "sums-1", "sums-2", "rises-1"))
    first.feed("S", events, time="at")
    until(last, lambda: bag([last], "Rises").total() >= expected["Rises"].total())
    assert bag([first], "Big") == expected["Big"]
    assert bag([one, two], "Sums") == expected["Sums"]
    assert min(len(a.output("Sums").frame) for a in (one, two)) > 100
    assert bag([last], "Rises") == expected["Rises"]
    assert not any(len(a.errors) for a in apps.values())
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    sizes = {t["name"]: len(t["partitions"]) for t in admin.describe_topics(sorted(t.name for t in found.topics))}
    admin.close()
    assert sizes == {"Trades.S": 1, "Trades.Big.k": 2, "Trades.Sums": 1}


@pytest.fixture
def nats_server() -> Iterator[NatsServer]:
    server = NatsServer(free_port())
    server.start()
    yield server
    server.stop()


@pytest.mark.timeout(600)
def test_the_parts_put_out_what_one_app_does_over_nats(
    run: Callable[..., App], nats_server: NatsServer, events: pd.DataFrame, tmp_path: Path
) -> None:
    """The same over a real NATS server: a subject for each partition, to which an instance of its own subscribes."""
    alone = run(TEXT, name="alone", home=tmp_path / "alone")
    alone.feed("S", events, time="at")
    alone.flush()
    found = split(TEXT, nats=f"localhost:{nats_server.port}")
    apps = found.deploy(home=tmp_path / "parts", allow=nats_server.allow, master="inline")
    assert [*apps] == [a.name for a in found.apps]
    first, one, two, last = apps.values()
    first.feed("S", events, time="at")
    expected = {s: bag([alone], s) for s in ("Big", "Sums", "Rises")}
    until(last, lambda: bag([last], "Rises").total() >= expected["Rises"].total())
    assert bag([first], "Big") == expected["Big"]
    assert bag([one, two], "Sums") == expected["Sums"]
    assert min(len(a.output("Sums").frame) for a in (one, two)) > 100
    assert bag([last], "Rises") == expected["Rises"]
    assert not any(len(a.errors) for a in apps.values())


def test_instances_that_take_turns_over_nats(
    run: Callable[..., App], nats_server: NatsServer, tmp_path: Path
) -> None:
    """A query outside of a partition, twice: each message goes to one member of the queue group."""
    app = """
    define stream S (v int);
    @dist(execGroup='all') from S select v insert into M;
    @dist(execGroup='odd', parallel='2') from M[v % 2 == 1] select v insert into Odd;
    """
    found = split(app, nats=nats_server.url, name="Turns")
    assert found.notes == ()
    apps = found.deploy(home=tmp_path / "parts", allow=nats_server.allow, master="inline")
    for v in range(200):
        apps["Turns-all-1"].send("S", [v])
    readers = [apps[f"Turns-odd-{i}"] for i in (1, 2)]
    until(readers[0], lambda: sum(rows(r, "Odd") for r in readers) >= 100)
    values = [set(r.output("Odd").frame["v"]) for r in readers]
    assert values[0] | values[1] == set(range(1, 200, 2))
    assert not values[0] & values[1]
    assert min(map(len, values)) > 10


def test_a_nats_server_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_SUBSCRIBE_SECONDS", 1.0)
    address = f"127.0.0.1:{free_port()}"
    found = split(TEXT, nats=address)
    with pytest.raises(SparkStreamError, match="app 'Trades-rises-1' has not subscribed: "):
        found.deploy(home=tmp_path, allow=[f"nats={address}"], master="inline")
    with pytest.raises(NotAllowed, match=rf"{address}, which is not allowed\. Add --allow nats="):
        found.deploy(home=tmp_path, master="inline")
    with pytest.raises(Misuse, match="NATS has no topics to make"):
        found.make_topics()


def test_what_the_parts_are_over_nats() -> None:
    """Subjects as WSO2's manager names them."""
    found = split(TEXT, nats="one:4222, nats://two:4222", name="Other")
    assert text(found).splitlines() == [
        "Other: 4 partial apps, 3 topics",
        "  Other-filter-1: reads Other_S; writes Other_Big_k",
        "  Other-sums-1: reads Other_Big_k; writes Other_Sums",
        "  Other-sums-2: reads Other_Big_k; writes Other_Sums",
        "  Other-rises-1: reads Other_Sums",
        "  topic Other_S, 1 partition",
        "  topic Other_Big_k, 2 partitions",
        "  topic Other_Sums, 1 partition",
    ]
    assert not found.makes_topics
    writer, reader = found.apps[0].text, found.apps[2].text
    assert "bootstrap.servers='nats://one:4222,nats://two:4222'" in writer
    assert [f"@destination(destination='Other_Big_k_{i}')" in writer for i in (0, 1, 2)] == [True, True, False]
    assert "destination='Other_Big_k_1'" in reader
    assert "Other_Big_k_0" not in reader


@pytest.mark.parametrize(
    ("messaging", "message"),
    [
        ({}, "give one of kafka='HOST:PORT' and nats='HOST:PORT'"),
        ({"kafka": "h:1", "nats": "h:1"}, "give one of kafka='HOST:PORT' and nats='HOST:PORT'"),
        ({"nats": " "}, "nats is HOST:PORT, such as localhost:4222"),
        ({"nats": "tls://h:1"}, "is not HOST:PORT"),
        ({"nats": "h:1", "name": "an app"}, "NATS has no subject 'an app_S'"),
        ({"nats": "h:1", "name": "a*"}, "NATS has no subject"),
    ],
)
def test_a_messaging_layer_that_is_none(messaging: dict[str, str], message: str) -> None:
    with pytest.raises(Misuse, match=re.escape(message)):
        split(TEXT, **messaging)


def test_streams_that_would_share_a_subject() -> None:
    app = """
    define stream S (k string);
    @dist(execGroup='a') from S select k insert into M;
    @dist(execGroup='a') from S select k insert into M_k_0;
    @dist(execGroup='b', parallel='2') partition with (k of M) begin from M select k insert into X; end;
    @dist(execGroup='c') from M_k_0 select k insert into Y;
    """
    with pytest.raises(Misuse, match="streams 'M' and 'M_k_0' would share the subject 'A_M_k_0'"):
        split(app, nats="h:1", name="A")


def test_what_the_parts_are() -> None:
    found = split(TEXT, kafka="one:9092, two:9092", name="Other")
    assert text(found).splitlines() == [
        "Other: 4 partial apps, 3 topics",
        "  Other-filter-1: reads Other.S; writes Other.Big.k",
        "  Other-sums-1: reads Other.Big.k; writes Other.Sums",
        "  Other-sums-2: reads Other.Big.k; writes Other.Sums",
        "  Other-rises-1: reads Other.Sums",
        "  topic Other.S, 1 partition",
        "  topic Other.Big.k, 2 partitions",
        "  topic Other.Sums, 1 partition",
    ]
    assert "Other.Big.k" in html(found)
    assert "bootstrap.servers='one:9092,two:9092'" in found.apps[0].text


def test_nothing_is_reached_that_is_not_allowed(tmp_path: Path) -> None:
    found = split(TEXT, kafka="localhost:9092")
    for act in (found.make_topics, lambda: found.deploy(home=tmp_path)):
        with pytest.raises(NotAllowed, match=r"localhost:9092, which is not allowed\. Add --allow kafka="):
            act()


def test_topics_are_made_once_and_with_enough_partitions(broker: Broker) -> None:
    found, allow = split(TEXT, kafka=broker.address, name=broker.topic()), [f"kafka={broker.address}"]
    assert found.make_topics(allow) == [t.name for t in found.topics]
    assert found.make_topics(allow) == []
    other = split(TEXT, kafka=broker.address, name=broker.topic())
    broker.topic(f"{other.name}.Big.k")
    with pytest.raises(Misuse, match="has 1 partitions, and 2 are needed: add partitions"):
        other.make_topics(allow)


def test_a_broker_that_is_away() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(SparkStreamError, match=f"the topics are not made, {address}: "):
        split(TEXT, kafka=address).make_topics([f"kafka={address}"])


@pytest.mark.parametrize(("value", "makes"), [("'false'", False), ("'true'", True), ("'False'", False)])
def test_an_app_that_makes_no_topics(value: str, makes: bool) -> None:
    """WSO2's `transportChannelCreationEnabled`."""
    annotation = f"@app:transportChannelCreationEnabled({value})"
    assert split(annotation + TEXT, kafka="h:1").makes_topics is makes


def test_what_is_no_split() -> None:
    two = TEXT.replace("'filter')\nfrom S[", "'filter', parallel='2')\nfrom S#window.length(2)[")
    with pytest.raises(SiddhiBindError, match="a window cannot run in 2 instances"):
        split(two, kafka="h:1")
    with pytest.raises(Misuse, match="is not HOST:PORT"):
        split(TEXT, kafka="h")
    with pytest.raises(Misuse, match="kafka is HOST:PORT, such as localhost:9092"):
        split(TEXT, kafka=" ")
    with pytest.raises(Misuse, match=r"Kafka has no topic 'an app\.S', as names have up to 249"):
        split(TEXT, kafka="h:1", name="an app")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, into = tmp_path / "trades.siddhi", tmp_path / "parts"
    source.write_text(TEXT.replace("@app:name('Trades')", "").replace("volume < 5", "volume < ${LEAST}"))
    common = ["split", str(source), "--kafka", "localhost:9092", "--param", "LEAST=7"]
    assert cli.main([*common, "--into", str(into)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("trades: 4 partial apps, 3 topics\n  trades-filter-1: reads trades.S; writes trades.Big.k\n")
    assert "--allow kafka=localhost:9092" in said
    files = sorted(into.iterdir())
    assert [f.name for f in files] == [f"trades-{g}.siddhi" for g in ("filter-1", "rises-1", "sums-1", "sums-2")]
    assert [compile_app(f.read_text()).name for f in files] == [f.stem for f in files]
    assert "volume < 7" in files[0].read_text()
    over_nats = ["split", str(source), "--nats", "localhost:4222", "--param", "LEAST=7", "--into", str(into)]
    assert cli.main(over_nats) == 0
    runs = [line for line in capsys.readouterr().out.splitlines() if line.startswith("sparkstream run ")]
    assert "trades-rises-1" in runs[0]  # readers begin before their writers
    assert all(line.endswith("--allow nats=localhost:4222") for line in runs)
    assert "destination='trades_Sums'" in (into / "trades-rises-1.siddhi").read_text()
    assert cli.main([*over_nats, "--make-topics"]) == 2
    assert "NATS has no topics to make" in capsys.readouterr().err
    assert cli.main([*common, "--make-topics"]) == 2
    assert "Add --allow kafka=localhost:9092" in capsys.readouterr().err


def test_the_text_may_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = "define stream S (k string); @dist(execGroup = 'a') from S select k insert into T;"
    monkeypatch.setattr("sys.stdin", io.StringIO(app))
    assert cli.main(["split", "-", "--kafka", "localhost:9092"]) == 0
    assert "app-a-1: reads app.S" in capsys.readouterr().out
