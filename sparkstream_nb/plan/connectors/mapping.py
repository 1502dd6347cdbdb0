"""Mappings between messages of the outside world and events, as an app's `@map` gives them.

Plain data, made and checked by `mappings.py`, carried out by the package `mapping`. The formats follow Siddhi's mappers
`json`, `csv`, `text`, `keyvalue`, `xml`, `binary` and `avro` (siddhi-map-*), and `passThrough`, which takes events as
they are and no messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .xpath import XPath

# ------------------------------------------------------------------------------------------------------------ sources


@dataclass(frozen=True)
class JsonSource:
    """`enclosing` is the JSON path whose value, or whose items, are the events; it counts where places are given."""

    enclosing: str = "$"


@dataclass(frozen=True)
class CsvSource:
    """`header`: the first message that a source receives names the columns, and is no event."""

    delimiter: str = ","
    header: bool = False


@dataclass(frozen=True)
class TextSource:
    """`patterns` are (name, regular expression). `is_grouped`: a message holds several events, with lines that are
    `delimiter` between them."""

    patterns: tuple[tuple[str, str], ...] = ()
    is_grouped: bool = False
    delimiter: str = "~~~~~~~~~~"
    newline: str = "\n"


@dataclass(frozen=True)
class KeyValue:
    """Keys and values, `key=value&key=value`, escaped as forms on the web are."""


@dataclass(frozen=True)
class XmlSource:
    """The events are the elements that `enclosing` names (`as_event`), or their children; None: the whole message.
    `is_streamed`: each of these elements is a document of its own, where paths begin."""

    enclosing: XPath | None = None
    as_event: bool = False
    is_streamed: bool = False


@dataclass(frozen=True)
class PassThrough:
    """Events as they are."""


@dataclass(frozen=True)
class Binary:
    """Siddhi's binary messages, of sources and sinks."""


@dataclass(frozen=True)
class Avro:
    """Records in Avro's binary encoding, of sources and sinks. `schema` is JSON; empty: that with the number
    `schema_id` at the address `registry`, and without one, one of the stream's attributes, called `record`."""

    schema: str = ""
    record: str = "Event"
    registry: str = ""
    schema_id: str = ""

    @property
    def has_schema(self) -> bool:
        """True for a schema of its own, not the stream's attributes."""
        return bool(self.schema or self.registry)


SourceFormat: TypeAlias = JsonSource | CsvSource | TextSource | KeyValue | XmlSource | Binary | Avro | PassThrough


@dataclass(frozen=True)
class TextGroup:
    """Place of a value in a text mapping: the group `number` of the pattern called `pattern`."""

    pattern: str
    number: int


Place: TypeAlias = str | int | TextGroup | XPath
"""Place of an attribute in a message: a JSON path or a key; a column, from 0; a group of a pattern; an XPath."""


@dataclass(frozen=True)
class SourceMapping:
    """A mapping from messages to events of a stream.

    `places` has one place per attribute, None for those that `headers` gives; it is None as a whole in a mapping by
    default, in which the attributes' own names say where they are. `headers` has, per attribute, the name of the
    transport property (`trp:name`) that it comes from, or None. `fail_on_missing`: an event without one of its
    attributes is rejected, else the attribute is null. `together`: the events of one message are one chunk.
    """

    format: SourceFormat
    places: tuple[Place | None, ...] | None
    headers: tuple[str | None, ...]
    fail_on_missing: bool
    together: bool


# -------------------------------------------------------------------------------------------------------------- sinks


@dataclass(frozen=True)
class Template:
    """A text with values in it: `parts` are texts, and positions of attributes. `column`: the position of the attribute
    that the template is nothing but the name of, so that its value is passed on and not a text."""

    parts: tuple[str | int, ...]
    column: int | None = None


@dataclass(frozen=True)
class JsonSink:
    """`enclosing` are the names of the objects around the events, the outermost first. `validate`: a message that is
    not JSON is not sent. `nulls`: null is written as null, else as the text "undefined".
    """

    enclosing: tuple[str, ...] = ()
    validate: bool = False
    nulls: bool = False


@dataclass(frozen=True)
class CsvSink:
    """`columns` are the positions of the attributes that are written, in this order. `header`: a message with their
    names goes before the first event."""

    columns: tuple[int, ...]
    delimiter: str = ","
    header: bool = False


@dataclass(frozen=True)
class TextSink:
    """`delimiter` is the line between the events of one message."""

    delimiter: str = "~~~~~~~~~~"
    newline: str = "\n"


@dataclass(frozen=True)
class XmlSink:
    """`opening` and `closing` are the tags around the events of a message. `validate`: a message that is not XML is not
    sent.
    """

    opening: str
    closing: str
    validate: bool = False


SinkFormat: TypeAlias = JsonSink | CsvSink | TextSink | KeyValue | XmlSink | Binary | Avro | PassThrough


@dataclass(frozen=True)
class SinkMapping:
    """A mapping from events to messages.

    `payload` are the templates with their names ("" for one without), empty in a mapping by default and for CSV.
    `is_grouped`: the events of a chunk are one message, else each is one.
    """

    format: SinkFormat
    payload: tuple[tuple[str, Template], ...]
    is_grouped: bool
