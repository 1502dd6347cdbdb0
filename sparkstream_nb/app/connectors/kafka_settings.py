"""`optional.configuration` of Kafka sources and sinks as settings of kafka-python's clients."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import Misuse, shown
from ...plan.connectors.kafka_client_settings import CONFIGURATION, client_settings
from ..config.grants import Grants
from ..config.secrets import References, check_password

_ALLOWED: Mapping[str, frozenset[str]] = {
    "acks": frozenset({"all", "-1"}),
    "auto.offset.reset": frozenset({"earliest", "latest"}),
    "compression.type": frozenset({"none", "gzip", "snappy", "lz4", "zstd"}),
    "isolation.level": frozenset({"read_committed", "read_uncommitted"}),
    "security.protocol": frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}),
    "sasl.mechanism": frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}),
}
_MOST = 1 << 30
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_JAAS = "sasl.jaas.config"


def servers_of(addresses: str, grants: Grants, what: str, verb: str) -> tuple[str, ...]:
    """The brokers of `bootstrap.servers`, as HOST:PORT. `what` is a source or sink in words, which reads from or writes
    to them (`verb`). Raises NotAllowed if one is not granted, and `Misuse` if kafka-python is not installed."""
    if "${" in addresses:
        raise Misuse(f"{what}: bootstrap.servers cannot have a reference such as ${{sec:...}} in it")
    brokers = [grants.check_broker(s.strip(), f"{what} {verb}") for s in addresses.split(",") if s.strip()]
    if importlib.util.find_spec("kafka") is None:
        raise Misuse(f"{what} needs kafka-python: pip install 'sparkstream-nb[kafka]'")
    return tuple(f"{host}:{port}" for host, port in brokers)


def settings_of(text: str, key_types: Mapping[str, type], references: References, what: str) -> dict[str, Any]:
    """Settings by kafka-python's names, of the keys in `key_types`. `what`: a source or sink in words. Raises `Misuse`
    for values that are wrong, and for a password that is no reference."""
    return dict(_settings(dict(client_settings(text)), key_types, references, what))


def _settings(
    settings: Mapping[str, str], key_types: Mapping[str, type], references: References, what: str
) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if not key:
            raise Misuse(f"{what}: {CONFIGURATION} is 'name:value,name:value', not {shown(value)}")
        if value not in _ALLOWED.get(key, {value}):
            way = "a sink waits for all copies: " if key == "acks" else ""
            raise Misuse(f"{what}: {way}{key} is one of {', '.join(sorted(_ALLOWED[key]))}, not {shown(value)}")
        if key_types[key] is int:
            if not re.fullmatch(r"\d{1,10}", value, re.ASCII) or int(value) > _MOST:
                raise Misuse(f"{what}: {key} is a number up to {_MOST:,}, not {shown(value)}")
            yield key.replace(".", "_"), int(value)
        elif key == "compression.type":
            yield key.replace(".", "_"), _compression(value, what)
        elif key not in (_JAAS, "acks"):
            yield key.replace(".", "_"), value
    yield from _login(settings, references, what)


def _compression(name: str, what: str) -> str | None:
    if name == "none":
        return None
    from ...sinks.kafka_sink import compresses  # kafka-python is optional

    if not compresses(name):
        raise Misuse(f"{what}: compression.type {name} needs a package that is not installed: gzip needs none")
    return name


def _login(settings: Mapping[str, str], references: References, what: str) -> Iterator[tuple[str, str]]:
    """User and password of `sasl.jaas.config`, as Java's clients have them."""
    sasl = settings.get("security.protocol", "PLAINTEXT").startswith("SASL")
    login = {name: a or b for name, a, b in _LOGIN.findall(settings.get(_JAAS, ""))}
    if not sasl:
        if _JAAS in settings or "sasl.mechanism" in settings:
            raise Misuse(f"{what}: a login needs security.protocol:SASL_SSL in {CONFIGURATION}")
        return
    example = f'{_JAAS}:username="me" password="${{sec:NAME}}"'
    if "sasl.mechanism" not in settings or not login.get("username") or not login.get("password"):
        raise Misuse(f"{what}: a login is sasl.mechanism:PLAIN and {example} in {CONFIGURATION}")
    check_password(login["password"], what, example)
    yield "sasl_plain_username", references.resolve(login["username"], what)
    yield "sasl_plain_password", references.resolve(login["password"], what)
