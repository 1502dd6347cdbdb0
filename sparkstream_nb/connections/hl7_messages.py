"""Messages of HL7 version 2 over TCP: frames of MLLP, and acknowledgements in both encodings, ER7 and XML.

MLLP (HL7's Minimal Lower Layer Protocol) puts a vertical tab before a message, and a file separator and a carriage
return behind it. The receiver answers each message with an acknowledgement (HL7 2.5, chapter 2.9).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from html import escape

START, END = b"\x0b", b"\x1c\r"
MOST_BYTES = 1 << 24
"""Bytes of a frame, at most."""
_VERSION = "2.3"
_NAMESPACE = "urn:hl7-org:v2xml"


def frame(message: str) -> bytes:
    """A message as it is sent. Segments of ER7 end with a carriage return, whatever ends the lines of the text."""
    text = message if is_xml(message) else re.sub(r"\r\n|\n", "\r", message.strip("\r\n")) + "\r"
    return START + text.encode() + END


def is_xml(message: str) -> bool:
    """True for a message in XML; False for ER7."""
    return message.lstrip().startswith("<")


def acknowledgement(message: str, refusal: str | None, now: datetime) -> str:
    """The answer to a message, in its encoding: it was accepted (AA), or refused (AE) for a reason."""
    return (_acknowledge_xml if is_xml(message) else _acknowledge_er7)(message, refusal, now)


def _acknowledge_er7(message: str, refusal: str | None, now: datetime) -> str:
    header_line = message.lstrip().partition("\r")[0]
    separator = header_line[3:4] or "|"
    fields = [*header_line.split(separator), *[""] * 12]
    characters, application, facility, receiver, receiving_facility = fields[1:6]
    component = characters[:1] or "^"
    trigger = fields[8].split(component)[1:2]
    control_id, processing, version = fields[9:12]
    header = [
        "MSH", characters or r"^~\&", receiver, receiving_facility, application, facility, f"{now:%Y%m%d%H%M%S}", "",
        component.join(["ACK", *trigger]), control_id, processing or "P", version or _VERSION,
    ]  # fmt: skip
    result = ["MSA", "AA", control_id]
    if refusal is not None:
        result[1:] = ["AE", control_id, re.sub(f"[{re.escape(separator + characters)}\r\n]+", " ", refusal)]
    return f"{separator.join(header)}\r{separator.join(result)}\r"


def _acknowledge_xml(message: str, refusal: str | None, now: datetime) -> str:
    control_id, processing, version = (_element(message, name) for name in ("MSH.10", "MSH.11", "MSH.12"))
    reason = "" if refusal is None else f"<MSA.3>{escape(refusal)}</MSA.3>"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><ACK xmlns="{_NAMESPACE}"><MSH><MSH.1>|</MSH.1><MSH.2>^~\\&amp;</MSH.2>'
        f"<MSH.7>{now:%Y%m%d%H%M%S}</MSH.7><MSH.9>ACK</MSH.9><MSH.10>{control_id}</MSH.10>"
        f"<MSH.11>{processing or 'P'}</MSH.11><MSH.12>{version or _VERSION}</MSH.12></MSH>"
        f"<MSA><MSA.1>{'AA' if refusal is None else 'AE'}</MSA.1><MSA.2>{control_id}</MSA.2>{reason}</MSA></ACK>"
    )


def _element(message: str, name: str) -> str:
    """The escaped text of the first element of a name, or of its first component; empty without one."""
    match = re.search(rf"<(?:\w+:)?{re.escape(name)}>(?:\s*<(?:\w+:)?[\w.]+>)?([^<]*)<", message)
    return "" if match is None else match[1].strip()


@dataclass(frozen=True)
class Result:
    """The result that an acknowledgement tells: its code, such as AA, and the reason of a refusal."""

    code: str
    reason: str

    @property
    def is_accepted(self) -> bool:
        """True if the receiver has the message."""
        return self.code in ("AA", "CA")

    @classmethod
    def of(cls, answer: str) -> Result | None:
        """The result in an answer; None if it is no acknowledgement."""
        if is_xml(answer):
            code = _element(answer, "MSA.1")
            return cls(code, _element(answer, "MSA.3")) if code else None
        separator = answer[3:4]
        segments = re.split(r"[\r\n]+", answer)
        fields = next((s.split(separator) for s in segments if separator and s.startswith(f"MSA{separator}")), None)
        return None if fields is None else cls(fields[1], fields[3] if len(fields) > 3 else "")
