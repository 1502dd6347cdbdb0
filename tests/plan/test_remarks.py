"""Remarks on an app: parts that are right and do less than they seem to."""

from __future__ import annotations

import pytest

from sparkstream_nb.app.audit.auditing import audit_text
from sparkstream_nb.app.audit.checking import check, explain
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.shard_safety.known_faults import known_faults

S = "define stream S (k string, n int);\n"
T = "define table T (k string, n int);\n"


@pytest.mark.parametrize(
    ("app", "note"),
    [
        (
            S + T + "from S join T#window.length(5) as t on S.k == t.k select S.k as k, t.n as n insert into O;",
            "'#window.length' of table 'T' (line 3) has no effect: a join reads all rows of a table",
        ),
        (
            S + "@From(eventtable='rdbms', datasource.name='D', table.name='T')\n" + T + "from S insert into T;",
            "@From of table 'T' (line 2) is of Siddhi 3 and has no effect, the table is in memory: "
            "a table in a database has @store(type='rdbms', ...) now",
        ),
        (
            f"{S}@info(name='q') from S#throughput:throughput(eventTimestamp(), 'both') select k insert into O;",
            "'#throughput:throughput' of query 'q' (line 2) passes events on, and writes no file: throughput and times "
            "of micro-batches are among the app's figures",
        ),
        (
            f"@Import('trades:1.0.0')\n{S}from S insert into O;",
            "@Import of stream 'S' (line 1) is of Siddhi 3 and has no effect: "
            "streams have @source(type='...', @map(type='...')) now",
        ),
        (
            f"@source(type='http', receiver.url='http://0.0.0.0:8006/S', @map(type='json'))\n{S}from S insert into O;",
            "http source of stream 'S' (line 1) is refused when it is deployed: it listens on this machine alone, "
            "http://localhost:8006/..., not http://0.0.0.0:8006",
        ),
        (
            f"@source(type='http', receiver.url='https://localhost:8006/S', @map(type='json'))\n{S}"
            "from S insert into O;",
            "http source of stream 'S' (line 1) is refused when it is deployed: it listens on this machine alone, "
            "http://localhost:PORT/PATH, not https://localhost:8006",
        ),
        (
            f"@sink(type='http', publisher.url='http://h/p', follow.redirect='true', @map(type='json'))\n{S}"
            "from S insert into O;",
            "http sink of stream 'S' (line 1) does not follow redirects: "
            "an event that a server redirects is an error of the sink",
        ),
        (
            f"@sink(type='nats', destination='t', cluster.id='c', @map(type='json'))\n{S}from S insert into O;",
            "nats sink of stream 'S' (line 1) uses core NATS, which keeps no messages: 'cluster.id' is of NATS "
            "Streaming, which is retired",
        ),
        (
            f"{S}partition with (k of S) begin\n"
            "@info(name='q') from S#window.timeBatch(1 sec) select k, sum(n) as s insert into O; end;",
            "'#window.timeBatch' of query 'q' (line 3) ends its batches at times that all keys of the partition share, "
            "as in Siddhi, so events of some keys may never come out: outside of a partition, 'group by' gives a batch "
            "of each key",
        ),
        (
            f"{S}partition with (k of S) begin\n"
            "@info(name='q') from S#window.expression('count() <= 2') select k, count() as c insert into O; end;",
            "'#window.expression' of query 'q' (line 3) has aggregates over the events of all keys of the partition, "
            "as in Siddhi",
        ),
    ],
)  # fmt: skip
def test_is_a_note_of_check_explain_and_audit(app: str, note: str) -> None:
    found = check(app)
    assert found.notes == (note,)
    assert not found.gaps
    assert check(app, lines_before=10).notes != (note,)
    assert str(explain(app)).endswith(f"note: {note}")
    assert audit_text("a.siddhi", app).notes == [note]


@pytest.mark.parametrize(
    "app",
    [
        S + T + "from S#window.length(5) join T as t on S.k == t.k select S.k as k, t.n as n insert into O;",
        f"@source(type='http', receiver.url='http://localhost:8006/S', @map(type='json'))\n{S}from S insert into O;",
        f"@source(type='http', receiver.url='http://127.0.0.1:8006/S', @map(type='json'))\n{S}from S insert into O;",
        f"@sink(type='http', publisher.url='http://h/p', follow.redirect='false', @map(type='json'))\n{S}"
        "from S insert into O;",
        f"{S}@Index('k')\n{T}from S insert into T;",
        f"{S}from S#window.timeBatch(1 sec) select k, sum(n) as s group by k insert into O;",
        f"{S}partition with (k of S) begin from S#window.time(1 sec) select k, sum(n) as s insert into O; end;",
        f"{S}partition with (k of S) begin\n"
        "from S#window.expression('last.n - first.n < 5') select k, sum(n) as s insert into O; end;",
    ],
)
def test_what_has_its_effect_has_no_note(app: str) -> None:
    found = check(app)
    assert (found.notes, found.gaps) == ((), "")


@pytest.mark.parametrize(
    ("window", "fails"), [("time(1 sec)", True), ("cron('* * * * * ?')", False), ("sort(2, n)", False)]
)
def test_a_window_of_a_table_that_fails_on_wso2s_servers_is_a_known_fault(window: str, fails: bool) -> None:
    app = f"{S}{T}from S join T#window.{window} as t on S.k == t.k select S.k as k insert into O;"
    plan = compile_app(app)
    assert bool(known_faults(plan)) is fails
    assert "without effect: all rows of the table are read" in str(explain(app))


@pytest.mark.parametrize("handler", ["[n > 1]", "#log('x')", "#window.length('x')", "#window.lenght(2)"])
def test_other_handlers_of_a_table_are_refused(handler: str) -> None:
    assert check(f"{S}{T}from S join T{handler} as t on S.k == t.k select S.k as k insert into O;").error is not None


HTTP = "publisher.url='http://a.example/x'"


@pytest.mark.parametrize(
    ("connector", "notes"),
    [
        (f"@sink(type='http', {HTTP}, basic.auth.enabled='false', @map(type='json'))", ["basic.auth.enabled: leave"]),
        (f"@sink(type='http', {HTTP}, methd='PUT', @map(type='json'))", ["methd: did you mean 'method'?"]),
        (f"@sink(type='http', {HTTP}, basic.auth.usernam='u', @map(type='json'))", ["basic.auth.usernam: did"]),
        (f"@sink(type='http', {HTTP}, @map(type='json', fail.on.missing.attribute='true'))", ["fail.on.missing.attr"]),
        (f"@sink(type='http', {HTTP}, @map(type='keyvalue', a='b'))", ["a: leave it out"]),
        (f"@sink(type='http', {HTTP}, method='PUT', @map(type='json'))", []),
        ("@source(type='inMemory', topic='t', @map(type='json', Fail.on.missing.attribute='true'))",
         ["Fail.on.missing.attribute: did you mean 'fail.on.missing.attribute'?"]),
        ("@source(type='tcp', @map(type='json', enclosingElementAsEvent='true'))", ["enclosingElementAsEvent: "]),
        ("@source(type='tcp', @map(type='json', enclosing.elment='$'))", ["did you mean 'enclosing.element'?"]),
        ("@source(type='tcp', @map(type='csv', fail.on.missing.attribute='true'))", ["fail.on.missing.attribute: "]),
        ("@source(type='tcp', @map(type='text', regexp.A='x'))", ["regexp.A: "]),
        ("@source(type='tcp', @map(type='keyvalue', separator=';'))", ["separator: leave it out"]),
        ("@source(type='tcp', @map(type='binary', delimiter=','))", ["delimiter: leave it out"]),
        ("@source(type='jms', factory.initial='x', destinatin='t', @map(type='json'))",
         ["destinatin: did you mean 'destination'?"]),
    ],
)  # fmt: skip
def test_an_option_that_wso2_ignores_is_a_note(connector: str, notes: list[str]) -> None:
    result = check(f"{connector}\n{S}from S select k insert into O;")
    assert result, result
    texts = [n.replace(" has no effect, as WSO2 ignores it", "") for n in result.notes if "WSO2 ignores it" in n]
    plain = [f"{n.split(chr(39))[1]}: {n.split(': ', 1)[1]}" for n in texts]
    assert len(plain) == len(notes)
    for note, start in zip(plain, notes, strict=True):
        assert start in note


def test_a_note_on_an_ignored_option_does_not_show_its_value() -> None:
    sink = f"@sink(type='http', {HTTP}, pasword='hunter2', @map(type='json'))"
    result = check(f"{sink}\n{S}from S select k insert into O;")
    assert result.notes
    assert "hunter2" not in str(result)


def test_an_option_of_wso2s_that_would_do_something_is_still_a_gap() -> None:
    result = check(f"@sink(type='http', {HTTP}, proxy.host='p', @map(type='json'))\n{S}from S select k insert into O;")
    assert "proxy.host" in str(result.gaps)


FEEDS_ITSELF = "from S join T on S.k == T.k select S.k as k, T.n as n insert into A;\n"


@pytest.mark.parametrize(
    ("queries", "way"),
    [
        (FEEDS_ITSELF + "from A#window.length(3) select k, n update or insert into T on T.k == k;",
         "'query1' → 'query2'"),
        (FEEDS_ITSELF + "from every e1=A -> e2=A select e1.k, e2.n insert into T;", "'query1' → 'query2'"),
        (FEEDS_ITSELF + "from A select k, n insert into B; from B select k, max(n) as n insert into T;",
         "'query1' → 'query2' → 'query3'"),
        # without state on the way, or without a way back
        (FEEDS_ITSELF + "from A select k, n + 1 as n update or insert into T set T.n = n on T.k == k;", None),
        ("from S[not (T.k == k in T)] select k, n insert into T;", None),
        ("from S#window.length(3) select k, n update or insert into T on T.k == k; " + FEEDS_ITSELF, None),
    ],
)  # fmt: skip
def test_tables_that_feed_themselves(queries: str, way: str | None) -> None:
    notes = [note for note in check(S + T + queries).notes if "feeds itself" in note]
    assert notes == ([] if way is None else [
        f"table 'T' (line 3) feeds itself through a query that keeps state ({way}): its events are processed one after "
        "the other, some hundreds a second. Without the way back they are processed many at a time"
    ])  # fmt: skip
