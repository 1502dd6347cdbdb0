"""Binds `@map` of sources and sinks, with each check at its place.

Rules and defaults of the `init` of Siddhi's mappers (siddhi-map-json, -csv, -text, -keyvalue, -xml, -binary and -avro).
Siddhi ignores unknown options, as is done here, with a note (`remarks.py`). Options that it cannot read fail with the
first message; here they are errors of the app.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import NotInThisBuild, SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ...types import Schema, Type
from ..query_parts import template_parts
from .connector_options import is_ignored, options_of
from .mapping import (
    Avro,
    Binary,
    CsvSink,
    CsvSource,
    JsonSink,
    JsonSource,
    KeyValue,
    PassThrough,
    Place,
    SinkFormat,
    SinkMapping,
    SourceFormat,
    SourceMapping,
    Template,
    TextGroup,
    TextSink,
    TextSource,
    XmlSink,
    XmlSource,
)
from .mapping_options import SOURCE_MAPPINGS
from .option_spec import End, Options
from .xpath import NotAPath, XPath, parse_xpath

_MISSING, _GROUPING, _ENCLOSING = "fail.on.missing.attribute", "event.grouping.enabled", "enclosing.element"
MAPPED = frozenset({*SOURCE_MAPPINGS, "passThrough"})
"""The types of mappings that run here."""

_REGEX = "regex."
_GROUP = re.compile(r"(.*)\[\s*(\d+)\s*\]", re.DOTALL)
_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}


def source_mapping(mapping: tree.Annotation | None, schema: Schema) -> SourceMapping:
    """The mapping of a source, `@map` or None if it has none, to a stream with this schema.

    Raises SiddhiBindError for a wrong mapping, NotInThisBuild for mappings of other types.
    """
    type_ = _type(mapping)
    if mapping is None or type_ == "passThrough":
        return SourceMapping(PassThrough(), None, _headers(mapping, schema), True, True)
    o = _MapOptions(mapping, "source-mapping", type_)
    elements = _attributes(mapping, schema, type_)
    headers = _headers(mapping, schema)
    by_place = [e for e, h in zip(elements, headers, strict=True) if e is not None and h is None]
    missing = "fail.on.unknown.attribute" if type_ == "csv" else _MISSING
    together = type_ != "text" and (type_ != "json" or o.flag(_GROUPING))
    if type_ == "csv":
        o.flag(_GROUPING)  # its rows are events whether it is given or not
    format_ = _source_format(o, bool(by_place))
    places: tuple[Place | None, ...] | None = None
    if by_place:
        # Siddhi maps by default where all attributes come from transport properties.
        reads = _AttributePlaces(o, format_)
        pairs = zip(elements, headers, strict=True)
        places = tuple(None if e is None or h is not None else reads.place(e) for e, h in pairs)
    if type_ in ("keyvalue", "binary") or (isinstance(format_, Avro) and not format_.has_schema):
        _no_objects(mapping, schema, headers, type_)
    if type_ == "binary" and any(e is not None for e in elements):
        raise SiddhiBindError(
            "a binary mapping has the stream's attributes in their order, and no @attributes", mapping.span,
            hint="Leave them out.",
        )  # fmt: skip
    fails = type_ == "binary" or o.flag(missing)
    return SourceMapping(format_, places, headers, fails, together)


def sink_mapping(mapping: tree.Annotation | None, schema: Schema) -> SinkMapping:
    """The mapping of a sink, `@map` or None if it has none, of a stream with this schema.

    Raises SiddhiBindError for a wrong mapping, NotInThisBuild for mappings of other types.
    """
    type_ = _type(mapping)
    if mapping is None or type_ == "passThrough":
        return SinkMapping(PassThrough(), (), True)
    o = _MapOptions(mapping, "sink-mapping", type_)
    payload = next((a for a in mapping.nested if a.name.lower() == "payload"), None)
    if payload is not None and not payload.elements:
        raise SiddhiBindError("@payload is empty", payload.span, hint="Write @payload('...').")
    match type_:
        case "csv":
            columns = tuple(range(len(schema))) if payload is None else _columns(payload, schema)
            format_: SinkFormat = CsvSink(columns, o.delimiter(), o.flag("header"))
            return SinkMapping(format_, (), o.flag(_GROUPING))
        case "json":
            is_grouped = o.flag(_GROUPING)
            nulls = o.flag("enable.null.attribute.value")
            format_ = JsonSink(_around(o.get(_ENCLOSING)), o.flag("validate.json"), nulls)
        case "text":
            is_grouped = o.flag(_GROUPING)
            format_ = TextSink(o.line(), o.line_break())
        case "avro":
            is_grouped, format_ = False, _avro(o)
            if not format_.has_schema:
                _no_objects(mapping, schema, (None,) * len(schema), type_)
        case "binary":
            if payload is not None:
                raise SiddhiBindError("a binary mapping has no @payload", payload.span, hint="Leave it out.")
            _no_objects(mapping, schema, (None,) * len(schema), type_)
            is_grouped, format_ = True, Binary()
        case "xml":
            is_grouped = True
            format_ = _xml_sink(o, payload is not None)
        case _:
            is_grouped, format_ = False, KeyValue()
    return SinkMapping(format_, _payload(payload, schema, type_), is_grouped)


def _type(mapping: tree.Annotation | None) -> str:
    type_ = "passThrough" if mapping is None else mapping.get("type") or ""
    if type_ not in MAPPED:
        span = mapping.span if mapping is not None else Span(0, 0, 1, 0)
        raise NotInThisBuild("mapping", f"this build has no mapping of type '{type_}'", span)
    return type_


@dataclass(frozen=True)
class _MapOptions:
    """The options of a `@map`, checked for names that are unknown, with the values and defaults of the table."""

    mapping: tree.Annotation
    end: End
    type: str

    def __post_init__(self) -> None:
        names = [spec.name for spec in self._table.values() if spec.runs]
        prefixes = tuple(spec.prefix for spec in self._table.values() if spec.prefix)
        for e in self.mapping.elements:
            key = e.key or ""
            if key.lower() == "type" or key in names or (prefixes and key.startswith(prefixes)):
                continue
            refused_option = self._table.get(key)
            if refused_option is not None and refused_option.off is not None:
                if e.value.lower() not in refused_option.off:
                    message = f"'{key}' belongs to WSO2's siddhi-map-{self.type}, and this build leaves it out"
                    raise NotInThisBuild("mapping", message, e.span, hint=refused_option.instead)
                continue
            if is_ignored(self.end, self.type, key):
                continue
            message = f"'{key}' belongs to WSO2's siddhi-map-{self.type}, and this build leaves it out"
            raise NotInThisBuild("mapping", message, e.span, hint=did_you_mean(key, sorted(names)))

    @property
    def _table(self) -> Options:
        return options_of(self.end, self.type)

    def get(self, key: str) -> str | None:
        """The value of an option, or None."""
        return next((e.value for e in self.mapping.elements if e.key == key), None)

    def span(self, key: str) -> Span:
        """Position of an option in the text."""
        return next((e.span for e in self.mapping.elements if e.key == key), self.mapping.span)

    def flag(self, key: str) -> bool:
        """An option that is true or false, or its default."""
        value = self._given_or_default(key)
        if value.strip().lower() not in ("true", "false"):
            raise SiddhiBindError(
                f"'{key}' is true or false, found '{value}'", self.span(key), hint=f"Write {key}='true'."
            )
        return value.strip().lower() == "true"

    def delimiter(self) -> str:
        r"""The text between the values of a line; `\t` is a tab."""
        value = self._given_or_default("delimiter")
        value = "\t" if value == r"\t" else value
        if not value or set(value) & set('"\r\n'):
            hint = "Write a text without quotes and line breaks, such as ',' or ';'."
            raise SiddhiBindError(f"'{value}' cannot be a delimiter", self.span("delimiter"), hint=hint)
        return value

    def line(self) -> str:
        """The line between events: `delimiter` of a text mapping, whose default an empty text means too."""
        return self.get("delimiter") or self._table["delimiter"].default

    def line_break(self) -> str:
        r"""`new.line.character`, in which \n, \r and \t are the characters that they name."""
        value = self.get("new.line.character") or self._table["new.line.character"].default
        return re.sub(r"\\[nrt]", lambda m: _ESCAPES[m[0]], value)

    def _given_or_default(self, key: str) -> str:
        value = self.get(key)
        return self._table[key].default if value is None else value


# ------------------------------------------------------------------------------------------------------------ sources


def _attributes(
    mapping: tree.Annotation, schema: Schema, type_: str
) -> tuple[tree.AnnotationElement | None, ...]:  # fmt: skip
    """The element of `@attributes` for each attribute; Nones without `@attributes`."""
    a = next((x for x in mapping.nested if x.name.lower() == "attributes"), None)
    if a is None or not a.elements:
        return (None,) * len(schema)
    if a.elements[0].key is None:
        elements = a.elements
    else:
        for e in a.elements:
            if e.key is not None and schema.find(e.key) is None and type_ != "passThrough":
                hint = did_you_mean(e.key, schema.names) or f"It has {', '.join(schema.names)}."
                raise SiddhiBindError(f"the stream has no attribute '{e.key}'", e.span, hint=hint)
        by_name = {e.key: e for e in a.elements}
        elements = tuple(by_name[n] for n in schema.names if n in by_name)
    if len(elements) != len(schema):
        raise SiddhiBindError("@attributes does not map all attributes", a.span, hint=f"It must map {schema}.")
    return tuple(elements)


def _headers(mapping: tree.Annotation | None, schema: Schema) -> tuple[str | None, ...]:
    """The transport property of each attribute that comes from one."""
    if mapping is None:
        return (None,) * len(schema)
    elements = _attributes(mapping, schema, mapping.get("type") or "")
    values = ["" if e is None else e.value.strip() for e in elements]
    return tuple(v.removeprefix("trp:") if v.startswith("trp:") else None for v in values)


def _source_format(o: _MapOptions, by_place: bool) -> SourceFormat:
    match o.type:
        case "json":
            path = o.get(_ENCLOSING)
            if path is None:
                return JsonSource()
            _check_json_path(path, o.span(_ENCLOSING))
            return JsonSource(path.strip())
        case "csv":
            return CsvSource(o.delimiter(), o.flag("header"))
        case "text":
            keys = [e for e in o.mapping.elements if e.key is not None and e.key.startswith(_REGEX)]
            patterns = tuple((e.key.removeprefix(_REGEX), e.value) for e in keys if e.key is not None)
            if keys and not by_place:
                hint = "Write @attributes(name='A[1]', ...), or leave the pattern out."
                raise SiddhiBindError(f"'{keys[0].key}' is used by no attribute", keys[0].span, hint=hint)
            return TextSource(patterns, o.flag(_GROUPING), o.line(), o.line_break())
        case "keyvalue":
            if not o.flag("implicit.cast.enable"):
                raise SiddhiBindError(
                    "the values of these messages are texts, which 'implicit.cast.enable' makes values of",
                    o.span("implicit.cast.enable"),
                    hint="Leave it out.",
                )
            return KeyValue()
        case "binary":
            return Binary()
        case "avro":
            return _avro(o)
    as_event = o.flag("enclosing.element.as.event")
    path = o.get(_ENCLOSING)
    is_streamed = o.flag("enable.streaming.xml.content")
    if path is None or not by_place:
        return XmlSource(None, as_event, is_streamed)
    enclosing = _xpath(path, _namespaces(o), o.span(_ENCLOSING))
    return XmlSource(enclosing, as_event or is_streamed, is_streamed)


class _AttributePlaces:
    """Reads what `@attributes` gives for one attribute, as a mapping of this format does."""

    def __init__(self, o: _MapOptions, format_: SourceFormat) -> None:
        self.format = format_
        self.namespaces = _namespaces(o) if isinstance(format_, XmlSource) else {}

    def place(self, e: tree.AnnotationElement) -> Place:
        """The place. Raises SiddhiBindError."""
        value = e.value.strip()
        match self.format:
            case JsonSource() | Avro():
                _check_json_path(value, e.span)
            case CsvSource():
                if not re.fullmatch(r"\d{1,6}", value, re.ASCII):
                    message = f"'{value}' is not a column: columns have numbers, the first is '0'"
                    raise SiddhiBindError(message, e.span, hint="Write the attribute's column, such as '2'.")
                return int(value)
            case TextSource(patterns):
                return _group(value, [name for name, _ in patterns], e.span)
            case XmlSource():
                return _xpath(value, self.namespaces, e.span)
        return value


def _avro(o: _MapOptions) -> Avro:
    text = (o.get("schema.def") or "").strip()
    if text:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            hint = """Write schema.def='{"type":"record","name":"Event","fields":[...]}'."""
            raise SiddhiBindError("schema.def is not JSON", o.span("schema.def"), hint=hint) from None
        return Avro(text)
    registry, schema_id = ((o.get(key) or "").strip() for key in ("schema.registry", "schema.id"))
    if bool(registry) != bool(schema_id):
        raise SiddhiBindError(
            "schema.registry and schema.id of an avro mapping go together",
            o.mapping.span,
            hint="Write schema.registry='http://localhost:8081', schema.id='1'.",
        )
    if not re.fullmatch(r"\d{0,10}", schema_id, re.ASCII):
        raise SiddhiBindError(
            f"schema.id is a number, found '{schema_id}'", o.span("schema.id"), hint="Write schema.id='1'."
        )
    return Avro(registry=registry, schema_id=schema_id)


def _check_json_path(path: str, span: Span) -> None:
    """Check the syntax common to all JSON paths; the rest is checked when the path is compiled."""
    depth, quote = 0, ""
    for c in path:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"" and depth:
            quote = c
        else:
            depth += (c in "[(") - (c in "])")
            if depth < 0:
                break
    if not path.strip() or depth or quote or path.rstrip().endswith(".") or "..." in path:
        hint = "Write a path such as '$.event.symbol', or a name."
        raise SiddhiBindError(f"'{path}' is not a JSON path", span, hint=hint)


def _group(value: str, patterns: list[str], span: Span) -> TextGroup:
    match = _GROUP.fullmatch(value)
    name, number = (match[1].strip(), int(match[2][:9])) if match else (value, 1)
    if name not in patterns:
        near = did_you_mean(name, patterns)
        raise SiddhiBindError(
            f"no option '{_REGEX}{name}' gives the pattern '{name}'",
            span,
            hint=near or f"Write {_REGEX}{name or 'A'}='(...)' in the @map.",
        )
    return TextGroup(name, number)


def _namespaces(o: _MapOptions) -> dict[str, str]:
    """Addresses by prefix, of `namespaces='a=urn:x, b=urn:y'`."""
    out: dict[str, str] = {}
    for part in (o.get("namespaces") or "").split(","):
        prefix, equals, address = (p.strip() for p in part.partition("="))
        if not part.strip():
            continue
        if not (prefix and equals and address):
            hint = "Write namespaces='a=urn:one, b=urn:two'."
            raise SiddhiBindError(
                f"'{part.strip()}' is not a namespace with its prefix", o.span("namespaces"), hint=hint
            )
        out[prefix] = address
    return out


def _xpath(text: str, namespaces: Mapping[str, str], span: Span) -> XPath:
    try:
        return parse_xpath(text, namespaces)
    except NotAPath as e:
        hint = "Write a path such as 'stock/price', 'stock/@id' or '//stock[1]/price'."
        raise SiddhiBindError(f"'{text}' is not an XPath: {e}", span, hint=hint) from None


def _a(type_: str) -> str:
    return f"an {type_}" if type_ == "avro" else f"a {type_}"


def _no_objects(mapping: tree.Annotation, schema: Schema, headers: tuple[str | None, ...], type_: str) -> None:
    """Siddhi's key-value and binary mappers have no values for attributes of type object."""
    for a, header in zip(schema, headers, strict=True):
        if a.type is Type.OBJECT and header is None:
            message = f"{_a(type_)} mapping has no values for '{a.name}', which is an object"
            raise SiddhiBindError(message, mapping.span, hint="Make it a string, or use a json mapping.")


# -------------------------------------------------------------------------------------------------------------- sinks


def template(text: str, schema: Schema) -> Template:
    """A template of a sink, with `{{attribute}}` in it (Siddhi's `TemplateBuilder`).

    Raises KeyError for an attribute that the stream does not have.
    """
    column = schema.find(text.strip())
    if column is not None:
        return Template((column,), column)
    if re.fullmatch(r"`\S*`", text):  # a text that is called as an attribute is
        text = text[1:-1]
    parts: list[str | int] = []
    for i, part in enumerate(template_parts(text)):
        if i % 2:
            position = schema.find(part)
            if position is None:
                raise KeyError(part)
            parts.append(position)
        elif part:
            parts.append(part)
    return Template(tuple(parts))


def _payload(payload: tree.Annotation | None, schema: Schema, type_: str) -> tuple[tuple[str, Template], ...]:
    if payload is None:
        return ()
    if type_ != "keyvalue" and len(payload.elements) > 1:
        hint = "Write one text, or use a keyvalue mapping."
        raise SiddhiBindError(f"@payload of a {type_} mapping is one text", payload.elements[1].span, hint=hint)
    out = []
    for e in payload.elements:
        try:
            template_of_element = template(e.value, schema)
        except KeyError as error:
            name = str(error.args[0])
            hint = did_you_mean(name, schema.names) or f"It has {', '.join(schema.names)}."
            raise SiddhiBindError(f"the stream has no attribute '{name}'", e.span, hint=hint) from None
        if type_ != "keyvalue" and template_of_element.column is not None:
            name = e.value.strip()
            hint = f"Write '{{{{{name}}}}}' for its value, or '`{name}`' for the word."
            raise SiddhiBindError(
                f"@payload of a {type_} mapping is a text, not the attribute '{name}'", e.span, hint=hint
            )
        if type_ == "keyvalue" and e.key is None:
            hint = f"Write @payload({schema.names[0]}='...')."
            raise SiddhiBindError("a part of a keyvalue @payload has no name", e.span, hint=hint)
        out.append((e.key or "", template_of_element))
    return tuple(out)


def _columns(payload: tree.Annotation, schema: Schema) -> tuple[int, ...]:
    """The attributes in the order that `@payload(symbol='0', price='2', volume='1')` gives."""
    places: dict[int, int] = {}
    count = len(payload.elements)
    for e in payload.elements:
        position = None if e.key is None else schema.find(e.key)
        if position is None:
            hint = did_you_mean(e.key or "", schema.names) or f"Write @payload({schema.names[0]}='0', ...)."
            what = f"no attribute '{e.key}'" if e.key is not None else f"no name for '{e.value}'"
            raise SiddhiBindError(
                f"@payload of a csv mapping gives attributes their columns: {what}", e.span, hint=hint
            )
        column = int(e.value) if re.fullmatch(r"\d{1,6}", e.value.strip(), re.ASCII) else -1
        if not 0 <= column < count or column in places:
            what = "is given twice" if column in places else "is not a column"
            hint = f"The columns are 0 to {count - 1}, each once."
            raise SiddhiBindError(f"'{e.value}' {what} of this @payload", e.span, hint=hint)
        places[column] = position
    return tuple(places[i] for i in range(count))


def _around(path: str | None) -> tuple[str, ...]:
    """The names in `$.portfolio.company`."""
    names = (path or "").strip().split(".")
    return tuple(n for i, n in enumerate(names) if n and not (i == 0 and n == "$"))


def _xml_sink(o: _MapOptions, custom: bool) -> XmlSink:
    opening = o.get(_ENCLOSING)
    validate = o.flag("validate.xml")
    if opening is None:
        return XmlSink("", "", validate) if custom else XmlSink("<events>", "</events>", validate)
    match = re.fullmatch(r"\s*<([^\s<>/]+)([^<>]*)>\s*", opening)
    if match is None or match[2].endswith("/"):
        hint = "Write a tag that opens, such as '<portfolio>'."
        raise SiddhiBindError(f"'{opening}' is not an XML tag", o.span(_ENCLOSING), hint=hint)
    return XmlSink(opening.strip(), f"</{match[1]}>", validate)
