"""Sinks of type http, against a real server on this machine."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.running.undelivered import FaultStreams
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.sinks.http_client import HttpServer
from sparkstream_nb.sinks.oauth import OAuthPlace, TokenSource
from sparkstream_nb.sinks.position import count_unsent
from tests.app.views.test_scalable import java_place
from tests.apps.oauth_server import oauth_server
from tests.apps.receiver import receiver
from tests.sinks.test_sinks import app_with, send

SINGLE = "@map(type='json', event.grouping.enabled='false')"
"""A message for each event."""


def http_sink(url: str, more: str = "", mapping: str = SINGLE) -> str:
    return f"@sink(type='http', publisher.url='{url}', {more} {mapping})"


def values(bodies: list[bytes]) -> list[int]:
    return [json.loads(b)["event"]["v"] for b in bodies]


def test_events_are_posted(run: Callable[..., App]) -> None:
    headers = """headers="'X-Kind:alert','X-Key:{{k}}'", method='PUT',"""
    with receiver() as server:
        app = run(app_with(http_sink(f"{server.url}/in?a=1", headers)), allow=[f"http={server.url}/in"])
        send(app, 1, 3)
        app.flush()
        assert app.drain() == 0
        assert [json.loads(b) for b in server.taken] == [{"event": {"k": f"k{i}", "v": i}} for i in (1, 2, 3)]
        first = server.requests[0]
        assert (first.method, first.path) == ("PUT", "/in?a=1")
        assert first.headers["Content-Type"] == "application/json"
        assert first.headers["X-Kind"] == "alert"
        assert [r.headers["X-Key"] for r in server.requests] == ["k1", "k2", "k3"]
        assert len({r.headers["Idempotency-Key"] for r in server.requests}) == 3
        (figures,) = app.stats().sinks
        assert (figures.sent, figures.pending, figures.last_error) == (3, 0, None)
        assert figures.target == f"{server.url}/in"
        assert "at least once" in str(app.explain())
        assert "Alerts-http-1" in text(app.stats())
        assert "Alerts-http-1" in html(app.stats())


def test_events_of_a_step_are_one_request(run: Callable[..., App]) -> None:
    """Those with other headers are in another one; each event that is refused with its message is an error."""
    grouped = "@map(type='json', @payload('{{v}}'))"
    with receiver(lambda n, body: 400 if b"2" in body else 200) as server:
        sink = http_sink(server.url, """headers="'X-Key:{{k}}'", on.error='STORE',""", grouped)
        app = run(app_with(sink), allow=[f"http={server.url}"])
        app.send("S", [["a", 1], ["b", 2], ["a", 3], ["b", 4]])
        app.send("S", ["a", 5])
        assert app.drain(60) == 0
        assert [(r.headers["X-Key"], r.body) for r in server.requests] == [
            ("a", b"[1,\n3]"),
            ("b", b"[2,\n4]"),
            ("a", b"5"),
        ]
        assert app.errors.frame["values"].tolist() == [["b", 2], ["b", 4]]
        (figures,) = app.stats().sinks
        assert (figures.sent, figures.failed) == (3, 2)


def test_a_value_is_one_header_and_a_form_is_one(run: Callable[..., App]) -> None:
    with receiver() as server:
        form = http_sink(
            server.url, """headers="'X-Key:{{k}}'",""", "@map(type='keyvalue', @payload(a='{{k}}', b='v'))"
        )
        app = run(app_with(form), allow=[f"http={server.url}"])
        app.send("S", ["x','X-Evil:1", 1])
        assert app.drain(60) == 0
        (request,) = server.requests
        assert request.headers["X-Key"] == "x','X-Evil:1"
        assert "X-Evil" not in request.headers
        assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
        assert request.body == b"a=x%27%2C%27X-Evil%3A1&b=1"


def test_a_server_that_fails_for_a_while(run: Callable[..., App]) -> None:
    with receiver(lambda n, body: 500 if n < 3 else 200) as server:
        app = run(app_with(http_sink(server.url)), allow=[f"http={server.url}"])
        send(app, 1, 5)
        app.flush()
        assert app.drain(60) == 0
        assert values(server.taken) == [1, 2, 3, 4, 5]
        assert [r.status for r in server.requests] == [500, 500, 500, 200, 200, 200, 200, 200]
        assert len({r.headers["Idempotency-Key"] for r in server.requests[:4]}) == 1
        assert any("the server answered 500" in line and "tried again" in line for line in app.logs)


def test_a_slow_server_does_not_stop_the_app(run: Callable[..., App]) -> None:
    go = threading.Event()
    with receiver(lambda n, body: 200 if go.wait(60) else 500) as server:
        app = run(app_with(http_sink(server.url, "socket.idle.timeout='60000',")), allow=[f"http={server.url}"])
        send(app, 1, 3)
        app.flush()
        assert len(app.output("Alerts")) == 3
        assert app.stats().sinks[0].pending == 3
        assert app.drain(0) == 3
        go.set()
        assert app.drain(60) == 0
        assert values(server.taken) == [1, 2, 3]


def test_a_server_that_comes_later(run: Callable[..., App]) -> None:
    """What was put out meanwhile is sent by the next deployment."""
    with receiver() as server:
        url = server.url
    sink = app_with(http_sink(url))
    app = run(sink, allow=[f"http={url}"])
    send(app, 1, 2)
    app.flush()
    app.stop()
    assert app.stats().sinks[0].pending == 2
    assert count_unsent(app.runtime.app_run.folder(app.home)) == 2
    with receiver(port=int(url.rpartition(":")[2])) as server:
        app = run(sink, allow=[f"http={url}"])
        assert app.redeployed is not None
        assert app.drain(60) == 0
        assert values(server.taken) == [1, 2]
        assert app.stats().sinks[0].sent == 2
    send(app, 3, 1)
    app.flush()
    app = run(app_with("", "from S[v > 7] select k, v insert into Alerts;"))
    assert (app.redeployed or "").endswith("sinks had not sent are there too (1), and will not be sent.")


@pytest.mark.parametrize("more", ["", "follow.redirect='true',"])
def test_what_a_server_refuses_is_logged(run: Callable[..., App], more: str) -> None:
    with receiver(lambda n, body: 404 if n == 1 else 302 if n == 2 else 200) as server:
        app = run(app_with(http_sink(server.url, more)), allow=[f"http={server.url}"])
        send(app, 1, 4)
        app.flush()
        assert app.drain() == 0
        assert values(server.taken) == [1, 4]
        (figures,) = app.stats().sinks
        assert (figures.sent, figures.failed) == (2, 2)
        assert figures.last_error is not None
        said = "\n".join(app.logs)
        assert "['k2', 2], was not delivered: the server answered 404" in said
        assert "302" in said
        assert "redirects are not followed" in said
        assert len(app.errors) == 0


def test_what_a_server_refuses_is_stored_and_replayed(run: Callable[..., App]) -> None:
    with receiver(lambda n, body: 400 if n == 1 else 200) as server:
        app = run(app_with(http_sink(server.url, "on.error='STORE',")), allow=[f"http={server.url}"])
        send(app, 1, 3)
        app.flush()
        assert app.drain() == 0
        (error,) = app.errors.frame.itertuples()
        assert error.stream == "Alerts"
        assert error.values == ["k2", 2]
        assert "sink Alerts-http-1: the server answered 400" in error.reason
        assert app.stats().errors == 1
        assert app.replay().sent == 1
        app.flush()
        assert app.drain() == 0
        assert values(server.taken) == [1, 3, 2]
        assert len(app.errors) == 0


def test_line_breaks_in_values_do_not_reach_headers(run: Callable[..., App]) -> None:
    with receiver() as server:
        sink = http_sink(server.url, """headers="'X-Key:{{k}}'",""")
        app = run(app_with(sink), allow=[f"http={server.url}"])
        app.send("S", [["a\r\nX-Evil: 1", 1], ["fine", 2], ["also ü", 3], ["no €", 4], ["a\nb", 5]])
        app.flush()
        assert app.drain() == 0
        assert values(server.taken) == [2, 3]
        assert all("X-Evil" not in r.headers for r in server.requests)
        assert app.stats().sinks[0].failed == 3


def test_a_value_writes_one_cookie(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONE_OF_IT", "")  # a cookie has to have a reference
    with receiver() as server:
        app = run(app_with(http_sink(server.url, """headers="'Cookie:k={{k}}${env:NONE_OF_IT}'",""")),
                  allow=[f"http={server.url}"], allow_env=["NONE_OF_IT"])  # fmt: skip
        app.send("S", [["a; admin=1", 1], ["fine", 2]])
        app.flush()
        assert app.drain() == 0
        assert [r.headers["Cookie"] for r in server.requests] == ["k=fine"]
        assert app.stats().sinks[0].failed == 1


def test_numbers_that_json_lacks(run: Callable[..., App]) -> None:
    with receiver() as server:
        text = f"define stream S (v double);\n{http_sink(server.url)}\ndefine stream O (v double);\n"
        app = run(text + "from S select v insert into O;", allow=[f"http={server.url}"])
        app.send("S", [[1.5], [float("inf")], [1e10], [None]])
        app.flush()
        assert app.drain() == 0
        assert values(server.taken) == [1.5, 1e10, "undefined"]
        assert "JSON has no inf" in (app.stats().sinks[0].last_error or "")


FAULTS = "from !Alerts select k, v, _error insert into Failed;"


def with_faults(sink: str, action: str = "STREAM") -> str:
    return app_with(f"@OnError(action='{action}') {sink}", f"from S select k, v insert into Alerts;\n{FAULTS}")


@pytest.mark.parametrize("nodes", [1, 3])
def test_what_a_server_refuses_goes_to_the_fault_stream(
    run: Callable[..., App], monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    """Each event once, at its time, on its node, though the sink does it again."""
    failed = [0]
    send_fault = FaultStreams.__call__

    def cut_off(self: FaultStreams, *arguments: Any) -> bool:
        assert send_fault(self, *arguments)
        failed[0] += 1
        if failed[0] % 2:
            raise OSError("cut off before the sink's position is kept")
        return True

    monkeypatch.setattr(FaultStreams, "__call__", cut_off)
    with receiver(lambda n, body: 400 if b'"v":2' in body or b'"v":5' in body else 200) as server:
        text = with_faults(http_sink(server.url, "on.error='STREAM',"))
        app = run(text, allow=[f"http={server.url}"], nodes=nodes, routing="hash:k" if nodes > 1 else "round_robin")
        for i in range(1, 7):
            app.send("S", [f"k{i}", i], at=1_000 * i)
        assert app.drain(60) == 0
        app.flush()
        found, alerts = app.output("Failed").frame, app.output("Alerts").frame
        assert sorted(zip(found["k"], found["v"], strict=True)) == [("k2", 2), ("k5", 5)]
        assert {e.split(": ", 1)[1] for e in found["_error"].astype(str)} == {"the server answered 400 Bad Request"}
        both = found.merge(alerts, on="v")
        assert (both["timestamp_x"] == both["timestamp_y"]).all()
        assert (both["node_x"] == both["node_y"]).all()
        assert failed[0] >= 4
        stats = app.stats()
        assert [(f.sent, f.failed) for f in stats.sinks] == [(4, 2)]
        assert (stats.events, stats.came, stats.lag) == (6, {"S": 6}, 0), "an event that comes in again is no input"
        assert stats.recent[-1].arrived == stats.recent[-1].committed == 6
        assert len(app.errors) == 0


def test_on_error_stream_is_what_the_stream_says(run: Callable[..., App]) -> None:
    """As in Siddhi: a stream that stores its errors stores this one, one without `@OnError` logs it."""
    with receiver(lambda n, body: 400) as server:
        sink = http_sink(server.url, "on.error='STREAM',")
        app = run(with_faults(sink, "STORE").replace(FAULTS, ""), allow=[f"http={server.url}"])
        send(app, 1, 1)
        assert app.drain(60) == 0
        assert app.stats().errors == 1
        app = run(app_with(sink), allow=[f"http={server.url}"], fresh=True)
        send(app, 1, 1)
        assert app.drain(60) == 0
        assert any("was not delivered: the server answered 400" in line for line in app.logs)
        with pytest.raises(SparkStreamError, match=r"mode ha has no on\.error='STREAM' of a sink of type 'http'"):
            run(with_faults(sink), allow=[f"http={server.url}"], mode="ha", fresh=True)


REFUSED = [
    (
        "http://other.example/in",
        "",
        "posts to http://other.example, which is not allowed. Add --allow http=http://other.example",
    ),
    ("http://127.0.0.1.evil/in", "", "is not allowed"),
    ("http://127.0.0.1:99@evil/in", "", "has a user in front of its host"),
    ("http://127.0.0.1/in/../out", "", "'.', '..' or an encoded separator"),
    ("ftp://127.0.0.1/in", "", "not an address such as"),
    ("http://${sec:host}/in", "", "cannot be a reference"),
    ("http://127.0.0.1/in/{{k}}", "", "'publisher.url' that depends on the event"),
    ("http://127.0.0.1/in", "headers=\"'Host:evil'\",", "the header Host is not an app's to set"),
    ("http://127.0.0.1/in", "headers=\"'X y:1'\",", "write headers="),
    ("http://127.0.0.1/in", "headers=\"'Authorization:Bearer abc'\",", "the header Authorization holds a secret"),
    ("http://127.0.0.1/in", 'headers="""\'X-A:1\nX-Evil:2\'""",', "header X-A has a line break"),
    ("http://127.0.0.1/in", "basic.auth.username='me',", "go together"),
    (
        "http://127.0.0.1/in",
        "basic.auth.username='me', basic.auth.password='open',",
        "does not belong into the app's text",
    ),
    ("http://127.0.0.1/in", "basic.auth.username='me', basic.auth.password='${sec:nobody.has}',", "has no value"),
    ("http://127.0.0.1/in", "method='BREW',", "method is one of"),
    ("http://127.0.0.1/in", "socket.idle.timeout='0',", "of @sink(type='http') is a whole number from 1 to"),
    ("http://127.0.0.1/in", "proxy.host='evil',", "'proxy.host' of a sink of type 'http'"),
    ("https://127.0.0.1/in", "ssl.verification.disabled='true',", "'ssl.verification.disabled' of a sink"),
    (
        "http://127.0.0.1/in",
        "ssl.verification.disabled='true', token.url='https://127.0.0.1/token',",
        "'ssl.verification.disabled' of a sink",
    ),
]


@pytest.mark.parametrize(("url", "more", "message"), REFUSED)
def test_sinks_that_are_refused(run: Callable[..., App], url: str, more: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(http_sink(url, more)), allow=["http=http://127.0.0.1/in"])
    assert message in str(raised.value)
    assert str(raised.value).startswith("line 2, ")
    assert "open" not in str(raised.value).replace("opened", "")


def test_a_header_line_is_for_files(run: Callable[..., App]) -> None:
    sink = http_sink("http://127.0.0.1/in", mapping="@map(type='csv', header='true')")
    with pytest.raises(SparkStreamError, match="header='true' of mapping 'csv' of a sink of type 'http'"):
        run(app_with(sink), allow=["http=http://127.0.0.1/in"])


def test_secrets_come_from_outside(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERTS_PASSWORD", "sesame")
    login = "basic.auth.username='me', basic.auth.password='${sec:alerts.password}', ssl.verification.disabled='true',"
    with receiver() as server:
        app = run(app_with(http_sink(server.url, login)), allow=[f"http={server.url}"], allow_env=["ALERTS_PASSWORD"])
        send(app, 1, 1)
        app.flush()
        assert app.drain() == 0
        assert server.requests[0].headers["Authorization"] == "Basic bWU6c2VzYW1l"
        for shown in (str(app.explain()), text(app.stats()), repr(app.deployment), repr(app.stats().sinks)):
            assert "sesame" not in shown
            assert "bWU6c2VzYW1l" not in shown
        for file in app.home.rglob("*"):
            if file.is_file():
                assert b"sesame" not in file.read_bytes()


def distributed(strategy: str, *urls: str) -> str:
    places = ", ".join(f"@destination(publisher.url='{u}')" for u in urls)
    return f"@sink(type='http', {SINGLE}, @distribution(strategy={strategy}, {places}))"


def test_partitioned_broadcast_and_in_turn(run: Callable[..., App]) -> None:
    with receiver() as a, receiver() as b, receiver() as c:
        allow = [f"http={s.url}" for s in (a, b, c)]
        sinks = (
            distributed("'partitioned', partitionKey='k'", f"{a.url}/p", f"{b.url}/p", f"{c.url}/p")
            + distributed("'broadcast'", f"{a.url}/b", f"{b.url}/b")
            + distributed("'roundRobin'", f"{a.url}/r", f"{b.url}/r", f"{c.url}/r")
        )
        app = run(app_with(sinks), allow=allow)
        send(app, 1, 9)
        app.flush()
        assert app.drain(60) == 0

        def got(path: str) -> list[list[int]]:
            return [values([r.body for r in s.requests if r.path == path]) for s in (a, b, c)]

        places = {i: java_place(f"k{i}", 3) for i in range(1, 10)}
        assert got("/p") == [[i for i in range(1, 10) if places[i] == n] for n in range(3)]
        assert got("/b") == [list(range(1, 10)), list(range(1, 10)), []]
        assert got("/r") == [[1, 4, 7], [2, 5, 8], [3, 6, 9]]


def test_destinations_that_are_away(run: Callable[..., App]) -> None:
    """Those that take turns pass one over that is away; a partitioned one keeps its events for it."""
    with receiver() as gone:
        away = gone.url
    port = int(away.rpartition(":")[2])
    with receiver() as a:
        sinks = distributed("'roundRobin'", f"{away}/r", f"{a.url}/r") + distributed(
            "'partitioned', partitionKey='k'", f"{away}/p", f"{a.url}/p"
        )
        app = run(app_with(sinks), allow=[f"http={away}", f"http={a.url}"])
        send(app, 1, 6)
        app.flush()
        own = [i for i in range(1, 7) if java_place(f"k{i}", 2) == 1]
        a.wait_for(6 + len(own))
        assert values([r.body for r in a.requests if r.path == "/r"]) == [1, 2, 3, 4, 5, 6]
        assert values([r.body for r in a.requests if r.path == "/p"]) == own
        with receiver(port=port) as back:
            assert app.drain(60) == 0
            assert values(back.taken) == [i for i in range(1, 7) if i not in own]


def test_scalable_keeps_its_layer(run: Callable[..., App]) -> None:
    """In mode scalable the distribution of an input stream is the layer; that of an output stream publishes."""
    with receiver() as a, receiver() as b:
        places = "@destination(publisher.url='http://ip1'), @destination(publisher.url='http://ip2')"
        layer = (
            "@sink(type='http', @map(type='json'), "
            f"@distribution(strategy='partitioned', partitionKey='k', {places}))\n"
        )
        sink = distributed("'broadcast'", a.url, b.url)
        app = run(layer + app_with(sink), mode="scalable", allow=[f"http={a.url}", f"http={b.url}"])
        send(app, 1, 4)
        app.flush()
        assert app.drain(60) == 0
        assert sorted(values(a.taken)) == sorted(values(b.taken)) == [1, 2, 3, 4]


CLIENT = "consumer.key='me', consumer.secret='${env:CLIENT_SECRET}',"
IN_BODY = "body.consumer.key='me', body.consumer.secret='${env:CLIENT_SECRET}',"
USER = "oauth.username='anna', oauth.password='${env:USER_PASSWORD}',"
REFRESH = "refresh.token='${env:REFRESH_TOKEN}',"
SECRETS = {"CLIENT_SECRET": "client-geheim", "USER_PASSWORD": "user geheim&", "REFRESH_TOKEN": "refresh-geheim"}


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return list(SECRETS)


GRANTS_OF_TOKENS = [
    (CLIENT, [{"grant_type": "client_credentials"}]),
    (CLIENT + "oauth.scope='read write',", [{"grant_type": "client_credentials", "scope": "read write"}]),
    (IN_BODY, [{"grant_type": "client_credentials", "client_id": "me", "client_secret": "client-geheim"}]),
    (CLIENT + USER, [{"grant_type": "password", "username": "anna", "password": "user geheim&"}]),
    (CLIENT + REFRESH, [{"grant_type": "refresh_token", "refresh_token": "refresh-geheim"}]),
    (CLIENT + REFRESH + USER, [{"grant_type": "refresh_token", "refresh_token": "refresh-geheim"}]),
]


@pytest.mark.parametrize(("options", "asked"), GRANTS_OF_TOKENS)
def test_access_tokens(
    run: Callable[..., App], secrets: list[str], options: str, asked: list[dict[str, str]]
) -> None:
    with oauth_server() as tokens, receiver() as server:
        sink = http_sink(server.url, f"token.url='{tokens.url}/token?x=1', {options}")
        app = run(app_with(sink), allow=[f"http={server.url}", f"http={tokens.url}/token"], allow_env=secrets)
        send(app, 1, 3)
        app.flush()
        assert app.drain(60) == 0
        assert [r.headers["Authorization"] for r in server.requests] == ["Bearer token-1"] * 3
        assert [r.form for r in tokens.requests] == asked
        assert {r.path for r in tokens.requests} == {"/token?x=1"}
        login = base64.b64encode(b"me:client-geheim").decode()
        expected = None if "body" in options else f"Basic {login}"
        assert [r.headers.get("Authorization") for r in tokens.requests] == [expected]
        shown = [str(app.explain()), text(app.stats()), repr(app.deployment), str(app.logs)]
        kept = b"".join(f.read_bytes() for f in app.home.rglob("*") if f.is_file())
        for secret in (*SECRETS.values(), login, "token-1"):
            assert all(secret not in s for s in shown)
            assert secret.encode() not in kept


def test_an_access_token_that_is_not_taken_any_more(run: Callable[..., App], secrets: list[str]) -> None:
    """Another one is asked for, with the refresh token that came with the former, or else as at first."""
    with (
        oauth_server(refreshes=True, refused={"refresh-2"}) as tokens,
        receiver(lambda n, _: 401 if n in (1, 3) else 200) as server,
    ):
        sink = http_sink(server.url, f"token.url='{tokens.url}/token', {CLIENT}{USER}")
        app = run(app_with(sink), allow=[f"http={server.url}", f"http={tokens.url}"], allow_env=secrets)
        send(app, 1, 3)
        app.flush()
        assert app.drain(60) == 0
        assert values(server.taken) == [1, 2, 3]
        used = [r.headers["Authorization"].removeprefix("Bearer ") for r in server.requests]
        assert used == ["token-1", "token-1", "token-2", "token-2", "token-3"]
        kinds = [(r.form["grant_type"], r.form.get("refresh_token")) for r in tokens.requests]
        refreshed = [("refresh_token", "refresh-1"), ("refresh_token", "refresh-2")]
        assert kinds == [("password", None), *refreshed, ("password", None)]


def test_a_token_server_that_is_away_or_refuses(run: Callable[..., App], secrets: list[str]) -> None:
    with oauth_server(fails=2) as tokens, receiver() as server:
        sink = http_sink(server.url, f"token.url='{tokens.url}/token', {CLIENT}")
        app = run(app_with(sink), allow=[f"http={server.url}", f"http={tokens.url}"], allow_env=secrets)
        send(app, 1, 1)
        app.flush()
        assert app.drain(60) == 0
        assert values(server.taken) == [1]
        assert any("answered 401" in line and "(invalid_client)" in line and "tried again" in line for line in app.logs)


def test_a_token_is_renewed_before_it_ends() -> None:
    clock = [0.0]
    with oauth_server(lasts=100) as tokens:
        port = int(tokens.url.rpartition(":")[2])
        source = TokenSource(OAuthPlace(HttpServer("http", "127.0.0.1", port), "/token", ("a", "b")), lambda: clock[0])
        found = []
        for clock[0] in (0.0, 69.0, 71.0, 140.0, 142.0):
            found.append(source.token())
        assert found == ["token-1", "token-1", "token-2", "token-2", "token-3"]
        source.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{CLIENT}", "need a token.url"),
        ("token.url='http://127.0.0.1/in/token',", "token.url needs consumer.key"),
        (f"token.url='http://127.0.0.1/out', {CLIENT}", "access tokens at http://127.0.0.1, which is not allowed"),
        ("token.url='http://127.0.0.1/in', consumer.key='me',", "go together"),
        ("token.url='http://127.0.0.1/in', consumer.key='me', consumer.secret='geheim',", "does not belong into the"),
        ("token.url='http://127.0.0.1/in', oauth.username='me', oauth.password='geheim',", "does not belong into the"),
        (f"token.url='http://127.0.0.1/in', {CLIENT} refresh.token='geheim',", "does not belong into the app's text"),
        (f"token.url='http://127.0.0.1/in', {CLIENT} basic.auth.username='a', basic.auth.password='${{env:B}}',",
         "do not go together"),
    ],
)  # fmt: skip
def test_tokens_that_are_refused(run: Callable[..., App], secrets: list[str], options: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(http_sink("http://127.0.0.1/in", options)), allow=["http=http://127.0.0.1/in"], allow_env=secrets)
    assert message in str(raised.value)
    assert "geheim" not in str(raised.value)
