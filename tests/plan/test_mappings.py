"""`@map` of sources and sinks: what is bound, and what is refused, with its place and a way out."""

# ruff: noqa: E501  (an app reads best on one line)

from __future__ import annotations

import pickle

import pytest

from sparkstream_nb.errors import NotInThisBuild, SiddhiBindError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.mapping import (
    CsvSink,
    CsvSource,
    JsonSink,
    JsonSource,
    PassThrough,
    SourceMapping,
    TextGroup,
    TextSource,
    XmlSink,
    XmlSource,
)
from sparkstream_nb.plan.connectors.mappings import sink_mapping, source_mapping
from sparkstream_nb.plan.connectors.xpath import NotAPath, XPath, parse_xpath
from sparkstream_nb.types import Schema

S = "define stream S (symbol string, price double, volume int);"


def source(text: str) -> SourceMapping:
    stream = compile_app(f"@source(type='http', {text}) {S}").streams["S"]
    return source_mapping(stream.annotations[0].nested[0], stream.source.schema)


def test_sources() -> None:
    none = (None, None, None)
    assert source("@map(type='json')") == SourceMapping(JsonSource(), None, none, True, True)
    assert source(
        "@map(type='json', enclosing.element='$.x', event.grouping.enabled='FALSE', @attributes('a', '$.b', ' trp:c '))"
    ) == SourceMapping(JsonSource("$.x"), ("a", "$.b", None), (None, None, "c"), True, False)
    assert source(
        "@map(type='csv', header='true', delimiter='\\t', fail.on.unknown.attribute='false', @attributes(volume='0', price='2', symbol='1'))"
    ) == SourceMapping(CsvSource("\t", True), (1, 2, 0), none, False, True)
    text = source(
        "@map(type='text', regex.A='(x)', regex.B='y', new.line.character='\\r\\n', @attributes('A[1]', 'B', 'B[0]'))"
    )
    assert text.format == TextSource((("A", "(x)"), ("B", "y")), False, "~~~~~~~~~~", "\r\n")
    assert text.places == (TextGroup("A", 1), TextGroup("B", 1), TextGroup("B", 0))
    assert source(
        "@map(type='xml', namespaces='a=urn:x', enclosing.element='//p', @attributes('a:s', '@p', 'v'))"
    ).format == XmlSource(XPath("//p", (("a", "urn:x"),)), False)
    # Where all attributes come from transport properties, Siddhi maps by default.
    headers = source("@map(type='json', @attributes('trp:a', 'trp:b', 'trp:c'))")
    assert (headers.places, headers.headers) == (None, ("a", "b", "c"))
    assert source("@map(type='passThrough')").format == PassThrough()
    assert source_mapping(None, Schema(())).format == PassThrough()
    assert pickle.loads(pickle.dumps(text)) == text


def test_sinks() -> None:
    def sink(text: str) -> object:
        stream = compile_app(f"@sink(type='kafka', topic='t', {text}) {S}").streams["S"]
        return sink_mapping(stream.annotations[0].nested[0], stream.source.schema)

    assert sink("@map(type='json')").format == JsonSink()  # type: ignore[attr-defined]
    json = sink("@map(type='json', enclosing.element='$.a.b', validate.json='true', @payload('x {{price}}'))")
    assert json.format == JsonSink(("a", "b"), True, False)  # type: ignore[attr-defined]
    assert json.payload[0][1].parts == ("x ", 1)  # type: ignore[attr-defined]
    assert sink("@map(type='csv', @payload(volume='0', symbol='1'))").format == CsvSink((2, 0))  # type: ignore[attr-defined]
    assert sink("@map(type='xml', enclosing.element=\"<p a='1'>\")").format == XmlSink("<p a='1'>", "</p>")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("end", "mapping", "culprit", "message", "hint"),
    [
        ("source", "@map(type='json', fail.on.missing.attribute='yes')", "fail.on.missing.attribute='yes'", "is true or false, found 'yes'", "'true'"),
        ("source", "@map(type='json', @attributes(symbol='a', price='b', volume='c', prise='d'))", "prise='d'", "no attribute 'prise'", "Did you mean 'price'?"),
        ("source", "@map(type='json', @attributes('$.a[', 'b', 'c'))", "'$.a['", "is not a JSON path", "$.event.symbol"),
        ("source", "@map(type='json', enclosing.element='$.')", "enclosing.element='$.'", "is not a JSON path", None),
        ("source", "@map(type='csv', delimiter='')", "delimiter=''", "cannot be a delimiter", "';'"),
        ("source", "@map(type='csv', @attributes('0', 'x', '1'))", "'x'", "'x' is not a column", "'2'"),
        ("source", "@map(type='text', regex.A='x', @attributes('A', 'B[1]', 'A'))", "'B[1]'", "no option 'regex.B' gives the pattern 'B'", "regex.B="),
        ("source", "@map(type='text', regex.A='x')", "regex.A='x'", "'regex.A' is used by no attribute", "@attributes("),
        ("source", "@map(type='keyvalue', implicit.cast.enable='false')", "implicit.cast.enable='false'", "are texts", "Leave it out."),
        ("source", "@map(type='xml', extract.leaf.node.data='true')", "extract.leaf.node.data='true'", "belongs to WSO2's siddhi-map-xml, and this build leaves it out", "XPath"),
        ("source", "@map(type='xml', @attributes('a', 'cuont(b)', 'c'))", "'cuont(b)'", "is not an XPath: unregistered function", "'stock/price'"),
        ("source", "@map(type='xml', enclosing.element='//12', @attributes('a', 'b', 'c'))", "enclosing.element='//12'", "is not an XPath", None),
        ("source", "@map(type='xml', namespaces='x=urn:x', @attributes('y:a', 'b', 'c'))", "'y:a'", "no namespace is given for 'y:'", None),
        ("source", "@map(type='xml', namespaces='x', @attributes('a', 'b', 'c'))", "namespaces='x'", "not a namespace with its prefix", "a=urn:one"),
        ("sink", "@map(type='json', @payload(a='x', b='y'))", "b='y'", "@payload of a json mapping is one text", "keyvalue"),
        ("sink", "@map(type='json', @payload(' symbol '))", "' symbol '", "is a text, not the attribute 'symbol'", "'{{symbol}}'"),
        ("sink", "@map(type='json', @payload('{{prise}}'))", "'{{prise}}'", "no attribute 'prise'", "'price'"),
        ("sink", "@map(type='json', enclosing.element='{{symbol}}')", "enclosing.element='{{symbol}}'", "cannot depend on the event", None),
        ("sink", "@map(type='text', mustache.enabled='true', @payload('x'))", "mustache.enabled='true'", "belongs to WSO2's siddhi-map-text", "without it"),
        ("sink", "@map(type='keyvalue', @payload('x'))", "'x'", "has no name", "@payload(symbol='...')"),
        ("sink", "@map(type='csv', @payload(symbol='0', price='2'))", "price='2'", "'2' is not a column of this @payload", "0 to 1"),
        ("sink", "@map(type='csv', @payload(symbol='0', price='0'))", "price='0'", "'0' is given twice", None),
        ("sink", "@map(type='csv', @payload(symbl='0'))", "symbl='0'", "no attribute 'symbl'", "Did you mean 'symbol'?"),
        ("sink", "@map(type='xml', enclosing.element='portfolio')", "enclosing.element='portfolio'", "is not an XML tag", "'<portfolio>'"),
    ],
)  # fmt: skip
def test_what_is_refused(end: str, mapping: str, culprit: str, message: str, hint: str | None) -> None:
    app = f"@{end}(type='http', {mapping}) {S}"
    with pytest.raises(NotInThisBuild if "belongs to WSO2's" in message else SiddhiBindError) as caught:
        compile_app(app)
    error = caught.value
    assert message in error.message
    assert app[error.span.start : error.span.end] == culprit
    assert hint is None or hint in (error.hint or "")


def test_objects_are_no_values_of_key_value_messages() -> None:
    with pytest.raises(SiddhiBindError, match="has no values for 'o', which is an object"):
        compile_app("@source(type='http', @map(type='keyvalue')) define stream S (o object);")


def test_other_types_are_bound_and_have_no_mapping() -> None:
    stream = compile_app(f"@source(type='http', @map(type='protobuf', x='y')) {S}").streams["S"]
    with pytest.raises(NotInThisBuild, match="no mapping of type 'protobuf'"):
        source_mapping(stream.annotations[0].nested[0], stream.source.schema)


def test_xpaths() -> None:
    found = parse_xpath("/a//p:b[2][@x='y'][c][last()]/@z ", {"p": "urn:p"})
    assert found == XPath("/a//p:b[2][@x='y'][c][last()]/@z", (("p", "urn:p"),))
    assert parse_xpath("a/ancestor::b | c[d > 1 and contains(@e, 'f')]", {}).namespaces == ()
    for bad in ("", "a//", "a b", "a:::b", "a[", "p:a", "f(a)", "$a", "a!b", "document('/etc/passwd')"):
        with pytest.raises(NotAPath):
            parse_xpath(bad, {})
