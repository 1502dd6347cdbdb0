"""The options of the sources that run here, by type. `OptionSpec` documents the fields."""

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
from .change_properties import PLUGINS
from .option_spec import Options, OptionSpec
from .refused_options import options_of_type

_COMMON = (
    OptionSpec("type", "The type of the source."),
    OptionSpec(
        "event.time",
        "The attribute that has an event's time: a long (ms since 1970) or a string (ISO 8601). Without it, the time "
        "at which the event is taken.",
        "attribute",
        is_extra=True,
    ),
    OptionSpec(
        "on.error",
        "Where a message goes that cannot be read: `STORE` (the default) makes it an error of the app, `LOG` a line of "
        "its log.",
        "choice",
        default="STORE",
        values=("STORE", "LOG"),
        refusal="a message that cannot be read has no values for a fault stream, and waiting does not mend it: write "
        "STORE or LOG",
    ),
)
_DAY = 86_400_000
"""ms."""


_table_of = partial(options_of_type, "source", _COMMON)


_KAFKA = _table_of(
    "kafka",
    KAFKA_SERVERS,
    OptionSpec("topic.list", "The topics, with commas.", "list", required="topic.list='trades'", is_shown=True),
    OptionSpec(
        "group.id",
        "The consumer group. Its offsets at the broker follow the app's position.",
        required="group.id='my-app'",
        is_shown=True,
    ),
    OptionSpec(
        "threading.option",
        "`single.thread`, `topic.wise` or `partition.wise`. All three run alike: partitions are read in parallel.",
        "choice",
        required="threading.option='single.thread'",
        values=("single.thread", "topic.wise", "partition.wise"),
        is_shown=True,
        effect=False,
    ),
    OptionSpec("partition.no.list", "The partitions, with commas (default: all).", "list", is_shown=True),
    OptionSpec(
        "is.binary.message",
        "Checked, and without effect: the mapping says whether messages are text.",
        "bool",
        default="false",
        effect=False,
    ),
    OptionSpec(
        "topic.offsets.map",
        "Where a partition begins that was never read, such as `trades=120` (partition 0).",
        "list",
        is_shown=True,
    ),
    KAFKA_SETTINGS,
    OptionSpec("enable.offsets.commit", "Whether the group's offsets at the broker follow.", "bool", default="true"),
    OptionSpec(
        "enable.async.commit",
        "Accepted, and without effect: commits do not wait.",
        "bool",
        default="true",
        effect=False,
    ),
)

_FILE = _table_of(
    "file",
    OptionSpec(
        "dir.uri",
        "The folder whose files are read. This or `file.uri` is needed.",
        "path",
        required="dir.uri='/data/in' or file.uri='/data/in/trades.csv'",
        alternative="file.uri",
        is_shown=True,
    ),
    OptionSpec("file.uri", "The file that is read.", "path", is_shown=True),
    OptionSpec(
        "mode",
        "`line`: a message is a line. `regex`: a text between matches of `begin.regex` and `end.regex`. `text.full` "
        "(the default) and `binary.full`: a file. `parquet`: rows of a parquet file, without `@map`.",
        "choice",
        default="text.full",
        values=("line", "regex", "text.full", "binary.full", "parquet"),
        refusal="line, regex, text.full, binary.full, parquet run",
        is_shown=True,
    ),
    OptionSpec(
        "tailing",
        "Whether a file may grow: `true` by default in modes `line` and `regex`, the only ones that take it.",
        "bool",
    ),
    OptionSpec(
        "begin.regex",
        "A regular expression for the beginning of a message in mode `regex`. Without it, a message begins where the "
        "last one ended.",
        "regex",
    ),
    OptionSpec(
        "end.regex",
        "A regular expression for the end of a message in mode `regex`. Without it, a message ends before the next "
        "match of `begin.regex`.",
        "regex",
    ),
    OptionSpec(
        "action.after.process",
        "`keep` (the default), `delete` or `move`, for a file that is read to its end. Needs `tailing='false'`.",
        "choice",
        default="keep",  # siddhi-io-file deletes by default. Here nothing is deleted that the app does not ask for.
        values=("keep", "delete", "move"),
        is_shown=True,
    ),
    OptionSpec("move.after.process", "The folder that `move` moves to.", "path", is_shown=True),
    OptionSpec("header.present", "Whether the first line of a file names the columns.", "bool", default="false"),
    OptionSpec(
        "file.name.pattern",
        "A regular expression for the whole name of a file of the folder.",
        "regex",
        default=".*",
        is_shown=True,
    ),
    OptionSpec(
        "file.polling.interval", "Pause between looks at a file, in ms.", "ms", default="1000", most=_DAY, is_shown=True
    ),
    OptionSpec(
        "dir.polling.interval",
        "Pause between looks at the folder, in ms.",
        "ms",
        default="1000",
        most=_DAY,
        is_shown=True,
    ),
)

_FILE_EVENTS = _table_of(
    "fileeventlistener",
    OptionSpec(
        "dir.uri", "The folder whose files are looked at.", "path", required="dir.uri='/data/in'", is_shown=True
    ),
    OptionSpec(
        "file.name.list", "The names of the files that are looked at, with commas (default: all).", "list",
        is_shown=True,
    ),
    OptionSpec(
        "monitoring.interval", "Pause between looks at the folder, in ms.", "ms", default="100", most=_DAY,
        is_shown=True,
    ),
)

_LISTENER = (
    OptionSpec(
        "receiver.url",
        "Where the source listens: `http://localhost:PORT/PATH`, on this machine alone.",
        "url",
        required="receiver.url='http://localhost:8006/trades'",
        is_shown=True,
    ),
    OptionSpec(
        "worker.count",
        "Checked, and without effect: each request has a thread.",
        "int",
        default="1",
        most=1000,
        is_shown=True,
        effect=False,
    ),
    OptionSpec(
        "socket.idle.timeout",
        "Longest time for a request to arrive, in ms.",
        "ms",
        default="120000",
        most=_DAY,
        is_shown=True,
    ),
    OptionSpec(
        "basic.auth.enabled",
        "`true`: a request brings a user name and a password. Else it brings a token.",
        "bool",
        default="false",
    ),
    OptionSpec("basic.auth.username", "The user name.", is_extra=True),
    OptionSpec(
        "basic.auth.password", "The password, by reference: `${sec:NAME}` or `${env:NAME}`.", secret=True, is_extra=True
    ),
)
_HTTP = _table_of("http", *_LISTENER)
_SERVICE = _table_of(
    "http-service",
    *_LISTENER,
    OptionSpec(
        "source.id",
        "The name by which `http-service-response` sinks know this source.",
        required="source.id='rates'",
        is_shown=True,
    ),
    OptionSpec(
        "connection.timeout",
        "How long a request waits for its response, in ms. Then it is answered with 504.",
        "ms",
        default="120000",
        most=_DAY,
        is_shown=True,
    ),
)

_RESPONSE = _table_of(
    "http-call-response",
    OptionSpec(
        "sink.id",
        "The `sink.id` of the `http-call` sink whose responses these are.",
        required="sink.id='rates', as the http-call sink has it",
        is_shown=True,
    ),
    OptionSpec(
        "http.status.code",
        "A regular expression for the status of the responses that this source takes.",
        "regex",
        default="200",
    ),
)

_TCP = _table_of(
    "tcp",
    OptionSpec("context", "The name that senders use (default: APP/STREAM).", is_shown=True),
    OptionSpec(
        "port",
        "The port, on this machine.",
        "port",
        default="9892",  # of siddhi-io-tcp's server, whose port is a setting of WSO2's server
        most=65_535,
        is_shown=True,
        is_extra=True,
    ),
)

_HL7 = _table_of(
    "hl7",
    OptionSpec("port", "The port, on this machine.", "port", required="port='2575'", most=65_535, is_shown=True),
    *HL7_ENCODINGS,
)

_NATS = _table_of(
    "nats",
    OptionSpec(
        "destination",
        "The subject, which may have the wildcards `*` and `>`.",
        required="destination='trades'",
        is_shown=True,
    ),
    OptionSpec("queue.group.name", "The queue group: each message goes to one of its members."),
    *NATS_LOGIN,
)

_MQTT = _table_of(
    "mqtt",
    OptionSpec(
        "topic",
        "The topics, with commas, which may have the wildcards `+` and `#`.",
        "list",
        required="topic='rooms/+/temperature'",
        is_shown=True,
    ),
    OptionSpec(
        "quality.of.service",
        "The quality of service that is asked for: `0`, `1` or `2`, which is read as 1.",
        "choice",
        default="1",
        values=("0", "1", "2"),
    ),
    OptionSpec(
        "clean.session",
        "`false`: the broker keeps messages of quality 1 and 2 while the app is away. Needs `client.id`.",
        "bool",
        default="true",
    ),
    OptionSpec("client.id", "The name of the session at the broker (default: one by chance).", is_shown=True),
    *MQTT_BROKER,
)

_RABBITMQ = _table_of(
    "rabbitmq",
    *RABBITMQ_EXCHANGE,
    OptionSpec("routing.key", "The routing key by which the queue is bound to the exchange.", is_shown=True),
    OptionSpec(
        "headers", f"The headers by which the queue is bound to an exchange of type `headers`: {HEADERS}", "headers"
    ),
    OptionSpec(
        "queue.name",
        "The queue. It is declared where the broker has none of this name (default: one for this connection alone).",
        is_shown=True,
    ),
    OptionSpec("queue.durable.enabled", "Whether the queue outlives the broker.", "bool", default="false"),
    OptionSpec("queue.exclusive.enabled", "Whether the queue is for this connection alone.", "bool", default="false"),
    OptionSpec("queue.autodelete.enabled", "Whether the queue ends with its last consumer.", "bool", default="false"),
    OptionSpec(
        "auto.ack",
        "Checked, and without effect: a message is acknowledged when it is on the disk.",
        "bool",
        default="true",
        effect=False,
    ),
    OptionSpec("consumer.threadpool.size", "Accepted, and without effect.", effect=False),
)

_WEBSOCKET = _table_of("websocket", *WEBSOCKET_SERVER)

_CDC = _table_of(
    "cdc",
    OptionSpec(
        "mode",
        "`listening` reads the changes of a table from the log of the database; `polling` reads its rows again and "
        "again.",
        "choice",
        default="listening",
        values=("listening", "polling"),
    ),
    OptionSpec(
        "url",
        "The database: `jdbc:postgresql:`, `jdbc:mysql:` or `jdbc:mariadb:`.",
        "url",
        required="url='jdbc:postgresql://localhost:5432/shop'",
        is_shown=True,
    ),
    OptionSpec("username", "The user of the database.", required="username='reader'"),
    OptionSpec(
        "password",
        "The password, by reference: `${sec:NAME}` or `${env:NAME}`.",
        required="password='${sec:NAME}'",
        secret=True,
    ),
    OptionSpec("jdbc.driver.name", "Accepted, and without effect.", effect=False),
    OptionSpec(
        "table.name",
        "The table that is listened to, or the table or view that is polled.",
        required="table.name='orders'",
        is_shown=True,
    ),
    OptionSpec(
        "operation",
        "`insert`, `update`, `delete`, or several with commas: the changes that are listened to. Mode listening needs "
        "it. Polling takes `insert` and `update`, without effect.",
        "list",
        values=("insert", "update", "delete"),
    ),
    OptionSpec(
        "slot.name",
        "The replication slot in PostgreSQL. A slot has one reader. WSO2's extension has it in `connector.properties`.",
        default="debezium",
        is_shown=True,
        is_extra=True,
    ),
    OptionSpec(
        "plugin.name",
        "`pgoutput`, `decoderbufs` or `wal2json`: PostgreSQL's plug-in. All three run alike: pgoutput is read.",
        "choice",
        default="decoderbufs",
        values=PLUGINS,
        refusal="pgoutput is read",
    ),
    OptionSpec(
        "connector.properties",
        "Properties of Debezium's connector, `NAME=VALUE` with commas: `slot.name`, `publication.name`, and those that "
        "change no event.",
    ),
    OptionSpec(
        "database.server.id",
        "The number by which a server of MySQL knows this replica. Without it, one by chance.",
        "int",
        most=4_294_967_295,
    ),
    OptionSpec(
        "database.server.name",
        "A name of the position in the log of a server of MySQL: with another one, a source begins with what is "
        "committed then.",
        is_shown=True,
    ),
    OptionSpec("polling.column", "The column whose greater values are new rows. Mode polling needs it.", is_shown=True),
    OptionSpec("polling.interval", "Seconds between polls, whole.", "seconds", default="1", most=86_400, is_shown=True),
)

_PROMETHEUS = _table_of(
    "prometheus",
    OptionSpec(
        "target.url",
        "The page with metrics.",
        "url",
        required="target.url='http://localhost:9080/metrics'",
        is_shown=True,
    ),
    OptionSpec(
        "metric.type",
        "`counter`, `gauge`, `histogram` or `summary`.",
        "choice",
        required="metric.type='counter'",
        values=("counter", "gauge", "histogram", "summary"),
    ),
    OptionSpec("metric.name", "The name of the metric (default: the stream's).", is_shown=True),
    OptionSpec(
        "scrape.interval", "Seconds between requests, whole.", "seconds", default="60", most=86_400, is_shown=True
    ),
    OptionSpec("scrape.timeout", "Seconds that an answer may take.", "seconds", default="10", most=600, is_shown=True),
    OptionSpec("scheme", "`http` or `https`, as `target.url` has it.", "choice", values=("http", "https")),
    OptionSpec("username", "The user name of basic authentication."),
    OptionSpec("password", "Its password, by reference: `${sec:NAME}`.", secret=True),
    OptionSpec("headers", f"Headers of the request: {HEADERS}", "headers"),
    OptionSpec("job", "The label `job` that a sample must have.", is_shown=True),
    OptionSpec("instance", "The label `instance` that a sample must have.", is_shown=True),
    OptionSpec(
        "grouping.key", "Labels that a sample must have: `\"'NAME:VALUE','NAME:VALUE'\"`.", "headers", is_shown=True
    ),
)

_IN_MEMORY = _table_of(
    IN_MEMORY,
    OptionSpec("topic", "The topic, within the app.", default="input inMemory source", is_shown=True),
)

SOURCES: Mapping[str, Options] = {
    "kafka": _KAFKA,
    "file": _FILE,
    "fileeventlistener": _FILE_EVENTS,
    "http": _HTTP,
    "http-service": _SERVICE,
    "http-request": _SERVICE,
    "http-call-response": _RESPONSE,
    "http-response": _RESPONSE,
    "tcp": _TCP,
    "hl7": _HL7,
    "nats": _NATS,
    "mqtt": _MQTT,
    "rabbitmq": _RABBITMQ,
    "websocket": _WEBSOCKET,
    "prometheus": _PROMETHEUS,
    "cdc": _CDC,
    IN_MEMORY: _IN_MEMORY,
}
"""By type. `http-response` is the former name of `http-call-response`, `http-request` of `http-service`."""
