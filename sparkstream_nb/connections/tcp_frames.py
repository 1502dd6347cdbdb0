"""The frames in which siddhi-io-tcp sends messages: 2, then the bytes of the rest, a session, a channel, and a message.

Each text and the message come after the number of their bytes, big-endian.
"""

from __future__ import annotations

import struct

PROTOCOL = 2
HEAD = struct.Struct(">bi")
"""Head of a frame: the protocol, and the number of bytes of the rest."""
_SIZE = struct.Struct(">i")
MOST_BYTES = 1 << 24
"""Bytes of a frame, at most."""


def frame(session: str, channel: str, message: bytes) -> bytes:
    """A frame of one message."""
    parts = (session.encode(), channel.encode(), message)
    rest = b"".join(_SIZE.pack(len(p)) + p for p in parts)
    return HEAD.pack(PROTOCOL, len(rest)) + rest


def open_frame(rest: bytes) -> tuple[str, bytes]:
    """Channel and message of the bytes after `HEAD` in a frame. Raises ValueError if they are not a frame's."""
    parts, at = [], 0
    for _ in range(3):
        if at + _SIZE.size > len(rest):
            raise ValueError("a frame ends too early")
        (size,) = _SIZE.unpack_from(rest, at)
        at += _SIZE.size
        if not 0 <= size <= len(rest) - at:
            raise ValueError("a part of a frame is longer than the frame")
        parts.append(rest[at : at + size])
        at += size
    if at != len(rest):
        raise ValueError("a frame is longer than its parts")
    try:
        return parts[1].decode(), parts[2]
    except UnicodeDecodeError:
        raise ValueError("the context in a frame is no UTF-8") from None
