"""The annotations of SiddhiQL with the keys that each takes."""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, tuple[str, ...]] = {
    "app:name": (),
    "app:description": (),
    "app:playback": ("idle.time", "increment"),
    "info": ("name",),
    "source": ("type", "topic", "on.error"),
    "sink": (
        "type", "topic", "on.error", "prefix", "priority", "file.uri", "append", "add.line.separator", "roll.size",
        "publisher.url", "method", "headers", "basic.auth.username", "basic.auth.password", "socket.idle.timeout",
        "bootstrap.servers", "partition.no", "key", "is.binary.message", "optional.configuration",
        "metric.type", "metric.name", "metric.help", "value.attribute", "buckets", "server.url",
        "sink.id", "host", "port", "address", "username", "password", "subject", "to", "cc", "bcc", "content.type",
    ),
    "map": (
        "type", "header", "delimiter", "event.grouping.enabled", "enclosing.element", "enable.null.attribute.value",
        "validate.json", "validate.xml", "new.line.character",
    ),
    "distribution": ("strategy", "partitionKey"),
    "destination": ("topic", "file.uri", "publisher.url", "partition.no"),
    "store": ("type", "jdbc.url", "username", "password", "datasource", "ref", "table.name"),
    "PrimaryKey": (),
    "Index": (),
    "PartitionById": ("enable",),
    "purge": ("enable", "interval", "idle.period"),
    "retentionPeriod": ("sec", "min", "hours", "days", "months", "years"),
    "OnError": ("action",),
    "async": ("buffer.size", "workers", "batch.size.max"),
    "dist": (),
}  # fmt: skip
"""The annotation → its keys, the usual ones first."""

VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("source", "type"): ("inMemory",),
    ("sink", "type"): ("log", "inMemory", "file", "http", "http-call", "kafka", "email", "tcp", "nats", "prometheus"),
    ("map", "type"): ("passThrough", "json", "csv", "text", "keyvalue", "xml", "binary", "avro"),
    ("distribution", "strategy"): ("partitioned", "roundRobin", "broadcast"),
    ("store", "type"): ("rdbms",),
    ("source", "on.error"): ("STORE", "LOG"),
    ("sink", "on.error"): ("LOG", "STREAM", "STORE", "WAIT"),
    ("OnError", "action"): ("LOG", "STREAM", "STORE"),
    ("PartitionById", "enable"): ("true", "false"),
    ("purge", "enable"): ("true", "false"),
}
"""The annotation and its key → the values that it may have, where they are few."""
