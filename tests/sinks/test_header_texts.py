"""Values that would write a header, an address, a cookie or a name of their own, through the targets of sinks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkstream_nb.connections.nats_client import NatsServers
from sparkstream_nb.mapping import Message
from sparkstream_nb.sinks.file_sink import FILE_NAME, FilePlace, NamedFiles
from sparkstream_nb.sinks.header_texts import partial_attributes
from sparkstream_nb.sinks.http_sink import HttpPlace, HttpTarget
from sparkstream_nb.sinks.mail import MailPlace, MailTarget
from sparkstream_nb.sinks.nats_sink import NatsPlace, NatsTarget
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable, Undeliverable

LINE_ENDS = ["\r", "\n", "\0", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\ud800"]
ENCODED = ["=?utf-8?q?x=0d=0aReply-To:_evil=40x.org?=", "=?UTF-8?B?DQpYOiB5?=", "=?utf-8*en?q?=0d=0aX:_y?=", "=?a?b?"]
PLACE = OutputPlace(1, 0)


def properties(template: str, value: str) -> dict[str, str]:
    """The properties of a message, as its writer gives them: of each attribute k, j, i the value, and the text."""
    text = re.sub(r"\{\{[kji]\}\}", lambda _: value, template)
    return {"text": text} | {f"value {name}": value for name in "kji"}


def send_http(value: str, header: str = "X-Key", template: str = "{{k}}") -> None:
    """Sends a request to a port where nobody listens: a value that is allowed is TargetUnavailable."""
    target = HttpTarget(HttpPlace("http", "127.0.0.1", 1, "/", templates=((header, template),)))
    all_properties = properties(template, value)
    target.send([Message(b"", (0,), {f"header {header}": all_properties["text"], **all_properties})], [PLACE])


def send_mail(name: str, value: str, template: str) -> None:
    target = MailTarget(MailPlace("127.0.0.1", 1, "me@x.org", {"subject": "s", "to": "a@b.org"} | {name: template}))
    all_properties = properties(template, value)
    target.send([Message(b"", (0,), {name: all_properties["text"], **all_properties})], [PLACE])


@pytest.mark.parametrize("where", ["{}x", "x{}", "x{}X-Evil: 1"])
@pytest.mark.parametrize("sign", LINE_ENDS)
def test_what_ends_a_line_somewhere_ends_none(tmp_path: Path, sign: str, where: str) -> None:
    value = where.format(sign)
    with pytest.raises(Undeliverable, match=r"^header X-Key has "):
        send_http(value)
    for name, template in (("subject", "{{k}}"), ("to", "{{k}} <a@b.org>"), ("cc", "{{k}}@b.org"), ("bcc", "{{k}}")):
        with pytest.raises(Undeliverable, match=f"^{name} has (a line break|half of a surrogate)"):
            send_mail(name, value, template)
    files = NamedFiles(FilePlace(tmp_path, tmp_path), "{{k}}.txt")
    with pytest.raises(Undeliverable, match=r"is not the name of a file: it has (a line break|half of a surrogate)"):
        files.send([Message(b"", (0,), {FILE_NAME: f"{value}.txt"})], [PLACE])
    subjects = NatsTarget(NatsPlace(NatsServers((("127.0.0.1", 1),)), "rooms.{{k}}"))
    with pytest.raises(Undeliverable, match="is no subject of NATS"):
        subjects.send([Message(b"", (0,), {"destination": f"rooms.{value}"})], [PLACE])


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200b", "\ufeff", "\u200f"])
def test_what_is_not_seen_or_turns_the_direction_is_in_no_name_and_no_header(tmp_path: Path, sign: str) -> None:
    value = f"re{sign}txt"
    with pytest.raises(Undeliverable, match=r"^header X-Key has a character in it that is not seen"):
        send_http(value)
    for name, template in (("subject", "{{k}}"), ("to", "{{k}} <a@b.org>")):
        with pytest.raises(Undeliverable, match=f"^{name} has a character in it that is not seen"):
            send_mail(name, value, template)
    files = NamedFiles(FilePlace(tmp_path, tmp_path), "{{k}}.txt")
    with pytest.raises(Undeliverable, match=r"it has a character in it that is not seen"):
        files.send([Message(b"", (0,), {FILE_NAME: f"{value}.txt"})], [PLACE])


def test_joiners_are_parts_of_words_and_signs(tmp_path: Path) -> None:
    files = NamedFiles(FilePlace(tmp_path, tmp_path), "{{k}}.txt")
    files.send([Message(b"x", (0,), {FILE_NAME: "\u0645\u200c\u0645 \U0001f469\u200d\U0001f52c.txt"})], [PLACE])
    assert [file.suffix for file in tmp_path.rglob("*.txt")] == [".txt"]


@pytest.mark.parametrize("word", ENCODED)
def test_encoded_words_reach_no_header(word: str) -> None:
    for header in ("X-Key", "Cookie"):
        with pytest.raises(Undeliverable, match=f"^header {header} has an encoded word"):
            send_http(f"a {word}", header)
    for name in ("subject", "to", "cc", "bcc"):
        with pytest.raises(Undeliverable, match=f"^{name} has an encoded word"):
            send_mail(name, f"a {word}", "{{k}} <a@b.org>")


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
        send_mail("to", value, template)


@pytest.mark.parametrize(
    ("template", "attributes"),
    [
        ("{{k}}", []),
        ("boss@b.org, {{k}}", []),
        ("{{k}},{{j}} , boss@b.org", []),
        ("{{k}}@b.org, {{j}}", ["k"]),
        ("{{k}} {{j}} <{{i}}@b.org>", ["k", "j", "i"]),
        ("{{k}}{{j}}", ["k", "j"]),
        ('"A, {{k}}, B" <a@b.org>', ["k"]),
    ],
)
def test_attributes_that_are_a_part_of_an_address(template: str, attributes: list[str]) -> None:
    assert partial_attributes(template, ",") == attributes


def test_addresses_that_the_app_meant() -> None:
    for value, template in (
        ("a@b.org, c@d.org", "{{k}}"),
        ("Ann <a@b.org>", "boss@b.org, {{k}}"),
        ("ann.lee+x", "{{k}}@b.org"),
        ("ann", "{{k}} {{j}} <{{i}}@b.org>"),
    ):
        with pytest.raises(TargetUnavailable, match="cannot be reached"):
            send_mail("to", value, template)


def test_a_value_writes_no_cookie() -> None:
    with pytest.raises(Undeliverable, match=r"^header Cookie has one of "):
        send_http("a; admin=1", "Cookie", "room={{k}}")
    with pytest.raises(TargetUnavailable, match="cannot be reached"):
        send_http("room=a; admin=1", "Cookie", "{{k}}")
    with pytest.raises(TargetUnavailable, match="cannot be reached"):
        send_http("a; b=c", "X-Key", "{{k}}")
