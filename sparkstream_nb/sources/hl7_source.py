"""Takes HL7 messages over MLLP, on this machine alone: each is acknowledged when it is on the disk.

A message that is not acknowledged, because the app was stopped or its process killed, is sent again by its sender:
at least once. While the app is behind, nothing is received.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..connections.hl7_messages import END, MOST_BYTES, START, acknowledgement, frame
from ..mapping.decoding import Decoder
from ..serving import run_to_end
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable, gather

MOST_WAITING = 1_000
"""Messages that wait for the app, at most."""
MOST_CONNECTIONS = 64
_HOST = "127.0.0.1"
_POLL = 0.02
_GRACE = 5.0


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
        self._server = _MessageServer(self.place.port, self)
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


class _MessageServer:
    """Listens at a port, in a thread of its own, and hands messages to `reader`."""

    def __init__(self, port: int, reader: Hl7Reader) -> None:
        """Raises SourceUnavailable if the port cannot be listened at."""
        self._port, self._reader = port, reader
        self._loop = asyncio.SelectorEventLoop()
        self._writers: set[asyncio.StreamWriter] = set()
        start: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(start,), name=f"sparkstream-hl7-{port}", daemon=True)
        self._thread.start()
        try:
            start.result()
        except OSError as error:
            self._thread.join(_GRACE)
            why = error.strerror or error
            raise SourceUnavailable(f"{_HOST}, port {port} cannot be listened at: {why}") from None

    def close(self) -> None:
        """Takes no more messages, and ends the connections."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end_event.set)
        self._thread.join(_GRACE)

    def _run(self, start: Future[None]) -> None:
        run_to_end(self._loop, self._serve(start))

    async def _serve(self, start: Future[None]) -> None:
        self._end_event = asyncio.Event()
        try:
            server = await asyncio.start_server(self._client, _HOST, self._port, limit=MOST_BYTES)
        except OSError as error:
            start.set_exception(error)
            return
        start.set_result(None)
        await self._end_event.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._writers.add(writer)
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
            self._writers.discard(writer)
            writer.transport.abort()

    async def _hand_on(self, body: bytes) -> str | None:
        """The reason of a refusal, or None, once the message is on the disk."""
        message = _WaitingMessage(body)
        while not self._reader.offer(message):
            await asyncio.sleep(_POLL)
        return await asyncio.wrap_future(message.refusal)


async def _next_message(reader: asyncio.StreamReader) -> bytes:
    """The message of the next frame. Raises ValueError for bytes that are none, and the errors of asyncio."""
    data = await reader.readuntil(END)
    if not data.startswith(START):
        raise ValueError("no frame of MLLP")
    return data[len(START) : -len(END)]
