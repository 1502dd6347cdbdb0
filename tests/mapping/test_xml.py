"""XML messages: facts of siddhi-map-xml 5.2, mostly of its own test suite, and what hostile XML must not do."""

# ruff: noqa: E501  (a message reads best on one line)

from __future__ import annotations

import numpy as np
import pytest

from sparkstream_nb.mapping import DroppedMessage, encoder
from sparkstream_nb.mapping.attribute_values import arrays

from .maps import STOCK, bodies, decode, events, sink

XML = "@map(type='xml')"
LOOSE = "@map(type='xml', fail.on.missing.attribute='false')"
PORTFOLIO = "@map(type='xml', namespaces='dt=urn:schemas-microsoft-com:datatypes', enclosing.element='//portfolio', {}@attributes(symbol='company/symbol', price='price', volume='volume/@dt:n'))"
PATHS, PATHS_LOOSE = PORTFOLIO.format(""), PORTFOLIO.format("fail.on.missing.attribute='false', ")
STOCKS = '<portfolio xmlns:dt="urn:schemas-microsoft-com:datatypes">{}</portfolio>'
ONE = '<stock><volume dt:n="100"/><company><symbol>WSO2</symbol></company><price dt:type="number">55.6</price></stock>'


def f(value: float) -> float:
    return float(np.float32(value))


@pytest.mark.parametrize(
    ("mapping", "message", "expected"),
    [
        (XML, "<events><event><symbol>WSO2</symbol><price>55.6</price><volume>100</volume></event></events>", [["WSO2", f(55.6), 100]]),
        (XML, "<?xml version='1.0'?>\n<events>\n <event><volume>1</volume><x/><symbol>a&amp;b<![CDATA[<]]></symbol><price> 1 </price></event><other/></events>", [["a&b<", 1.0, 1]]),
        (XML, "<events/>", []),
        (XML, "<events><event><symbol/><price>1</price><volume>2</volume></event></events>", [["", 1.0, 2]]),
        (XML, "<event><symbol>a</symbol></event>", "the outermost element is <event>, expected <events>"),
        (XML, "<events><event><symbol>a</symbol></event></events>", "it lacks price, volume"),
        (LOOSE, "<events><event><symbol>a</symbol></event></events>", [["a", None, None]]),
        (LOOSE, "<events><event><volume> 1</volume></event></events>", "volume: ' 1' is not a long"),
        (XML, "<events><event>", "not XML: Premature end of data in tag event line 1 (line 1, character 16)"),
        (XML, "", "not XML"),
        (PATHS, STOCKS.format(ONE + ONE), [["WSO2", f(55.6), 100]] * 2),
        (PATHS, STOCKS.format(ONE.replace("volume", "v")), "it has no 'volume/@dt:n' for volume"),
        (PATHS_LOOSE, STOCKS.format(ONE.replace("volume", "v").replace("55.6", "x")), [["WSO2", None, None]]),
        (PATHS_LOOSE, STOCKS.format(ONE.replace("100", "x")), "volume: 'x' is not a long"),
        (PATHS, "<a/>", "it has no '//portfolio'"),
        (PATHS, STOCKS.format(ONE.replace("55.6", "<a>1</a>")), "and only a string takes them"),
        (PATHS, STOCKS.format(ONE.replace("WSO2", '<a b="&lt;">1</a>')), [['<symbol><a b="&lt;">1</a></symbol>', f(55.6), 100]]),
        ("@map(type='xml', @attributes(symbol='//stock[1]/symbol', price='/p/stock[2]/price', volume='stock[last()]/@v'))",
         "<p><stock v='1'><symbol>a</symbol><price>1</price></stock><stock v='2'><symbol>b</symbol><price>2</price></stock></p>", [["a", 2.0, 2]]),
        ("@map(type='xml', @attributes(symbol=\"item[@k='s']\", price=\"*[key='p']/value/text()\", volume='./item[2]'))",
         "<p><item k='x'>1</item><item k='s'>7</item><e><key>p</key><value>2.5</value></e></p>", [["7", 2.5, 7]]),
        ("@map(type='xml', @attributes(symbol=\"//item[contains(@k, 's') and position() > 1]/..//@k\", price='sum(item)', volume='count(//item)'))",
         "<p><item k='x'>1.25</item><item k='s'>7</item></p>", [["x", 8.25, 2]]),
        (PATHS, STOCKS.format(ONE.replace("WSO2", '<dt:a xmlns:n="urn:n"/>')), [['<symbol xmlns:dt="urn:schemas-microsoft-com:datatypes"><dt:a/></symbol>', f(55.6), 100]]),
        (XML, "<p:other xmlns:p='urn:p'/>", "the outermost element is <p:other>, expected <events>"),
        ("@map(type='xml', enclosing.element='/events/wrapper/event', enclosing.element.as.event='true', @attributes(symbol='symbol', price='price', volume='volume'))",
         "<events><wrapper><event><symbol>a</symbol><price>1</price><volume>2</volume></event></wrapper></events>", [["a", 1.0, 2]]),
    ],
)  # fmt: skip
def test_messages(mapping: str, message: str, expected: list[list[object]] | str) -> None:
    found = decode(mapping, STOCK, message)
    if isinstance(expected, str):
        assert events(found) == []
        (rejected,) = found.rejected
        assert expected in rejected.reason
    else:
        assert found.rejected == ()
        assert events(found) == expected


def test_an_event_may_be_its_value() -> None:
    mapping = (
        "@map(type='xml', enclosing.element='//node/data', enclosing.element.as.event='true', @attributes(data='data'))"
    )
    assert events(decode(mapping, "data string", "<m><node><data>1</data><data>2</data></node></m>")) == [["1"], ["2"]]


def test_an_event_fails_alone() -> None:
    text = "<events><event><v>1</v></event><event><v>x</v></event><event><v>3</v></event></events>"
    found = decode(XML, "v int", text)
    assert events(found) == [[1], [3]]
    assert [(r.reason, r.text) for r in found.rejected] == [("v: 'x' is not an int", "<event><v>x</v></event>")]


@pytest.mark.parametrize(
    "document_type",
    [
        '<!DOCTYPE e [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE e [<!ENTITY a "b"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE e SYSTEM "http://127.0.0.1:1/x.dtd">',
        '<!DOCTYPE e [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]>',
    ],
)
def test_document_types_are_refused(document_type: str) -> None:
    found = decode(XML, "v string", f"{document_type}<events><event><v>&a;</v></event></events>")
    assert events(found) == []
    assert "DOCTYPE" in found.rejected[0].reason


def test_deep_xml_is_rejected() -> None:
    for depth in (300, 100_000):
        found = decode(XML, "v string", "<a>" * depth + "</a>" * depth)
        assert "nested deeper than 256" in found.rejected[0].reason


WSO2, IBM = ["WSO2", f(55.6), 100], ['a<&"b', None, 75]


@pytest.mark.parametrize(
    ("mapping", "rows", "expected"),
    [
        (XML, [WSO2], ["<events><event><symbol>WSO2</symbol><price>55.6</price><volume>100</volume></event></events>"]),
        (XML, [WSO2, IBM], ['<events><event><symbol>WSO2</symbol><price>55.6</price><volume>100</volume></event><event><symbol>a&lt;&amp;"b</symbol><price xsi:nil="true"/><volume>75</volume></event></events>']),
        ("@map(type='xml', enclosing.element=\"<p xmlns='urn:x'>\")", [WSO2], ["<p xmlns='urn:x'><event><symbol>WSO2</symbol><price>55.6</price><volume>100</volume></event></p>"]),
        ("@map(type='xml', enclosing.element='<p>', @payload('<s>{{symbol}}</s>'))", [WSO2, WSO2], ["<p><s>WSO2</s><s>WSO2</s></p>"]),
        ("@map(type='xml', @payload('<s>{{symbol}}</s>'))", [WSO2], ["<s>WSO2</s>"]),
        ("@map(type='xml', @payload('<s>{{symbol}}</s>'))", [IBM], ['<s>a<&"b</s>']),
    ],
)  # fmt: skip
def test_bodies(mapping: str, rows: list[list[object]], expected: list[str]) -> None:
    assert bodies(mapping, STOCK, rows) == expected


def test_what_is_no_xml_is_dropped() -> None:
    mapping, schema = sink("@map(type='xml', validate.xml='true', @payload('<s>{{symbol}}</s>'))")
    dropped: list[DroppedMessage] = []
    times = np.zeros(2, np.int64)
    found = encoder(mapping, schema).encode(arrays(schema, [WSO2, IBM]), times, np.array([0, 1]), dropped)
    assert [m.body for m in found] == [b"<s>WSO2</s>"]
    assert "not XML" in dropped[0].reason


OSM = """<osm>
 <node id="1" lat="0.5"><tag/></node>
 <way id="7"/>
 <node id="2"/>
</osm>
"""


def test_elements_that_are_documents_of_their_own() -> None:
    mapping = (
        "@map(type='xml', enclosing.element='/osm/node', enable.streaming.xml.content='true', "
        "fail.on.missing.attribute='false', @attributes(id='/node/@id', lat='/node/@lat'))"
    )
    assert events(decode(mapping, "id string, lat string", OSM)) == [["1", "0.5"], ["2", None]]
    whole_documents = mapping.replace("'true'", "'false'")
    assert events(decode(whole_documents, "id string, lat string", OSM)) != [["1", "0.5"], ["2", None]]
