"""The options of the mappings that run here, by type: of sources and of sinks. `OptionSpec` documents the fields."""

from __future__ import annotations

from collections.abc import Mapping

from .option_spec import End, Options, OptionSpec, by_name
from .refused_options import refused_options

_MISSING = OptionSpec(
    "fail.on.missing.attribute",
    "`false`: a missing attribute is null (default: `true`, the event is rejected).",
    "bool",
    default="true",
)
_SCHEMA = (
    OptionSpec("schema.def", "The schema, in JSON (default: a record of the stream's attributes).", "json"),
    OptionSpec(
        "schema.registry",
        "The address of a schema registry, `http://HOST:PORT`, that has the schema. It is asked when the app starts.",
        "url",
    ),
    OptionSpec("schema.id", "The number of the schema in the registry.", "int", most=2_147_483_647),
)
_COLUMN_DELIMITER = OptionSpec("delimiter", "The text between values (default: a comma). `\\t` is a tab.", default=",")
_LINES = (
    OptionSpec("delimiter", "The line between the events of a message.", default="~~~~~~~~~~"),
    OptionSpec("new.line.character", "The line break.", default="\\n"),
)


def _grouping_option(default: str, meaning: str = "Whether the events of a step are one message.") -> OptionSpec:
    return OptionSpec("event.grouping.enabled", meaning, "bool", default=default)


_SOURCES: Mapping[str, tuple[OptionSpec, ...]] = {
    "json": (
        OptionSpec("enclosing.element", "A JSON path to the events in the message.", "json-path"),
        _MISSING,
        _grouping_option("true", "Whether the events of a message are one chunk."),
    ),
    "csv": (
        _COLUMN_DELIMITER,
        OptionSpec(
            "header",
            "Whether the first message that the source receives names the columns, and is no event.",
            "bool",
            default="false",
        ),
        OptionSpec(
            "fail.on.unknown.attribute", "Whether a row with too few columns is rejected.", "bool", default="true"
        ),
        OptionSpec(
            "event.grouping.enabled",
            "Accepted, and without effect: the rows of a message are events.",
            "bool",
            "false",
            effect=False,
        ),
    ),
    "text": (
        OptionSpec(
            "regex.A",
            "A regular expression with the name `A` (any name), whose groups `@attributes` names: `A[1]`.",
            "regex",
            prefix="regex.",
        ),
        _MISSING,
        _grouping_option("false", "Whether a message holds several events, with the delimiter between them."),
        *_LINES,
    ),
    "keyvalue": (
        _MISSING,
        OptionSpec(
            "implicit.cast.enable",
            "Accepted with `true`: values are converted from their texts.",
            "bool",
            default="true",
        ),
    ),
    "xml": (
        OptionSpec("namespaces", "The prefixes of the paths: `p=urn:x,q=urn:y`.", "list"),
        OptionSpec("enclosing.element", "An XPath to the element around the events.", "xpath"),
        OptionSpec("enclosing.element.as.event", "Whether that element is itself an event.", "bool", default="false"),
        OptionSpec(
            "enable.streaming.xml.content",
            "`true`: each enclosing element is an event and a document of its own, where paths begin: `/node/@id`. "
            "Of a file with `mode='line'` and `tailing='false'` the whole file is the message.",
            "bool",
            default="false",
        ),
        _MISSING,
    ),
    "binary": (),
    "avro": (*_SCHEMA, _MISSING),
}
_SINKS: Mapping[str, tuple[OptionSpec, ...]] = {
    "json": (
        OptionSpec("validate.json", "Whether a message that is not JSON is kept back.", "bool", default="false"),
        OptionSpec(
            "enclosing.element", "The names of the objects around the events: `$.portfolio.company`.", "json-path"
        ),
        _grouping_option("true"),
        OptionSpec(
            "enable.null.attribute.value",
            "`true`: null is written as null. Else as the text `undefined`.",
            "bool",
            default="false",
        ),
    ),
    "csv": (
        _COLUMN_DELIMITER,
        OptionSpec("header", "Whether the first line of a file names the columns.", "bool", default="false"),
        _grouping_option("false"),
    ),
    "text": (_grouping_option("false"), *_LINES),
    "keyvalue": (),
    "xml": (
        OptionSpec("validate.xml", "Whether a message that is not XML is kept back.", "bool", default="false"),
        OptionSpec("enclosing.element", "The tag around the events, such as `<portfolio>` (default: `<events>`)."),
    ),
    "binary": (),
    "avro": _SCHEMA,
}


def _add_refused(end: End, types: Mapping[str, tuple[OptionSpec, ...]]) -> dict[str, Options]:
    return {type_: by_name(*specs, *refused_options(end, type_)) for type_, specs in types.items()}


SOURCE_MAPPINGS: Mapping[str, Options] = _add_refused("source-mapping", _SOURCES)
"""The options of `@map` in a source, by type."""
SINK_MAPPINGS: Mapping[str, Options] = _add_refused("sink-mapping", _SINKS)
"""The options of `@map` in a sink, by type."""
