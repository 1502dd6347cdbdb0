"""The options of `nats` sources and sinks as servers and subjects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from ...connections.nats_client import NatsServers
from ...errors import Misuse, shown
from ...masking import mask_server
from ...plan.connectors.connector_options import options_of
from ...plan.query_parts import template_attributes
from ...sinks.nats_sink import SUBJECT, NatsPlace, NatsTarget
from ...sinks.target import Target
from ...sources.nats_source import NatsSubject
from ..config.grants import Grants
from ..config.secrets import KEPT_ELSEWHERE, References, check_password
from .typed_options import OptionValues

_URL = re.compile(r"(nats://)?(?P<server>[^/@\s]+?)(?P<port>:\d+)?/?")
_PATTERN = re.compile(r"[^\s.\x00-\x1f\x7f-\x9f\ud800-\udfff]+(\.[^\s.\x00-\x1f\x7f-\x9f\ud800-\udfff]+)*")


@dataclass(frozen=True)
class NatsGate:
    """Makes places of the options of `what`, a source or sink in words, within its `grants`."""

    grants: Grants
    references: References
    what: str

    def target(self, options: Mapping[str, str], key: str) -> tuple[str, Target]:
        """(the subject as it may be shown, the target of a sink). `key` begins the ids of its messages. Raises `Misuse`
        for options that are wrong, or have a secret that is no reference, and NotAllowed for a server that is not
        granted."""
        o = OptionValues(options, options_of("sink", "nats"), self.what)
        servers, subject = self._servers(o, "sends to"), o.text("destination")
        if not template_attributes(subject) and not SUBJECT.fullmatch(subject):
            raise Misuse(f"{self.what}: destination is a subject such as alerts.rooms, not {shown(subject)}")
        return f"{subject} at {servers}", NatsTarget(NatsPlace(servers, subject, key))

    def subscription(self, options: Mapping[str, str]) -> NatsSubject:
        """The subscription of a source. Raises as `target` does."""
        o = OptionValues(options, options_of("source", "nats"), self.what)
        servers, subject = self._servers(o, "reads from"), o.text("destination")
        if not _PATTERN.fullmatch(subject):
            raise Misuse(f"{self.what}: destination is a subject such as trades.*, not {shown(subject)}")
        return NatsSubject(servers, subject, o.trim("queue.group.name"))

    def _servers(self, o: OptionValues, does: str) -> NatsServers:
        if find_spec("nats") is None:
            raise Misuse(f"{self.what} needs nats-py: pip install 'sparkstream-nb[nats]'")
        addresses = []
        urls = o.first("server.urls", "bootstrap.servers")
        for text in urls.split(","):
            match = _URL.fullmatch(text.strip())
            if match is None:
                wrong = shown(mask_server(urls))
                raise Misuse(f"{self.what}: server.urls are nats://HOST:PORT, with commas, not {wrong}")
            server = match["server"] + (match["port"] or ":4222")
            addresses.append(self.grants.check_server("nats", server, f"{self.what} {does}"))
        kind, kinds = o.trim("auth.type").lower(), o.specs["auth.type"].values
        if kind == "":
            return NatsServers(tuple(addresses))
        if kind not in kinds:
            kind_names = " or ".join(f"'{value}'" for value in kinds)
            raise Misuse(f"{self.what}: auth.type is {kind_names}, not {shown(kind)}")
        required_options = ("username", "password") if kind == "user" else ("token",)
        for name in required_options:
            if not o.trim(name):
                raise Misuse(f"{self.what}: auth.type='{kind}' needs {' and '.join(required_options)}")
        check_password(
            o.trim(required_options[-1]), self.what, KEPT_ELSEWHERE.replace("password", required_options[-1], 1)
        )
        # No secret is looked up for a server that is not allowed.
        found_values = [self.references.resolve(o.trim(name), self.what) for name in required_options]
        if kind == "token":
            return NatsServers(tuple(addresses), token=found_values[0])
        return NatsServers(tuple(addresses), user=found_values[0], password=found_values[1])
