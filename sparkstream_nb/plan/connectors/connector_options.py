"""The table of options: every option of a source, sink or mapping that this build has or refuses by name.

`source_options.py`, `sink_options.py`, `mapping_options.py` and `refused_options.py` declare them. What is checked,
suggested and written on the reference pages comes from here; `app/connectors/typed_options.py` reads values by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...errors import near_to, shown
from ..extensions import types as extension_types
from ..query_parts import template_attributes
from .kafka_client_settings import CONFIGURATION, client_settings
from .mapping_options import SINK_MAPPINGS, SOURCE_MAPPINGS
from .option_spec import End, Options
from .sink_options import SINKS
from .source_options import SOURCES

TABLES: Mapping[End, Mapping[str, Options]] = {
    "source": SOURCES,
    "sink": SINKS,
    "source-mapping": SOURCE_MAPPINGS,
    "sink-mapping": SINK_MAPPINGS,
}
"""By end and type."""
FORMER_TYPES: Mapping[str, Mapping[str, str]] = {
    "source": {"http-request": "http-service", "http-response": "http-call-response"},
    "sink": {"http-request": "http-call", "http-response": "http-service-response"},
}
"""Former names of types, by end: sources and sinks have the same two."""
_OF_ALL = frozenset({"type", "ref", "on.error", "event.time"})
"""Options that every type has."""
_LONGEST = 18
"""Digits of a number that is within any bound, at most."""


def options_of(end: End, type_: str) -> Options:
    """The options of a type, those that are refused by name too. Raises KeyError for a type that does not run here."""
    return TABLES[end][type_]


def option_names(end: End, type_: str) -> frozenset[str]:
    """The names of the options that run here; none of a type that does not."""
    return frozenset(spec.name for spec in TABLES[end].get(type_, {}).values() if spec.runs)


def is_ignored(end: End, type_: str, key: str) -> bool:
    """True for an option that neither this build nor WSO2's extension of this type has. Siddhi drops such an option in
    silence. False for types whose options are not known."""
    extension = extension_types(end).get(type_)
    specs = TABLES[end].get(type_, {})
    if extension is None and not specs:
        return False
    names = {*(extension.options if extension is not None else ()), *specs, *_OF_ALL}
    prefixes = tuple(spec.prefix for spec in specs.values() if spec.prefix)
    if not names - _OF_ALL and end in ("source", "sink"):
        return False
    case = str if end.endswith("-mapping") else str.lower
    has_prefix = bool(prefixes) and key.startswith(prefixes)
    return case(key) not in {case(n) for n in names} and not has_prefix and not key.startswith("dep:")


def find_meant_option(end: End, type_: str, key: str, written_keys: Collection[str]) -> str | None:
    """The option that a name which is ignored was meant to be, where the app cannot do without: one that is needed and
    not among the `written_keys`, or one of this build alone; else None."""
    needed_options = [
        spec.name
        for spec in TABLES[end].get(type_, {}).values()
        if spec.name not in written_keys and spec.alternative not in written_keys and (spec.required or spec.is_extra)
    ]
    near = near_to(key, option_names(end, type_))
    return near[0] if near and near[0] in needed_options else None


def list_options(end: End, type_: str) -> str:
    """The hint with all options of a type that runs here."""
    return f"Its options: {', '.join(sorted(option_names(end, type_) - _OF_ALL))}."


def find_missing_option(end: End, type_: str, options: Mapping[str, str]) -> tuple[str, str] | None:
    """The message and the hint for the first needed option that a source or sink does not have; None where it has all
    of them."""
    for spec in options_of(end, type_).values():
        names = [name for name in (spec.name, spec.alternative) if name]
        if spec.required and not any(options.get(name, "").strip() for name in names):
            names_text = " or ".join(f"'{name}'" for name in names)
            return f"a {end} of type '{type_}' has no {names_text}", f"Write {spec.required}."
    return None


def find_wrong_value(end: End, type_: str, key: str, value: str) -> str | None:
    """The words for a value that is not the flag or the number that its option takes: the values that are right, and
    the one given. None for others, for types and options that do not run here, and for a value that depends on the
    event."""
    spec = TABLES[end].get(type_, {}).get(key)
    if spec is None or not spec.runs or template_attributes(value):
        return None
    if spec.kind == "bool" and value.strip().lower() not in ("true", "false"):
        return f"is 'true' or 'false', not {shown(value)}"
    number = value.strip()
    is_number = number.isdecimal() and len(number) <= _LONGEST and 0 < int(number) <= spec.most
    if spec.kind in ("int", "ms", "seconds", "port") and spec.most and not is_number:
        return f"is a whole number from 1 to {spec.most:,}, not {shown(value)}"
    return None


def describe_option_gap(end: End, type_: str, key: str, value: str) -> str | None:
    """The words for an option of WSO2's source or sink that this build does not have; None for one that it has, and
    for a value that says no more than leaving the option out."""
    spec = options_of(end, type_).get(key.lower())
    if is_ignored(end, type_, key):
        return None
    if spec is not None and (spec.off is None or value.strip().lower() in spec.off):
        return None
    return f"'{key}' of {_phrase(end, type_)}"


def describe_template_gap(end: End, type_: str, key: str, value: str) -> str | None:
    """The words for an option of a sink that depends on the event, and may not here; else None."""
    spec = options_of(end, type_).get(key)
    if (spec is not None and spec.dynamic) or is_ignored(end, type_, key) or not template_attributes(value):
        return None
    return f"'{key}' that depends on the event, of {_phrase(end, type_)}"


def describe_value_gap(end: End, type_: str, key: str, value: str) -> str | None:
    """The words for a valid value of an option that this build does not have; else None."""
    spec = options_of(end, type_).get(key)
    if spec is None or spec.refusal is None or value.lower() in {v.lower() for v in spec.values}:
        return None
    reason = f" ({spec.refusal})" if spec.refusal else ""
    return f"{key}='{value}' of {_phrase(end, type_)}{reason}"


def list_setting_gaps(end: End, type_: str, value: str, known_settings: Mapping[str, type]) -> Iterator[str]:
    """The words for each setting of Kafka's client in `optional.configuration` that is none of the `known_settings`."""
    for name, _ in client_settings(value):
        if name and name not in known_settings:
            yield f"'{name}' in {CONFIGURATION} of {_phrase(end, type_)}"


def _phrase(end: End, type_: str) -> str:
    return f"a {end} of type '{type_}'"
