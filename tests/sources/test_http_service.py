"""Sources of type http-service and the sinks that answer their requests, with real requests."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.connections.service_requests import ServiceRequests, ServiceResponse
from sparkstream_nb.errors import SparkStreamError
from tests.apps.waiting import until
from tests.servers import free_port

NEW, FORMER = ("http-service", "http-service-response"), ("http-request", "http-response")


def service_app(port: int, names: tuple[str, str] = NEW, timeout: int = 60_000) -> str:
    return f"""
    @source(type='{names[0]}', source.id='adder', receiver.url='http://localhost:{port}/add',
            connection.timeout='{timeout}', basic.auth.enabled='false',
            @map(type='json', @attributes(messageId='trp:messageId', a='$.event.a', b='$.event.b')))
    define stream Adds (messageId string, a long, b long);
    @sink(type='{names[1]}', source.id='adder', message.id='{{{{messageId}}}}', on.error='STORE',
          headers="'X-Sum:{{{{total}}}}','X-App:adder'", @map(type='json'))
    define stream Sums (messageId string, total long);
    from Adds[a >= 0] select messageId, a + b as total insert into Sums;
    """


@dataclass
class Client:
    port: int
    token: str

    def post(self, event: Any) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers of the answer."""
        url, head = f"http://localhost:{self.port}/add", {"Authorization": f"Bearer {self.token}", "messageId": "mine"}
        body = event if isinstance(event, bytes) else json.dumps({"event": event}).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=120) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), dict(error.headers)


@dataclass
class Service:
    """An app with its client, and what deploys it again."""

    run: Callable[..., App]
    home: Path
    port: int = field(default_factory=free_port)

    def start(self, text: str, **arguments: Any) -> tuple[App, Client]:
        app = self.run(text, allow=[f"http=http://localhost:{self.port}/add"], **arguments)
        (token,) = (self.home / "sources").glob("*.token")
        return app, Client(self.port, token.read_text().strip())


@pytest.fixture
def service(run: Callable[..., App], tmp_path: Path) -> Service:
    return Service(run, tmp_path / "home")


@pytest.mark.contract
@pytest.mark.parametrize("names", [NEW, FORMER])
def test_requests_are_answered_by_their_events(service: Service, names: tuple[str, str]) -> None:
    app, client = service.start(service_app(service.port, names))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda a: client.post({"a": a, "b": 100}), range(24)))
    for a, (status, body, headers) in enumerate(answers):
        event = json.loads(body)["event"]
        assert (status, event["total"], headers["X-Sum"]) == (200, a + 100, str(a + 100))
        assert (headers["X-App"], headers["Content-Type"]) == ("adder", "application/json")
        assert event["messageId"] != "mine"
    assert client.post(b"{")[0] == 400
    assert app.drain(60) == 0
    (source,), (sink,) = app.stats().sources, app.stats().sinks
    assert (source.name, source.events) == (f"Adds-{names[0]}-1", 24)
    assert (sink.sent, sink.failed, sink.promise) == (24, 0, "once, after the commit, while the request waits")


def test_a_request_that_no_event_answers_is_answered_with_504(service: Service) -> None:
    app, client = service.start(service_app(service.port, timeout=300))
    status, text, _ = client.post({"a": -1, "b": 1})
    assert (status, text) == (504, "the app did not respond within 0.3 s\n")
    app.send("Sums", ["no-such-request", 7])
    app.flush()
    assert app.drain(60) == 0
    (sink,) = app.stats().sinks
    assert (sink.sent, sink.failed) == (0, 1)
    assert app.errors.frame["values"].tolist() == [["no-such-request", 7]]
    assert "no request to adder waits with the id 'no-such-request'" in app.errors.frame["reason"].tolist()[0]


def test_a_restart_forgets_the_requests(service: Service) -> None:
    text = service_app(service.port).replace("from Adds", "from Adds#window.delay(1 hour)")
    app, client = service.start(text)
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.append(client.post({"a": 1, "b": 2})[0]))
    waiting.start()
    until(app, lambda: app.stats().sources[0].events == 1)
    app.stop()
    waiting.join(60)
    assert answers == [503]
    again, client = service.start(service_app(service.port))
    assert client.post({"a": 1, "b": 2})[0] == 200
    assert (again.stats().sinks[0].sent, again.stats().sinks[0].failed) == (1, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("source.id='adder', receiver", "receiver", "a source of type 'http-service' has no 'source.id'"),
        ("source.id='adder', message", "message", "a sink of type 'http-service-response' has no 'source.id'"),
        ("source.id='adder', message", "source.id='x', message", "no source of type 'http-service' has source.id='x'"),
        ("message.id='{{messageId}}'", "message.id='7'", "message.id names an attribute, as '{{messageId}}', not '7'"),
        ("connection.timeout='60000'", "connection.timeout='0'", "'connection.timeout'"),
        ("on.error='STORE'", "on.error='WAIT'", "a request that waits no more never will"),
        ("'X-App:adder'", "'Content-Length:9'", "the header Content-Length is not an app's to set"),
        ("basic.auth.enabled='false'", "ssl.verify.client='require'", "'ssl.verify.client' of a source of type 'http-"),
        ("from Adds", "from Adds", "Add --allow http=http://localhost"),
    ],
)
def test_what_is_refused(run: Callable[..., App], old: str, new: str, message: str) -> None:
    text = service_app(8006)
    assert old in text
    with pytest.raises(SparkStreamError) as raised:
        run(text.replace(old, new), allow=["http=http://localhost:8006/add"] if old != new else [])
    assert message in str(raised.value)


def test_a_source_without_answers_and_mode_distributed(run: Callable[..., App]) -> None:
    text = service_app(8006)
    sink = text[text.index("@sink") : text.index("define stream Sums")]
    grants = {"allow": ["http=http://localhost:8006/add"]}
    with pytest.raises(SparkStreamError, match="has no answers: no sink of type 'http-service-response'"):
        run(text.replace(sink, ""), **grants)
    with pytest.raises(SparkStreamError, match="mode distributed has no"):
        run(text, mode="distributed", **grants)


def test_a_response_is_taken_once() -> None:
    requests = ServiceRequests()
    request, response = requests.add(), ServiceResponse(b"x", {})
    assert requests.respond(request.message_id, response)
    assert not requests.respond(request.message_id, response)
    assert requests.wait(request, 0.0, lambda: True) is response
    start = time.monotonic()
    assert requests.wait(requests.add(), 60.0, lambda: False) is None
    assert time.monotonic() - start < 30.0
