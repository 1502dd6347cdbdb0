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
from .typed_options import OptionValues

_PORTS = {True: "465", False: "25"}
"""siddhi-io-email's ports with TLS and without."""


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
        that is no reference, and NotAllowed where the server is not granted."""
        o = OptionValues.of_trimmed("email", options, self.what)
        tls = o.flag("ssl.enable")
        port = o.raw("port") if o.has("port") else _PORTS[tls]
        host, number = self.grants.check_server("smtp", f"{o.raw('host')}:{port}", f"{self.what} sends mails by")
        o.check_shown(*HEADERS, "address")
        sender = o.raw("address")
        if not re.fullmatch(r"[^@\s<>\",;]+@[^@\s<>\",;]+", sender):
            raise Misuse(f"{self.what}: address is one such as alerts@example.org, not {shown(sender)}")
        kind, kinds = o.raw("content.type").lower(), o.specs["content.type"].values
        if kind not in kinds:
            raise Misuse(f"{self.what}: content.type is {' or '.join(kinds)}, not {shown(kind)}")
        texts = {key: options[key] for key in HEADERS if o.raw(key)}
        user, password = None, ""
        if o.flag("auth"):
            password_text = o.raw("password")
            if not o.raw("username") or not password_text:
                raise Misuse(f"{self.what}: give username and password, or auth='false'")
            check_password(password_text, self.what)
            # No secret is looked up for a server that is not allowed.
            user = self.references.resolve(o.raw("username"), self.what)
            password = self.references.resolve(password_text, self.what)
        place = MailPlace(
            host, number, sender, texts, user, password, tls, o.flag("starttls.enable"), kind, key=self.key,
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
