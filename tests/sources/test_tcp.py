"""Sinks and sources of type tcp, with Siddhi's binary messages: between apps, and against frames made by hand."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from tests.apps.waiting import rows, until
from tests.servers import free_port

TYPES = "k string, i int, l long, f float, d double, b bool"
ROWS = [
    ["ü", -1, 2**62, 1.5, -0.1, True],
    ["", 2**31 - 1, -(2**63), float("inf"), float("nan"), False],
    [None, 0, 0, 0.0, 1e300, True],
]


def source_app(port: int, context: str = "context='trades',", mapping: str = "binary") -> str:
    return f"""
    @source(type='tcp', {context} port='{port}', @map(type='{mapping}'))
    define stream In ({TYPES});
    from In select * insert into O;
    """


def sink_app(port: int, context: str = "trades", more: str = "") -> str:
    return f"""
    define stream S ({TYPES});
    @sink(type='tcp', url='tcp://localhost:{port}/{context}', sync='true', {more} on.error='STORE', @map(type='binary'))
    define stream Out ({TYPES});
    from S select * insert into Out;
    """


def message(*events: bytes) -> bytes:
    return struct.pack(">i", len(events)) + b"".join(events)


def event(k: str, i: int, b: bool = True, ts: int = 1_700_000_000_000) -> bytes:
    text = k.encode()
    return struct.pack(">qi", ts, len(text)) + text + struct.pack(">iqfdb", i, 2, 0.5, 0.25, b)


def framed(body: bytes, channel: str = "trades", session: str = "any") -> bytes:
    """As siddhi-io-tcp's `MessageEncoder` writes it."""
    rest = b"".join(struct.pack(">i", len(p)) + p for p in (session.encode(), channel.encode(), body))
    return struct.pack(">bi", 2, len(rest)) + rest


@pytest.mark.parametrize("channel", ["context='trades',", ""])
def test_events_go_from_one_app_to_another(run: Callable[..., App], tmp_path: Any, channel: str) -> None:
    port = free_port()
    allow = [f"tcp=localhost:{port}"]
    sends = run(sink_app(port, "trades" if channel else "SiddhiApp/In"), allow=allow, name="sends", home=tmp_path / "a")
    sends.send("S", ROWS)
    sends.flush()
    until(sends, lambda: "cannot be reached" in (sends.stats().sinks[0].last_error or ""))
    takes = run(source_app(port, channel), allow=allow, name="takes", home=tmp_path / "b")
    assert sends.drain(60) == 0
    until(takes, lambda: rows(takes, "O") == 3)
    found = takes.output("O").frame[["k", "i", "l", "f", "d", "b"]]
    assert found["k"].tolist()[0] == "ü"
    assert found["k"].isna().tolist() == [False, True, True]  # a text of no bytes is null, as in siddhi-map-binary
    assert found[["i", "l"]].to_numpy().tolist() == [[-1, 2**62], [2**31 - 1, -(2**63)], [0, 0]]
    assert found["b"].tolist() == [True, False, True]
    assert str(found["d"].tolist()) == "[-0.1, nan, 1e+300]"
    sends.send("S", ["x", None, 1, 1.0, 1.0, True])
    sends.flush()
    assert sends.drain(60) == 0
    assert sends.errors.frame["reason"].tolist() == [
        "sink Out-tcp-1: the event cannot be written: i is null, and a binary message has no null int"
    ]


@pytest.fixture
def listening(run: Callable[..., App]) -> tuple[App, int]:
    port = free_port()
    app = run(source_app(port), allow=[f"tcp=localhost:{port}"])
    until(app, lambda: connected(port))
    return app, port


def connected(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def test_frames_in_pieces_and_several_at_once(listening: tuple[App, int]) -> None:
    app, port = listening
    data = framed(message(event("a", 1), event("b", 2, False))) + framed(message(event("c", 3))) * 2
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        for byte in data[:80]:
            connection.sendall(bytes([byte]))
        connection.sendall(data[80:])
        until(app, lambda: rows(app, "O") == 4)
    assert app.output("O").frame[["k", "i", "b"]].to_numpy().tolist() == [
        ["a", 1, True], ["b", 2, False], ["c", 3, True], ["c", 3, True]
    ]  # fmt: skip
    (figures,) = app.stats().sources
    assert (figures.received, figures.events) == (3, 4)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it ends within an event"),
        (message(event("a", 1))[:-1], "it ends within an event"),
        (message(event("a", 1)) + b"x", "1 bytes are left behind its events"),
        (struct.pack(">i", -1), "it says that it has -1 events"),
        (struct.pack(">i", 2**31 - 1) + event("a", 1), "it says that it has 2,147,483,647 events"),
        (struct.pack(">iqi", 1, 0, -5) + bytes(40), "k has -5 bytes"),
        (struct.pack(">iqi", 1, 0, 2**30) + bytes(40), "k has 1,073,741,824 bytes"),
        (message(event("a", 1).replace(b"\1a", b"\1\xff", 1)), "k is no UTF-8 text"),
    ],
)
def test_messages_that_are_none(listening: tuple[App, int], body: bytes, reason: str) -> None:
    app, port = listening
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(framed(body) + framed(message(event("z", 9))))
        until(app, lambda: rows(app, "O") == 1)
    (wrong,) = app.errors.frame["reason"].tolist()
    assert reason in wrong
    values = app.errors.frame.copy()
    assert values["values"].iloc[0]["message"].startswith("base64:")
    assert reason in next(iter(app.replay().left.values()))


@pytest.mark.parametrize(
    "data",
    [
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x02" + b"\xff" * 60,
        struct.pack(">bi", 2, 2**31 - 1),
        framed(b"x", channel="other"),
        framed(b"x", channel="\n\x1b[31m"),
        struct.pack(">bi", 2, 12) + struct.pack(">iii", 100, 0, 0),
        struct.pack(">bi", 2, 0),
        framed(b"x").replace(b"trades", b"\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_what_is_no_frame_ends_its_connection_alone(listening: tuple[App, int], data: bytes) -> None:
    app, port = listening
    with socket.create_connection(("127.0.0.1", port), 30) as good, contextlib.suppress(ConnectionError):
        good.sendall(framed(message(event("a", 1))))
        with socket.create_connection(("127.0.0.1", port), 30) as bad, contextlib.suppress(ConnectionError):
            bad.sendall(data)
            assert bad.recv(10) == b""
        good.sendall(framed(message(event("b", 2))))
    until(app, lambda: rows(app, "O") == 2)
    assert len(app.errors.frame) == 0


def test_the_ends_of_a_few_connections_are_logged(
    listening: tuple[App, int], caplog: pytest.LogCaptureFixture
) -> None:
    _, port = listening
    data = framed(b"x").replace(b"trades", b"\xff\xff\xff\xff\xff\xff")
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", port), 30) as bad, contextlib.suppress(ConnectionError):
            bad.sendall(data)
            assert bad.recv(10) == b""
    told = [r.getMessage() for r in caplog.records if "was ended" in r.getMessage()]
    assert told[0] == f"A connection to port {port} was ended: 'the context in a frame is no UTF-8'"
    assert len(told) == 20
    assert told[-1].endswith("; further ones are not logged")


def test_silent_connections_keep_nobody_out(listening: tuple[App, int]) -> None:
    app, port = listening
    with contextlib.ExitStack() as stack:
        for _ in range(90):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
        with socket.create_connection(("127.0.0.1", port), 30) as good:
            good.sendall(framed(message(event("a", 1))))
            until(app, lambda: rows(app, "O") == 1)


def test_two_sources_of_one_port(run: Callable[..., App]) -> None:
    port = free_port()
    other = f"@source(type='tcp', context='other', port='{port}', @map(type='json')) define stream J (k string);"
    text = f"{other} {source_app(port)} from J select k insert into P;"
    app = run(text, allow=[f"tcp=localhost:{port}"])
    until(app, lambda: connected(port))
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        both = [framed(b'{"event":{"k":"j"}}', "other"), framed(message(event("a", 1)))]
        connection.sendall(b"".join(both))
        until(app, lambda: (rows(app, "O"), rows(app, "P")) == (1, 1))
    app.stop()
    assert not connected(port)
    assert not [t for t in threading.enumerate() if t.name == f"sparkstream-tcp-{port}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (source_app(9892), "listens at localhost:9892, which is not allowed. Add --allow tcp=localhost:9892"),
        (source_app(9891).replace("9891", "0"), "'port' of @source(type='tcp') is a whole number from 1 to 65,535"),
        (source_app(9891, mapping="protobuf"), "with mapping 'protobuf'"),
        (source_app(9891).replace("i int", "i object"), "a binary mapping has no values for 'i', which is an object"),
        (sink_app(9892), "sends to localhost:9892, which is not allowed. Add --allow tcp=localhost:9892"),
        (sink_app(9891).replace("/trades", ""), "url is tcp://HOST:PORT/CONTEXT, not"),
        (sink_app(9891).replace("sync='true'", "sync='maybe'"), "of @sink(type='tcp') is 'true' or 'false', not"),
        (sink_app(9891).replace("'binary'", "'binary', @payload('x')"), "a binary mapping has no @payload"),
    ],
)
def test_what_is_refused(run: Callable[..., App], text: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as raised:
        run(text, allow=["tcp=localhost:9891"])
    assert message in str(raised.value)
