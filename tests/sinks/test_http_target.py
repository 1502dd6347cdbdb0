"""Requests of an http target, against sockets of this machine."""

from __future__ import annotations

import socket

import pytest

from sparkstream_nb.mapping import Message
from sparkstream_nb.sinks.http_sink import HttpPlace, HttpTarget
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable


def test_a_server_that_takes_a_request_and_stays_silent() -> None:
    """Each try is a connection of its own, with the same key."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        target = HttpTarget(HttpPlace("http", "127.0.0.1", port, "/in", timeout=0.2, key="run"))
        for _ in range(2):
            with pytest.raises(
                TargetUnavailable, match=rf"^http://127\.0\.0\.1:{port} cannot be reached: it did not answer in time$"
            ):
                target.send([Message(b"x", (0,))], [OutputPlace(7, 3)])
        for _ in range(2):
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as request:
                head, _, body = request.read().partition(b"\r\n\r\n")
                assert head.startswith(b"POST /in HTTP/1.1")
                assert b"Idempotency-Key: run-7-3" in head
                assert body == b"x"
