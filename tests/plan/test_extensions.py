"""WSO2's extensions by name: what is known of them, and what an app that uses one is told."""

from __future__ import annotations

import re

import pytest

from sparkstream_nb.errors import NotInThisBuild, SiddhiBindError
from sparkstream_nb.plan import compile_app, gaps
from sparkstream_nb.plan.connectors.sink_options import SINKS
from sparkstream_nb.plan.connectors.source_options import SOURCES
from sparkstream_nb.plan.extensions import extensions, owner_of
from sparkstream_nb.plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS
from sparkstream_nb.plan.query_parts import IN_MEMORY

S = "define stream S (k string, v double);\n"


def test_names_are_names() -> None:
    found = extensions()
    assert len(found.names) > 300
    for extension in {*found.names.values(), *(c.extension for k in found.connectors.values() for c in k.values())}:
        if extension not in ("carbon.si.coordination.listener", "cellery.observability"):  # parts of WSO2's products
            assert re.fullmatch(r"siddhi-(gpl-)?(execution|io|map|store|script)-[a-z0-9]+", extension), extension
    for by_type in found.connectors.values():
        for connector in by_type.values():
            assert all(re.fullmatch(r"[A-Za-z][\w.-]*", o) for o in connector.options), connector


def test_what_this_build_has_is_known_too() -> None:
    found = extensions()
    for key in (*SCALARS, *AGGREGATORS, *STREAM_FUNCTIONS, *WINDOWS):
        namespace = key.partition(":")[0]
        if ":" in key and namespace not in ("reorder",):
            assert namespace in found.namespaces, key
    assert set(SOURCES) - {IN_MEMORY} <= set(found.connectors["source"])  # Siddhi itself has this type
    assert set(SINKS) - {IN_MEMORY} <= set(found.connectors["sink"])


@pytest.mark.parametrize(
    ("query", "what", "extension"),
    [
        ("from S select geo:geocode(k) as g insert into O;", "function 'geo:geocode'", "siddhi-execution-geo"),
        ("from S#streamingml:kMeansIncremental(2, 0.1, v) select * insert into O;", "stream function",
         "siddhi-execution-streamingml"),
        ("from S#window.priority:time(k) select k insert into O;", "window 'priority:time'",
         "siddhi-execution-priority"),
        ("from S#rdbms:cud('x', 'y') select * insert into O;", "stream function 'rdbms:cud'", "siddhi-store-rdbms"),
        ("from S select sentiment:getRate(k) as r insert into O;", "function", "siddhi-execution-sentiment"),
        ("from S select sentiment:newInTheNextVersion(k) as g insert into O;", "function", "siddhi-"),
    ],
)  # fmt: skip
def test_what_an_extension_has_is_a_gap(query: str, what: str, extension: str) -> None:
    with pytest.raises(NotInThisBuild) as caught:
        compile_app(S + query)
    assert caught.value.message.startswith(what)
    assert f"belongs to WSO2's extension {extension}" in caught.value.message
    assert caught.value.gap in gaps.GAPS


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sentiment:getRates", "'sentiment:getRate'; it is not included"), ("mine:own", None),
     ("math:sine", "Did you mean"), ("other:upper", "This build has 'str:upper'."), ("cache:get", None),
     ("mp:get", "Did you mean 'map:get'?"), ("Math:abs", "Did you mean 'math:abs'?"),
     ("UnitConversion:kgTog", "Did you mean 'unitconversion:kgTog'?"),
     ("Sentiment:getRate", "siddhi-execution-sentiment has 'sentiment:getRate'; it is not included.")],
)  # fmt: skip
def test_other_names_are_mistakes(name: str, hint: str | None) -> None:
    with pytest.raises(SiddhiBindError, match="unknown function") as caught:
        compile_app(S + f"from S select {name}(k) as x insert into O;")
    assert (hint is None) == (caught.value.hint is None)
    assert hint is None or hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("connector", "gap", "extension"),
    [
        ("@source(type='websocket-server', host='h', port='1', @map(type='json'))", "source", "siddhi-io-websocket"),
        ("@sink(type='sqs', queue='q', @map(type='json'))", "sink", "siddhi-io-sqs"),
        ("@source(type='file', file.uri='x', mode='line', @map(type='binaryPassThrough'))", "mapping",
         "siddhi-map-binarypassthrough"),
        ("@source(type='mgwfile', @map(type='json'))", "source", "siddhi-io-mgwfile"),
        ("@source(type='runtime-agent', port='1', @map(type='keyvalue'))", "source", "cellery.observability"),
    ],
)  # fmt: skip
def test_connectors_name_their_extension(connector: str, gap: str, extension: str) -> None:
    needed = gaps.find_gaps(compile_app(connector + S + "from S select k insert into O;"))
    assert [(u.name, u.extension) for u in needed] == [(gap, extension)]
    with pytest.raises(NotInThisBuild, match=f"it belongs to WSO2's extension {extension}, which is not included"):
        gaps.refuse(compile_app(connector + S + "from S select k insert into O;"))


@pytest.mark.parametrize(
    ("type_", "hint"),
    [
        ("http-sse", "Did you mean 'sse'?"), ("htp", "Did you mean 'http'?"), ("jsm", "Did you mean 'jms'?"),
        ("mqtts", "Did you mean 'mqtt'?"), ("sms", "Types that run here: email, file,"),
        ("kafka-multi-dc", "Did you mean 'kafkaMultiDC'?"),
    ],
)  # fmt: skip
def test_a_type_is_suggested_only_where_it_is_meant(type_: str, hint: str) -> None:
    with pytest.raises(SiddhiBindError, match="unknown sink type") as caught:
        compile_app(f"@sink(type='{type_}', @map(type='json')) {S}from S select k insert into O;")
    assert str(caught.value.hint).startswith(hint)


def test_a_namespace_in_other_letters_is_that_of_the_extension() -> None:
    with pytest.raises(SiddhiBindError) as caught:
        compile_app(S + "from S#tensorflow:predict('m', 'a', 'b', v) select k insert into O;")
    said = "WSO2's extension siddhi-execution-tensorflow has 'tensorFlow:predict'; it is not included."
    assert caught.value.hint == said


def test_tables_of_other_stores_have_indexes_of_theirs() -> None:
    app = "@store(type='mongodb', mongodb.uri='m') @Index('k', '{background:true}') define table T (k string);"
    assert {u.name for u in gaps.find_gaps(compile_app(app))} == {"store"}


def test_a_name_of_no_namespace_has_no_owner() -> None:
    assert owner_of("length") is None
