"""The intake of a source, with real inboxes and listeners: what it enters, keeps and gives up."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app.connectors.http_sources import ListenerToken
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.mapping.decoding import Decoder, decoder
from sparkstream_nb.outputs.commit import Progress
from sparkstream_nb.plan.connectors.mappings import source_mapping
from sparkstream_nb.sources import http_source, intake
from sparkstream_nb.sources.file_source import FilesPlace, FilesReader
from sparkstream_nb.sources.http_source import HttpListener, HttpReader
from sparkstream_nb.sources.intake import Entrance, IntakeSetup, SourceThread
from sparkstream_nb.sources.reader import Behind, ReadMessages, SourceReader
from sparkstream_nb.types import Attribute, Schema, Type
from tests.servers import free_port

SCHEMA = Schema((Attribute("k", Type.STRING), Attribute("v", Type.INT)))
TOKEN = "t" * 32
LATEST = 1_000_000


@dataclass
class World:
    """An intake with the inbox that it enters events into."""

    intake: SourceThread
    entrance: Entrance
    inbox: Inbox

    def events(self) -> int:
        return sum(e.steps for e, _ in entries_from(self.inbox.folder))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[[SourceReader], World]]:
    made: list[World] = []

    def make(reader: SourceReader, time: int | None = None, *, keeps_errors: bool = True) -> World:
        inbox = Inbox(tmp_path / f"inbox-{len(made)}")
        entrance = Entrance(
            inbox,
            Progress(),
            threading.RLock(),
            "round_robin",
            lambda: True,
            inbox.append,
            lambda: 1000,
            lambda: LATEST,
        )
        setup = IntakeSetup("S-x-1", "S", "x", "x", SCHEMA, reader, time, keeps_errors=keeps_errors)
        found = World(SourceThread(setup, entrance), entrance, inbox)
        made.append(found)
        return found

    yield make
    for found in made:
        found.intake.join()
        found.inbox.close()


def csv() -> Decoder:
    app = parse("@source(type='x', @map(type='csv')) define stream S (k string, v int);")
    return decoder(source_mapping(app.definitions[0].annotations[0].nested[0], SCHEMA), SCHEMA)


def until(found: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.01)


def post(port: int, body: str = "a,1", token: str = TOKEN) -> int:
    """The status of an answer; 0 where nobody listens."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/t", body.encode(), {"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 0


def listener(token: Callable[[], str] = lambda: TOKEN) -> HttpReader:
    return HttpReader(HttpListener("127.0.0.1", free_port(), "/t", 5.0, token), csv())


def test_what_was_answered_stays_when_the_app_is_interrupted(world: Callable[[SourceReader], World]) -> None:
    reader = listener()
    w = world(reader)
    w.intake.start()
    until(lambda: post(reader.place.port) == 200)
    with w.entrance.lock:
        w.intake.join()
        w.inbox.take_back(0)
    assert w.events() == 1
    w.intake.start()
    until(lambda: post(reader.place.port) == 200)
    assert w.events() == 2


def test_a_file_that_was_deleted_stays_when_the_app_is_interrupted(
    world: Callable[[SourceReader], World], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("a,1\nb,x\nc,3\n")
    place = FilesPlace(folder, True, "line", tailing=False, after="delete", every=0.01)
    w = world(FilesReader(place, SCHEMA, csv(), now=lambda: time.time() + 60))
    w.intake.start()
    until(lambda: not (folder / "a.csv").exists())
    w.intake.join()
    before = w.inbox.position.sources
    w.inbox.take_back(0)
    assert [(e.kind, e.steps, e.seq) for e, _ in entries_from(w.inbox.folder)] == [("reject", 0, 0), ("steps", 2, 1)]
    assert w.inbox.position.sources == before


def test_messages_that_cannot_be_read_are_lines_of_the_log(world: Callable[..., World], tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    place = FilesPlace(file, False, "line", every=0.01)
    w = world(FilesReader(place, SCHEMA, csv()), keeps_errors=False)
    file.write_text("b,x\n")
    w.intake.start()
    until(lambda: w.intake.figures().rejected == 1)
    assert [e.kind for e, _ in entries_from(w.inbox.folder)] == ["source"]  # how far it is: it is not read again
    with file.open("a") as f:
        f.write("a,1\n" + "".join(f"c,{i}x\n" for i in range(12)))
    until(lambda: w.intake.figures().rejected == 13)
    w.intake.join()
    assert [e.kind for e, _ in entries_from(w.inbox.folder)] == ["source", "steps"]
    assert w.entrance.progress.errors == 0
    logs = w.entrance.progress.logs
    assert logs[0] == "source S-x-1 (x): not taken: v: 'x' is not an int: 'b,x'"
    assert (len(logs), logs[-1]) == (12, "source S-x-1 (x): 2 more events that were read with it were not taken")


def test_an_intake_that_was_full_goes_on_after_an_interrupt(
    world: Callable[[SourceReader], World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MOST_WAITING", 0)
    file = tmp_path / "a.csv"
    file.write_text("a,1\n")
    w = world(FilesReader(FilesPlace(file, False, "line", every=0.01), SCHEMA, csv()))
    w.intake.start()
    until(lambda: w.events() == 1)
    w.intake.join()
    w.inbox.take_back(0)
    with file.open("a") as f:
        f.write("b,2\n")
    w.intake.start()
    until(lambda: w.events() == 2)


def test_who_holds_the_lock_can_end_an_intake(world: Callable[[SourceReader], World]) -> None:
    reader = listener()
    w = world(reader)
    with w.entrance.lock:
        w.intake.start()
        began = time.monotonic()
        w.intake.join()
        assert time.monotonic() - began < 1.0
    assert post(reader.place.port) == 0


def test_files_of_what_could_not_be_entered_go(world: Callable[[SourceReader], World], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,x\n")
    w = world(FilesReader(FilesPlace(tmp_path / "a.csv", False, "line", every=0.01), SCHEMA, csv()))
    tries = []

    def full(entries: object) -> int:
        tries.append(entries)
        raise SparkStreamError("No space left on device")

    object.__setattr__(w.entrance, "append", full)
    w.intake.start()
    until(lambda: len(tries) > 1)
    w.intake.join()
    assert not list(w.inbox.folder.glob("rejected-*"))
    assert w.intake.figures().last_error == "No space left on device"


def test_a_token_that_a_crash_left_empty_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "x.token").touch(0o600)
    token = ListenerToken(tmp_path / "x.token")
    made = token()
    assert len(made) >= 24
    assert token() == made


def test_an_empty_token_opens_nothing(world: Callable[[SourceReader], World]) -> None:
    reader = listener(lambda: "")
    w = world(reader)
    w.intake.start()
    until(lambda: post(reader.place.port, token="") == 401)


def raw(port: int, head: str, body: bytes = b"") -> bytes:
    """All that is answered on a connection over which this was sent."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(f"{head}\r\nHost: localhost\r\n".encode() + body)
        answer = b""
        while found := connection.recv(1 << 16):
            answer += found
        return answer


def test_a_large_body_with_a_wrong_token_is_answered(world: Callable[[SourceReader], World]) -> None:
    reader = listener()
    world(reader).intake.start()
    until(lambda: post(reader.place.port) == 200)
    for _ in range(20):
        assert post(reader.place.port, "a,1\n" * 2_000_000, token="wrong") == 401
    large = b"Content-Length: 99999999\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n" + b"x" * 1_000_000
    assert raw(reader.place.port, "POST /t HTTP/1.1", large[:-1]).startswith(b"HTTP/1.1 413")


def test_a_request_that_comes_in_too_slowly_holds_nobody(
    world: Callable[[SourceReader], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_source, "LEAVE_SECONDS", 0.1)
    reader = HttpReader(HttpListener("127.0.0.1", free_port(), "/t", 0.5, lambda: TOKEN), csv())
    world(reader).intake.start()
    until(lambda: post(reader.place.port) == 200)
    with socket.create_connection(("127.0.0.1", reader.place.port), 10) as connection:
        connection.sendall(f"POST /t HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode())
        connection.sendall(b"Content-Length: 1000\r\n\r\n")
        connection.settimeout(0.05)
        began, answer = time.monotonic(), b""
        while not answer and time.monotonic() < began + 10:  # a byte now and then, without end
            connection.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 408")
    # One that does not end its first line gets no answer, and no thread.
    with socket.create_connection(("127.0.0.1", reader.place.port), 10) as connection:
        connection.sendall(b"POST /t")
        assert connection.recv(1000) == b""


def test_an_event_whose_time_is_refused_is_not_answered_as_taken(world: Callable[..., World]) -> None:
    reader = listener()
    w = world(reader, 1)
    w.intake.start()
    until(lambda: post(reader.place.port, "a,1") == 200)
    assert post(reader.place.port, f"a,{LATEST + 1}") == 400
    assert post(reader.place.port, "a,2") == 200
    assert w.events() == 2


def test_what_was_answered_with_503_is_not_entered(
    world: Callable[[SourceReader], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_source, "ANSWER_SECONDS", 0.1)
    reader = listener()
    w = world(reader)
    w.intake.start()
    until(lambda: post(reader.place.port) == 200)
    with w.entrance.lock:
        held = threading.Thread(target=post, args=(reader.place.port,))
        held.start()  # it is taken, and waits for the lock: it is answered when it is in
        until(lambda: len(reader._open_requests) == 1)
        assert post(reader.place.port) == 503
    held.join()
    until(lambda: w.events() == 2)
    until(lambda: post(reader.place.port) == 200)
    assert w.events() == 3


def test_catch_up_waits_for_what_is_being_entered(world: Callable[[SourceReader], World], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    w = world(FilesReader(FilesPlace(tmp_path / "a.csv", False, "line", every=0.01), SCHEMA, csv()))
    w.intake.start()
    until(lambda: w.intake.caught_up(time.monotonic() - 1.0))
    with w.entrance.lock:
        with (tmp_path / "a.csv").open("a") as f:
            f.write("a,1\n")
        began = time.monotonic()
        for _ in range(50):
            assert not w.intake.caught_up(began)
            time.sleep(0.01)
    until(lambda: w.intake.caught_up(began))
    assert w.events() == 1


class Slow:
    """A reader of one message: it has nothing at first, and then it has read all before it says what."""

    def __init__(self) -> None:
        self.reads, self.goes_on = 0, threading.Event()
        self.there = Behind(float("-inf"), {"p": 1})

    def open(self, reached: Mapping[str, Any]) -> str | None:
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        self.reads += 1
        if self.reads == 1:
            self.there = Behind(time.monotonic(), {"p": 1})
            return None
        self.there = Behind(time.monotonic(), {"p": 0})
        if self.reads > 2:
            return None
        self.goes_on.wait(20)
        return ReadMessages(csv().decode([b"a,1"]), 1, {"p": 1})

    def behind(self) -> Behind | None:
        return self.there

    def confirm(self, taken: ReadMessages, refused: Mapping[int, str]) -> None: ...

    def busy(self, *, full: bool) -> None: ...

    def close(self) -> None: ...

    def cancel(self) -> None: ...


def test_catch_up_waits_for_what_was_read_and_is_not_entered(world: Callable[[SourceReader], World]) -> None:
    reader = Slow()
    w = world(reader)
    began = time.monotonic()
    w.intake.start()
    until(lambda: reader.there.parts == {"p": 0})
    assert not w.intake.caught_up(began)
    reader.goes_on.set()
    until(lambda: w.intake.caught_up(began))
    assert w.events() == 1


class Endless(Slow):
    """A reader that always has `portion` more events. `full`: how often it was told to wait since it last read."""

    def __init__(self, portion: int) -> None:
        super().__init__()
        self.portion, self.full = portion, 0
        self.there = Behind(0.0, {"p": 1})

    def read(self, seconds: float) -> ReadMessages | None:
        self.reads, self.full = self.reads + 1, 0
        return ReadMessages(csv().decode([b"a,1"] * self.portion), self.portion, {"p": self.reads})

    def busy(self, *, full: bool) -> None:
        self.full += full


def commit(w: World, last: int) -> None:
    """Says that all up to entry `last` is committed."""
    with w.entrance.progress.changed:
        w.entrance.progress.last = last
        w.entrance.progress.changed.notify_all()


@pytest.mark.parametrize("portion", [1, 7])
def test_no_more_is_entered_than_may_wait(
    world: Callable[[SourceReader], World], monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    """More than `MOST_WAITING` events wait only by what was read at once."""
    monkeypatch.setattr(intake, "MOST_WAITING", 20)
    monkeypatch.setattr(intake, "_WAIT", 0.01)
    reader = Endless(portion)
    w = world(reader)
    w.intake.start()
    entries = 20 // portion + 1
    for committed in (0, 1, 3):
        commit(w, committed - 1)
        until(lambda n=entries + committed: reader.reads == n and reader.full >= 3)  # type: ignore[misc]
        assert w.events() == (entries + committed) * portion


def test_an_app_that_is_behind_answers_429(
    world: Callable[[SourceReader], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MOST_WAITING", 2)
    reader = listener()
    w = world(reader)
    w.intake.start()
    until(lambda: post(reader.place.port) == 200)
    assert post(reader.place.port, "a,1\nb,2") == 200
    assert post(reader.place.port) == 429
    assert w.events() == 3
    commit(w, 0)
    until(lambda: post(reader.place.port) == 200)
    assert post(reader.place.port) == 429
    assert w.events() == 4
