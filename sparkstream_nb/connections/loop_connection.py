"""A connection to a broker in an event loop of its own, whose thread takes the messages and answers the broker."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from .subscriptions import SECONDS, BrokerMessage, Subscription, unreachable

_POLL = 0.02
T = TypeVar("T")


class LoopConnection(Subscription):
    """A connection to a `broker`, whose name errors have. `thread_name` is the name of its thread."""

    def __init__(self, broker: object, thread_name: str) -> None:
        self._broker, self._is_closing = broker, False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=thread_name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Carries out `work` in the thread of the connection. Raises BrokerFailed."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(2 * SECONDS)
        except TimeoutError:
            future.cancel()
            raise unreachable(self._broker, "it did not answer in time") from None
        except Exception as error:  # libraries raise their own
            raise unreachable(self._broker, error) from None

    async def put_soon(self, waiting: queue.Queue[BrokerMessage], body: bytes, tag: int | None = None) -> None:
        """Put a message behind those that are `waiting`, when that has room. Until then the connection reads no more
        messages; one for which there is no room when the connection ends is left out."""
        message = BrokerMessage(body, self, tag)
        while not self._is_closing:
            try:
                waiting.put_nowait(message)
                return
            except queue.Full:
                await asyncio.sleep(_POLL)

    def end_loop(self) -> None:
        """End the thread of the connection."""
        self._is_closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
