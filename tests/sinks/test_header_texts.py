"""Values that would write a header, an address, a cookie or a name of their own, through the targets of sinks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkstream_nb.connections.nats_client import NatsServers
from sparkstream_nb.mapping import Message
from sparkstream_nb.sinks.file_sink import FILE_NAME, FilePlace, NamedFiles
from sparkstream_nb.sinks.header_texts import ADDRESS_MARKS, part_fault
from sparkstream_nb.sinks.http_sink import HttpPlace, HttpTarget
from sparkstream_nb.sinks.mail import MailPlace, MailTarget
from sparkstream_nb.sinks.nats_sink import NatsPlace, NatsTarget
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable, Undeliverable

LINE_ENDS = ["\r", "\n", "\0", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\ud800"]
ENCODED = ["=?utf-8?q?x=0d=0aReply-To:_evil=40x.org?=", "=?UTF-8?B?DQpYOiB5?=", "=?utf-8*en?q?=0d=0aX:_y?=", "=?a?b?"]
PLACE = OutputPlace(1, 0)


def send_http(value: str, header: str = "X-Key", template: str = "{{k}}") -> None:
    """Sends a request to a port where nobody listens: a value that is allowed is TargetUnavailable."""
    target = HttpTarget(HttpPlace("http", "127.0.0.1", 1, "/", templates=((header, template),)))
    target.send([Message(b"", (0,), {f"header {header}": value})], [PLACE])


def send_mail(name: str, text: str, template: str) -> None:
    target = MailTarget(MailPlace("127.0.0.1", 1, "me@x.org", {"subject": "s", "to": "a@b.org"} | {name: template}))
    target.send([Message(b"", (0,), {name: text})], [PLACE])


@pytest.mark.parametrize("where", ["{}x", "x{}", "x{}X-Evil: 1"])
@pytest.mark.parametrize("sign", LINE_ENDS)
def test_what_ends_a_line_somewhere_ends_none(tmp_path: Path, sign: str, where: str) -> None:
    value = where.format(sign)
    with pytest.raises(Undeliverable, match=r"^header X-Key has "):
        send_http(value)
    for name, template in (("subject", "{{k}}"), ("to", "{{k}} <a@b.org>"), ("cc", "{{k}}@b.org"), ("bcc", "{{k}}")):
        with pytest.raises(Undeliverable, match=f"^{name} has (a line break|half of a surrogate)"):
            send_mail(name, template.replace("{{k}}", value), template)
    files = NamedFiles(FilePlace(tmp_path, tmp_path), "{{k}}.txt")
    with pytest.raises(Undeliverable, match=r"is not the name of a file: it has (a line break|half of a surrogate)"):
        files.send([Message(b"", (0,), {FILE_NAME: f"{value}.txt"})], [PLACE])
    subjects = NatsTarget(NatsPlace(NatsServers((("127.0.0.1", 1),)), "rooms.{{k}}"))
    with pytest.raises(Undeliverable, match="is no subject of NATS"):
        subjects.send([Message(b"", (0,), {"destination": f"rooms.{value}"})], [PLACE])


@pytest.mark.parametrize("word", ENCODED)
def test_encoded_words_reach_no_header(word: str) -> None:
    for header in ("X-Key", "Cookie"):
        with pytest.raises(Undeliverable, match=f"^header {header} has an encoded word"):
            send_http(f"a {word}", header)
    for name in ("subject", "to", "cc", "bcc"):
        with pytest.raises(Undeliverable, match=f"^{name} has an encoded word"):
            send_mail(name, f"a {word} <a@b.org>", "{{k}} <a@b.org>")


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{k}}@b.org", "evil@x.org, a"),
        ("{{k}} <a@b.org>", "<evil@x.org>, a"),
        ("{{k}} <a@b.org>", "evil@x.org;"),
        ('"{{k}}" <a@b.org>', 'x" <evil@x.org>, "'),
        ('"Doe, {{k}}, Jr" <a@b.org>', 'x" <evil@x.org>, "'),
        ("boss@b.org, team-{{k}}@b.org", "a@b.org,evil"),
    ],
)
def test_a_value_beside_other_text_adds_no_recipient(template: str, value: str) -> None:
    with pytest.raises(Undeliverable, match=re.escape("to has one of ()<>[]:;@\\,\" in a value that is a part of it")):
        send_mail("to", template.replace("{{k}}", value), template)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{k}}", "a@b.org, c@d.org"),
        ("boss@b.org, {{k}}", "boss@b.org, Ann <a@b.org>"),
        ("{{k}}@b.org", "ann.lee+x@b.org"),
        ("{{k}} {{j}} <{{i}}@b.org>", "Ann Lee <ann@b.org>"),
        ("{{k}},{{j}}", "a@b.org,c@d.org"),
    ],
)
def test_addresses_that_the_app_meant(template: str, text: str) -> None:
    assert part_fault(text, template, ",", ADDRESS_MARKS) is None


def test_a_value_writes_no_cookie() -> None:
    with pytest.raises(Undeliverable, match=r"^header Cookie has one of "):
        send_http("room=a; admin=1", "Cookie", "room={{k}}")
    with pytest.raises(TargetUnavailable, match="cannot be reached"):
        send_http("room=a; admin=1", "Cookie", "{{k}}")
    with pytest.raises(TargetUnavailable, match="cannot be reached"):
        send_http("a; b=c", "X-Key", "{{k}}")
