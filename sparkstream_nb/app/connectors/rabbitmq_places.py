"""The options of `rabbitmq` sources and sinks as brokers, exchanges and queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from ...connections.rabbitmq_client import RabbitBroker, RabbitExchange, RabbitQueue
from ...errors import Misuse, shown
from ...masking import mask_server
from ...plan.connectors.connector_options import options_of
from ...sinks.rabbitmq_sink import RabbitPlace, RabbitTarget
from ...sinks.target import Target
from ...sources.rabbitmq_source import RabbitBinding
from ..config.grants import Grants
from ..config.secrets import References, check_password
from .header_options import headers_of
from .typed_options import OptionValues

_GUEST = "guest"
"""User and password that a broker has by default, for clients of its own machine alone. It is no secret."""
_EXAMPLE = "${sec:NAME} in its place, and store NAME in the keyring or allow the environment variable"


@dataclass(frozen=True)
class RabbitGate:
    """Makes places of the options of `what`, a source or sink in words, within its `grants`."""

    grants: Grants
    references: References
    what: str

    def target(self, options: Mapping[str, str], key: str, content_type: str) -> tuple[str, Target]:
        """(the exchange as it may be shown, the target of a sink). `key` begins the ids of its messages, `content_type`
        is the MIME type of their mapping. Raises `Misuse` for options that are wrong, or have a secret that is no
        reference, and NotAllowed for a broker that is not granted."""
        o = OptionValues(options, options_of("sink", "rabbitmq"), self.what)
        broker, exchange = self._broker(o, "sends to"), self._exchange(o)
        header_list = list(headers_of(o.raw("headers"), (), self.references, self.what))
        place = RabbitPlace(
            broker,
            exchange,
            o.text("routing.key"),
            headers=tuple((h.name, h.value) for h in header_list if not h.dynamic),
            templates=tuple((h.name, h.value) for h in header_list if h.dynamic),
            content_type=o.trim("content.type") or content_type,
            delivery_mode=int(o.choice("delivery.mode")),
            key=key,
        )
        return f"{exchange.name} at {broker}", RabbitTarget(place)

    def subscription(self, options: Mapping[str, str]) -> RabbitBinding:
        """The queue of a source. Raises as `target` does."""
        o = OptionValues(options, options_of("source", "rabbitmq"), self.what)
        broker, exchange = self._broker(o, "reads from"), self._exchange(o)
        o.flag("auto.ack")
        headers = tuple((h.name, h.value) for h in headers_of(o.raw("headers"), (), self.references, self.what))
        bound = RabbitQueue(
            o.text("queue.name"),
            o.flag("queue.durable.enabled"),
            o.flag("queue.exclusive.enabled"),
            o.flag("queue.autodelete.enabled"),
            o.text("routing.key"),
            headers,
        )
        return RabbitBinding(broker, exchange, bound)

    def _exchange(self, o: OptionValues) -> RabbitExchange:
        return RabbitExchange(
            o.text("exchange.name"),
            o.choice("exchange.type"),
            o.flag("exchange.durable.enabled"),
            o.flag("exchange.autodelete.enabled"),
        )

    def _broker(self, o: OptionValues, does: str) -> RabbitBroker:
        if find_spec("pika") is None:
            raise Misuse(f"{self.what} needs pika: pip install 'sparkstream-nb[rabbitmq]'")
        uri = o.trim("uri")
        wrong = f"{self.what}: uri is an address such as amqp://localhost:5672, not {shown(mask_server(uri))}"
        try:
            parts = urlsplit(uri)
            port = parts.port or 5672
        except ValueError:
            raise Misuse(wrong) from None
        if parts.scheme != "amqp" or not parts.hostname or "/" in parts.path[1:] or parts.query or parts.fragment:
            raise Misuse(wrong)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        _, port = self.grants.check_server("rabbitmq", f"{host}:{port}", f"{self.what} {does}")
        user, password = parts.username or _GUEST, parts.password or _GUEST
        if (user, password) != (_GUEST, _GUEST):
            check_password(password, self.what, _EXAMPLE)
        # No secret is looked up for a broker that is not allowed.
        return RabbitBroker(
            parts.hostname,
            port,
            unquote(parts.path[1:]) or "/",
            self.references.resolve(unquote(user), self.what),
            self.references.resolve(password, self.what),
            o.number("heartbeat"),
        )
