"""The options of the sinks to the outside that run here, by type. `OptionSpec` documents the fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..query_parts import IN_MEMORY
from .broker_options import (
    HEADERS,
    HL7_ENCODINGS,
    KAFKA_SERVERS,
    KAFKA_SETTINGS,
    MQTT_BROKER,
    NATS_LOGIN,
    RABBITMQ_EXCHANGE,
    WEBSOCKET_SERVER,
)
from .option_spec import Options, OptionSpec
from .refused_options import options_of_type

_COMMON = (
    OptionSpec("type", "The type of the sink."),
    OptionSpec("ref", "The name of a connector in a deployment file, whose options this sink takes."),
    OptionSpec(
        "on.error",
        "Action for an event that cannot be delivered: `LOG` (the default), `STORE`, `STREAM` or `WAIT`.",
        "choice",
        default="LOG",
        values=("LOG", "WAIT", "STREAM", "STORE"),
    ),
)


_table_of = partial(options_of_type, "sink", _COMMON)


_FILE = _table_of(
    "file",
    OptionSpec(
        "file.uri",
        "The file, or the folder (with `/` at the end), that is written. With `{{attribute}}` in it, one for each "
        "value.",
        "path",
        required="file.uri='out/alerts.csv'",
        dynamic=True,
        is_shown=True,
    ),
    OptionSpec("append", "`false`: the file has only the last message.", "bool", default="true"),
    OptionSpec("add.line.separator", "Whether a line break follows each message.", "bool", default="true"),
    OptionSpec(
        "roll.size",
        "The size of the files of a folder, such as `64MB` (default: a file for each micro-batch).",
        "size",
        is_extra=True,
    ),
)


_CONNECTION_POOL = (
    "max.pool.active.connections", "min.pool.idle.connections", "max.pool.idle.connections", "min.evictable.idle.time",
    "time.between.eviction.runs", "max.wait.time", "test.on.borrow", "test.while.idle", "exhausted.action",
)  # fmt: skip
"""Options of the pool of connections, where a sink has one connection here."""


def _http_options(address: str) -> tuple[OptionSpec, ...]:
    """Options of sinks that post, with an example of an `address`."""
    return (
        OptionSpec(
            "publisher.url", "The address that messages are sent to.", "url", required=f"publisher.url='{address}'"
        ),
        OptionSpec("basic.auth.username", "The user name of basic authentication."),
        OptionSpec("basic.auth.password", "Its password, by reference: `${sec:NAME}`.", secret=True),
        OptionSpec("headers", f"Headers of the request: {HEADERS}", "headers", dynamic=True),
        OptionSpec("method", "The method of the request.", default="POST", dynamic=True),
        OptionSpec("socket.idle.timeout", "How long an answer may take, in ms.", "ms", default="6000", most=600_000),
        OptionSpec("blocking.io", "Accepted, and without effect: each message waits for its answer.", effect=False),
        OptionSpec("chunk.disabled", "Accepted, and without effect: a body is sent in one piece.", effect=False),
        OptionSpec("token.url", "Where access tokens of OAuth 2.0 are asked for.", "url"),
        OptionSpec("consumer.key", "The client's id at the token server, in a header."),
        OptionSpec("consumer.secret", "The client's secret, by reference.", secret=True),
        OptionSpec("body.consumer.key", "The client's id at the token server, in the body."),
        OptionSpec("body.consumer.secret", "The client's secret in the body, by reference.", secret=True),
        OptionSpec("oauth.username", "The user name of a password grant."),
        OptionSpec("oauth.password", "The password of a password grant, by reference.", secret=True),
        OptionSpec("oauth.scope", "The scope that is asked for."),
        OptionSpec("refresh.token", "A refresh token, by reference.", secret=True),
        *(
            OptionSpec(name, "Accepted, and without effect: a sink has one connection.", effect=False)
            for name in _CONNECTION_POOL
        ),
    )


_HTTP = _table_of("http", *_http_options("http://localhost:8080/alerts"))
_CALL = _table_of(
    "http-call",
    *_http_options("http://localhost:8080/rates"),
    OptionSpec("sink.id", "The name by which `http-call-response` sources know this sink.", required="sink.id='rates'"),
)

_SERVICE_RESPONSE = _table_of(
    "http-service-response",
    OptionSpec(
        "source.id",
        "The `source.id` of the `http-service` source whose requests are answered.",
        required="source.id='rates', as the http-service source has it",
        is_shown=True,
    ),
    OptionSpec(
        "message.id",
        "The attribute that has the request's `trp:messageId`, as `{{messageId}}`.",
        required="message.id='{{messageId}}'",
        dynamic=True,
        is_shown=True,
    ),
    OptionSpec("headers", f"Headers of the response: {HEADERS}", "headers", dynamic=True),
    OptionSpec(
        "on.error",
        "Action for an event whose request waits no more: `LOG` (the default), `STORE` or `STREAM`.",
        "choice",
        default="LOG",
        values=("LOG", "STREAM", "STORE"),
        refusal="a request that waits no more never will: write LOG, STREAM or STORE",
    ),
)

_KAFKA = _table_of(
    "kafka",
    KAFKA_SERVERS,
    OptionSpec("topic", "The topic.", required="topic='alerts'", dynamic=True, is_shown=True),
    OptionSpec("partition.no", "The partition (default: by the key).", "int", dynamic=True, is_shown=True),
    OptionSpec("key", "The key of a record.", dynamic=True, is_shown=True),
    OptionSpec("headers", f"Headers of a record: {HEADERS}", "headers", dynamic=True, is_extra=True),
    OptionSpec(
        "is.binary.message",
        "Checked, and without effect: the mapping says whether messages are text.",
        "bool",
        default="true",
        is_shown=True,
        effect=False,
    ),
    KAFKA_SETTINGS,
)

_EMAIL = _table_of(
    "email",
    OptionSpec("username", "The user name at the server."),
    OptionSpec("address", "The address of the sender.", required="address='alerts@example.org'", is_shown=True),
    OptionSpec("password", "The password, by reference: `${sec:NAME}`.", secret=True),
    OptionSpec("host", "The server.", default="smtp.gmail.com"),
    OptionSpec("port", "The port of the server (default: 465 with TLS, 25 without).", "port"),
    OptionSpec("ssl.enable", "`false`: STARTTLS where the server offers it.", "bool", default="true"),
    OptionSpec("starttls.enable", "Whether STARTTLS is used where the server offers it.", "bool", default="true"),
    OptionSpec("auth", "Whether to log in.", "bool", default="true"),
    OptionSpec(
        "content.type",
        "`text/plain` or `text/html`.",
        "choice",
        default="text/plain",
        values=("text/plain", "text/html"),
    ),
    OptionSpec("subject", "The subject.", required="subject='Alert of {{room}}'", dynamic=True, is_shown=True),
    OptionSpec(
        "to", "The recipients, with commas.", "list", required="to='me@example.org'", dynamic=True, is_shown=True
    ),
    OptionSpec("cc", "Recipients of a copy.", "list", dynamic=True, is_shown=True),
    OptionSpec("bcc", "Recipients of a copy that the others do not see.", "list", dynamic=True, is_shown=True),
)

_NATS = _table_of(
    "nats",
    OptionSpec("destination", "The subject.", required="destination='alerts'", dynamic=True, is_shown=True),
    *NATS_LOGIN,
)

_MQTT = _table_of(
    "mqtt",
    OptionSpec("topic", "The topic.", required="topic='rooms/{{room}}/alerts'", dynamic=True, is_shown=True),
    OptionSpec(
        "quality.of.service",
        "`0`: sent once. `1`, `2`: sent until the broker confirms it.",
        "choice",
        default="1",
        values=("0", "1", "2"),
    ),
    OptionSpec("message.retain", "Whether the broker keeps the last message of a topic.", "bool", default="false"),
    OptionSpec("client.id", "The name of the session at the broker (default: one by chance).", is_shown=True),
    OptionSpec(
        "clean.session",
        "Accepted, and without effect: a sink has no subscriptions.",
        "bool",
        default="true",
        effect=False,
    ),
    *MQTT_BROKER,
)

_RABBITMQ = _table_of(
    "rabbitmq",
    *RABBITMQ_EXCHANGE,
    OptionSpec("routing.key", "The routing key of a message.", dynamic=True, is_shown=True),
    OptionSpec("headers", f"Headers of a message: {HEADERS}", "headers", dynamic=True),
    OptionSpec(
        "delivery.mode",
        "`1`: messages in queues end with the broker. `2`: durable queues keep them.",
        "choice",
        default="1",
        values=("1", "2"),
    ),
    OptionSpec("content.type", "The content type of a message (default: that of the mapping)."),
)

_WEBSOCKET = _table_of("websocket", *WEBSOCKET_SERVER)

_TCP = _table_of(
    "tcp",
    OptionSpec(
        "url",
        "The server and its context: `tcp://HOST:PORT/CONTEXT`.",
        "url",
        required="url='tcp://localhost:9892/alerts'",
        is_shown=True,
    ),
    OptionSpec(
        "sync",
        "Accepted, and without effect: a message is sent before the next one.",
        "bool",
        default="false",
        effect=False,
    ),
    OptionSpec("tcp.no.delay", "Whether small messages are sent at once.", "bool", default="true"),
    OptionSpec("keep.alive", "Whether the system keeps the connection alive.", "bool", default="true"),
    OptionSpec("worker.threads", "Accepted, and without effect.", effect=False),
)

_HL7 = _table_of(
    "hl7",
    OptionSpec(
        "uri",
        "The server: `HOST:PORT` or `hl7://HOST:PORT`.",
        "url",
        required="uri='localhost:2575'",
        is_shown=True,
    ),
    *HL7_ENCODINGS,
    OptionSpec("hl7.timeout", "Longest wait for an acknowledgement, in ms.", "ms", default="10000", most=600_000),
)

_PROMETHEUS = _table_of(
    "prometheus",
    OptionSpec("job", "Accepted, and without effect: the server that reads the metric names the job.", effect=False),
    OptionSpec(
        "publish.mode",
        "`server`: the metric is served at `server.url`. `pushgateway` is refused by name.",
        "choice",
        default="server",
        values=("server",),
        refusal="",
    ),
    OptionSpec(
        "server.url",
        "Where the metric is served, at `/metrics`: `http://localhost:PORT`.",
        "url",
        default="http://localhost:9080",
    ),
    OptionSpec(
        "metric.type",
        "`counter`, `gauge`, `histogram` or `summary`.",
        "choice",
        required="metric.type='counter'",
        values=("counter", "gauge", "histogram", "summary"),
    ),
    OptionSpec("metric.name", "The name of the metric (default: the stream's)."),
    OptionSpec("metric.help", "The help text of the metric."),
    OptionSpec(
        "value.attribute",
        "The attribute with the value (default: `value`); the others are labels.",
        "attribute",
        default="value",
    ),
    OptionSpec("buckets", "The upper bounds of a histogram's buckets, with commas.", "list"),
)

_IN_MEMORY = _table_of(
    IN_MEMORY,
    OptionSpec("topic", "The topic, within the app.", required="topic='prices'", dynamic=True, is_shown=True),
)

SINKS: Mapping[str, Options] = {
    "file": _FILE,
    "http": _HTTP,
    "http-call": _CALL,
    "http-request": _CALL,
    "http-service-response": _SERVICE_RESPONSE,
    "http-response": _SERVICE_RESPONSE,
    "kafka": _KAFKA,
    "email": _EMAIL,
    "hl7": _HL7,
    "nats": _NATS,
    "mqtt": _MQTT,
    "rabbitmq": _RABBITMQ,
    "websocket": _WEBSOCKET,
    "tcp": _TCP,
    "prometheus": _PROMETHEUS,
    IN_MEMORY: _IN_MEMORY,
}
"""By type. `http-request` is the former name of `http-call`, `http-response` of `http-service-response`."""
