"""Sinks of type http-call and the sources of their responses, against a real service on this machine."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import flask
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.inbox import Inbox, Ticket
from tests.apps.flask_server import served
from tests.apps.waiting import rows, until


@dataclass
class Service:
    """Answers with the answer that a call asks for: `{"v": 200}` with 200."""

    url: str = ""
    calls: list[tuple[Any, str]] = field(default_factory=list)
    status: int | None = None
    """The status of all answers, where it is given."""


@pytest.fixture
def service() -> Iterator[Service]:
    found, app = Service(), flask.Flask(__name__)

    @app.post("/rates")
    def rates() -> Any:
        event = flask.request.get_json()["event"]
        found.calls.append((event, flask.request.headers["Idempotency-Key"]))
        answer = {"rate": event["v"] / 2, "big": "x" * (1 << 18)}
        return answer, found.status or event["v"], {"X-Served": f"by {event['k']}"}

    with served(app) as url:
        found.url = f"{url}/rates"
        yield found


def call_app(url: str, kind: str = "call", code: str = r"http.status.code='2\d+',") -> str:
    response = {"call": "http-call-response", "request": "http-response"}[kind]
    return rf"""
    define stream S (k string, v int);
    @sink(type='http-{kind}', sink.id='rates', publisher.url='{url}', on.error='STORE', downloading.enabled='false',
          @map(type='json'))
    define stream Calls (k string, v int);
    @source(type='{response}', sink.id='rates', {code} allow.streaming.responses='false',
            @map(type='json', @attributes(k='trp:k', v='trp:v', rate='$.rate', served='trp:X-Served')))
    define stream Rates (k string, v int, rate double, served string);
    @source(type='{response}', sink.id='rates', http.status.code='4\\d\\d',
            @map(type='text', regex.A='(?s)(.*)', @attributes(k='trp:k', text='A[1]')))
    define stream Missing (k string, text string);
    from S select k, v insert into Calls;
    from Rates select k, v, rate, served insert into O;
    from Missing select k, text insert into M;
    """


@pytest.mark.parametrize("kind", ["call", "request"])
def test_a_call_and_its_response(run: Callable[..., App], service: Service, kind: str) -> None:
    app = run(call_app(service.url, kind), allow=[f"http={service.url}"])
    app.send("S", [["a", 200], ["b", 201], ["it's", 404], ["c", 202]])
    app.flush()
    assert app.drain(60) == 0
    app.flush()
    found = app.output("O").frame[["k", "v", "rate", "served"]].to_numpy().tolist()
    assert found == [["a", 200, 100.0, "by a"], ["b", 201, 100.5, "by b"], ["c", 202, 101.0, "by c"]]
    assert [json.loads(t)["rate"] for t in app.output("M").frame["text"]] == [202.0]
    assert app.output("M").frame["k"].tolist() == ["it's"]
    (figures,) = app.stats().sinks
    assert (figures.sent, figures.failed) == (4, 0)
    assert [(s.name, s.received) for s in app.stats().sources] == [
        (f"Rates-http-{'call-' if kind == 'call' else ''}response-1", 3),
        (f"Missing-http-{'call-' if kind == 'call' else ''}response-1", 1),
    ]
    assert app.catch_up(30)


def test_what_no_source_takes_is_as_of_an_http_sink(run: Callable[..., App], service: Service) -> None:
    app = run(call_app(service.url, code=""), allow=[f"http={service.url}"])
    app.send("S", [["a", 200], ["b", 201], ["c", 302], ["d", 404]])
    app.flush()
    assert app.drain(60) == 0
    app.flush()
    assert app.output("O").frame["k"].tolist() == ["a"]
    assert app.errors.frame["values"].tolist() == [["c", 302]]
    service.status = 503
    app.send("S", ["e", 200])
    app.flush()
    until(app, lambda: "503" in (app.stats().sinks[0].last_error or ""))
    service.status = None
    assert app.drain(60) == 0
    app.flush()
    assert app.output("O").frame["k"].tolist() == ["a", "e"]


def test_a_response_that_is_not_on_the_disk_is_asked_for_again(
    run: Callable[..., App], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = run(call_app(service.url), allow=[f"http={service.url}"])
    put, failures = app.runtime.inbox.put, [2]

    def failing(entries: Any) -> Ticket:
        if failures[0] and any(e.source for e in entries):
            failures[0] -= 1
            raise SparkStreamError("the inbox cannot be written to: No space left on device")
        return put(entries)

    monkeypatch.setattr(app.runtime.inbox, "put", failing)
    app.send("S", ["a", 200])
    app.flush()
    assert app.drain(60) == 0
    app.flush()
    assert rows(app, "O") == 1
    assert failures == [0]
    assert len({key for _, key in service.calls}) == 1
    assert isinstance(app.runtime.inbox, Inbox)


def test_calls_wait_for_a_start(run: Callable[..., App], service: Service) -> None:
    app = run(call_app(service.url), allow=[f"http={service.url}"])
    service.status = 503
    app.send("S", ["a", 200])
    app.flush()
    until(app, lambda: len(service.calls) > 0)
    app.stop()
    service.status = None
    again = run(call_app(service.url), allow=[f"http={service.url}"])
    assert again.drain(60) == 0
    again.flush()
    assert again.output("O").frame["k"].tolist() == ["a"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sink.id='rates', publisher", "publisher", "a sink of type 'http-call' has no 'sink.id'"),
        ("sink.id='rates', http.status.code='4", "http.status.code='4", "a source of type 'http-call-response' has no"),
        ("sink.id='rates', http.status.code='4", "sink.id='x', http.status.code='4", "no sink of type 'http-call' has"),
        (r"'4\\d\\d'", "'4('", "http.status.code is a status such as 200, or a pattern"),
        ("downloading.enabled='false'", "downloading.enabled='true'", "'downloading.enabled' of a sink of type 'http-"),
        ("trp:k'", "trp:k'", "is not allowed. Add --allow http=http://127.0.0.1"),
    ],
)
def test_what_is_refused(run: Callable[..., App], old: str, new: str, message: str) -> None:
    text = call_app("http://127.0.0.1/rates")
    assert old in text
    with pytest.raises(SparkStreamError) as raised:
        run(text.replace(old, new), allow=["http=http://127.0.0.1/rates"] if old != new else [])
    assert message in str(raised.value)
    with contextlib.suppress(SparkStreamError):
        run(text, mode="distributed", allow=["http=http://127.0.0.1/rates"])
        pytest.fail("mode distributed has no sources")
