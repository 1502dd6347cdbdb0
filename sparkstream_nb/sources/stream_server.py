"""Listens at a port of this machine, in a thread of its own, for the sources that take messages over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future

from ..serving import run_to_end
from .reader import SourceUnavailable

MOST_CONNECTIONS = 64
_GRACE = 5.0


class StreamServer:
    """A class that derives from it writes `handle`, whose connections it keeps in `writers` while they are open, with
    whether a message is coming in. `most_bytes`: those that a reader looks ahead."""

    def __init__(self, host: str, port: int, name: str, most_bytes: int = 1 << 16) -> None:
        self.host, self.port, self._most_bytes = host, port, most_bytes
        self.writers: dict[asyncio.StreamWriter, bool] = {}
        self._loop = asyncio.SelectorEventLoop()
        self._start: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"sparkstream-{name}-{port}", daemon=True)

    def start(self) -> None:
        """Listen. Raises SourceUnavailable if the address cannot be listened at."""
        self._thread.start()
        try:
            self._start.result()
        except OSError as error:
            self._thread.join(_GRACE)
            why = error.strerror or error
            raise SourceUnavailable(f"{self.host}, port {self.port} cannot be listened at: {why}") from None

    def close(self) -> None:
        """Take no more messages, and end the connections."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end_event.set)
        if self._thread is not threading.current_thread():
            self._thread.join(_GRACE)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the messages of a connection until it ends."""
        raise NotImplementedError

    def _run(self) -> None:
        run_to_end(self._loop, self._serve())

    async def _serve(self) -> None:
        self._end_event = asyncio.Event()
        try:
            server = await asyncio.start_server(self.handle, self.host, self.port, limit=self._most_bytes)
        except OSError as error:
            self._start.set_exception(error)
            return
        self._start.set_result(None)
        await self._end_event.wait()
        server.close()
        for writer in list(self.writers):
            writer.transport.abort()
