"""The list of declared gaps: names that stand, and refusal by name and place."""

from __future__ import annotations

import re

import pytest

from sparkstream_nb.errors import NotInThisBuild
from sparkstream_nb.plan import compile_app, gaps
from sparkstream_nb.plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS

S = "define stream S (k string, v int);\n"


def test_names_of_the_list_exist() -> None:
    """A gap about an operator names one that has a signature, so that a struck or misspelt line is seen."""
    tables = {"function": SCALARS, "aggregator": AGGREGATORS, "window": WINDOWS, "stream-function": STREAM_FUNCTIONS}
    for name, what in gaps.GAPS.items():
        assert what, name
        assert re.fullmatch(r"[a-z-]+(:[\w:-]+)?", name), name
        kind, _, key = name.partition(":")
        if kind in tables:
            assert key in tables[kind], name


def test_what_runs_since_the_beginning_is_no_gap() -> None:
    plan = compile_app(
        S
        + """
        define aggregation A from S[v > 0] select k, sum(v) as s, avg(v) as a group by k aggregate every sec ... year;
        from S[v > 1 and k == 'x']#window.time(1 sec) select k, sum(v) as s group by k having s > 1 insert into O;
        from S#window.lengthBatch(3) select max(v) as m insert all events into P;
        from every (e1=S -> e2=S[v > e1.v]) within 1 sec select e1.k insert into Q;
    """
    )
    assert gaps.find_gaps(plan) == ()
    gaps.refuse(plan)


@pytest.mark.skipif("script:r" not in gaps.GAPS, reason="R runs now; show the refusal with another gap")
def test_refusal_names_gap_and_place() -> None:
    plan = compile_app(
        S + "define function f[r] return int { return(1) };\nfrom S select f(v) as x insert into O;"
    )
    assert {u.name for u in gaps.find_gaps(plan)} == {"script:r"}
    with pytest.raises(NotInThisBuild, match="Declared gap 'script:r'") as caught:
        gaps.refuse(plan)
    assert caught.value.gap == "script:r"


SOURCES = {
    "http": "receiver.url='http://localhost:8006/x'",
    "file": "dir.uri='/x'",
    "kafka": "bootstrap.servers='h:9092', topic.list='t', group.id='g', threading.option='single.thread'",
    "cdc": "mode='polling', url='jdbc:postgresql://h/d', username='u', password='${sec:p}', table.name='t', "
    "polling.column='id'",
}
SINKS = {
    "http": "publisher.url='http://h/x'",
    "file": "file.uri='/x'",
    "kafka": "bootstrap.servers='h:9092', topic='t'",
    "prometheus": "metric.type='counter'",
}


def found(end: str, type_: str, option: str) -> list[str]:
    base = (SOURCES if end == "source" else SINKS)[type_]
    mapping = "keyvalue" if type_ in ("cdc", "prometheus") else "json"
    text = f"@{end}(type='{type_}', {base}, {option}, @map(type='{mapping}')) define stream S (v long);"
    return [u.what for u in gaps.find_gaps(compile_app(text))]


@pytest.mark.parametrize(
    ("end", "type_", "option", "value", "other"),
    [
        ("source", "http", "basic.auth.enabled", "false", None),
        ("source", "http", "ssl.configurations", "", "sslEnabledProtocols:TLSv1.1"),
        ("source", "http", "trace.log.enabled", "False", "true"),
        ("source", "kafka", "seq.enabled", "false", "true"),
        ("source", "file", "buffer.size", "65536", "100"),
        ("source", "file", "skip.trailer", "false", "true"),
        ("source", "file", "cron.expression", "", "*/5 * * * * ?"),
        ("source", "cdc", "wait.on.missed.record", "false", "true"),
        ("source", "cdc", "pool.properties", "", "maximumPoolSize:1"),
        ("sink", "http", "hostname.verification.enabled", "true", "false"),
        ("sink", "http", "executor.service.threads", "20", "5"),
        ("sink", "http", "proxy.host", "", "proxy"),
        ("sink", "kafka", "is.synchronous", "true", None),
        ("sink", "kafka", "sequence.id", "null", "x"),
        ("sink", "prometheus", "grouping.key", "", "a:b"),
        ("sink", "file", "file.system.options", "", "ignoreUnknownContentEncoding"),
    ],
)
def test_an_option_that_is_off_is_no_gap(end: str, type_: str, option: str, value: str, other: str | None) -> None:
    assert found(end, type_, f"{option}='{value}'") == []
    if other is not None:
        assert found(end, type_, f"{option}='{other}'") == [f"'{option}' of a {end} of type '{type_}'"]
