"""The options that the sources and sinks of a broker share, NATS or Kafka: servers, logins and settings."""

from __future__ import annotations

from .option_spec import OptionSpec

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
