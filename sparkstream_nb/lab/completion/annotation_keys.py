"""The annotations of SiddhiQL with the keys that each takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...plan.connectors.connector_options import FORMER_TYPES, TABLES
from ...plan.connectors.option_spec import End, Options, OptionSpec

KEYS: Mapping[str, tuple[str, ...]] = {
    "app:name": (),
    "app:description": (),
    "app:playback": ("idle.time", "increment"),
    "info": ("name",),
    "source": ("type", "topic", "on.error"),
    "sink": ("type", "topic", "on.error", "prefix", "priority"),
    "map": ("type",),
    "distribution": ("strategy", "partitionKey"),
    "destination": ("topic",),
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
"""The annotation → its keys, the usual ones first; of connectors and mappings those that are in no table of options."""

VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("distribution", "strategy"): ("partitioned", "roundRobin", "broadcast"),
    ("store", "type"): ("rdbms",),
    ("OnError", "action"): ("LOG", "STREAM", "STORE"),
    ("PartitionById", "enable"): ("true", "false"),
    ("purge", "enable"): ("true", "false"),
}
"""The annotation and its key → the values that it may have, where they are few, without the table of options."""

_OWN_KEYS: Mapping[tuple[End, str], tuple[str, ...]] = {
    ("sink", "log"): ("type", "prefix", "priority", "on.error"),
    ("source-mapping", "passThrough"): ("type",),
    ("sink-mapping", "passThrough"): ("type",),
}
"""The keys of types within the app, which have no table of options."""


@dataclass(frozen=True)
class AnnotationPlace:
    """An annotation in whose brackets a cursor is, the options before the cursor, and the annotation around it."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    outer: AnnotationPlace | None = None

    def around(self, *names: str) -> AnnotationPlace | None:
        """This annotation, or the nearest around it, that has one of these names."""
        if self.name in names:
            return self
        return None if self.outer is None else self.outer.around(*names)


def keys_of(place: AnnotationPlace) -> tuple[str, ...]:
    """The keys that an annotation takes: of a source, sink or mapping the options of its type, where it is given."""
    end, type_ = _end_and_type(place)
    if end is None:
        return KEYS.get(place.name, ())
    if (end, type_) in _OWN_KEYS:
        keys: list[str] = [*_OWN_KEYS[end, type_]]
    else:
        general = KEYS[place.name] if type_ not in TABLES[end] else ("type",)
        keys = [*general, *(spec.name for spec in _options(end, type_))]
    excluded_keys = ("type", "ref", "on.error") if place.name == "destination" else ()
    return tuple(key for key in dict.fromkeys(keys) if key not in excluded_keys)


def values_of(place: AnnotationPlace, key: str) -> tuple[str, ...]:
    """The values that a key of an annotation may have, where they are few."""
    end, type_ = _end_and_type(place)
    if end is None:
        return VALUES.get((place.name, key), ())
    if key == "type":
        inside = [t for e, t in _OWN_KEYS if e == end]
        return tuple(t for t in (*inside, *TABLES[end]) if t not in FORMER_TYPES.get(end, ()))
    specs = [spec for spec in _options(end, type_) if spec.name == key]
    return tuple(dict.fromkeys(value for spec in specs for value in _values(spec)))


def _values(spec: OptionSpec) -> tuple[str, ...]:
    return ("true", "false") if spec.kind == "bool" else spec.values


def _end_and_type(place: AnnotationPlace) -> tuple[End | None, str]:
    """The end and the type of a source, sink, destination or mapping; (None, "") of another annotation."""
    connector = place.around("source", "sink")
    sink = connector is None or connector.name == "sink"
    if place.name == "map":
        return "sink-mapping" if sink else "source-mapping", place.values.get("type", "")
    if place.name not in ("source", "sink", "destination"):
        return None, ""
    return "sink" if sink else "source", "" if connector is None else connector.values.get("type", "")


def _options(end: End, type_: str) -> Iterator[OptionSpec]:
    """The options of a type that run here; of all types where there is none of this name."""
    tables: list[Options] = [TABLES[end][type_]] if type_ in TABLES[end] else [*TABLES[end].values()]
    return (spec for table in tables for spec in table.values() if spec.runs)
