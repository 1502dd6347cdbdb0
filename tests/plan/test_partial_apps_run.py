"""Partial apps on engines, with messages between them and no broker: all together put out what the whole app does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.mapping import encoder
from sparkstream_nb.mapping.attribute_values import arrays
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.nodes.partitioning import by_hash
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.incoming import incoming_sources
from sparkstream_nb.plan.connectors.outside import outside_sinks
from sparkstream_nb.plan.distributed.distribute import distribute
from sparkstream_nb.plan.distributed.partial_texts import partial_texts

Outputs = dict[str, list[list[Any]]]
Log = dict[tuple[str, int], list[bytes]]
"""The messages of a partition of a topic."""

S = "define stream S (k string, v long, d double);"
SOURCE = "@source(type='file', dir.uri='/in', mode='line', @map(type='csv'))"
APPS = {
    "by key": S
    + """
    @dist(execGroup='a') from S[v != 3] select k, v, d insert into M;
    @dist(execGroup='b', parallel='3') partition with (k of M) begin
      from M#window.time(5 sec) select k, sum(v) as s, max(d) as d insert into T; end;
    @dist(execGroup='c') partition with (k of T) begin
      from every x=T -> y=T[s > x.s] within 10 sec select x.k as k, y.s as s, y.d as d insert into O; end;
    """,
    "a source that several groups read": SOURCE
    + S
    + """
    @dist(execGroup='a') from S#window.length(3) select k, sum(v) as s insert into T;
    @dist(execGroup='b', parallel='2') partition with (k of S) begin
      from S select k, count() as n insert into O; end;
    """,
    "turns, and all": S
    + """
    @dist(execGroup='a') from S select k, v, d insert into M;
    @dist(execGroup='b', parallel='2') from M[v > 2] select k, v insert into T;
    @dist(execGroup='c') from M#window.lengthBatch(2) select count() as n, sum(v) as s insert into O;
    """,
    "two writers, and events that come out at once": S
    + """
    @dist(execGroup='a') from S[v < 4]#window.length(1) as x unidirectional
      join S[v < 4]#window.length(3) as y on x.k == y.k
      select x.k as k, y.v as v, y.d as d insert into M;
    @dist(execGroup='b') from S[v >= 4] select k, v, d insert into M;
    @dist(execGroup='c') from M#window.time(4 sec) select count() as n, sum(v) as s insert into O;
    """,
}
TIMES = st.integers(1, 3_000)
EVENT = st.tuples(TIMES, st.sampled_from(["a", "b", "ü", "", None]), st.integers(0, 9), st.none() | st.floats(-9, 9))


def feed(events: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """Events of S, each later than the one before."""
    times = np.cumsum([e[0] for e in events]).tolist()
    return [["S", t, list(e[1:])] for t, e in zip(times, events, strict=True)]


def run_parts(text: str, given: Sequence[list[Any]]) -> dict[str, Outputs]:
    """The outputs of each partial app of an app whose groups stand in the order of its topics. What clients send
    goes to each app that reads their stream."""
    plan = compile_app(text)
    split = distribute(plan, "A")
    log: Log = {}
    out: dict[str, Outputs] = {}
    for part in partial_texts(parse(text), plan, split, "h:9092"):
        sources = {s.stream for s in incoming_sources(compile_app(part.text))}
        steps = received(part.text, log)
        steps += [step for step in given if step[0] in sources]
        steps.sort(key=last_time)
        found = run_case({"app": part.text, "feed": steps})["streams"]
        send(part.text, found, log)
        # What a part has received is an output of the part that sent it.
        out[part.name] = {s: rows for s, rows in found.items() if f"{s}_received" not in compile_app(part.text).streams}
    return out


def last_time(step: Any) -> int:
    time: int = step["batch"][-1][0] if isinstance(step, dict) else step[1]
    return time


def received(text: str, log: Log) -> list[Any]:
    """What the sources of a partial app read, a step for each message."""
    plan, steps = compile_app(text), []
    for source in incoming_sources(plan):
        if source.type != "kafka" or source.time is None:
            continue
        schema, wanted = plan.schema(source.stream), source.options.get("partition.no.list")
        partitions = None if wanted is None else set(map(int, wanted.split(",")))
        for (topic, partition), messages in log.items():
            if topic == source.options["topic.list"] and (partitions is None or partition in partitions):
                found = decoder(source.mapping, schema).decode(messages)
                assert not found.rejected
                rows = list(zip(*(c.to_pylist() for c in found.columns), strict=True))
                for m in range(len(messages)):
                    batch = [[r[-1], list(r)] for r, at in zip(rows, found.message.tolist(), strict=True) if at == m]
                    steps.append({"stream": source.stream, "batch": batch})
    return steps


def send(text: str, outputs: Outputs, log: Log) -> None:
    """Appends to the topics what a partial app writes."""
    plan = compile_app(text)
    for sink in outside_sinks(plan):
        schema = plan.schema(sink.stream)
        found = outputs.get(sink.stream, [])
        for number, place in enumerate(sink.destinations):
            rows = [(t, list(v)) for t, v in found]
            if sink.key is not None and rows:
                columns = arrays(schema, [v for _, v in rows])
                at = schema.names.index(sink.key)
                share = by_hash(columns[at], schema[at].type, len(sink.destinations)) == number
                rows = [r for r, mine in zip(rows, share, strict=True) if mine]
            if rows:
                times = np.array([t for t, _ in rows])
                chunk = np.cumsum(np.diff(times, prepend=times[0]) != 0)
                made = encoder(sink.mapping, schema).encode(arrays(schema, [v for _, v in rows]), times, chunk)
                log.setdefault((place["topic"], int(place["partition.no"])), []).extend(m.body for m in made)


def bag(outputs: Sequence[Mapping[str, Any]], stream: str) -> Counter[str]:
    return Counter(repr(row) for found in outputs for row in found.get(stream, []))


@pytest.mark.parametrize("name", APPS)
@settings(max_examples=examples(25), deadline=None)
@given(events=st.lists(EVENT, min_size=1, max_size=25))
def test_the_parts_put_out_what_the_app_does(name: str, events: Sequence[tuple[Any, ...]]) -> None:
    steps = feed(events)
    whole = run_case({"app": APPS[name].replace(SOURCE, ""), "feed": steps})["streams"]
    parts = run_parts(APPS[name], steps)
    for stream in ("T", "O"):
        assert bag(list(parts.values()), stream) == bag([whole], stream)
