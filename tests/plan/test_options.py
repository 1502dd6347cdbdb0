"""The table of options: its rows are consistent, and it has what the code reads, no more and no less."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest

from sparkstream_nb.errors import SiddhiBindError
from sparkstream_nb.masking import masked_option
from sparkstream_nb.plan import compile_app, gaps
from sparkstream_nb.plan.connectors.connector_options import (
    TABLES,
    describe_option_gap,
    find_missing_option,
    option_names,
    options_of,
)
from sparkstream_nb.plan.connectors.option_spec import End, OptionSpec
from sparkstream_nb.plan.extensions import types
from sparkstream_nb.plan.query_parts import IN_MEMORY

READERS = {
    ("source", "kafka"): ["app.connectors.kafka_sources"],
    ("source", "file"): ["app.connectors.file_sources"],
    ("source", "fileeventlistener"): ["app.connectors.file_sources"],
    ("source", "http"): ["app.connectors.http_sources", "app.connectors.sources", "app.config.http_logins"],
    ("source", "http-call-response"): ["app.connectors.sources", "app.connectors.call_desks"],
    ("source", "http-response"): ["app.connectors.sources", "app.connectors.call_desks"],
    ("source", "http-service"): ["app.connectors.http_sources", "app.connectors.sources", "app.config.http_logins"],
    ("source", "http-request"): ["app.connectors.http_sources", "app.connectors.sources", "app.config.http_logins"],
    ("source", "tcp"): ["app.connectors.tcp_sources"],
    ("source", "nats"): ["app.connectors.nats_places"],
    ("source", "mqtt"): ["app.connectors.mqtt_places"],
    ("source", "rabbitmq"): ["app.connectors.rabbitmq_places"],
    ("source", "websocket"): ["app.connectors.websocket_places"],
    ("source", "hl7"): ["app.connectors.hl7_places"],
    ("sink", "hl7"): ["app.connectors.hl7_places"],
    ("source", "prometheus"): ["app.connectors.prometheus_sources"],
    ("source", "cdc"): ["app.connectors.cdc_sources"],
    ("source", "inMemory"): ["app.connectors.sources", "app.connectors.response_links"],
    ("sink", "inMemory"): ["app.connectors.sinks"],
    ("sink", "file"): ["app.connectors.sinks"],
    ("sink", "http"): ["app.connectors.http_sinks"],
    ("sink", "http-call"): ["app.connectors.http_sinks", "app.connectors.call_desks"],
    ("sink", "http-request"): ["app.connectors.http_sinks", "app.connectors.call_desks"],
    ("sink", "http-service-response"): ["app.connectors.service_places"],
    ("sink", "http-response"): ["app.connectors.service_places"],
    ("sink", "kafka"): ["app.connectors.kafka_sinks"],
    ("sink", "email"): ["app.connectors.mail_sinks", "sinks.mail"],
    ("sink", "nats"): ["app.connectors.nats_places"],
    ("sink", "mqtt"): ["app.connectors.mqtt_places"],
    ("sink", "rabbitmq"): ["app.connectors.rabbitmq_places"],
    ("sink", "websocket"): ["app.connectors.websocket_places"],
    ("sink", "tcp"): ["app.connectors.tcp_sinks"],
    ("sink", "prometheus"): ["app.connectors.prometheus_sinks"],
}
"""The modules that read the options of a type."""
ALL = {
    "source": ["plan.connectors.incoming", "plan.query_parts"],
    "sink": ["plan.connectors.outside", "plan.query_parts"],
    "source-mapping": ["plan.connectors.mappings"],
    "sink-mapping": ["plan.connectors.mappings"],
}
"""The modules that read options of every type of an end."""
CALLS = ("has", "optional", "raw", "trim", "first", "text", "check_shown", "flag", "choice", "number", "get", "span")
"""Methods that take names of options."""
KINDS = {"flag": {"bool"}, "choice": {"choice"}, "number": {"int", "ms", "seconds", "port"}}
"""The kinds of options that a method reads."""
NOT_LISTED = {
    ("sink", "email"): {"starttls.enable"},
    ("sink", "http-call"): {"body.consumer.key", "body.consumer.secret", "oauth.scope"},
    ("sink", "http-request"): {"body.consumer.key", "body.consumer.secret", "oauth.scope"},
    ("source-mapping", "csv"): {"header"},
    ("source", IN_MEMORY): {"topic"},
    ("sink", IN_MEMORY): {"topic"},
}
"""Options of WSO2's extensions that `extensions.toml` leaves out of the type, or has under another name."""


def every_type() -> list[tuple[End, str]]:
    return [(end, type_) for end, tables in TABLES.items() for type_ in tables]


def every_option() -> list[tuple[End, str, OptionSpec]]:
    return [(end, type_, spec) for end, type_ in every_type() for spec in options_of(end, type_).values()]


def module(name: str) -> tuple[ModuleType, ast.Module]:
    found = importlib.import_module(f"sparkstream_nb.{name}")
    with open(str(found.__file__), encoding="utf-8") as file:
        return found, ast.parse(file.read())


def texts(name: str) -> set[str]:
    """The texts of a module: those in its code, and the values of the constants that it names."""
    found, tree = module(name)
    out: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            out.add(node.value)
        elif isinstance(node, ast.Name):
            value = getattr(found, node.id, None)
            out |= {value} if isinstance(value, str) else set(value) if isinstance(value, tuple) else set()
    return out


def names_read(name: str) -> Iterator[tuple[str, str]]:
    """(method, name of the option) of the calls of a module that read an option."""
    found, tree = module(name)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in CALLS:
            continue
        if not isinstance(node.func.value, ast.Name) or node.func.value.id not in ("o", "option_values", "options"):
            continue
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and argument.value:
                yield node.func.attr, argument.value
            elif isinstance(argument, ast.Name) and isinstance(getattr(found, argument.id, None), str):
                yield node.func.attr, getattr(found, argument.id)


def test_every_type_has_its_readers() -> None:
    assert READERS.keys() == {(end, type_) for end, type_ in every_type() if not end.endswith("mapping")}


@pytest.mark.parametrize(("end", "type_"), every_type())
def test_every_option_of_the_table_is_read(end: End, type_: str) -> None:
    """Or it is declared to be without effect, or its values are checked by the table alone."""
    known: set[str] = set()
    for name in (*ALL[end], *READERS.get((end, type_), ())):
        known |= texts(name)
    for spec in options_of(end, type_).values():
        if spec.runs and spec.effect and spec.refusal is None:
            assert (spec.prefix or spec.name) in known, spec.name


@pytest.mark.parametrize("name", sorted({m for found in (*READERS.values(), *ALL.values()) for m in found}))
def test_every_option_that_is_read_is_in_the_table(name: str) -> None:
    of = [(end, t) for end, t in every_type() if name in (*ALL[end], *READERS.get((end, t), ()))]
    known = {spec.name: spec for end, t in of for spec in options_of(end, t).values() if spec.runs}
    read = dict(names_read(name))
    assert {option for _, option in names_read(name)} <= known.keys()
    for method, option in names_read(name):
        assert known[option].kind in KINDS.get(method, {known[option].kind}), (method, option)
    assert read or name in ("app.config.http_logins", "plan.query_parts", "sinks.mail")


@pytest.mark.parametrize(("end", "type_", "spec"), every_option(), ids=lambda v: getattr(v, "name", v))
def test_rows_are_consistent(end: End, type_: str, spec: OptionSpec) -> None:
    if not spec.runs:
        assert spec == OptionSpec(spec.name, off=spec.off, instead=spec.instead)
        assert [value for value in spec.off or () if value != value.lower()] == []
        return
    assert spec.meaning.endswith((".", ")"))
    assert (spec.kind == "choice") <= bool(spec.values)
    assert not (spec.secret and (spec.is_shown or spec.default))
    assert not (spec.default and spec.required)
    assert not spec.required or spec.required.startswith(f"{spec.name}='")
    assert not spec.alternative or (spec.required and spec.alternative in options_of(end, type_))
    assert not spec.dynamic or end == "sink"
    if spec.default and spec.kind == "choice" and spec.name != "mode":
        assert spec.default in spec.values
    if spec.default and spec.kind in ("int", "ms", "seconds", "port"):
        assert 0 < int(spec.default) <= spec.most
    if spec.kind == "bool":
        assert spec.default in ("true", "false") or (type_, spec.name) == ("file", "tailing")


def test_values_of_secrets_are_not_shown() -> None:
    secrets = {spec.name for _, _, spec in every_option() if spec.secret}
    assert len(secrets) > 5
    assert {masked_option(name, "geheim") for name in secrets} == {"*" * 6}
    alike = {s.name for _, _, s in every_option() if s.runs and masked_option(s.name, "geheim") != "geheim"}
    assert alike == secrets | {"token.url"}


@pytest.mark.parametrize(("end", "type_"), every_type())
def test_options_are_of_wso2s_extension_or_of_this_build(end: End, type_: str) -> None:
    own_types = {} if type_ == IN_MEMORY else types(end)  # Siddhi itself has this type
    listed = own_types[type_].options if own_types else set()
    listed = listed | {"type", "ref", "on.error"} | NOT_LISTED.get((end, type_), set())
    specs = [spec for spec in options_of(end, type_).values() if spec.runs and not spec.prefix]
    assert [spec.name for spec in specs if not spec.is_extra and spec.name not in listed] == []
    listed -= {"headers"} if (end, type_) == ("sink", "kafka") else {"port"} if type_ == "tcp" else set()
    assert [spec.name for spec in specs if spec.is_extra and spec.name in listed] == []


FLAGS = [(e, t, s.name) for e, t, s in every_option() if e.endswith("mapping") and s.runs and s.kind == "bool"]


@pytest.mark.parametrize(("end", "type_", "name"), FLAGS)
def test_flags_of_mappings_are_read(end: End, type_: str, name: str) -> None:
    connector = end.removesuffix("-mapping")
    app = f"@{connector}(type='kafka', @map(type='{type_}', {name}='maybe')) define stream S (k string);"
    with pytest.raises(SiddhiBindError, match=f"'{name}' is true or false, found 'maybe'"):
        compile_app(app + "from S select k insert into O;")


@pytest.mark.parametrize(
    ("end", "type_", "spec"),
    [(end, type_, spec) for end, type_, spec in every_option() if not spec.runs and not end.endswith("mapping")],
    ids=lambda v: getattr(v, "name", v),
)
def test_a_refused_option_is_a_gap_but_for_the_values_that_change_nothing(
    end: End, type_: str, spec: OptionSpec
) -> None:
    assert [value for value in spec.off or () if describe_option_gap(end, type_, spec.name.upper(), f" {value}")] == []
    assert describe_option_gap(end, type_, spec.name, "x") == f"'{spec.name}' of a {end} of type '{type_}'"


@pytest.mark.parametrize(
    ("connector", "gap"),
    [
        ("@source(type='kafka', seq.enabled='true'", "'seq.enabled' of a source of type 'kafka'"),
        ("@source(type='kafka', seq.enabled='False'", None),
        ("@source(type='kafka', on.error='WAIT'", "on.error='WAIT' of a source of type 'kafka' (a message that cannot"),
        (
            "@source(type='file', mode='Binary.chunked'",
            "mode='Binary.chunked' of a source of type 'file' (line, regex, text.full, binary.full, pa",
        ),
        ("@source(type='cdc', url='jdbc:postgresql://h/d'", None),
        (
            "@source(type='cdc', url='jdbc:sqlserver://h:1433;databaseName=d'",
            "mode='listening' with a database of type 'sqlserver', of a source of type 'cdc'",
        ),
        ("@source(type='cdc', mode='polling', url='jdbc:oracle:thin:@h:1521/x'", None),
        ("@source(type='cdc', plugin.name='PgOutput', connector.properties='snapshot.mode=schema_only'", None),
        ("@source(type='cdc', plugin.name='x'", "plugin.name='x' of a source of type 'cdc' (pgoutput is read)"),
        (
            "@source(type='cdc', connector.properties='slot.name=a,column.exclude.list=b'",
            "'column.exclude.list' in connector.properties of a source of type 'cdc'",
        ),
        (
            "@source(type='cdc', connector.properties='snapshot.mode=initial_only'",
            "'snapshot.mode' in connector.properties of a source of type 'cdc'",
        ),
        ("@sink(type='prometheus', publish.mode='x'", "publish.mode='x' of a sink of type 'prometheus'"),
        ("@sink(type='email', host='{{k}}'", "'host' that depends on the event, of a sink of type 'email'"),
        ("@sink(type='email', subject='{{k}}'", None),
        ("@sink(type='kafka', optional.configuration='x:1'", "'x' in optional.configuration of a sink of type 'kafka'"),
    ],
)
def test_gaps_of_apps(connector: str, gap: str | None) -> None:
    app = f"{connector}, @map(type='keyvalue')) define stream S (k string); from S select k insert into O;"
    found = [u.what for u in gaps.find_gaps(compile_app(app))]
    assert len(found) == (gap is not None)
    assert gap is None or found[0].startswith(gap)


def test_options_that_are_needed() -> None:
    assert find_missing_option("source", "file", {"dir.uri": " "}) == (
        "a source of type 'file' has no 'dir.uri' or 'file.uri'",
        "Write dir.uri='/data/in' or file.uri='/data/in/trades.csv'.",
    )
    assert find_missing_option("source", "file", {"file.uri": "x"}) is None
    assert find_missing_option("sink", "kafka", {"bootstrap.servers": "h:1"}) == (
        "a sink of type 'kafka' has no 'topic'",
        "Write topic='alerts'.",
    )


def test_names_are_those_that_run() -> None:
    assert option_names("sink", "tcp") == {
        "type", "ref", "on.error", "url", "sync", "tcp.no.delay", "keep.alive", "worker.threads",
    }  # fmt: skip
    assert "seq.enabled" not in option_names("source", "kafka")
    assert option_names("sink", "sqs") == frozenset()


def test_lines_of_help() -> None:
    def line(end: End, type_: str, name: str) -> str:
        return options_of(end, type_)[name].help_line

    assert line("source", "tcp", "port") == "The port, on this machine (default: 9892). An option of this build."
    assert line("source", "http", "socket.idle.timeout").endswith("in ms (default: 120,000).")
    assert line("source", "http", "basic.auth.enabled").endswith("Else it brings a token. Default: `false`.")
    assert line("sink", "tcp", "sync") == "Accepted, and without effect: a message is sent before the next one."
