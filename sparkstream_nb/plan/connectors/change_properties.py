"""Mode listening of a `cdc` source: the kinds of databases that have a log which is read, and the properties of
Debezium's connectors in `connector.properties='a=b,c=d'`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

LISTENED = ("postgresql", "mysql", "mariadb")
"""The kinds of databases, as JDBC addresses have them, whose logs this build reads."""
SLOT, PUBLICATION, PLUGIN, SNAPSHOT = "slot.name", "publication.name", "plugin.name", "snapshot.mode"
SERVER_ID = "database.server.id"
PLUGINS = ("pgoutput", "decoderbufs", "wal2json")
"""PostgreSQL's plug-ins that an app may name. Their changes are the same; it is always pgoutput that is read."""
_SNAPSHOTS = (
    "initial", "schema_only", "no_data", "initial_schema_only", "when_needed", "always", "exported",
)  # fmt: skip
"""Kinds of Debezium's first snapshot. siddhi-io-cdc passes over its rows; the log follows from then on."""
_VALUES: Mapping[str, tuple[str, ...]] = {
    SNAPSHOT: _SNAPSHOTS,
    "publication.autocreate.mode": ("filtered", "all_tables"),
    # Numbers become what the attribute is.
    "decimal.handling.mode": ("precise", "double", "string"),
    "time.precision.mode": ("adaptive",),
    "interval.handling.mode": ("numeric",),
    "skipped.operations": ("t", "none"),
    "slot.drop.on.stop": ("false",),
    "tombstones.on.delete": ("true", "false"),
    "include.schema.changes": ("true", "false"),
    "provide.transaction.metadata": ("false",),
}
"""Properties with the values at which they change no event."""
_TUNING = (
    "heartbeat.interval.ms", "poll.interval.ms", "max.batch.size", "max.queue.size", "max.queue.size.in.bytes",
    "status.update.interval.ms", "connect.timeout.ms", "connect.keep.alive", "connect.keep.alive.interval.ms",
    "retriable.restart.connector.wait.ms", "slot.max.retries", "slot.retry.delay.ms", "xmin.fetch.interval.ms",
    "binlog.buffer.size", "topic.prefix", "name", "database.server.name",
)  # fmt: skip
_TUNING_PREFIXES = ("snapshot.", "offset.", "database.history", "schema.history.", "incremental.snapshot.")
"""Properties that tune Debezium or its storage, and change no event."""
_READ = (SLOT, PUBLICATION, PLUGIN, SERVER_ID)


def connector_properties(text: str) -> dict[str, str]:
    """The properties of `a=b,c=d`, as siddhi-io-cdc divides them. Raises ValueError, with the part, for one that is not
    `name=value`."""
    out = {}
    for part in text.split(",") if text.strip() else []:
        pair = part.split("=")
        if len(pair) != 2 or not pair[0].strip():
            raise ValueError(part.strip())
        out[pair[0].strip()] = pair[1].strip()
    return out


def list_property_gaps(text: str) -> Iterator[str]:
    """The words for each property that would change the events, and that this build does not have."""
    try:
        properties = connector_properties(text)
    except ValueError:
        return  # an error of the app, which the deployment reports
    for name, value in properties.items():
        if name in _READ or name in _TUNING or (name != SNAPSHOT and name.startswith(_TUNING_PREFIXES)):
            continue
        if value.lower() not in _VALUES.get(name, ()):
            yield f"'{name}' in connector.properties of a source of type 'cdc'"


def describe_database_gap(url: str) -> str | None:
    """The words for a database whose log this build does not read; None for one that it reads, and for a text that is
    no address."""
    scheme, _, rest = url.strip().partition(":")
    kind = rest.partition(":")[0].lower()
    if scheme.lower() != "jdbc" or not kind.isalnum() or kind in LISTENED:
        return None
    return f"mode='listening' with a database of type '{kind}', of a source of type 'cdc'"
