"""A mail server that takes each message as a mail (SMTP), as siddhi-io-email sends them.

Certificates are checked, and without TLS a password goes to this machine alone. A mail has a `Message-ID`, the same
when it is sent again, by which mail systems recognize a repeat.
"""

from __future__ import annotations

import contextlib
import re
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import getaddresses
from itertools import chain

from ..connections.sockets import shut_down
from ..errors import printable, shown
from ..mapping import Message
from ..plan.query_parts import template_attributes
from .header_texts import ADDRESS_MARKS, header_fault, partial_attributes, value_fault, value_templates
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

HEADERS = ("subject", "to", "cc", "bcc")
"""The options of a mail's headers, which may depend on the event."""
MOST_RECIPIENTS = 100
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")


@dataclass(frozen=True)
class MailPlace:
    """A server, and the parts of its mails. `texts`: the text of each given header of `HEADERS`, which may name
    attributes as `{{attribute}}`. `tls`: from the beginning; else, `starttls`, where the server offers it. `timeout` in
    seconds. `key` begins each Message-ID.
    """

    host: str
    port: int
    sender: str
    texts: Mapping[str, str]
    user: str | None = None
    password: str = field(default="", repr=False)
    tls: bool = True
    starttls: bool = True
    content_type: str = "text/plain"
    timeout: float = 10.0
    key: str = ""

    @property
    def is_here(self) -> bool:
        """True if it is this machine."""
        return self.host in ("localhost", "127.0.0.1", "::1")

    def __str__(self) -> str:
        return f"smtp://{self.host}:{self.port}"


class MailTarget(Target):
    """Sends a mail for each message, over one connection that is kept open."""

    def __init__(self, place: MailPlace) -> None:
        self.place = place
        self._partial = {n: partial_attributes(t, ",") for n, t in place.texts.items() if n != "subject"}
        self.templates: Mapping[str, str] = {n: t for n, t in place.texts.items() if template_attributes(t)}
        self.templates |= value_templates(chain.from_iterable(self._partial.values()))
        self._server: smtplib.SMTP | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        mail, recipients = self._mail(messages[0], places[0])
        try:
            refused_recipients = self._send_to_all(mail, recipients)
        except smtplib.SMTPRecipientsRefused as error:
            raise self._classify_error(*next(iter(error.recipients.values()))) from None
        except smtplib.SMTPResponseException as error:
            raise self._classify_error(error.smtp_code, error.smtp_error) from None
        except smtplib.SMTPNotSupportedError as error:
            raise TargetUnavailable(f"{self.place}: {printable(str(error))[:200]}") from None
        except (OSError, smtplib.SMTPException) as error:
            self.close()
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            raise TargetUnavailable(f"{self.place} cannot be reached: {printable(why)[:200]}") from None
        if refused_recipients:
            who, (code, answer) = next(iter(refused_recipients.items()))
            raise Undeliverable(f"it was sent, but not to {shown(who)}: the server answered {_words(code, answer)}")
        return 1

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def cancel(self) -> None:
        server = self._server
        shut_down(None if server is None else server.sock)

    # ------------------------------------------------------------------------------------------------------ the rest

    def _send_to_all(self, mail: EmailMessage, recipients: list[str]) -> dict[str, tuple[int, bytes]]:
        """Sends a mail; the recipients that the server does not take, of several. A connection that the server has
        closed since is opened again."""
        if self._server is not None:
            try:
                return self._server.send_message(mail, self.place.sender, recipients)
            except (smtplib.SMTPServerDisconnected, ConnectionError):
                self.close()
        self._server = self._connect()
        return self._server.send_message(mail, self.place.sender, recipients)

    def _connect(self) -> smtplib.SMTP:
        p = self.place
        if p.tls:
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                p.host, p.port, timeout=p.timeout, context=ssl.create_default_context()
            )
        else:
            server = smtplib.SMTP(p.host, p.port, timeout=p.timeout)
        try:
            server.ehlo()
            is_encrypted = p.tls
            if not is_encrypted and p.starttls and server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
                is_encrypted = True
            if p.user is not None:
                if not is_encrypted and not p.is_here:
                    raise TargetUnavailable(
                        f"{p} offers no TLS, and the password is not sent without: write ssl.enable='true'"
                    )
                server.login(p.user, p.password)
        except BaseException:
            server.close()
            raise
        return server

    def _classify_error(self, code: int, answer: bytes | str) -> TargetUnavailable | Undeliverable:
        """True if the server may take a mail later (4xx, and wrong passwords, which may be mended), or never."""
        words = f"{self.place} answered {_words(code, answer)}"
        if code in (421, 530, 534, 535):
            self.close()
        elif self._server is not None:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                self._server.rset()
        return TargetUnavailable(words) if code < 500 or code in (530, 534, 535) else Undeliverable(words)

    def _mail(self, message: Message, place: OutputPlace) -> tuple[EmailMessage, list[str]]:
        """A mail and its recipients. Raises Undeliverable for values that headers do not have."""
        texts = {n: message.properties.get(n, t) for n, t in self.place.texts.items()}
        for name, text in texts.items():
            fault = header_fault(text)
            if fault is None and name != "subject":
                fault = value_fault(message.properties, self._partial[name], ADDRESS_MARKS)
            if fault is not None:
                raise Undeliverable(f"{name} {fault}")
        addresses = {n: addresses_of(n, t) for n, t in texts.items() if n != "subject"}
        recipients = list(
            dict.fromkeys(a.addr_spec for parsed_addresses in addresses.values() for a in parsed_addresses)
        )
        if not 0 < len(recipients) <= MOST_RECIPIENTS:
            raise Undeliverable(f"a mail has 1 to {MOST_RECIPIENTS} recipients, and this one {len(recipients)}")
        mail = EmailMessage(policy=SMTP)
        try:
            mail["From"] = self.place.sender
            for name, parsed_addresses in addresses.items():
                if name != "bcc" and parsed_addresses:
                    mail[name.capitalize()] = parsed_addresses
            mail["Subject"] = texts.get("subject", "")
            mail["Message-ID"] = f"<{self.place.key}-{place.batch}-{place.row}@sparkstream>"
            subtype = self.place.content_type.partition("/")[2]
            mail.set_content(message.body.decode("utf-8", "replace"), subtype=subtype, charset="utf-8")
        except (ValueError, IndexError) as error:
            raise Undeliverable(f"it is no mail: {printable(str(error))[:200]}") from None
        return mail, recipients


def addresses_of(name: str, text: str) -> list[Address]:
    """The addresses of a header. Raises Undeliverable for invalid ones."""
    out = []
    for shown_name, address in getaddresses([text]):
        if not shown_name and not address:
            continue
        if not _ADDRESS.fullmatch(address):
            raise Undeliverable(f"{name} has {shown(text)}, which is no address")
        try:
            out.append(Address(shown_name, addr_spec=address))
        except Exception:  # of several kinds, also IndexError
            raise Undeliverable(f"{name} has {shown(address)}, which is no address") from None
    return out


def _words(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return printable(f"{code} {' '.join(text.split())[:120]}".rstrip())
