"""Sources and sinks of type hl7: between apps, and against frames made by hand."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.connections.hl7_messages import END, START, Result, acknowledgement, frame
from sparkstream_nb.errors import SparkStreamError
from tests.apps.waiting import rows, until
from tests.servers import free_port

ADMITTED = "MSH|^~\\&|ward|north|emr|main|202601021530||ADT^A01|42|P|2.4\rPID|1||7^^^H||Muster^Jörg"
XML = (
    "<ADT_A01 xmlns='urn:hl7-org:v2xml'><MSH><MSH.3><HD.1>ward</HD.1></MSH.3><MSH.10>42</MSH.10>"
    "<MSH.11><PT.1>P</PT.1></MSH.11><MSH.12><VID.1>2.4</VID.1></MSH.12></MSH></ADT_A01>"
)
ER7_SOURCE = """
@source(type='hl7', port='{port}', hl7.encoding='er7', @map(type='text'))
define stream In (payload string);
from In select payload insert into O;
"""
XML_SOURCE = """
@source(type='hl7', port='{port}', hl7.encoding='xml', @map(type='xml', namespaces='ns=urn:hl7-org:v2xml',
    @attributes(id='ns:MSH/ns:MSH.10', ward='ns:MSH/ns:MSH.3/ns:HD.1')))
define stream In (id string, ward string);
from In select id, ward insert into O;
"""
SINK = """
define stream S (payload string);
@sink(type='hl7', uri='localhost:{port}', tls.enabled='false', hl7.encoding='{encoding}', hl7.timeout='{ms}',
    on.error='STORE', @map(type='text', @payload('{{{{payload}}}}')))
define stream Out (payload string);
from S select payload insert into Out;
"""


def exchange(port: int, *messages: str) -> list[str]:
    """The answers to messages that are sent one after the other."""
    answers = []
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        stream = client.makefile("rb")
        for message in messages:
            client.sendall(frame(message))
            data = b""
            while not data.endswith(END):
                part = stream.read(1)
                if not part:
                    return answers
                data += part
            answers.append(data[1:-2].decode())
    return answers


@contextmanager
def server(*answers: str | None) -> Iterator[tuple[int, list[str]]]:
    """A server at a port, which keeps messages, and gives each one of the answers (None: none, and it hangs up)."""
    messages: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))
    rest = iter(answers)

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                data = b""
                while part := client.recv(1 << 16):
                    data += part
                    if data.endswith(END):
                        messages.append(data.removeprefix(START).removesuffix(END).decode())
                        data, answer = b"", next(rest)
                        if answer is None:
                            break
                        client.sendall(frame(answer))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], messages
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def test_a_message_is_an_event_and_acknowledged(run: Callable[..., App]) -> None:
    port = free_port()
    app = run(ER7_SOURCE.format(port=port), allow=[f"hl7=localhost:{port}"])
    (answer,) = exchange(port, ADMITTED)
    header, result = answer.strip().split("\r")
    assert header.split("|")[:6] == ["MSH", "^~\\&", "emr", "main", "ward", "north"]
    assert header.split("|")[8:] == ["ACK^A01", "42", "P", "2.4"]
    assert result == "MSA|AA|42"
    until(app, lambda: rows(app, "O") == 1)
    assert app.output("O").frame["payload"].tolist() == [ADMITTED + "\r"]


def test_a_message_in_xml_and_one_that_is_none(run: Callable[..., App]) -> None:
    port = free_port()
    app = run(XML_SOURCE.format(port=port), allow=[f"hl7=localhost:{port}"])
    taken, refused = exchange(port, XML, ADMITTED)
    assert "<MSA.1>AA</MSA.1><MSA.2>42</MSA.2></MSA>" in taken
    assert "<MSH.11>P</MSH.11><MSH.12>2.4</MSH.12>" in taken
    assert Result.of(taken) == Result("AA", "")
    assert refused.split("\r")[1].startswith("MSA|AE|42|")
    until(app, lambda: rows(app, "O") == 1)
    assert app.output("O").frame[["id", "ward"]].to_numpy().tolist() == [["42", "ward"]]
    (error,) = app.errors.frame.to_dict("records")
    assert "MSH|" in str(error["values"])


def test_what_was_acknowledged_is_there_after_a_restart(run: Callable[..., App], tmp_path: Any) -> None:
    port = free_port()
    text, allow = ER7_SOURCE.format(port=port), [f"hl7=localhost:{port}"]
    app = run(text, allow=allow, name="ward", home=tmp_path / "ward")
    assert len(exchange(port, ADMITTED, ADMITTED.replace("|42|", "|43|"))) == 2
    app.close()
    with pytest.raises(OSError, match="refused"):
        exchange(port, ADMITTED)
    again = run(text, allow=allow, name="ward", home=tmp_path / "ward")
    assert len(exchange(port, ADMITTED.replace("|42|", "|44|"))) == 1
    until(again, lambda: rows(again, "O") == 3)


def test_bytes_that_are_no_frame_end_the_connection(run: Callable[..., App]) -> None:
    port = free_port()
    app = run(ER7_SOURCE.format(port=port), allow=[f"hl7=localhost:{port}"])
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n" + END)
        assert client.recv(100) == b""
    (answer,) = exchange(port, "MSH")
    assert answer.startswith("MSH|^~\\&|||||")
    until(app, lambda: rows(app, "O") == 1)


def test_messages_go_from_one_app_to_another(run: Callable[..., App], tmp_path: Any) -> None:
    port = free_port()
    allow = [f"hl7=localhost:{port}"]
    sends = run(SINK.format(port=port, encoding="er7", ms=5000), allow=allow, name="sends", home=tmp_path / "a")
    sends.send("S", [[ADMITTED.replace("\r", "\n")]])
    until(sends, lambda: "cannot be reached" in (sends.stats().sinks[0].last_error or ""))
    takes = run(ER7_SOURCE.format(port=port), allow=allow, name="takes", home=tmp_path / "b")
    assert sends.drain(60) == 0
    until(takes, lambda: rows(takes, "O") == 1)
    assert takes.output("O").frame["payload"].tolist() == [ADMITTED + "\r"]


def test_a_refusal_is_an_error_with_its_reason(run: Callable[..., App]) -> None:
    refusal = acknowledgement(ADMITTED, "no such | patient", datetime(2026, 1, 2))
    with server(refusal, acknowledgement(ADMITTED, None, datetime(2026, 1, 2))) as (port, messages):
        app = run(SINK.format(port=port, encoding="er7", ms=5000), allow=[f"hl7=localhost:{port}"])
        app.send("S", [[ADMITTED], ["PID|1"], [ADMITTED.replace("|42|", "|43|")]])
        assert app.drain(60) == 0
        assert [message.split("|")[9] for message in messages] == ["42", "43"]
        reasons = app.errors.frame["reason"].tolist()
    assert len(reasons) == 2
    assert f"hl7://localhost:{port} answered AE: no such   patient" in reasons[0]
    assert "a message in ER7 begins with the segment MSH" in reasons[1]


def test_a_message_without_an_answer_is_sent_again(run: Callable[..., App]) -> None:
    accepted = acknowledgement(XML, None, datetime(2026, 1, 2))
    with server(None, "MSH|^~\\&|no acknowledgement", accepted) as (port, messages):
        app = run(SINK.format(port=port, encoding="xml", ms=5000), allow=[f"hl7=localhost:{port}"])
        app.send("S", [[XML]])
        assert app.drain(60) == 0
        assert messages == [XML] * 3
        assert not len(app.errors.frame)


@pytest.mark.parametrize(
    ("app", "allow", "message"),
    [
        (ER7_SOURCE.format(port=2575), [], "Add --allow hl7=localhost:2575"),
        (ER7_SOURCE.format(port=2575).replace("'er7'", "'text'"), ["hl7=localhost:2575"], "is one of er7, xml"),
        (ER7_SOURCE.format(port=2575).replace("hl7.encoding='er7',", ""), [], "hl7.encoding='er7'"),
        (SINK.format(port=2575, encoding="er7", ms=0), ["hl7=localhost:2575"], "is a whole number from 1 to 600,000"),
        (SINK.format(port="x", encoding="er7", ms=1), ["hl7=localhost:2575"], "uri is HOST:PORT or hl7://HOST:PORT"),
        (SINK.format(port=2575, encoding="er7", ms=1).replace("'false'", "'true'"), [], "'tls.enabled' of a sink"),
    ],
)
def test_what_is_refused(app: str, allow: list[str], message: str, run: Callable[..., App]) -> None:
    with pytest.raises(SparkStreamError, match=message):
        run(app, allow=allow)


def test_a_port_that_is_in_use_is_told(run: Callable[..., App]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        app = run(ER7_SOURCE.format(port=port), allow=[f"hl7=localhost:{port}"])
        until(app, lambda: f"port {port} cannot be listened at" in str(app.stats().sources[0].last_error))
