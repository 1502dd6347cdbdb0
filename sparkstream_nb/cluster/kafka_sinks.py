"""The options of `kafka` sinks as topics that an app may write to: grants, settings, logins from outside the text."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Misuse, shown
from ..plan.outside import CONFIGURATION, PRODUCER, producer_settings
from ..plan.query_parts import template_attributes
from ..spark.sinks.kafka import TIMEOUTS, TOPIC, KafkaPlace, KafkaTarget, compresses
from ..spark.sinks.target import Target
from .grants import Grants
from .secrets import References

_ALLOWED: Mapping[str, frozenset[str]] = {
    "acks": frozenset({"all", "-1"}),
    "compression.type": frozenset({"none", "gzip", "snappy", "lz4", "zstd"}),
    "security.protocol": frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}),
    "sasl.mechanism": frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}),
}
_MOST = 1 << 30
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_REFERENCE = re.compile(r"\$\{(sec|env):[^}]+\}")
_JAAS, _USER, _PASSWORD = "sasl.jaas.config", "sasl.plain.username", "sasl.plain.password"


@dataclass(frozen=True)
class KafkaGate:
    """Makes targets of the options of `what`, a sink in words, as far as `grants` allow. `key` begins the
    Idempotency-Keys of its records."""

    grants: Grants
    references: References
    what: str
    key: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(servers and topic as they may be shown, the target). Raises `Misuse` for options that are wrong, or have a
        password that is no reference, and NotAllowed where a server is not granted."""
        written = options["bootstrap.servers"]
        if "${" in written:
            raise Misuse(f"{self.what}: bootstrap.servers cannot have a reference such as ${{sec:...}} in it")
        # No secret is looked up for a server that is not allowed.
        found = [self.grants.check_broker(s.strip(), f"{self.what} writes to") for s in written.split(",") if s.strip()]
        servers = tuple(f"{host}:{port}" for host, port in found)
        if importlib.util.find_spec("kafka") is None:
            raise Misuse(f"{self.what} needs kafka-python: pip install 'sparkstream-nb[kafka]'")
        for key in ("topic", "partition.no", "key", "is.binary.message"):
            if "${" in options.get(key, ""):
                raise Misuse(f"{self.what}: {key} cannot have a reference such as ${{sec:...}} in it: it is shown")
        topic, partition = options["topic"], options.get("partition.no")
        if not template_attributes(topic) and not TOPIC.fullmatch(topic):
            raise Misuse(f"{self.what}: topic is up to 249 letters, digits, '.', '_' and '-', not {shown(topic)}")
        if partition is not None and not template_attributes(partition) and not re.fullmatch(r"\d{1,9}", partition):
            raise Misuse(f"{self.what}: partition.no is a number such as '0', not {shown(partition)}")
        binary = options.get("is.binary.message", "true")
        if binary.lower() not in ("true", "false"):
            raise Misuse(f"{self.what}: is.binary.message is 'true' or 'false', not {shown(binary)}")
        settings = dict(self._settings(options.get(CONFIGURATION, "")))
        timeouts = TIMEOUTS | settings
        if timeouts["delivery_timeout_ms"] < timeouts["request_timeout_ms"] + settings.get("linger_ms", 0):
            raise Misuse(f"{self.what}: delivery.timeout.ms is less than request.timeout.ms and linger.ms together")
        place = KafkaPlace(servers, topic, partition, options.get("key"), settings, self.key)
        return f"kafka://{','.join(servers)}/{topic}", KafkaTarget(place)

    def _settings(self, text: str) -> Iterator[tuple[str, Any]]:
        """The settings of kafka-python's producer that `optional.configuration` has."""
        given = dict(producer_settings(text))
        for key, value in given.items():
            if not key:
                raise Misuse(f"{self.what}: {CONFIGURATION} is 'name:value,name:value', not {shown(value)}")
            if value not in _ALLOWED.get(key, {value}):
                way = "a sink waits for all copies: " if key == "acks" else ""
                raise Misuse(
                    f"{self.what}: {way}{key} is one of {', '.join(sorted(_ALLOWED[key]))}, not {shown(value)}"
                )
            if PRODUCER[key] is int:
                if not re.fullmatch(r"\d{1,10}", value, re.ASCII) or int(value) > _MOST:
                    raise Misuse(f"{self.what}: {key} is a number up to {_MOST:,}, not {shown(value)}")
                yield key.replace(".", "_"), int(value)
            elif key == "compression.type":
                yield key.replace(".", "_"), self._compression(value)
            elif key not in (_JAAS, _USER, _PASSWORD, "acks"):
                yield key.replace(".", "_"), value
        yield from self._login(given)

    def _compression(self, name: str) -> str | None:
        if name == "none":
            return None
        if not compresses(name):
            raise Misuse(f"{self.what}: compression.type {name} needs a package that is not installed: gzip needs none")
        return name

    def _login(self, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """User and password, as kafka-python's settings, or in `sasl.jaas.config` as Java's clients have them."""
        sasl = given.get("security.protocol", "PLAINTEXT").startswith("SASL")
        login = {name: a or b for name, a, b in _LOGIN.findall(given.get(_JAAS, ""))}
        plain = {"username": given.get(_USER), "password": given.get(_PASSWORD)}
        login |= {name: value for name, value in plain.items() if value is not None}
        if not sasl:
            if given.keys() & {_JAAS, _USER, _PASSWORD, "sasl.mechanism"}:
                raise Misuse(f"{self.what}: a login needs security.protocol:SASL_SSL in {CONFIGURATION}")
            return
        example = f"{_USER}:me,{_PASSWORD}:${{sec:NAME}}"
        if "sasl.mechanism" not in given or not login.get("username") or not login.get("password"):
            raise Misuse(f"{self.what}: a login is sasl.mechanism:PLAIN and {example} in {CONFIGURATION}")
        if not _REFERENCE.fullmatch(login["password"]):
            raise Misuse(f"{self.what}: the password does not belong into the app's text: write {example}")
        yield "sasl_plain_username", self.references.resolve(login["username"], self.what)
        yield "sasl_plain_password", self.references.resolve(login["password"], self.what)
