"""A manager over HTTP: what it answers, whom it lets in, what it refuses. All apps but one are in a stand-in."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb import app as cluster
from sparkstream_nb import cli
from sparkstream_nb.app.config.manager_conf import read_manager
from sparkstream_nb.app.config.secrets import References
from sparkstream_nb.app.manager.dashboard_page import PAGE_POLICY, dashboard_page
from sparkstream_nb.app.manager.manager import (
    MOST_BYTES,
    MOST_STATEMENTS,
    ClusterDeployer,
    Deployer,
    HostedApp,
    Manager,
    checked_app,
)
from sparkstream_nb.app.manager.manager_command import ManagerOptions, open_manager
from sparkstream_nb.app.manager.manager_http import Credentials, ListeningPlace, ManagerServer, address_of
from sparkstream_nb.app.results.answers import Stats
from sparkstream_nb.app.results.overview import AppOverview, NodeOverview
from sparkstream_nb.errors import Misuse, SparkStreamError, StoreError
from tests.app.results.test_prometheus import samples
from tests.app.results.test_prometheus import stats as figures
from tests.certificates import self_signed

ROOT = Path(__file__).parents[3]
CONF = ROOT / "conf" / "distributed" / "manager-1.yaml"
PASSWORD = "tr0ub4dor&3 ü"
APP = "@app:name('Rooms') define stream S (a string, b int); from S[b > 3] select a insert into O;"
DISTRIBUTED = """@app:name('Rooms')
define stream S (k string, v long);
@info(name='big') @dist(execGroup='make') from S[v > 1] select k, v insert into Big;
@dist(execGroup='sum', parallel='2') partition with (k of Big) begin
from Big#window.length(3) select k, sum(v) as s insert into O; end;
"""


@dataclass
class StandIn:
    """Runs no apps. `failure` is raised by the next deployment; `taken` are names that others use."""

    texts: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    failure: Exception | None = None
    stops_former: bool = False

    def deploy(self, text: str, name: str) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            if self.stops_former:
                self.texts.pop(name, None)
            raise failure
        self.texts[name] = text

    def names(self) -> Sequence[str]:
        return [*self.texts, *self.taken]

    def get(self, name: str) -> HostedApp:
        if name not in self.texts:
            raise Misuse(f"no app {name}")
        return HostedApp(self.states.get(name, "running"), {"Rooms-sum-1": "wso2-sp-worker-1"})

    def stats(self, name: str) -> Stats:
        if name not in self.texts:
            raise Misuse(f"no app {name}")
        return figures(name)

    def overview(self, name: str) -> AppOverview:
        if name not in self.texts:
            raise Misuse(f"no app {name}")
        nodes = (NodeOverview("wso2-sp-worker-1", "active", (f"{name}-<sum>-1",), 20),)
        return AppOverview(name, self.states.get(name, "running"), "distributed", events=20, nodes=nodes)

    def remove(self, name: str) -> None:
        del self.texts[name]


@dataclass
class Reply:
    status: int
    headers: Any
    body: Any


@dataclass
class Client:
    """Asks a manager, by default as its user."""

    server: ManagerServer
    apps: StandIn
    log: list[str]

    def ask(self, method: str, path: str = "", body: str | bytes | None = None, **headers: str) -> Reply:
        """`path` is below /siddhi-apps unless it begins with a slash. A header of "" is left out."""
        own = {"Authorization": basic("admin", PASSWORD)}
        if body is not None:
            own["Content-Type"] = "text/plain"
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=100)
        with contextlib.closing(connection):
            where = path if path.startswith("/") else f"/siddhi-apps{'/' if path else ''}{path}"
            sent = body.encode() if isinstance(body, str) else body
            connection.request(method, where, sent, {k: v for k, v in own.items() if v})
            answer = connection.getresponse()
            text = answer.read()
            if text and answer.headers["Content-Type"].startswith("application/json"):
                return Reply(answer.status, answer.headers, json.loads(text))
            return Reply(answer.status, answer.headers, text.decode() or None)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Client]]:
    """Starts a manager with the deployment file and options; it ends with the test."""
    monkeypatch.setenv("ADMIN_PASSWORD", PASSWORD)
    with contextlib.ExitStack() as stack:

        def start(deployer: Deployer | None = None, **options: Any) -> Client:
            apps, log = StandIn(), list[str]()
            how = {"conf": [str(CONF)], "port": 0, "allow_env": ["ADMIN_PASSWORD"], **options}
            server = open_manager(ManagerOptions(**how), deployer or apps, log.append)
            return Client(stack.enter_context(server), apps, log)

        yield start


@pytest.fixture
def client(serve: Callable[..., Client]) -> Client:
    return serve()


# --------------------------------------------------------------------------------------------------------------- apps


def test_an_app_is_deployed_listed_replaced_and_removed(client: Client) -> None:
    assert client.ask("GET").body == []
    made = client.ask("POST", body=APP)
    assert (made.status, made.headers["Location"]) == (201, "/siddhi-apps/Rooms")
    assert (made.body["type"], made.body["message"]) == ("success", "app 'Rooms' is deployed")
    again = client.ask("POST", body=APP.replace("3", "4"))
    assert (again.status, again.body["type"]) == (409, "conflict")
    assert client.apps.texts == {"Rooms": APP}
    replaced = client.ask("PUT", body=APP.replace("3", "4"))
    assert (replaced.status, replaced.body["message"]) == (200, "app 'Rooms' is replaced")
    assert client.ask("PUT", body=APP.replace("Rooms", "Halls")).status == 201
    assert client.ask("GET").body == ["Halls", "Rooms"]
    assert client.ask("GET", "Rooms").body["content"] == client.apps.texts["Rooms"] == APP.replace("3", "4")
    near = client.ask("GET", "Room")
    assert (near.status, near.body) == (
        404,
        {"type": "not found", "message": "no app is called 'Room'. Did you mean 'Rooms'?"},
    )
    assert client.ask("DELETE", "Rooms").status == 200
    assert client.ask("DELETE", "Rooms").status == 404
    assert list(client.apps.texts) == ["Halls"]
    assert [line.partition(": ")[2] for line in client.log[:2]] == [
        "POST /siddhi-apps: 201, app 'Rooms' is deployed",
        "POST /siddhi-apps: 409, there is an app 'Rooms' already: PUT replaces it, DELETE removes it",
    ]


def test_the_state_of_apps(client: Client) -> None:
    for name in ("A", "B"):
        assert client.ask("POST", body=APP.replace("Rooms", name)).status == 201
    client.apps.states["B"] = "failed"
    assert client.ask("GET", "?isActive=true").body == ["A"]
    assert client.ask("GET", "?isActive=false").body == ["B"]
    assert client.ask("GET", "B/status").body == {"status": "inactive"}
    assert client.ask("GET", "statistics").body == [
        {"appName": "A", "status": "active", "state": "running"},
        {"appName": "B", "status": "inactive", "state": "failed"},
    ]
    del client.apps.texts["A"]  # by hand
    assert client.ask("GET", "A").body["state"] == "stopped"


def test_metrics_of_all_apps(client: Client) -> None:
    assert client.ask("GET", "/metrics").body is None
    for name in ("A", "B"):
        assert client.ask("POST", body=APP.replace("Rooms", name)).status == 201
    found = client.ask("GET", "/metrics")
    assert (found.status, found.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert [s.labels["app"] for s in samples(found.body)["sparkstream_running"]] == ["A", "B"]
    refused = client.ask("GET", "/metrics", Authorization=basic("admin", "admin"))
    assert (refused.status, refused.body["type"]) == (401, "unauthorized")
    assert client.ask("DELETE", "/metrics").status == 405
    del client.apps.texts["A"]  # by hand
    left = samples(client.ask("GET", "/metrics").body)
    assert [s.labels["app"] for s in left["sparkstream_running"]] == ["B"]


def test_the_dashboard(client: Client) -> None:
    """The page is whole, shows each app, and takes nothing from elsewhere; it needs the login of the other paths."""
    for name in ("A", "B"):
        assert client.ask("POST", body=APP.replace("Rooms", name)).status == 201
    client.apps.states["B"] = "failed"
    for path in ("/", "/dashboard"):
        page = client.ask("GET", path)
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "2 apps: 1 failed, 1 running" in page.body
        assert "A-&lt;sum&gt;-1" in page.body
    assert not re.search(r"(src|href)=(?!\"data:)|https?://|@import|url\(", page.body)
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    part = client.ask("GET", "/dashboard?part=apps")
    assert part.body.startswith('<div class="sparkstream-overview">')
    # The memory of the process may differ between the two requests.
    apps, whole = (re.sub(r"memory [\d.]+ [A-Z]+", "memory", reply.body) for reply in (part, page))
    assert apps in whole
    del client.apps.texts["A"]  # by hand
    assert "1 failed, 1 stopped" in client.ask("GET", "/dashboard?part=apps").body
    for path in ("/", "/dashboard", "/dashboard?part=apps"):
        refused = client.ask("GET", path, Authorization=basic("admin", "admin"))
        assert (refused.status, refused.body["type"]) == (401, "unauthorized")
        assert client.ask("GET", path, Origin="https://elsewhere.example").status == 403
        assert client.ask("POST", path, body="x").status == 405


def test_the_style_and_the_script_of_the_dashboard_are_the_ones_that_are_named() -> None:
    """The browser refuses a style or script with another hash."""
    page = dashboard_page("")
    for tag, word in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{word} 'sha256-{digest}'" in PAGE_POLICY


def test_an_app_is_answered_with_its_groups_and_topics(client: Client) -> None:
    made = client.ask("POST", body=DISTRIBUTED).body
    assert made["groups"][1] == {
        "name": "Rooms-sum",
        "parallel": 2,
        "elements": made["groups"][1]["elements"],
        "reads": [{"stream": "Big", "strategy": "field grouping", "key": "k"}],
        "writes": [],
        "receiver": False,
        "instances": [{"name": "Rooms-sum-1", "node": "wso2-sp-worker-1"}, {"name": "Rooms-sum-2", "node": None}],
    }
    assert [t["name"] for t in made["topics"]] == ["Rooms.S", "Rooms.Big.k"]
    assert made["topics"][1]["partitions"] == 2
    found = client.ask("GET", "Rooms").body
    assert {k: found[k] for k in ("groups", "topics", "notes")} == {k: made[k] for k in ("groups", "topics", "notes")}


def test_passwords_are_not_shown_again(client: Client) -> None:
    lent = STORE.format("geheim").replace("jdbc.url='jdbc:sqlite:a.db'", "datasource='DB'")
    assert client.ask("POST", body=beside(lent)).status == 201
    assert "password='******'" in client.ask("GET", "Rooms").body["content"]


def test_a_wrong_app_is_told_as_check_tells_it(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = APP.replace(";", ";\n").replace("[b > 3]", "[bb > 3]")
    (tmp_path / "wrong.siddhi").write_text(wrong)
    assert cli.main(["check", str(tmp_path / "wrong.siddhi")]) == 1
    reply = client.ask("POST", body=wrong)
    assert (reply.status, reply.body["code"], reply.body["type"]) == (400, 800101, "validation error")
    told = capsys.readouterr().err.replace(f"{tmp_path / 'wrong.siddhi'}:2:9: ", "line 2, column 9: ")
    assert f"{reply.body['message']}\n" == told
    assert (reply.body["line"], reply.body["column"]) == (2, 9)
    assert client.apps.texts == {}


STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:a.db', password='{}') define table T (a string);"
SINK = "@sink(type='http', publisher.url='{}', @map(type='json')) define stream H (a string);"


def beside(definition: str) -> str:
    """The app, with a further definition."""
    return APP.replace("from S", f"{definition} from S")


REFUSED = [
    ("", "found the end"),
    (APP.replace("@app:name('Rooms')", ""), "the app has no name: begin it with @app:name('NAME')"),
    (APP.replace("Rooms", "../../Rooms"), "an app cannot be called '../../Rooms'"),
    (APP.replace("Rooms", "statistics"), "an app cannot be called 'statistics'"),
    (APP.replace("Rooms", "R" * 300), "the app's name has 1 to 235 characters, not 300"),
    (APP.replace("3", "${HOME}"), "the environment is not used"),
    (beside(STORE.format("${sec:admin.password}")), "cannot name secrets of its machine"),
    (beside(STORE.format("${env:HOME}")), "cannot name secrets of its machine"),
    (beside(STORE.format("")), "cannot name a database by its address"),
    (
        beside("define function f[javascript] return int { return 1; };"),
        "function 'f' is a script, and scripts are disabled",
    ),
    (beside("@sink(type='jms') define stream H (a string);"), "this build cannot run a sink of type 'jms'"),
    (beside(SINK.format("http://127.0.0.1:1/${sec:admin.password}")), "cannot publish outside"),
    (DISTRIBUTED.replace("'make'", "'sum'"), "execGroup 'sum' has parallel 1 before, and 2 here"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_an_app_may_not_do(client: Client, text: str, message: str) -> None:
    reply = client.ask("POST", body=text)
    assert (reply.status, reply.body["type"]) == (400, "validation error")
    assert message in reply.body["message"]
    assert ("line" not in reply.body) or "^" in reply.body["message"] or not text
    assert client.apps.texts == {}


def test_a_password_of_the_deployment_files_stays_with_their_addresses(
    serve: Callable[..., Client], tmp_path: Path
) -> None:
    own = "siddhi:\n  refs:\n    - ref: {name: db, type: rdbms, properties: {password: '${sec:db}'}}\n"
    client = serve(conf=[changed(tmp_path, "deployment.config:", own + "deployment.config:")])
    store = "@store(ref='db', {}) define table T (a string);"
    lent = client.ask("POST", body=beside(store.format("jdbc.url='jdbc:postgresql://elsewhere/db'")))
    assert "cannot name a database by its address" in lent.body["message"]
    assert client.ask("POST", body=beside(store.format("datasource='DB'"))).status == 201


def test_a_deployment_that_fails(client: Client) -> None:
    client.apps.failure = StoreError("the database does not answer")
    failed = client.ask("POST", body=APP)
    assert (failed.status, failed.body) == (
        500,
        {"type": "file processing error", "message": "the database does not answer", "code": 800102},
    )
    assert client.ask("POST", body=APP).status == 201
    client.apps.failure = StoreError("the database does not answer")
    assert client.ask("PUT", body=APP).status == 500
    assert client.ask("GET").body == ["Rooms"]  # its former version goes on
    client.apps.failure, client.apps.stops_former = StoreError("password='geheim' is wrong"), True
    assert client.ask("PUT", body=APP).body["message"] == "password='******' is wrong"
    assert client.ask("GET").body == []
    client.apps.failure = RuntimeError("our fault")
    fault = client.ask("POST", body=APP)
    assert (fault.status, "our fault" in fault.body["message"]) == (500, False)
    assert any("RuntimeError: our fault" in line for line in client.log)


def test_names_of_apps_that_others_deployed_are_taken(client: Client) -> None:
    client.apps.taken.append("Rooms")
    assert client.ask("POST", body=APP).status == 409
    assert client.ask("PUT", body=APP).status == 409
    assert client.ask("DELETE", "Rooms").status == 404


def test_a_manager_that_ends_stops_its_apps() -> None:
    apps = StandIn()
    manager = Manager(apps)
    manager.add(checked_app(APP))
    manager.close()
    assert apps.texts == {}
    with pytest.raises(SparkStreamError, match="takes no more apps"):
        manager.add(checked_app(APP))


# ------------------------------------------------------------------------------------------------------------- access


@pytest.mark.parametrize(
    "header",
    [
        "",
        basic("admin", "admin"),
        basic("Admin", PASSWORD),
        basic("", ""),
        basic("admin", PASSWORD) + "AAAA",
        basic("admin", PASSWORD).replace("Basic", "Bearer"),
        "Basic !!!",
        "Basic",
        basic("admin:" + PASSWORD, ""),
    ],
)
def test_who_does_not_know_the_password_learns_nothing(client: Client, header: str) -> None:
    for method, path, body in (("GET", "", None), ("POST", "", APP), ("DELETE", "Rooms", None), ("GET", "/none", None)):
        reply = client.ask(method, path, body, Authorization=header)
        assert reply.status == 401
        assert reply.headers["WWW-Authenticate"].startswith('Basic realm="sparkstream"')
        assert reply.body == {"type": "unauthorized", "message": "user name or password is missing or wrong"}
    assert client.apps.texts == {}


def test_the_password_is_shown_nowhere(client: Client) -> None:
    manager = read_manager([CONF], References({}, ["ADMIN_PASSWORD"]))
    client.ask("GET", Authorization=basic("admin", "geheim"))
    for text in (repr(manager), repr(vars(Credentials("admin", PASSWORD))), *client.log):
        assert PASSWORD not in text
        assert "geheim" not in text
    assert manager.password == PASSWORD


def test_web_pages_are_refused(client: Client) -> None:
    assert client.ask("POST", body=APP, Origin="http://127.0.0.1:8888").status == 403
    assert client.apps.texts == {}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("GET", "/siddhi-apps/Rooms/more", {}, 404),
        ("POST", "/siddhi-app", {}, 404),
        ("GET", "%ff", {}, 400),
        ("GET", "..%2f..%2fetc%2fpasswd", {}, 404),
        ("PATCH", "", {}, 405),
        ("POST", "Rooms", {}, 405),
        ("OPTIONS", "", {}, 405),
        ("DELETE", "", {}, 405),
        ("BREW", "", {}, 501),
        ("POST", "", {"Content-Type": "application/json"}, 415),
        ("POST", "", {"Content-Type": "text/plain; charset=utf-16"}, 415),
        ("POST", "", {"Content-Length": "many"}, 400),
        ("POST", "", {"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_requests_that_are_not_taken(
    client: Client, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    reply = client.ask(method, path, b"0\r\n\r\n" if method == "POST" else None, **headers)
    assert reply.status == status
    assert isinstance(reply.body["message"], str)
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"


def test_a_request_that_is_not_http_gets_json(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=30) as connection:
        connection.sendall(b"<script>alert(1)</script>\r\n\r\n")
        answer = connection.makefile("rb").read()
    assert b"400" in answer or b"bad request" in answer.lower()
    assert b"text/html" not in answer


# ------------------------------------------------------------------------------------------------------------- limits


def test_an_app_is_limited_in_size_and_has_to_be_text(client: Client) -> None:
    long = APP + " " * MOST_BYTES
    reply = client.ask("POST", body=long)
    assert (reply.status, reply.body["message"]) == (
        413,
        f"an app has at most 1,000,000 bytes, and this one {len(long):,}",
    )
    assert client.ask("POST", body=long, Expect="100-continue").status == 413
    assert (
        client.ask("POST", body=APP[:30].encode() + b"\n\xff").body["message"] == "the app is not UTF-8 text (line 2)"
    )
    assert client.ask("POST", body=long[:MOST_BYTES]).status == 201


def test_an_app_is_limited_in_statements_before_it_is_parsed(client: Client) -> None:
    query = "from S[b > 3] select a insert into O;\n"
    reply = client.ask("POST", body=APP + query * MOST_STATEMENTS)
    assert (reply.status, reply.body["message"]) == (
        400,
        "an app of a manager has at most 2,000 definitions and queries, and this one some 2,002: "
        "divide it into several apps",
    )
    noise = f"-- {';' * 3000}\n/* {';' * 3000} */\n" + f"from S[a == '{';' * 3000}'] select a insert into P;"
    assert client.ask("POST", body=APP + noise).status == 201


def test_a_pattern_is_limited_in_states(client: Client) -> None:
    states = " -> ".join(f"e{i}=S[b > {i}]" for i in range(2_000))
    reply = client.ask("POST", body=f"{APP} from every {states} select e0.a as a insert into P;")
    assert reply.status == 400
    assert "a pattern of 2,000 states is too long: it may have 200" in reply.body["message"]


def test_a_request_that_does_not_come_in_is_given_up() -> None:
    manager, log = Manager(StandIn()), list[str]()
    place = ListeningPlace(address_of("127.0.0.1"), 0, seconds=0.2)
    server = ManagerServer(manager, Credentials("admin", PASSWORD), place, log.append)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            head = (
                f"POST /siddhi-apps HTTP/1.1\r\nAuthorization: {basic('admin', PASSWORD)}\r\nContent-Length: 9\r\n\r\n"
            )
            connection.sendall(head.encode() + b"define")
            assert b"408" in connection.makefile("rb").readline()
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(b"GET /siddhi-apps HTT")
            assert connection.recv(10) == b""
    finally:
        server.close()
    assert not any("Traceback" in line for line in log)


# ------------------------------------------------------------------------------------------------ addresses and files


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    """A certificate of its own for 127.0.0.1, as options."""
    cert, key = self_signed(tmp_path, "127.0.0.1")
    return {"tls_cert": cert, "tls_key": key}


def test_tls(serve: Callable[..., Client], certificate: dict[str, str]) -> None:
    client = serve(**certificate)
    assert client.server.url.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=certificate["tls_cert"])
    headers = {"Authorization": basic("admin", PASSWORD), "Content-Type": "text/plain"}
    for body, status in ((APP, 201), (APP + " " * MOST_BYTES, 413)):
        secured = http.client.HTTPSConnection("127.0.0.1", client.server.port, context=trusted, timeout=30)
        with contextlib.closing(secured) as connection:
            connection.request("POST", "/siddhi-apps", body, headers)
            assert connection.getresponse().status == status
    with pytest.raises((http.client.HTTPException, OSError)):
        client.ask("GET")  # in the clear
    assert not any("Traceback" in line for line in client.log)


def test_other_machines_reach_it_with_tls_and_a_password_alone(
    serve: Callable[..., Client], certificate: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Misuse, match=r"0\.0\.0\.0 is reached from other machines, and passwords would go there in the"):
        serve(host="0.0.0.0")
    for weak in ("admin", ""):
        monkeypatch.setenv("ADMIN_PASSWORD", weak)
        with pytest.raises(Misuse, match=r"the password in .*manager-1\.yaml is empty or the well-known one"):
            serve(host="0.0.0.0", **certificate)
    assert serve(host="localhost").ask("GET", Authorization=basic("admin", "")).status == 200
    with pytest.raises(Misuse, match="TLS needs both --tls-cert and --tls-key"):
        serve(tls_cert=certificate["tls_cert"])
    with pytest.raises(Misuse, match="--tls-key: there is no file none"):
        serve(tls_cert=certificate["tls_cert"], tls_key="none")
    with pytest.raises(Misuse, match="cannot be used for TLS"):
        serve(tls_cert=certificate["tls_cert"], tls_key=str(CONF))
    with pytest.raises(Misuse, match="--host: 'no host' is not an address of this machine"):
        serve(host="no host")


def test_a_port_that_is_in_use(serve: Callable[..., Client], client: Client) -> None:
    with pytest.raises(Misuse, match=rf"127.0.0.1, port {client.server.port} cannot be listened at .*another --port"):
        serve(port=client.server.port)


def changed(folder: Path, old: str, new: str) -> str:
    path = folder / "manager.yaml"
    text = CONF.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return str(path)


WRONG_FILES = [
    (
        "type: distributed",
        "type: ha",
        "manager.yaml, line 18: deployment.config: type is 'ha', and a manager's is distributed",
    ),
    ("deployment.config:", "other:", "manager.yaml, line 1: this is not a manager's file"),
    (
        "  minResourceCount",
        "  resourceManagers: []\n  minResourceCount",
        "line 27: deployment.config: resourceManagers",
    ),
    ("httpsInterface:", "http:", "line 17: deployment.config: httpsInterface is missing"),
    ("port: 9543", "port: many", "line 21: deployment.config: httpsInterface: port is a number from 1 to 65535"),
    ("    username: admin\n", "", "line 19: deployment.config: httpsInterface: username is missing"),
    ("username: admin", "username: 'ad:min'", "line 22: deployment.config: httpsInterface: username has a colon"),
    ("    password: ${sec:admin.password}\n", "", "line 19: deployment.config: httpsInterface: password is missing"),
    ("${sec:admin.password}", "[geheim]", "line 23: deployment.config: httpsInterface: password is a text"),
    ("${sec:admin.password}", "${sec:other.password}", "line 23: ${sec:other.password} has no value. Either set the"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG_FILES)
def test_files_of_another_kind(serve: Callable[..., Client], tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(Misuse) as wrong:
        serve(conf=[changed(tmp_path, old, new)])
    assert message in str(wrong.value)
    assert "geheim" not in str(wrong.value)
    assert len(str(wrong.value).splitlines()) == 1


def test_the_managers_own_file_comes_first(serve: Callable[..., Client], tmp_path: Path) -> None:
    worker = str(CONF.with_name("worker-1.yaml"))
    with pytest.raises(
        Misuse, match=r"worker-1.yaml, line 15: deployment.config: resourceManagers is of a resource node"
    ):
        serve(conf=[worker, str(CONF)])
    with pytest.raises(Misuse, match=r"node-1.yaml, line 1: this is not a manager's file"):
        serve(conf=[str(CONF), str(ROOT / "conf" / "single")])
    assert serve(conf=[str(CONF), worker]).ask("GET").status == 200
    assert serve(conf=[str(CONF.parent)]).ask("GET").status == 200
    elsewhere = serve(conf=[changed(tmp_path, "host: localhost", "host: 10.0.0.5")])
    assert elsewhere.server.url.startswith("http://127.0.0.1:")
    assert elsewhere.log[0].endswith(
        "host is 10.0.0.5, and this listens on 127.0.0.1 alone: --host 10.0.0.5 listens there"
    )


# -------------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_by_a_signal(number: int, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sparkstream_nb", "manager", "--conf", str(CONF), "--port", "0"]
    command = subprocess.Popen(
        [*words, "--allow-env", "ADMIN_PASSWORD", "--watch", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "ADMIN_PASSWORD": PASSWORD},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert command.stdout is not None
        said, _, url = command.stdout.readline().strip().partition(" on ")
        assert said == "listening"
        curl = shutil.which("curl")
        if curl is not None:
            text = subprocess.run(
                [curl, "-sS", "-u", f"admin:{PASSWORD}", "-H", "Content-Type: text/plain", "--data-binary", "@-", url],
                input="from",
                capture_output=True, text=True, check=True, timeout=60,
            ).stdout  # fmt: skip
            assert json.loads(text)["type"] == "validation error"
        command.send_signal(number)
        out, err = command.communicate(timeout=60)
    finally:
        command.kill()
    assert (command.returncode, out) == (0, "")
    assert err.endswith("ending: apps are being stopped\n")
    assert PASSWORD not in err


def test_an_app_that_was_posted_runs_on_spark(spark: Any, serve: Callable[..., Client], tmp_path: Path) -> None:
    """Distributed over the resource nodes that there are where the manager's file is the only one; a source of the
    app stands for what is sent to it."""

    def start(text: str, name: str) -> cluster.App:
        return cluster.deploy(text, name=name, mode="distributed", conf=CONF, home=tmp_path / "home")

    client = serve(ClusterDeployer(start))
    source = "@source(type='http', receiver.url='http://0.0.0.0:8006', @map(type='json')) define"
    assert client.ask("POST", body=APP.replace("define", source)).status == 201
    app = cluster.get("Rooms")
    assert app.cluster.nodes == ("receiver-1", "worker-1", "worker-2")
    (group,) = client.ask("GET", "Rooms").body["groups"]
    assert group["instances"] == [{"name": "Rooms-default-1", "node": "receiver-1"}]
    app.send("S", ["kitchen", 5])
    app.send("S", ["hall", 1])
    app.flush()
    assert list(app.output("O").frame["a"]) == ["kitchen"]
    assert client.ask("GET", "Rooms/status").body == {"status": "active"}
    changed_app = client.ask("PUT", body=APP.replace("b > 3", "b > 0"))
    assert (changed_app.status, changed_app.body["state"]) == (200, "running")
    assert client.ask("DELETE", "Rooms").status == 200
    assert client.ask("GET").body == []
    assert "Rooms" not in cluster.apps()
