"""Sinks of type email, against a real SMTP server on this machine."""

from __future__ import annotations

import contextlib
import email
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.lab.display import text
from sparkstream_nb.mapping import Message as SinkMessage
from sparkstream_nb.sinks.mail import MailPlace, MailTarget
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable
from tests.apps.waiting import until
from tests.certificates import self_signed
from tests.servers import free_port
from tests.sinks.test_sinks import app_with


@dataclass
class Mails:
    """What a server takes: (sender, recipients, mail). `answers`: what it says to the next mails."""

    port: int = 0
    taken: list[tuple[str, list[str], Message]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address.startswith("nobody"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        answer = self.answers.pop(0) if self.answers else "250 taken"
        if answer.startswith("250"):
            self.taken.append((envelope.mail_from, envelope.rcpt_tos, email.message_from_bytes(envelope.content)))
        return answer


def let_in(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
    right = isinstance(given, LoginPassword) and (given.login, given.password) == (b"me", b"geheim")
    return AuthResult(success=right, handled=False)


@contextlib.contextmanager
def mail_server(mails: Mails, port: int | None = None, **options: Any) -> Iterator[Mails]:
    mails.port = port or free_port()
    given = {"authenticator": let_in, "auth_require_tls": False, "auth_exclude_mechanism": ["LOGIN"], **options}
    controller = Controller(mails, "127.0.0.1", mails.port, **given)
    controller.start()
    try:
        yield mails
    finally:
        controller.stop(no_assert=True)


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mails]:
    monkeypatch.setenv("MAIL_PASSWORD", "geheim")
    with mail_server(Mails()) as found:
        yield found


LOGIN = "username='me', password='${env:MAIL_PASSWORD}',"


def mail_sink(port: int, more: str = LOGIN, to: str = "boss@example.org", mapping: str = "") -> str:
    payload = mapping or "@map(type='text', @payload('Room {{k}} has {{v}} °C.'))"
    return f"""@sink(type='email', host='localhost', port='{port}', ssl.enable='false', address='app@example.org',
        subject='Alarm: {{{{k}}}}', to='{to}', {more} {payload})"""


def deployed(run: Callable[..., App], sink: str, port: int) -> App:
    return run(app_with(sink), allow=[f"smtp=localhost:{port}"], allow_env=["MAIL_PASSWORD"])


def test_events_are_sent(run: Callable[..., App], mails: Mails) -> None:
    more = LOGIN + "cc='Anna <a@example.org>, b@example.org', bcc='secret@example.org', content.type='text/html',"
    app = deployed(run, mail_sink(mails.port, more, "{{k}}@example.org"), mails.port)
    app.send("S", [["kü", 1], ["bath", 2]])
    app.flush()
    assert app.drain(60) == 0
    app.send("S", ["hall", 3])
    app.flush()
    assert app.drain(60) == 0
    (figures,) = app.stats().sinks
    assert (figures.sent, figures.failed) == (2, 1)
    assert figures.target == f"smtp://localhost:{mails.port} from app@example.org"
    assert [recipients[0] for _, recipients, _ in mails.taken] == ["bath@example.org", "hall@example.org"]
    sender, recipients, first = mails.taken[0]
    assert sender == first["From"] == "app@example.org"
    assert recipients[1:] == ["a@example.org", "b@example.org", "secret@example.org"]
    assert first["To"] == "bath@example.org"
    assert first["Cc"] == "Anna <a@example.org>, b@example.org"
    assert first["Bcc"] is None
    assert str(make_header(decode_header(first["Subject"]))) == "Alarm: bath"
    assert first.get_content_type() == "text/html"
    payload = first.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert payload.decode().strip() == "Room bath has 2 °C."
    assert len({mail["Message-ID"] for _, _, mail in mails.taken}) == 2
    shown = [str(app.explain()), text(app.stats()), repr(app.deployment), str(app.logs)]
    assert all("geheim" not in s for s in shown)
    assert all(b"geheim" not in f.read_bytes() for f in app.home.rglob("*") if f.is_file())


HOSTILE = ["a\r\nBcc: evil@example.org", "a\nX: y", "x\0", "a" * 100_000]


@pytest.mark.parametrize("value", HOSTILE)
def test_values_stay_in_their_header(run: Callable[..., App], mails: Mails, value: str) -> None:
    app = deployed(run, mail_sink(mails.port, LOGIN + "on.error='STORE',"), mails.port)
    app.send("S", [[value, 1], ["b", 2]])
    app.flush()
    assert app.drain(60) == 0
    assert all(recipients == ["boss@example.org"] for _, recipients, _ in mails.taken)
    assert all(mail["X"] is None and mail["Bcc"] is None for _, _, mail in mails.taken)
    assert str(mails.taken[-1][2]["Subject"]) == "Alarm: b"
    if any(c < " " for c in value):
        assert app.errors.frame["reason"].tolist() == [
            "sink Alerts-email-1: subject has a line break or another control character in it"
        ]


@pytest.mark.parametrize(
    "value",
    [
        "=?utf-8?q?x=0d=0aReply-To:_evil=40x.org=0d=0a=0d=0aPlease_pay_here?=",
        "a =?iso-8859-1?B?ZQ==?= b",
        "=?utf-8?q?without an end",
    ],
)
def test_no_value_writes_a_header(run: Callable[..., App], mails: Mails, value: str) -> None:
    """Python decodes encoded words after it looked for line breaks."""
    app = deployed(run, mail_sink(mails.port, LOGIN + "on.error='STORE',"), mails.port)
    app.send("S", [[value, 1], ["=? b", 2]])
    app.flush()
    assert app.drain(60) == 0
    (mail,) = [mail for _, _, mail in mails.taken]
    assert str(mail["Subject"]) == "Alarm: =? b"
    assert mail["Reply-To"] is None
    assert app.errors.frame["reason"].tolist() == [
        "sink Alerts-email-1: subject has an encoded word (=?...?=) in it, which mail programs would decode"
    ]


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("nobody@example.org", "answered 550 no such user"),
        ("boss@example.org, nobody@example.org", "it was sent, but not to 'nobody@example.org': the server answered"),
        ("no address", "which is no address"),
        ("", "a mail has 1 to 100 recipients, and this one 0"),
        (",".join(f"a{i}@b.org" for i in range(200)), "a mail has 1 to 100 recipients, and this one 200"),
        ("a@b.org>\r\nDATA", "line break"),
    ],
)
def test_recipients_that_are_none(run: Callable[..., App], mails: Mails, to: str, reason: str) -> None:
    app = deployed(run, mail_sink(mails.port, LOGIN + "on.error='STORE',", "{{k}}"), mails.port)
    app.send("S", [[to, 1], ["boss@example.org", 2]])
    app.flush()
    assert app.drain(60) == 0
    (found,) = app.errors.frame["reason"].tolist()
    assert reason in found
    assert mails.taken[-1][1] == ["boss@example.org"]


def test_a_value_that_is_a_part_of_an_address_adds_no_recipient(run: Callable[..., App], mails: Mails) -> None:
    to = "{{k}} <boss@example.org>, a-{{v}}@example.org"
    app = deployed(run, mail_sink(mails.port, LOGIN + "on.error='STORE',", to), mails.port)
    app.send("S", [["evil@example.net>, <b", 1], ["Ann", 2]])
    app.flush()
    assert app.drain(60) == 0
    assert [recipients for _, recipients, _ in mails.taken] == [["boss@example.org", "a-2@example.org"]]
    (reason,) = app.errors.frame["reason"]
    assert reason.startswith("sink Alerts-email-1: to has one of ")


def test_a_server_that_is_busy_or_away(run: Callable[..., App], mails: Mails) -> None:
    mails.answers += ["451 try later", "554 no", "250 taken"]
    app = deployed(run, mail_sink(mails.port, LOGIN + "on.error='STORE',"), mails.port)
    app.send("S", [["a", 1], ["b", 2]])
    app.flush()
    assert app.drain(60) == 0
    assert [mail["Subject"] for _, _, mail in mails.taken] == ["Alarm: b"]
    assert "answered 554 no" in app.errors.frame["reason"].tolist()[0]
    assert any("answered 451 try later" in line and "tried again" in line for line in app.logs)


def test_a_server_that_comes_back(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "geheim")
    with mail_server(Mails()) as first:
        app = deployed(run, mail_sink(first.port), first.port)
        app.send("S", ["a", 1])
        app.flush()
        assert app.drain(60) == 0
    app.send("S", ["b", 2])
    app.flush()
    until(app, lambda: "cannot be reached" in (app.stats().sinks[0].last_error or ""))
    with mail_server(Mails(), first.port) as second:
        assert app.drain(60) == 0
        assert [mail["Subject"] for _, _, mail in second.taken] == ["Alarm: b"]


def test_a_wrong_password_is_waited_for_and_not_shown(
    run: Callable[..., App], mails: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "falsch")
    app = deployed(run, mail_sink(mails.port), mails.port)
    app.send("S", ["a", 1])
    app.flush()
    until(app, lambda: "answered 535" in (app.stats().sinks[0].last_error or ""))
    assert "falsch" not in str(app.logs)


def sent(place: MailPlace) -> int:
    target = MailTarget(place)
    try:
        return target.send([SinkMessage(b"text", [0], {})], [OutputPlace(0, 0)])
    finally:
        target.close()


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = self_signed(tmp_path, "localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    texts = {"subject": "s", "to": "a@b.org"}
    for options, tls in (({"ssl_context": context}, True), ({"tls_context": context, "require_starttls": True}, False)):
        with mail_server(Mails(), **options) as mails:
            place = MailPlace("localhost", mails.port, "me@b.org", texts, "me", "geheim", tls)
            with pytest.raises(TargetUnavailable, match="certificate verify failed"):
                sent(place)
            monkeypatch.setenv("SSL_CERT_FILE", cert)
            assert sent(place) == 1
            assert len(mails.taken) == 1
            monkeypatch.delenv("SSL_CERT_FILE")


def test_a_password_goes_nowhere_without_tls(mails: Mails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MailPlace, "is_here", False)
    place = MailPlace("127.0.0.1", mails.port, "me@b.org", {"subject": "s", "to": "a@b.org"}, "me", "geheim", tls=False)
    with pytest.raises(TargetUnavailable, match="offers no TLS, and the password is not sent without"):
        sent(place)
    assert mails.taken == []


REFUSED = [
    ("port='26'", "sends mails by localhost:26, which is not allowed. Add --allow smtp=localhost:26"),
    ("host='mail.example.org'", "sends mails by mail.example.org:25, which is not allowed"),
    ("address='nobody'", "address is one such as alerts@example.org"),
    ("password='geheim'", "the password does not belong into the app's text"),
    ("auth='true'", "give username and password, or auth='false'"),
    ("auth='maybe'", "'auth' of @sink(type='email') is 'true' or 'false', not"),
    ("content.type='text/evil'", "content.type is text/plain or text/html"),
    ("cc='nobody'", "cc has 'nobody', which is no address"),
    ("to='{{z}}'", "has no attribute 'z'"),
    ("attachments='/etc/passwd'", "'attachments' of a sink of type 'email'"),
    ("port='{{v}}'", "'port' that depends on the event"),
]


@pytest.mark.parametrize(("option", "message"), REFUSED)
def test_sinks_that_are_refused(run: Callable[..., App], option: str, message: str) -> None:
    options = {"host": "'localhost'", "port": "'25'", "ssl.enable": "'false'", "address": "'a@b.org'"}
    options |= {"subject": "'s'", "to": "'b@b.org'"}
    options |= {"username": "'me'"} if "password" in option else {} if "auth" in option else {"auth": "'false'"}
    key, _, value = option.partition("=")
    written = ", ".join(f"{k}={v}" for k, v in {**options, key: value}.items())
    sink = f"@sink(type='email', {written}, @map(type='text'))"
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(sink), allow=["smtp=localhost:25"])
    assert message in str(raised.value)
    assert "geheim" not in str(raised.value)
