"""Takes HL7 messages over MLLP, on this machine alone: each is acknowledged when it is on the disk.

A message that is not acknowledged, because the app was stopped or its process killed, is sent again by its sender:
at least once. While the app is behind, nothing is received.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..connections.hl7_messages import END, MOST_BYTES, START, acknowledgement, frame
from ..mapping.decoding import Decoder
from .reader import Behind, ReadMessages, SourceReader, gather
from .stream_server import MOST_CONNECTIONS, StreamServer

MOST_WAITING = 1_000
"""Messages that wait for the app, at most."""
_HOST = "127.0.0.1"
_POLL = 0.02


@dataclass(frozen=True)
class Hl7Port:
    """The port of a source. `attribute`: that of a text mapping that gets a message in ER7; None for XML."""

    port: int
    attribute: str | None


@dataclass(eq=False)
class _WaitingMessage:
    """A message, and its result: None when it is on the disk, else the reason of its refusal."""

    body: bytes
    refusal: Future[str | None] = field(default_factory=Future)


class Hl7Reader(SourceReader):
    """A `Reader` of the messages that come in at a port."""

    def __init__(self, place: Hl7Port, decoder: Decoder) -> None:
        self.place, self._decoder = place, decoder
        self._waiting: queue.Queue[_WaitingMessage] = queue.Queue(MOST_WAITING)
        self._open_messages: list[_WaitingMessage] = []
        self._server: _MessageServer | None = None
        self._full = False

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        server = _MessageServer(self.place.port, self)
        server.start()
        self._server = server
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        messages = gather(self._waiting, seconds, MOST_WAITING)
        if not messages:
            return None
        self._open_messages = messages
        return ReadMessages(self._decoder.decode([self._as_mapped(m.body) for m in messages]), len(messages))

    def _as_mapped(self, body: bytes) -> bytes:
        """A message as its mapping reads it: siddhi-io-hl7 hands ER7 on as the value of the stream's first attribute,
        in the form of the text mapping."""
        attribute = self.place.attribute
        return body if attribute is None else b"%s: '%s'" % (attribute.encode(), body)

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        reasons = {**refusals, **{r.message: r.reason for r in messages.events.rejected}}
        open_messages, self._open_messages = self._open_messages, []
        for i, message in enumerate(open_messages):
            message.refusal.set_result(reasons.get(i))

    def busy(self, *, full: bool) -> None:
        self._full = full

    def behind(self) -> Behind | None:
        return None if self._server is None else Behind(time.monotonic(), {"messages": self._waiting.qsize()})

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._open_messages = []
        with contextlib.suppress(queue.Empty):  # they were not acknowledged, and come again
            while True:
                self._waiting.get_nowait()

    def offer(self, message: _WaitingMessage) -> bool:
        """True if the message waits for the app now; False while the app is behind."""
        if self._full:
            return False
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            return False
        return True


class _MessageServer(StreamServer):
    """Hands the messages that come in to `message_reader`."""

    def __init__(self, port: int, message_reader: Hl7Reader) -> None:
        super().__init__(_HOST, port, "hl7", MOST_BYTES)
        self._message_reader = message_reader

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.writers) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self.writers[writer] = True
        try:
            while True:
                body = await _next_message(reader)
                refusal = await self._hand_on(body)
                answer = acknowledgement(body.decode("utf-8", "replace"), refusal, datetime.now())
                writer.write(frame(answer))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that went away, or speaks another protocol, is no news
        finally:
            self.writers.pop(writer, None)
            writer.transport.abort()

    async def _hand_on(self, body: bytes) -> str | None:
        """The reason of a refusal, or None, once the message is on the disk."""
        message = _WaitingMessage(body)
        while not self._message_reader.offer(message):
            await asyncio.sleep(_POLL)
        return await asyncio.wrap_future(message.refusal)


async def _next_message(reader: asyncio.StreamReader) -> bytes:
    """The message of the next frame. Raises ValueError for bytes that are none, and the errors of asyncio."""
    data = await reader.readuntil(END)
    if not data.startswith(START):
        raise ValueError("no frame of MLLP")
    return data[len(START) : -len(END)]
