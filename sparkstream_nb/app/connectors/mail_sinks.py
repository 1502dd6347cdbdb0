"""The options of `email` sinks as mails that an app may send: grants, passwords from outside the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import Misuse, shown
from ...plan.query_parts import template_attributes
from ...sinks.mail import HEADERS, MailPlace, MailTarget, addresses_of
from ...sinks.target import Target, Undeliverable
from ..config.grants import Grants
from ..config.secrets import References, check_password

_TRUTH = {"true": True, "false": False}
_HOST, _PORTS = "smtp.gmail.com", {True: "465", False: "25"}
"""siddhi-io-email's server, and ports with TLS and without."""
_TYPES = ("text/plain", "text/html")


@dataclass(frozen=True)
class MailGate:
    """Makes targets of the options of `what`, a sink in words, within its `grants`. `key` begins the Message-IDs
    of its mails.
    """

    grants: Grants
    references: References
    what: str
    key: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(the server as it may be shown, the target). Raises `Misuse` for options that are wrong, or have a secret
        that is no reference, and NotAllowed if the server is not granted."""
        tls = self._flag(options, "ssl.enable", True)
        server = f"{options.get('host', _HOST).strip()}:{options.get('port', _PORTS[tls]).strip()}"
        host, port = self.grants.check_server("smtp", server, f"{self.what} sends mails by")
        for key in (*HEADERS, "address"):
            if "${" in options.get(key, ""):
                raise Misuse(f"{self.what}: {key} cannot have a reference such as ${{sec:...}} in it: it is shown")
        sender = options["address"].strip()
        if not re.fullmatch(r"[^@\s<>\",;]+@[^@\s<>\",;]+", sender):
            raise Misuse(f"{self.what}: address is one such as alerts@example.org, not {shown(sender)}")
        kind = options.get("content.type", _TYPES[0]).strip().lower()
        if kind not in _TYPES:
            raise Misuse(f"{self.what}: content.type is {' or '.join(_TYPES)}, not {shown(kind)}")
        texts = {key: options[key] for key in HEADERS if options.get(key, "").strip()}
        user, password = None, ""
        if self._flag(options, "auth", True):
            written = options.get("password", "").strip()
            if not options.get("username", "").strip() or not written:
                raise Misuse(f"{self.what}: give username and password, or auth='false'")
            check_password(written, self.what)
            # No secret is looked up for a server that is not allowed.
            user = self.references.resolve(options["username"].strip(), self.what)
            password = self.references.resolve(written, self.what)
        place = MailPlace(
            host, port, sender, texts, user, password, tls, self._flag(options, "starttls.enable", True), kind,
            key=self.key,
        )  # fmt: skip
        target = MailTarget(place)
        for key, text in texts.items():
            if key != "subject" and not template_attributes(text):
                self._check_addresses(key, text)
        return f"{place} from {sender}", target

    def _check_addresses(self, key: str, text: str) -> None:
        try:
            addresses_of(key, text)
        except Undeliverable as error:
            raise Misuse(f"{self.what}: {error}") from None

    def _flag(self, options: Mapping[str, str], key: str, default: bool) -> bool:
        value = options.get(key, str(default)).strip().lower()
        if value not in _TRUTH:
            raise Misuse(f"{self.what}: {key} is 'true' or 'false', not {shown(value)}")
        return _TRUTH[value]
