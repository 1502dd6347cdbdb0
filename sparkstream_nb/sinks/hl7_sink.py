"""An HL7 server that takes each message over MLLP.

A message counts as sent when the server accepts it (AA or CA). One that it refuses is an error of the sink with the
server's reason.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..connections.hl7_messages import END, MOST_BYTES, START, Result, frame, is_xml
from ..connections.sockets import shut_down
from ..errors import printable
from ..mapping import Message
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Hl7Server:
    """A server, the encoding of messages, and the seconds within which it answers."""

    host: str
    port: int
    is_xml: bool
    timeout: float

    def __str__(self) -> str:
        return f"hl7://{self.host}:{self.port}"


class Hl7Target(Target):
    """Sends messages one by one, over one connection that is kept open."""

    def __init__(self, place: Hl7Server) -> None:
        self.place = place
        self._socket: socket.socket | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        text = messages[0].body.decode()
        if not self.place.is_xml and not text.lstrip().startswith("MSH"):
            raise Undeliverable("a message in ER7 begins with the segment MSH")
        if self.place.is_xml and not is_xml(text):
            raise Undeliverable("the message is no XML")
        result = self._exchange(frame(text))
        if not result.is_accepted:
            why = printable(result.reason)[:200]
            raise Undeliverable(f"{self.place} answered {printable(result.code)[:20]}" + (f": {why}" if why else ""))
        return 1

    def close(self) -> None:
        open_socket, self._socket = self._socket, None
        if open_socket is not None:
            open_socket.close()

    def cancel(self) -> None:
        shut_down(self._socket)

    def _exchange(self, data: bytes) -> Result:
        """The server's result for a message. Raises TargetUnavailable."""
        try:
            connection = self._ensure_connection()
            connection.sendall(data)
            answer = self._receive(connection, time.monotonic() + self.place.timeout)
        except OSError as error:
            self.close()
            why = "it did not answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise TargetUnavailable(f"{self.place} cannot be reached: {why}") from None
        result = Result.of(answer)
        if result is None:
            self.close()
            raise TargetUnavailable(f"{self.place} answered with something that is no acknowledgement")
        return result

    def _receive(self, connection: socket.socket, end: float) -> str:
        """The next message of the server. Raises OSError."""
        data = b""
        while not data.endswith(END):
            connection.settimeout(max(end - time.monotonic(), 0.001))
            part = connection.recv(_CHUNK)
            if not part or len(data) > MOST_BYTES:
                raise ConnectionError("the connection ended before the acknowledgement")
            data += part
        return data.removeprefix(START).removesuffix(END).decode("utf-8", "replace")

    def _ensure_connection(self) -> socket.socket:
        """The connection, another one where the server has ended it."""
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # nothing is to come between a message and the next one
        if self._socket is None:
            self._socket = socket.create_connection((self.place.host, self.place.port), self.place.timeout)
        return self._socket
