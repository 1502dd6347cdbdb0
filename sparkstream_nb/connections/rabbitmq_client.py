"""A connection to a RabbitMQ broker, by pika in an event loop of its own: messages are published and consumed.

A connection that ends is not reopened automatically: its user gets an error, and reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .loop_connection import LoopConnection
from .subscriptions import SECONDS, BrokerFailed, BrokerMessage

AT_ONCE = 500
"""Messages that are published at once."""
_AHEAD = 2_000
"""Messages that the broker sends ahead of their acknowledgements."""
_NOT_FOUND = 404


@dataclass(frozen=True)
class RabbitBroker:
    """A broker, and how to log in there; `heartbeat` in seconds. Never shown: it may have secrets."""

    host: str
    port: int
    virtual_host: str
    user: str
    password: str = field(repr=False)
    heartbeat: int = 60

    def __str__(self) -> str:
        return f"amqp://{self.host}:{self.port}"


@dataclass(frozen=True)
class RabbitExchange:
    """An exchange. It is declared where the broker has none of this name."""

    name: str
    type: str = "direct"
    durable: bool = False
    auto_delete: bool = False


@dataclass(frozen=True)
class RabbitQueue:
    """A queue that is bound to an exchange with a routing key and headers. It is declared where the broker has none of
    this name; one without a name is for this connection alone."""

    name: str = ""
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    routing_key: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RabbitMessage:
    """A message to an exchange; `properties` by pika's names."""

    routing_key: str
    body: bytes
    properties: Mapping[str, Any]


class RabbitConnection(LoopConnection):
    """A connection that is open, with a channel and an exchange. `close` ends it and its thread."""

    def __init__(self, broker: RabbitBroker, exchange: RabbitExchange) -> None:
        """Raises BrokerFailed."""
        super().__init__(broker, "sparkstream-rabbitmq")
        logging.getLogger("pika").setLevel(logging.CRITICAL)  # what it logs is raised as well
        self.broker, self.exchange = broker, exchange
        self._connection: Any = None
        self._channel: Any = None
        self._requests: set[asyncio.Future[Any]] = set()
        """Requests that the broker has not answered yet."""
        self._message_count = 0
        self._pending_tags: set[int] = set()
        self._confirmation: asyncio.Future[None] | None = None
        try:
            self.call(self._connect())
        except BrokerFailed:
            self.close()
            raise

    @property
    def open(self) -> bool:
        return not self._is_closing and self._channel is not None and bool(self._channel.is_open)

    def consume(self, bound_queue: RabbitQueue, waiting: queue.Queue[BrokerMessage]) -> None:
        """Puts each message of a queue into `waiting`. Raises BrokerFailed."""
        self.call(self._consume(bound_queue, waiting))

    def acknowledge(self, tags: Sequence[int]) -> None:
        async def acknowledge_all() -> None:
            self._channel.basic_ack(tags[-1], multiple=True)

        self.call(acknowledge_all())

    def publish(self, messages: Sequence[RabbitMessage]) -> None:
        """Publishes messages; the broker has confirmed all when this returns. Raises BrokerFailed."""
        self.call(self._publish(messages))

    def close(self) -> None:
        self._is_closing = True

        async def close_connection() -> None:
            if self._connection is not None and self._connection.is_open:
                await self._ask(lambda _: self._connection.close())  # `_fail` ends this

        with contextlib.suppress(BrokerFailed):
            self.call(close_connection())
        self.end_loop()

    async def _ask(self, request: Callable[[Callable[..., None]], object]) -> Any:
        """The first argument of the last one of the calls that `request` asks the broker's answer for. Raises the error
        with which the channel or the connection is closed in the meantime."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._requests.add(future)

        def answer(*arguments: Any) -> None:
            if not future.done():
                future.set_result(arguments[0])

        try:
            request(answer)
            return await future
        finally:
            self._requests.discard(future)

    def _fail(self, _: object, error: Exception) -> None:
        """Fail the requests that are under way."""
        for future in self._requests:
            if not future.done():
                future.set_exception(error)

    async def _connect(self) -> None:
        from pika import ConnectionParameters, PlainCredentials
        from pika.adapters.asyncio_connection import AsyncioConnection

        b = self.broker
        parameters = ConnectionParameters(
            b.host,
            b.port,
            b.virtual_host,
            PlainCredentials(b.user, b.password),
            heartbeat=b.heartbeat,
            connection_attempts=1,
            socket_timeout=SECONDS,
            stack_timeout=SECONDS,
            blocked_connection_timeout=SECONDS,
        )
        self._connection = await self._ask(
            lambda answer: AsyncioConnection(parameters, answer, self._fail, self._fail, custom_ioloop=self._loop)
        )
        self._channel = await self._open_channel()
        e = self.exchange
        await self._ensure(
            lambda answer: self._channel.exchange_declare(e.name, passive=True, callback=answer),
            lambda answer: self._channel.exchange_declare(
                e.name, e.type, durable=e.durable, auto_delete=e.auto_delete, callback=answer
            ),
        )
        await self._ask(lambda answer: self._channel.confirm_delivery(self._handle_confirmation, answer))

    async def _open_channel(self) -> Any:
        channel = await self._ask(lambda answer: self._connection.channel(on_open_callback=answer))
        channel.add_on_close_callback(self._fail)
        return channel

    async def _ensure(
        self,
        look: Callable[[Callable[..., None]], object],
        declare: Callable[[Callable[..., None]], object],
    ) -> None:
        """Declare something that the broker does not have. The answer to a look for it is a closed channel then."""
        from pika.exceptions import ChannelClosedByBroker

        try:
            await self._ask(look)
        except ChannelClosedByBroker as error:
            if error.reply_code != _NOT_FOUND:
                raise
            self._channel = await self._open_channel()
            await self._ask(declare)

    async def _consume(self, bound_queue: RabbitQueue, waiting: queue.Queue[BrokerMessage]) -> None:
        q, name = bound_queue, bound_queue.name
        if name:
            await self._ensure(
                lambda answer: self._channel.queue_declare(name, passive=True, callback=answer),
                lambda answer: self._channel.queue_declare(
                    name, durable=q.durable, exclusive=q.exclusive, auto_delete=q.auto_delete, callback=answer
                ),
            )
        else:
            frame = await self._ask(
                lambda answer: self._channel.queue_declare("", exclusive=True, auto_delete=True, callback=answer)
            )
            name = frame.method.queue
        await self._ask(
            lambda answer: self._channel.queue_bind(
                name, self.exchange.name, q.routing_key, arguments=dict(q.headers) or None, callback=answer
            )
        )
        await self._ask(lambda answer: self._channel.basic_qos(prefetch_count=_AHEAD, callback=answer))

        def handle_message(_: object, delivery: Any, properties: object, body: bytes) -> None:
            self.put(waiting, body, delivery.delivery_tag)

        self._channel.add_on_cancel_callback(lambda _: self._channel.close())  # the queue was deleted
        await self._ask(lambda answer: self._channel.basic_consume(name, handle_message, callback=answer))

    async def _publish(self, messages: Sequence[RabbitMessage]) -> None:
        from pika import BasicProperties

        self._confirmation = self._loop.create_future()
        self._requests.add(self._confirmation)
        try:
            for m in messages:
                self._message_count += 1
                self._pending_tags.add(self._message_count)
                self._channel.basic_publish(self.exchange.name, m.routing_key, m.body, BasicProperties(**m.properties))
            await self._confirmation
        finally:
            self._requests.discard(self._confirmation)

    def _handle_confirmation(self, frame: Any) -> None:
        method = frame.method
        if method.multiple:
            self._pending_tags = {tag for tag in self._pending_tags if tag > method.delivery_tag}
        else:
            self._pending_tags.discard(method.delivery_tag)
        if self._confirmation is None or self._confirmation.done():
            return
        if method.NAME == "Basic.Nack":
            self._confirmation.set_exception(RuntimeError("it does not take a message"))
        elif not self._pending_tags:
            self._confirmation.set_result(None)
