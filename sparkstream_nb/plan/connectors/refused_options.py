"""Options of WSO2's connectors and mappings that this build refuses by name, and the values at which it does not.

Those values are the defaults of siddhi-io-kafka, -file, -http, -cdc and -prometheus, and those that switch an option
off: leaving the option out changes nothing. Apps that were generated, or copied from examples, write them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from .option_spec import End, Options, OptionSpec, by_name

_NONE = ("",)
_FALSE, _TRUE = ("false",), ("true",)
_EITHER = ("true", "false")

_RABBITMQ_TLS: Mapping[str, tuple[str, ...]] = {
    "tls.enabled": _FALSE, "tls.truststore.path": _NONE, "tls.truststore.password": ("", "wso2carbon"),
    "tls.truststore.type": ("jks",), "tls.version": ("ssl",),
}  # fmt: skip
_HL7_TLS: Mapping[str, tuple[str, ...]] = {
    "tls.enabled": _FALSE, "tls.keystore.filepath": _NONE, "tls.keystore.passphrase": ("", "wso2carbon"),
    "tls.keystore.type": ("jks",),
}  # fmt: skip
_WEBSOCKET_TLS: Mapping[str, tuple[str, ...]] = {
    "truststore.path": _NONE, "truststore.password": ("", "wso2carbon"),
}  # fmt: skip
_LISTENER: Mapping[str, tuple[str, ...]] = {
    "ssl.verify.client": ("", "false"), "ssl.protocol": ("tls",), "tls.store.type": ("jks",),
    "ssl.configurations": _NONE, "request.size.validation.configurations": _NONE,
    "header.validation.configurations": _NONE, "server.bootstrap.configurations": _NONE, "parameters": _NONE,
    "trace.log.enabled": _FALSE,
}  # fmt: skip
_SOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "kafka": {"seq.enabled": _FALSE},
    "file": {
        "move.after.failure": _NONE, "move.if.exist.mode": _NONE,
        "timeout": ("5000",), "file.read.wait.timeout": ("1000",), "header.line.count": ("1",),
        "buffer.size": ("65536",), "read.only.header": _FALSE, "read.only.trailer": _FALSE, "skip.trailer": _FALSE,
        "cron.expression": _NONE, "file.system.options": _NONE,
    },
    "http": _LISTENER,
    "http-service": _LISTENER,
    "rabbitmq": _RABBITMQ_TLS,
    "websocket": _WEBSOCKET_TLS,
    "hl7": {**_HL7_TLS, "hl7.conformance.profile.used": _FALSE, "hl7.conformance.profile.file.path": _NONE},
    "prometheus": {"client.truststore.file": _NONE, "client.truststore.password": ("", "wso2carbon")},
    "http-call-response": {"allow.streaming.responses": _FALSE},
    "fileeventlistener": {"file.system.options": _NONE},
    "cdc": {
        "pool.properties": _NONE, "datasource.name": _NONE, "jndi.resource": _NONE,
        "cron.expression": _NONE, "wait.on.missed.record": _FALSE, "missed.record.waiting.timeout": ("-1",),
        "polling.history.size": ("10",),
    },
}  # fmt: skip
_HTTP: Mapping[str, tuple[str, ...]] = {
    "https.truststore.file": _NONE, "https.truststore.password": ("", "wso2carbon"),
    "https.keystore.file": _NONE, "https.keystore.password": ("", "wso2carbon"),
    "https.keystore.key.password": ("", "wso2carbon"), "ssl.protocol": ("tls",), "ssl.configurations": _NONE,
    "ssl.verification.disabled": _FALSE, "hostname.verification.enabled": _TRUE, "tls.store.type": ("jks",),
    "proxy.host": _NONE, "proxy.port": _NONE, "proxy.username": _NONE, "proxy.password": _NONE,
    "client.bootstrap.configurations": _NONE, "executor.service.threads": ("20",), "parameters": _NONE,
    # Redirects are not followed, and an event whose request is redirected is an error: `remarks.py` has a note.
    "follow.redirect": _EITHER, "max.redirect.count": ("5",),
}  # fmt: skip
_SINKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "file": {"file.system.options": _NONE},
    "http": _HTTP,
    "http-call": {**_HTTP, "downloading.enabled": _FALSE, "download.path": _NONE},
    # Each record is waited for here, and a sink is synchronous whether it says so or not.
    "kafka": {"sequence.id": ("", "null"), "is.synchronous": _EITHER},
    "rabbitmq": _RABBITMQ_TLS,
    "websocket": _WEBSOCKET_TLS,
    "hl7": _HL7_TLS,
    "email": {"attachments": _NONE, "connection.pool.size": ("1",)},
    "prometheus": {
        "push.url": ("http://localhost:9091",), "push.operation": ("pushadd",), "grouping.key": _NONE,
        "quantiles": ("", "null"), "quantile.error": ("0.001",),
    },
}  # fmt: skip

_MAPPINGS: Mapping[tuple[End, str], Mapping[str, str]] = {
    ("source-mapping", "xml"): {
        "extract.leaf.node.data": "Give an XPath for each attribute.",
    },
    ("source-mapping", "avro"): {
        "use.avro.deserializer": "Leave it out.",
    },
    ("sink-mapping", "avro"): {
        "use.avro.serializer": "Leave it out.",
    },
    ("sink-mapping", "text"): {"mustache.enabled": "Write {{attribute}} in a @payload without it."},
}  # fmt: skip
"""Options of mappings with the way out; 'false' is what they are without being given."""


def refused_options(end: End, type_: str) -> tuple[OptionSpec, ...]:
    """The options of WSO2's that a type refuses by name."""
    if end in ("source", "sink"):
        values_by_option = (_SOURCES if end == "source" else _SINKS).get(type_, {})
        return tuple(OptionSpec(name, off=values) for name, values in values_by_option.items())
    ways = _MAPPINGS.get((end, type_), {})
    return tuple(OptionSpec(name, off=_FALSE, instead=instead) for name, instead in ways.items())


def options_of_type(end: End, common: tuple[OptionSpec, ...], type_: str, *specs: OptionSpec) -> Options:
    """The options of a type of source or sink, by name: the common ones, its own, and the refused ones."""
    return by_name(*common, *specs, *refused_options(end, type_))
