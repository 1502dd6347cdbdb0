"""The table of options: every option of a source, sink or mapping that this build has or refuses by name.

`source_options.py`, `sink_options.py`, `mapping_options.py` and `refused_options.py` declare them. What is checked,
suggested and written on the reference pages comes from here; `app/connectors/typed_options.py` reads values by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import shown
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
FORMER_TYPES = {"http-request": "http-call", "http-response": "http-call-response"}
"""Types that are other names."""
_LONGEST = 18
"""Digits of a number that is within any bound, at most."""


def options_of(end: End, type_: str) -> Options:
    """The options of a type, those that are refused by name too. Raises KeyError for a type that does not run here."""
    return TABLES[end][type_]


def option_names(end: End, type_: str) -> frozenset[str]:
    """The names of the options that run here; none of a type that does not."""
    return frozenset(spec.name for spec in TABLES[end].get(type_, {}).values() if spec.runs)


def find_missing_option(end: End, type_: str, options: Mapping[str, str]) -> tuple[str, str] | None:
    """The message and the hint for the first needed option that a source or sink does not have; None where it has all
    of them."""
    for spec in options_of(end, type_).values():
        names = [name for name in (spec.name, spec.alternative) if name]
        if spec.required and not any(options.get(name, "").strip() for name in names):
            needed = " or ".join(f"'{name}'" for name in names)
            return f"a {end} of type '{type_}' has no {needed}", f"Write {spec.required}."
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
    if spec is not None and (spec.off is None or value.strip().lower() in spec.off):
        return None
    return f"'{key}' of {_phrase(end, type_)}"


def describe_template_gap(end: End, type_: str, key: str, value: str) -> str | None:
    """The words for an option of a sink that depends on the event, and may not here; else None."""
    spec = options_of(end, type_).get(key)
    if (spec is not None and spec.dynamic) or not template_attributes(value):
        return None
    return f"'{key}' that depends on the event, of {_phrase(end, type_)}"


def describe_value_gap(end: End, type_: str, key: str, value: str, note: str = "") -> str | None:
    """The words for a valid value of an option that this build does not have; else None. `note` follows the value."""
    spec = options_of(end, type_).get(key)
    if spec is None or spec.refusal is None or value.lower() in {v.lower() for v in spec.values}:
        return None
    reason = f" ({spec.refusal})" if spec.refusal else ""
    return f"{key}='{value}'{note} of {_phrase(end, type_)}{reason}"


def list_setting_gaps(end: End, type_: str, value: str, known: Mapping[str, type]) -> Iterator[str]:
    """The words for each setting of Kafka's client in `optional.configuration` that is none of the `known` ones."""
    for name, _ in client_settings(value):
        if name and name not in known:
            yield f"'{name}' in {CONFIGURATION} of {_phrase(end, type_)}"


def _phrase(end: End, type_: str) -> str:
    return f"a {end} of type '{type_}'"
