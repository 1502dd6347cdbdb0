"""Takes messages over TCP as siddhi-io-tcp sends them, on this machine alone.

Sources of one port share a listener, which distinguishes them by the frames' channel. A frame is not answered: frames
that were received and are not on the disk when the process is killed are gone. While an app is behind, nothing is
received.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..connections.tcp_frames import HEAD, MOST_BYTES, PROTOCOL, open_frame
from ..errors import shown
from ..mapping.decoding import Decoder
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable, gather
from .stream_server import MOST_CONNECTIONS, StreamServer

_log = logging.getLogger(__name__)
MOST_WAITING = 1_000
"""Messages that wait for a source."""
FRAME_SECONDS = 10.0
"""Longest time for a frame to come in, once it has begun."""
_POLL = 0.02
_MOST_WARNINGS = 20
"""Connections of a port whose end is logged with its reason."""


@dataclass(frozen=True)
class TcpPlace:
    """Place of a tcp source: a loopback address, a port, and the channel of its frames."""

    host: str
    port: int
    channel: str


class TcpReader(SourceReader):
    """A `Reader` of the messages of a channel."""

    def __init__(self, place: TcpPlace, decoder: Decoder) -> None:
        self.place, self._decoder = place, decoder
        self.waiting: queue.Queue[bytes] = queue.Queue(MOST_WAITING)
        self.full = False
        self._is_open = False

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        _listen(self)
        self._is_open = True
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        messages = gather(self.waiting, seconds, MOST_WAITING)
        return ReadMessages(self._decoder.decode(messages), len(messages)) if messages else None

    def busy(self, *, full: bool) -> None:
        self.full = full

    def behind(self) -> Behind | None:
        return Behind(time.monotonic(), {"messages": self.waiting.qsize()}) if self._is_open else None

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            _leave(self)


class _TcpListener(StreamServer):
    """The readers of one address by channel, for which it takes frames."""

    def __init__(self, host: str, port: int, readers: dict[str, TcpReader]) -> None:
        super().__init__(host, port, "tcp")
        self.readers = readers
        self._warnings = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.writers) >= MOST_CONNECTIONS:
            idle = next((w for w, busy in self.writers.items() if not busy), None)
            (writer if idle is None else idle).transport.abort()
            if idle is None:
                return
            self.writers.pop(idle, None)
        self.writers[writer] = False
        try:
            while await self._frame(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # a client that went away, or is too slow, is no news
        except ValueError as error:
            self._warn(str(error))
        finally:
            self.writers.pop(writer, None)
            writer.transport.abort()

    def _warn(self, reason: str) -> None:
        """Logs the reason for the end of a connection. Others may connect as often as they like: only the first
        `_MOST_WARNINGS` are logged."""
        self._warnings += 1
        if self._warnings <= _MOST_WARNINGS:
            last = "; further ones are not logged" if self._warnings == _MOST_WARNINGS else ""
            _log.warning("A connection to port %d was ended: %s%s", self.port, shown(reason), last)

    async def _frame(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a frame; False if the client has ended. Raises ValueError for anything else."""
        first = await reader.read(1)
        if not first:
            return False
        if first[0] != PROTOCOL:
            raise ValueError("it does not send frames of siddhi-io-tcp")
        self.writers.pop(writer, None)
        self.writers[writer] = True
        async with asyncio.timeout(FRAME_SECONDS):
            _, size = HEAD.unpack(first + await reader.readexactly(HEAD.size - 1))
            if not 0 <= size <= MOST_BYTES:
                raise ValueError(f"a frame has {MOST_BYTES:,} bytes at most, and this one says {size:,}")
            channel, message = open_frame(await reader.readexactly(size))
        source = self.readers.get(channel)
        if source is None:
            raise ValueError(f"no source has the context {channel[:200]}")
        while not self._offer(source, message):
            await asyncio.sleep(_POLL)
        self.writers[writer] = False
        return True

    def _offer(self, source: TcpReader, message: bytes) -> bool:
        if source.full:
            return False
        try:
            source.waiting.put_nowait(message)
        except queue.Full:
            return False
        return True


_listeners: dict[tuple[str, int], _TcpListener] = {}
_listening = threading.Lock()


def _listen(reader: TcpReader) -> None:
    """Raises SourceUnavailable if the port is another program's, or the channel another source's."""
    p = reader.place
    with _listening:
        listener = _listeners.get((p.host, p.port))
        if listener is None:
            listener = _TcpListener(p.host, p.port, {p.channel: reader})
            listener.start()
            _listeners[p.host, p.port] = listener
            return
        if p.channel in listener.readers:
            raise SourceUnavailable(f"another source has the context {p.channel} at port {p.port}")
        listener.readers[p.channel] = reader


def _leave(reader: TcpReader) -> None:
    p = reader.place
    with _listening:
        listener = _listeners[p.host, p.port]
        del listener.readers[p.channel]
        if listener.readers:
            return
        del _listeners[p.host, p.port]
    listener.close()
