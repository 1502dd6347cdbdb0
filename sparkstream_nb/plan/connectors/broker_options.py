"""The options that the sources and sinks of a broker share: servers, logins and settings."""

from __future__ import annotations

from .option_spec import OptionSpec

HEADERS = "`\"'NAME:VALUE','NAME:VALUE'\"`."
"""The form of an option with headers."""
NATS_LOGIN = (
    OptionSpec("server.urls", "The servers.", "servers", default="nats://localhost:4222"),
    OptionSpec("bootstrap.servers", "Another name of `server.urls`.", "servers"),
    OptionSpec("client.id", "Accepted, and without effect.", effect=False),
    OptionSpec(
        "cluster.id",
        "A cluster of NATS Streaming, which is retired. Accepted, and without effect: messages go by core NATS.",
        effect=False,
    ),
    OptionSpec("auth.type", "`user` or `token`.", "choice", values=("user", "token")),
    OptionSpec("username", "The user name, with `auth.type='user'`."),
    OptionSpec("password", "The password, by reference, with `auth.type='user'`.", secret=True),
    OptionSpec("token", "The token, by reference, with `auth.type='token'`.", secret=True),
)
KAFKA_SERVERS = OptionSpec(
    "bootstrap.servers",
    "The brokers, `HOST:PORT`, with commas.",
    "servers",
    required="bootstrap.servers='localhost:9092'",
)
KAFKA_SETTINGS = OptionSpec(
    "optional.configuration", "Settings of Kafka's client, `NAME:VALUE,NAME:VALUE`.", "settings"
)
HL7_ENCODINGS = (
    OptionSpec(
        "hl7.encoding",
        "The encoding of messages: `er7` or `xml`.",
        "choice",
        required="hl7.encoding='er7'",
        values=("er7", "xml"),
    ),
    OptionSpec(
        "hl7.ack.encoding",
        "Accepted, and without effect: an acknowledgement has the encoding of its message.",
        default="er7",
        effect=False,
    ),
    OptionSpec("charset", "The encoding of characters.", "choice", default="utf-8", values=("utf-8",), refusal=""),
)
MQTT_BROKER = (
    OptionSpec(
        "url",
        "The broker: `tcp://HOST:PORT`, port 1883 by default.",
        "url",
        required="url='tcp://localhost:1883'",
        is_shown=True,
    ),
    OptionSpec("username", "The user name."),
    OptionSpec("password", "The password, by reference.", secret=True),
    OptionSpec("keep.alive", "Seconds without a message after which the connection is tried.", "seconds", default="60",
               most=65_535),
    OptionSpec("connection.timeout", "Seconds that the broker has for its answers.", "seconds", default="30", most=600),
)
RABBITMQ_EXCHANGE = (
    OptionSpec(
        "uri",
        "The broker: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, with the password by reference unless it is `guest`.",
        "url",
        required="uri='amqp://guest:guest@localhost:5672'",
    ),
    OptionSpec(
        "exchange.name",
        "The exchange. It is declared where the broker has none of this name.",
        required="exchange.name='trades'",
        is_shown=True,
    ),
    OptionSpec(
        "exchange.type",
        "`direct`, `fanout`, `topic` or `headers`.",
        "choice",
        default="direct",
        values=("direct", "fanout", "topic", "headers"),
    ),
    OptionSpec("exchange.durable.enabled", "Whether the exchange outlives the broker.", "bool", default="false"),
    OptionSpec(
        "exchange.autodelete.enabled", "Whether the exchange ends with its last queue.", "bool", default="false"
    ),
    OptionSpec("heartbeat", "Seconds between heartbeats.", "seconds", default="60", most=65_535),
)
WEBSOCKET_SERVER = (
    OptionSpec(
        "url",
        "The server: `ws://HOST:PORT/PATH`.",
        "url",
        required="url='ws://localhost:8025/trades'",
        is_shown=True,
    ),
    OptionSpec("sub.protocol", "The subprotocols that are offered to the server, with commas.", "list", is_shown=True),
    OptionSpec("headers", f"Headers of the handshake: {HEADERS}", "headers"),
    OptionSpec("idle.timeout", "Accepted, and without effect: an idle connection stays open.", effect=False),
)
