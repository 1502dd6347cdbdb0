"""Sources of type file and http, in apps on Spark: what comes in, what is refused, and where an app goes on."""

from __future__ import annotations

import base64
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.app import App, deploy
from sparkstream_nb.app.config.grants import Grants
from sparkstream_nb.app.config.secrets import References
from sparkstream_nb.app.connectors.sources import SourcePlans
from sparkstream_nb.errors import NotInThisBuild, SiddhiBindError, SparkStreamError
from sparkstream_nb.journal.inbox import Ticket
from sparkstream_nb.lab.display import text
from sparkstream_nb.outputs.commit import Commit
from sparkstream_nb.plan import compile_app
from sparkstream_nb.sources import intake
from sparkstream_nb.sources.file_source import FilesReader
from tests.apps.waiting import rows, until
from tests.servers import free_port


def file_app(folder: Path, options: str = "mode='line'", mapping: str = "csv") -> str:
    return f"""
    @source(type='file', dir.uri='{folder}', {options}, dir.polling.interval='50', @map(type='{mapping}'))
    define stream S (k string, v int);
    @info(name = 'q') from S#window.length(3) select k, sum(v) as total insert into O;
    """


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "in"
    found.mkdir()
    return found


@pytest.mark.contract
def test_a_growing_folder(run: Callable[..., App], folder: Path, tmp_path: Path) -> None:
    (folder / "a.csv").write_text("a,1\nb,x\nc,3\n")
    app = run(file_app(folder), allow=[f"file={folder}"])
    until(app, lambda: rows(app, "O") == 2)
    with (folder / "a.csv").open("a") as f:
        f.write("d,4\n")
    until(app, lambda: rows(app, "O") == 3)
    assert app.output("O").frame["total"].tolist() == [1, 4, 8]
    found = app.stats().sources[0]
    assert (found.received, found.events, found.rejected, found.lag) == (4, 3, 1, 0)
    errors = app.errors.frame
    assert errors["values"].tolist() == [{"source": "S-file-1", "message": "b,x"}]
    assert errors["reason"].tolist() == ["v: 'x' is not an int"]
    app.stop()
    with (folder / "a.csv").open("a") as f:
        f.write("e,5\n")
    (folder / "b.csv").write_text("f,6\n")
    again = run(file_app(folder), allow=[f"file={folder}"])
    until(again, lambda: rows(again, "O") == 5)
    assert again.output("O").frame["total"].tolist() == [1, 4, 8, 12, 15]


def test_a_name_with_a_line_break(run: Callable[..., App], folder: Path) -> None:
    (folder / "a\nb.csv").write_text("a,1\n")
    (folder / "c\n.csv").write_text("c,3\n")
    app = run(file_app(folder, "mode='line', file.name.pattern='a.*csv'"), allow=[f"file={folder}"])
    until(app, lambda: rows(app, "O") == 1)
    (folder / "c\n.csv").rename(folder / "a\r\n2.csv")
    until(app, lambda: rows(app, "O") == 2)


def test_a_link_out_of_what_was_granted_is_not_followed(run: Callable[..., App], folder: Path, tmp_path: Path) -> None:
    (folder / "x.csv").write_text("a,1\n")
    (tmp_path / "secret.csv").write_text("secret,666\n" * 3)
    app = run(
        file_app(folder).replace(f"dir.uri='{folder}'", f"file.uri='{folder}/x.csv'").replace("dir.poll", "file.poll"),
        allow=[f"file={folder}"],
    )
    until(app, lambda: rows(app, "O") == 1)
    (folder / "x.csv").rename(folder / "former.csv")
    (folder / "x.csv").symlink_to(tmp_path / "secret.csv")
    until(app, lambda: "is a symbolic link" in (app.stats().sources[0].last_error or ""))
    (folder / "x.csv").unlink()
    (folder / "x.csv").write_text("b,2\n")
    until(app, lambda: rows(app, "O") == 2)
    assert app.output("O").frame["total"].tolist() == [1, 3]


def test_a_bad_message_is_mended_and_sent_again(run: Callable[..., App], folder: Path) -> None:
    (folder / "a.csv").write_text("a,1\nb,x\n")
    app = run(file_app(folder), allow=[f"file={folder}"])
    until(app, lambda: len(app.errors.frame) == 1)
    wrong = app.errors.frame
    assert "v: 'x' is not an int" in app.replay().left[wrong.index[0]]
    cut = wrong.copy()
    cut.at[wrong.index[0], "values"] = {"source": "S-file-1", "message": "b" * 1999 + "…"}
    assert "give it whole" in app.replay(cut).left[wrong.index[0]]
    wrong.at[wrong.index[0], "values"] = {"source": "S-file-1", "message": "b,2"}
    assert app.replay(wrong).sent == 1
    app.flush()
    assert app.output("O").frame["total"].tolist() == [1, 3]
    assert len(app.errors.frame) == 0


def test_a_row_of_a_parquet_file_is_mended_and_sent_again(run: Callable[..., App], folder: Path) -> None:
    pq.write_table(pa.table({"the key": ["a", "b"], "v": ["1", "x"]}), folder / "a.parquet")
    app = run(
        f"""
        @source(type='file', dir.uri='{folder}', mode='parquet', @map(type='passThrough'))
        define stream S (`the key` string, v int);
        from S select `the key` as k, v insert into O;
        """,
        allow=[f"file={folder}"],
    )
    until(app, lambda: len(app.errors.frame) == 1)
    wrong = app.errors.frame
    (row,) = wrong["values"].tolist()
    assert json.loads(row["message"]) == {"the key": "b", "v": "x"}
    assert wrong["reason"].tolist() == ["v: 'x' is not an int"]
    wrong.at[wrong.index[0], "values"] = {**row, "message": '{"the key": "b", "v": 2}'}
    assert app.replay(wrong).sent == 1
    app.flush()
    assert app.output("O").frame[["k", "v"]].to_numpy().tolist() == [["a", 1], ["b", 2]]


def test_events_have_the_time_of_an_attribute(run: Callable[..., App], folder: Path) -> None:
    (folder / "a.csv").write_text("2024-01-01T00:00:00,1\n1704067201000,2\nlater,3\n2300-01-01T00:00:00,4\n")
    app = run(
        f"""
        @source(type='file', dir.uri='{folder}', mode='line', event.time='at', @map(type='csv'))
        define stream S (at string, v int);
        from S select v insert into O;
        """,
        allow=[f"file={folder}"],
    )
    until(app, lambda: len(app.errors.frame) == 2)
    app.flush()
    assert app.output("O").frame["timestamp"].tolist() == [1704067200000, 1704067201000]
    reasons = app.errors.frame["reason"].tolist()
    assert "'later' is not a time" in reasons
    assert any("(max_ahead)" in r for r in reasons)


def test_the_events_of_a_message_are_a_chunk(run: Callable[..., App], folder: Path) -> None:
    (folder / "a.json").write_text('[{"k":"a","v":1},{"k":"b","v":2}]')
    app = run(
        f"""
        @source(type='file', dir.uri='{folder}', mode='text.full', @map(type='json'))
        define stream S (k string, v int);
        from S#window.lengthBatch(2) select sum(v) as total insert into O;
        from S select v output last every 5 events insert into L;
        """,
        allow=[f"file={folder}"],
    )
    until(app, lambda: rows(app, "O") == 1)
    assert app.output("O").frame["total"].tolist() == [3]


@pytest.mark.contract
def test_nodes_take_turns(run: Callable[..., App], folder: Path) -> None:
    (folder / "a.csv").write_text("".join(f"k{i},{i}\n" for i in range(90)))
    app = run(
        file_app(folder).replace("#window.length(3)", "").replace("sum(v)", "v"), nodes=3, allow=[f"file={folder}"]
    )
    until(app, lambda: rows(app, "O") == 90)
    assert app.output("O").frame["node"].value_counts().tolist() == [30, 30, 30]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """When it is set, micro-batches are committed; they wait until then."""
    commit, go_on = Commit.commit, threading.Event()

    def late(self: Commit, *given: Any) -> None:
        go_on.wait(120)
        commit(self, *given)

    monkeypatch.setattr(Commit, "commit", late)
    yield go_on
    go_on.set()


def test_an_app_that_is_behind_is_not_given_more(
    run: Callable[..., App], folder: Path, monkeypatch: pytest.MonkeyPatch, commits: threading.Event
) -> None:
    told: list[bool] = []
    monkeypatch.setattr(intake, "MOST_WAITING", 10)
    monkeypatch.setattr(FilesReader, "busy", lambda self, *, full: told.append(full))
    (folder / "a.csv").write_text("".join(f"k{i},{i}\n" for i in range(50)))
    app = run(file_app(folder), allow=[f"file={folder}"])
    until(app, lambda: told[-1:] == [True])
    for i in range(5):
        (folder / f"b{i}.csv").write_text("".join(f"k{j},{j}\n" for j in range(50)))
    told.clear()
    until(app, lambda: len(told) >= 5)
    assert all(told)
    assert app.stats().sources[0].events == 50
    commits.set()
    until(app, lambda: rows(app, "O") == 300)


@pytest.mark.contract
def test_a_full_disk_loses_nothing(run: Callable[..., App], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(file_app(folder), allow=[f"file={folder}"])
    put, failures = app.runtime.inbox.put, [2]

    def failing(entries: object) -> Ticket:
        if failures[0]:
            failures[0] -= 1
            raise SparkStreamError("the inbox cannot be written to: No space left on device")
        return put(entries)  # type: ignore[arg-type]

    monkeypatch.setattr(app.runtime.inbox, "put", failing)
    (folder / "a.csv").write_text("a,1\nb,2\n")
    until(app, lambda: rows(app, "O") == 2)
    assert failures == [0]
    assert any("No space left" in line for line in app.logs)
    assert app.stats().sources[0].last_error is None


# --------------------------------------------------------------------------------------------------------------- http


def http_app(port: int) -> str:
    return f"""
    @source(type='http', receiver.url='http://localhost:{port}/trades', @map(type='json',
            @attributes(k='$.k', v='$.v', who='trp:X-Who')))
    define stream S (k string, v int, who string);
    from S select k, v, who insert into O;
    """


def post(port: int, body: str, token: str, path: str = "/trades", **headers: str) -> tuple[int, str]:
    """Status and text of an answer."""
    request = urllib.request.Request(
        f"http://localhost:{port}{path}", body.encode(), {"Authorization": f"Bearer {token}", "X-Who": "me", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_source_whose_port_is_taken_says_so_on_the_card_and_with_the_errors(run: Callable[..., App]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        app = run(http_app(port), allow=[f"http=http://localhost:{port}/"])
        said = f"is away: 127.0.0.1, port {port} cannot be listened at: Address already in use."
        assert "! Source S-http-1 (" in text(app)
        assert said in text(app)
        assert said in text(app.errors)
        assert "has no errors" not in text(app.errors)


def test_sources_of_one_port_are_told_apart_by_their_paths(run: Callable[..., App], tmp_path: Path) -> None:
    port = free_port()
    grant = f"http=http://localhost:{port}/"
    source = "@source(type='http', receiver.url='http://localhost:{}/{}', @map(type='json'))"
    app = run(
        f"""{source.format(port, "one")} define stream A (v int);
        {source.format(port, "two/")} define stream B (v int);
        from A select v insert into O; from B select v + 10 as v insert into O;""",
        allow=[grant],
    )
    tokens = {stream: Path(app.home, "sources", f"{stream}-http-1.token") for stream in "AB"}
    until(app, lambda: all(file.exists() for file in tokens.values()))
    a, b = (file.read_text() for file in tokens.values())
    until(app, lambda: post_or_zero(port, '{"event":{"v":1}}', a, path="/one") == 200)
    until(app, lambda: post_or_zero(port, '{"event":{"v":2}}', b, path="/two") == 200)
    assert post(port, '{"event":{"v":3}}', a, path="/two")[0] == 401  # each has its own token
    assert post(port, '{"event":{"v":3}}', "none", path="/three")[0] == 401
    assert post(port, '{"event":{"v":3}}', a, path="/three")[0] == 404
    app.flush()
    assert sorted(app.output("O").frame["v"]) == [1, 12]
    other = run(
        f"{source.format(port, 'one')} define stream C (v int); from C select v insert into P;",
        allow=[grant],
        name="other",
        home=tmp_path / "other",
    )
    until(other, lambda: f"another source listens at port {port}, path /one" in text(other.errors))
    app.stop()  # the other one gets the port
    token = Path(other.home, "sources", "C-http-1.token")
    until(other, lambda: token.exists() and post_or_zero(port, '{"event":{"v":4}}', token.read_text(), "/one") == 200)


def test_events_are_posted(run: Callable[..., App]) -> None:
    port = free_port()
    app = run(http_app(port), allow=[f"http=http://localhost:{port}/"])
    file = Path(app.home) / "sources" / "S-http-1.token"
    until(app, lambda: not app.logs and file.exists())
    token = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: post(port, f'{{"k":"a","v":{i}}}', token), range(40)))
    assert {status for status, _ in answers} == {200}
    app.flush()
    assert sorted(app.output("O").frame["v"]) == list(range(40))
    assert set(app.output("O").frame["who"]) == {"me"}
    assert post(port, '{"k":"a"}', token)[0] == 400
    assert post(port, '{"k":"a","v":1}', "wrong")[0] == 401
    assert post(port, '{"k":"a","v":1}', token, path="/other")[0] == 404
    assert post(port, '{"k":"a","v":1}', token, Host="evil.example")[0] == 403
    assert token not in str(app.stats()) + str(app.logs)
    app.flush()
    assert rows(app, "O") == 40
    app.stop()
    with pytest.raises(urllib.error.URLError):
        post(port, '{"k":"a","v":1}', token)
    app.start()
    until(app, lambda: post_or_zero(port, '{"k":"a","v":99}', token) == 200)
    app.flush()
    assert rows(app, "O") == 41
    wrong = app.errors.frame.iloc[:1].copy()
    (message,) = wrong["values"]
    assert message["properties"] == {"X-Who": "me"}
    wrong.at[wrong.index[0], "values"] = {**message, "message": '{"k":"mended","v":7}'}
    assert app.replay(wrong).sent == 1
    app.flush()
    assert app.output("O").frame.tail(1)[["k", "v", "who"]].to_numpy().tolist() == [["mended", 7, "me"]]


def post_or_zero(port: int, body: str, token: str, path: str = "/trades") -> int:
    """The status of an answer; 0 where nobody listens yet."""
    try:
        return post(port, body, token, path)[0]
    except urllib.error.URLError:
        return 0


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


USERS = """
wso2.carbon: {id: node-1}
auth.configs:
  type: local
  userManager:
    adminRole: admin
    userStore:
      users:
        - user: {username: admin, password: Z2VoZWltIMO8, roles: 1}
        - user: {username: other, password: '${env:OTHER_PASSWORD}', roles: 1}
"""


@pytest.mark.parametrize("by", ["option", "file"])
def test_basic_authentication(
    run: Callable[..., App], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setenv("OTHER_PASSWORD", "anders")
    (tmp_path / "deployment.yaml").write_text(USERS)
    port = free_port()
    options = "basic.auth.enabled='true', "
    if by == "option":
        options += "basic.auth.username='other', basic.auth.password='${env:OTHER_PASSWORD}', "
    given = {"conf": tmp_path / "deployment.yaml"} if by == "file" else {}
    text = http_app(port).replace("@map", f"{options}@map")
    app = run(text, allow=[f"http=http://localhost:{port}/"], allow_env=["OTHER_PASSWORD"], **given)
    right = [basic("other", "anders")] + ([basic("admin", "geheim ü")] if by == "file" else [])
    body = '{"k":"a","v":1}'
    until(app, lambda: post_or_zero(port, body, "none") == 401)
    for header in right:
        assert post(port, body, "", Authorization=header) == (200, "")
    wrong = [basic("admin", "anders"), basic("other", ""), basic("", ""), "Basic", "Basic !!"]
    for header in (*wrong, right[0].replace("Basic", "Bearer")):
        assert post(port, body, "", Authorization=header)[0] == 401
    app.flush()
    assert rows(app, "O") == len(right)
    shown = str(app.stats()) + str(app.logs) + (Path(app.home) / "app.json").read_text()
    assert "anders" not in shown
    assert "geheim" not in shown


def test_basic_authentication_that_is_off(run: Callable[..., App]) -> None:
    port = free_port()
    text = http_app(port).replace("@map", "basic.auth.enabled='false', @map")
    app = run(text, allow=[f"http=http://localhost:{port}"])
    token = Path(app.home, "sources", "S-http-1.token")
    until(app, token.exists)
    until(app, lambda: post_or_zero(port, '{"k":"a","v":1}', token.read_text()) == 200)
    assert post(port, '{"k":"a","v":1}', "", Authorization=basic("admin", "admin"))[0] == 401


def test_an_app_that_is_behind_answers_429(
    run: Callable[..., App], monkeypatch: pytest.MonkeyPatch, commits: threading.Event
) -> None:
    monkeypatch.setattr(intake, "MOST_WAITING", 0)
    port = free_port()
    app = run(http_app(port), allow=[f"http=http://localhost:{port}/"])
    token = Path(app.home, "sources", "S-http-1.token")
    until(app, token.exists)
    until(app, lambda: post_or_zero(port, '{"k":"a","v":1}', token.read_text()) == 200)
    assert post(port, '{"k":"a","v":2}', token.read_text())[0] == 429
    commits.set()
    until(app, lambda: post_or_zero(port, '{"k":"a","v":3}', token.read_text()) == 200)
    app.flush()
    assert app.output("O").frame["v"].tolist() == [1, 3]


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("type='file', dir.uri='{dir}', mode='line'", "is not allowed. Add --allow"),
        ("type='file', dir.uri='{dir}/../..', mode='line'", "is not allowed. Add --allow"),
        ("type='http', receiver.url='http://localhost:8006/x'", "Add --allow http=http://localhost:8006"),
        ("type='kafka', bootstrap.servers='h:9092', topic.list='t', group.id='g', threading.option='single.thread'",
         "Add --allow kafka=h:9092"),
        ("type='kafka', bootstrap.servers='ok:9092', topic.list='a b', group.id='g', threading.option='single.thread'",
         "'a b' is not the name of a topic"),
        ("type='kafka', bootstrap.servers='ok:9092', topic.list='t', threading.option='single.thread'",
         "has no 'group.id'"),
        ("type='kafka', bootstrap.servers='ok:9092', topic.list='t', group.id='g', threading.option='single.thread', "
         'optional.configuration="security.protocol:SASL_SSL,sasl.mechanism:PLAIN,'
         "sasl.jaas.config:username='me' password='geheim'\"", "the password does not belong into the app's text"),
        ("type='file', mode='line'", "has no 'dir.uri' or 'file.uri'"),
        ("type='file', dir.uri='{ok}', mode='line', action.after.process='delete'", "needs tailing='false'"),
        ("type='file', dir.uri='{ok}', mode='text.full', action.after.process='move'", "go together"),
        ("type='file', dir.uri='{ok}', mode='text.full', tailing='true'", "tailing='true' goes with mode='line'"),
        ("type='file', dir.uri='{ok}', mode='line', event.time='v'", "names a long"),
        ("type='file', dir.uri='{ok}', mode='line', event.time='z'", "has no attribute 'z'"),
        ("type='file', dir.uri='sftp://host/x', mode='line'", "reads paths of this machine"),
        ("type='http', receiver.url='http://192.0.2.1:80/x'", "it listens on this machine alone"),
        ("type='http', receiver.url='http://0.0.0.0:8006/x'", "this machine alone, http://localhost:8006/..., not"),
        ("type='http', receiver.url='https://localhost:9/x'", "it listens on this machine alone"),
        ("type='http', receiver.url='http://localhost:9/x', basic.auth.enabled='yes'", "is 'true' or 'false', not"),
        ("type='http', receiver.url='http://localhost:9/x', basic.auth.enabled='true'", "needs users: write basic"),
        ("type='http', receiver.url='http://localhost:9/x', basic.auth.enabled='true', basic.auth.username='me', "
         "basic.auth.password='geheim'", "the password does not belong into the app's text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_spark_starts(tmp_path: Path, source: str, message: str) -> None:
    ok, other = tmp_path / "ok", tmp_path / "other"
    ok.mkdir()
    other.mkdir()
    text = f"@source({source.format(dir=other, ok=ok)}, @map(type='csv')) define stream S (k string, v int); " + (
        "from S select k insert into O;"
    )
    allow = [f"file={ok}", "kafka=ok:9092", "http=http://192.0.2.1/", "http=http://localhost:9"]
    with pytest.raises(SiddhiBindError) as error:
        deploy(text, name="x", home=tmp_path / "home", allow=allow)
    assert message in str(error.value)
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("type='file', dir.uri='/x', mode='binary.chunked'", "mode='binary.chunked'"),
        ("type='kafka', bootstrap.servers='h:9092', seq.enabled='true'", "'seq.enabled'"),
        ("type='jms', url='x'", "a source of type 'jms'"),
        ("type='file', dir.uri='/x', on.error='STREAM'", "waiting does not mend it: write STORE or LOG"),
        ("type='http', receiver.url='http://localhost:8006/t', on.error='wait'", "on.error='wait' of a source of type"),
        ("type='kafka', optional.configuration='interceptor.classes:x'", "'interceptor.classes' in optional.config"),
    ],
)
def test_what_this_build_lacks_is_named(tmp_path: Path, source: str, what: str) -> None:
    text = f"@source({source}, @map(type='csv')) define stream S (k string, v int); from S select k insert into O;"
    with pytest.raises(NotInThisBuild) as error:
        deploy(text, name="x", home=tmp_path / "home")
    assert what in str(error.value)


@pytest.mark.parametrize(("option", "keeps"), [("", True), (", on.error='store'", True), (", on.error='LOG'", False)])
def test_what_becomes_of_messages_that_cannot_be_read(tmp_path: Path, folder: Path, option: str, keeps: bool) -> None:
    plan = compile_app(file_app(folder, f"mode='line'{option}"))
    plans = SourcePlans(plan, Grants.of([f"file={folder}"]), References({}, ()), tmp_path)
    assert [s.keeps_errors for s in plans.setups(lambda: None)] == [keeps]


def test_catching_up_ends_in_time(run: Callable[..., App], folder: Path) -> None:
    app = run(file_app(folder), allow=[f"file={folder}"])
    assert app.catch_up()
    app.stop()
    app.send("S", ["a", 1])  # Spark begins again, which takes longer than this
    assert app.catch_up(0.01) is False
    assert app.catch_up()
    assert rows(app, "O") == 1
