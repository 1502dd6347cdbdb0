"""Partial apps as texts: what each has, that all of them bind, and that their topics carry every value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.engine_cases import run_case
from sparkstream_nb.errors import Misuse, SiddhiBindError
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.lang.tree import find_annotation
from sparkstream_nb.mapping import encoder
from sparkstream_nb.mapping.attribute_values import arrays
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.plan import Plan, compile_app
from sparkstream_nb.plan.connectors.incoming import IncomingSource, incoming_sources
from sparkstream_nb.plan.connectors.outside import OutsideSink, outside_sinks
from sparkstream_nb.plan.distributed.distribute import distribute
from sparkstream_nb.plan.distributed.partial_texts import PartialText, partial_texts
from sparkstream_nb.plan.gaps import what_cannot_run

S = "define stream S (k string, v long);"
BROKERS = "localhost:9092"
MAKE = "@dist(execGroup='make') from S select k, v insert into M;"


def split_texts(text: str) -> dict[str, PartialText]:
    """The partial apps of an app that is called A unless it has a name, by name; each of them binds and runs here."""
    plan = compile_app(text)
    found = partial_texts(parse(text), plan, distribute(plan, plan.name or "A"), BROKERS)
    for part in found:
        assert not what_cannot_run(bound(part)), part.text
    return {part.name: part for part in found}


def bound(part: PartialText) -> Plan:
    return compile_app(part.text, {"shardId": "n"})


def kafka_sources(part: PartialText) -> dict[str, IncomingSource]:
    return {s.stream: s for s in incoming_sources(bound(part)) if s.type == "kafka"}


def kafka_sinks(part: PartialText) -> list[OutsideSink]:
    return [s for s in outside_sinks(bound(part)) if s.type == "kafka"]


def options(source: IncomingSource, *names: str) -> list[str | None]:
    return [source.options.get(name) for name in names]


def test_a_stream_by_key() -> None:
    """The writer divides it by the key, and each instance reads its partitions as a member of one consumer group."""
    parts = split_texts(
        S + MAKE + "@dist(execGroup='sum', parallel='2') partition with (k of M) begin"
        " from M select k, sum(v) as s insert into T; end;"
        "@dist(execGroup='max', parallel='3') partition with (k of M) begin"
        " from M select k, max(v) as s insert into U; end;"
    )
    assert [*parts] == ["A-make-1", "A-sum-1", "A-sum-2", "A-max-1", "A-max-2", "A-max-3"]
    assert [(p.group, p.number) for p in parts.values()][1:3] == [("A-sum", 1), ("A-sum", 2)]
    (sink,) = kafka_sinks(parts["A-make-1"])
    assert (sink.stream, sink.strategy, sink.key, sink.on_error) == ("M_sent", "partitioned", "k", "STORE")
    assert [(d["topic"], d["partition.no"]) for d in sink.destinations] == [("A.M.k", p) for p in "012"]
    wanted = "topic.list", "group.id", "partition.no.list", "threading.option", "event.time"
    found = [options(kafka_sources(p)["M_received"], *wanted) for n, p in parts.items() if n != "A-make-1"]
    assert found == [
        ["A.M.k", group, partitions, "partition.wise", "event_time"]
        for group, partitions in [("A-sum", "0"), ("A-sum", "1,2"), ("A-max", "0"), ("A-max", "1"), ("A-max", "2")]
    ]
    assert all(p.reads == ("A.M.k",) and p.writes == () for n, p in parts.items() if n != "A-make-1")
    assert parts["A-make-1"].writes == ("A.M.k",)


def test_a_stream_that_each_instance_reads() -> None:
    """Each instance is a consumer group of its own, which reads all."""
    parts = split_texts(
        S + "define stream R (k string, v long);" + MAKE + "@dist(execGroup='p', parallel='2') partition with (k of R)"
        " begin from M select k insert into O; end;"
    )
    for name in ("A-p-1", "A-p-2"):
        source = kafka_sources(parts[name])["M_received"]
        assert options(source, "topic.list", "group.id", "partition.no.list") == ["A.M", name, None]
    (sink,) = kafka_sinks(parts["A-make-1"])
    assert (sink.strategy, sink.destinations[0]["partition.no"]) == (None, "0")


def test_instances_that_take_turns() -> None:
    """Kafka gives their one partition to one of them: here the first, and the others have what they run, and no
    source."""
    parts = split_texts(S + MAKE + "@dist(execGroup='turn', parallel='2') from M[v > 1] select k insert into O;")
    source = kafka_sources(parts["A-turn-1"])["M_received"]
    assert options(source, "topic.list", "group.id") == ["A.M", "A-turn"]
    assert kafka_sources(parts["A-turn-2"]) == {}
    assert len(bound(parts["A-turn-2"]).queries) == 2


def test_a_stream_that_clients_write() -> None:
    """Its source is on itself, with a mapping by default: clients know nothing of event times."""
    (part,) = split_texts(S + "@dist(execGroup='g') from S select k insert into O;").values()
    source = kafka_sources(part)["S"]
    assert options(source, "topic.list", "group.id") == ["A.S", "A-g-1"]
    assert (source.time, source.mapping.places) == (None, None)


def test_sources_and_sinks_of_the_user() -> None:
    """A source that two groups read has an app of its own. Sinks are where their stream is written, or first read."""
    parts = split_texts(
        "@source(type='file', dir.uri='/in', mode='line', @map(type='csv'), @dist(parallel='1'))"
        "@sink(type='file', file.uri='/copy', @map(type='json'))"
        "@OnError(action='STREAM') define stream S (k string, v long);"
        "@sink(type='file', file.uri='/out', @map(type='csv')) define stream O (k string);"
        "@dist(execGroup='a') from S select k insert into O;"
        "@dist(execGroup='b') from S select v insert into P; @dist(execGroup='b') from !S select k insert into F;"
    )
    assert [*parts] == ["A-passthrough-S-1", "A-a-1", "A-b-1"]
    outside = {n: [(s.type, s.stream) for s in incoming_sources(bound(p))] for n, p in parts.items()}
    assert outside == {
        "A-passthrough-S-1": [("file", "S")],
        "A-a-1": [("kafka", "S_received")],
        "A-b-1": [("kafka", "S_received")],
    }
    sinks = {n: [(s.type, s.stream) for s in outside_sinks(bound(p))] for n, p in parts.items()}
    assert sinks == {
        "A-passthrough-S-1": [("kafka", "S_sent")],
        "A-a-1": [("file", "S"), ("file", "O")],
        "A-b-1": [],
    }
    assert "@dist" not in "".join(p.text for p in parts.values())


def test_each_of_several_sources_passes_its_events_on() -> None:
    sources = "".join(f"@source(type='file', dir.uri='/{d}', mode='line', @map(type='csv'))" for d in "xy")
    parts = split_texts(
        sources + S + "@dist(execGroup='a') from S select k insert into O; @dist(execGroup='b') from S insert into P;"
    )
    files = {
        n: [s.options["dir.uri"] for s in incoming_sources(bound(p)) if s.type == "file"] for n, p in parts.items()
    }
    assert files == {"A-passthrough-S-1-1": ["/x"], "A-passthrough-S-2-1": ["/y"], "A-a-1": [], "A-b-1": []}


def test_sources_of_a_stream_that_nobody_reads_run_once() -> None:
    ends = "@source(type='file', dir.uri='/in', mode='line', @map(type='csv'))"
    ends += "@sink(type='file', file.uri='/o', @map(type='csv')) define stream C (x int);"
    parts = split_texts(ends + S + "@dist(execGroup='a', parallel='2') from S[v > 1] select k insert into O;")
    assert [[s.stream for s in incoming_sources(bound(p)) if s.type == "file"] for p in parts.values()] == [["C"], []]


def test_what_a_group_uses_goes_along() -> None:
    """Tables, windows, triggers, functions and aggregations are with the groups that use them."""
    parts = split_texts(
        "@app:name('Rooms') @app:description('d')"
        + S
        + "define stream M (k string, v long); define table T (k string, v long);"
        "define window W (k string, v long) length(3); define trigger Tick at every 5 sec;"
        "define function inc[javascript] return long { return data[0] + 1; };"
        "define function dec[javascript] return long { return data[0] - 1; };"
        "@dist(parallel='1') define aggregation G from M[dec(v) > 0] select k, sum(v) as s group by k"
        " aggregate every sec;"
        + MAKE
        + "@dist(execGroup='t') from M select k, inc(v) as v update or insert into T on T.k == k;"
        "@dist(execGroup='w') from M insert into W; @dist(execGroup='w') from W select k insert into O;"
        "@dist(execGroup='t') from Tick join T on true select T.k as k insert into P;"
        "from S join G on S.k == G.k within 0L, 9L per 'sec' select G.k as k, G.s as s insert into Q;"
    )
    held = {}
    for name, part in parts.items():
        p = bound(part)
        held[name] = [*p.tables, *p.windows, *p.triggers, *p.functions, *p.aggregations]
        assert p.name == name
        assert find_annotation(p.annotations, "description") is not None
    assert held == {
        "Rooms-make-1": [],
        "Rooms-t-1": ["T", "Tick", "inc"],
        "Rooms-w-1": ["W"],
        "Rooms-aggregation-G-1": ["dec", "G"],
    }
    joins = bound(parts["Rooms-aggregation-G-1"])
    assert {"M_received", "S"} == {s.stream for s in incoming_sources(joins)}


def test_names_that_are_taken() -> None:
    parts = split_texts(
        "define stream S (event_time long, `a b` string); define stream M_sent (x int);"
        "define table M_received (x int);"
        "@dist(execGroup='a') from S select * insert into M; @dist(execGroup='b') from M select `a b` insert into O;"
    )
    (sink,) = kafka_sinks(parts["A-a-1"])
    (source,) = kafka_sources(parts["A-b-1"]).values()
    assert (sink.stream, source.stream, source.time) == ("M_sent_", "M_received_", "event_time_")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@sink(type='inMemory', topic='t', @map(type='passThrough'))" + S + MAKE,
         "'S' has one: partial apps exchange"),
        (S + MAKE + "@dist(execGroup='g') from M select k, v + 1 as v insert into M;",
         "group 'A-g' reads and writes 'M', which is a topic"),
        ("define stream S (k string, o object); @dist(execGroup='a') from S select k, o insert into M;"
         "@dist(execGroup='b') from M select k insert into O;", "cannot carry its attribute 'o', an object"),
        ("""define stream S (`'"` string); @dist(execGroup='a') from S select * insert into M;"""
         "@dist(execGroup='b') from M select * insert into O;", "cannot be written: no JSON path can name"),
    ],
)  # fmt: skip
def test_what_topics_cannot_carry(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        split_texts(text)


def test_a_source_that_would_be_read_twice() -> None:
    text = "@source(type='kafka', bootstrap.servers='h:1', topic.list='t', group.id='g', threading.option="
    text += "'single.thread', @map(type='json'), @dist(parallel='2'))" + S + MAKE + MAKE.replace("make", "b")
    with pytest.raises(SiddhiBindError, match="would run in 2 instances, each of which reads all") as raised:
        split_texts(text.replace("into M;", "into N;", 1))
    assert raised.value.hint == "Leave @dist out of the source."


def test_the_time_of_an_event_goes_along() -> None:
    parts = split_texts(S + MAKE + "@dist(execGroup='b') from M select k insert into O;")
    got = run_case({"app": parts["A-make-1"].text, "feed": [["S", 5000, ["a", 1]], ["S", 7000, [None, None]]]})
    assert got["streams"]["M_sent"] == [[5000, ["a", 1, 5000]], [7000, [None, None, 7000]]]
    received = [["M_received", t, values] for t, values in got["streams"]["M_sent"]]
    got = run_case({"app": parts["A-b-1"].text, "feed": received})
    assert got["streams"]["O"] == [[5000, ["a"]], [7000, [None]]]


TYPES = split_texts(
    "define stream S (s string, i int, l long, f float, d double, b bool, `a.b` string);"
    "@dist(execGroup='a') from S select * insert into M; @dist(execGroup='b') from M select * insert into O;"
)
(SINK,) = kafka_sinks(TYPES["A-a-1"])
(SOURCE,) = kafka_sources(TYPES["A-b-1"]).values()
SCHEMA = bound(TYPES["A-a-1"]).schema("M_sent")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.tuples(
    st.none() | TEXTS | st.sampled_from(["null", "undefined", "{}", "[1]", "1.0", ""]),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.booleans(),
    st.none() | TEXTS,
    st.integers(0, 2**53),
)


@given(rows=st.lists(ROWS, min_size=1, max_size=6), together=st.booleans())
def test_a_topic_carries_all_values(rows: Sequence[tuple[Any, ...]], together: bool) -> None:
    """Of all types but object, nulls too, whether events are in one message or in several."""
    chunk = np.zeros(len(rows), np.int64) if together else np.arange(len(rows))
    columns = arrays(SCHEMA, [list(r) for r in rows])
    messages = encoder(SINK.mapping, SCHEMA).encode(columns, np.zeros(len(rows), np.int64), chunk)
    assert len(messages) == (1 if together else len(rows))
    found = decoder(SOURCE.mapping, SCHEMA).decode([m.body for m in messages])
    assert not found.rejected
    got = [c if isinstance(c, list) else c.to_pylist() for c in found.columns]
    expected = [c if isinstance(c, list) else c.to_pylist() for c in columns]
    assert [list(map(repr, c)) for c in got] == [list(map(repr, c)) for c in expected]
