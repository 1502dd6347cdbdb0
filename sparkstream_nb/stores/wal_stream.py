"""PostgreSQL's streaming replication of a logical slot, over libpq: what the server sends, and the answers it needs.

Their layout: "Streaming Replication Protocol" in PostgreSQL's manual. psycopg has no class for them; its
`pq.PGconn` gives access to libpq, whose connections in replication mode carry them.
"""

from __future__ import annotations

import contextlib
import selectors
import struct
import time
from dataclasses import dataclass
from typing import Any

from psycopg import Error, pq

from ..errors import StoreError
from ..masking import mask_passwords

_ANSWER_SECONDS = 10.0
"""The server ends a connection that does not answer for `wal_sender_timeout`, a minute by default."""
_EPOCH_SECONDS = 946_684_800


@dataclass(frozen=True)
class Progress:
    """The server has sent all that is in the log before `end`."""

    end: int


class WalStream:
    """The changes of a slot from `start` on. Raises StoreError, with one line, where the server ends or refuses."""

    def __init__(self, conninfo: str, server_name: str, command: str) -> None:
        """`server_name` is the server without user and password; `command` is START_REPLICATION with its options."""
        self._server_name = server_name
        self._connection = pq.PGconn.connect(conninfo.encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise self._failure(self._connection.error_message)
        result = self._connection.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            error = self._failure(result.error_message)
            self._connection.finish()
            raise error
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._connection.socket, selectors.EVENT_READ)
        self._received_lsn = self._confirmed_lsn = 0
        self._answered_at = time.monotonic()

    def next_message(self, deadline: float) -> bytes | Progress | None:
        """The next message of the output plug-in, or the progress; None if neither came before `deadline` (s of the
        monotonic clock)."""
        while True:
            try:
                size, data = self._connection.get_copy_data(1)
            except Error as error:
                raise self._failure(error) from None
            if size > 0:
                return self._read_message(bytes(data))
            if size < 0:
                result = self._connection.get_result()
                raise self._failure((result.error_message if result is not None else b"") or b"it ended the stream")
            self.keep_alive()
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                return None
            try:
                self._connection.consume_input()
            except Error as error:
                raise self._failure(error) from None

    def _read_message(self, data: bytes) -> bytes | Progress:
        if data[:1] == b"w":
            _, end, _ = struct.unpack_from("!QQq", data, 1)
            self._received_lsn = max(self._received_lsn, end)
            return data[25:]
        end, _, wants_answer = struct.unpack_from("!QqB", data, 1)
        self._received_lsn = max(self._received_lsn, end)
        if wants_answer:
            self.answer()
        return Progress(end)

    @property
    def end(self) -> int:
        """The position up to which the server has sent the log."""
        return self._received_lsn

    def confirm(self, position: int) -> None:
        """Let the server remove the log before `position`."""
        if position > self._confirmed_lsn:
            self._confirmed_lsn = position
            self.answer()

    def keep_alive(self) -> None:
        """Answers, if the last answer is old."""
        if time.monotonic() - self._answered_at > _ANSWER_SECONDS:
            self.answer()

    def answer(self, *, ask: bool = False) -> None:
        """Tell the server how far this reader is; `ask` for how far the server is."""
        clock = int((time.time() - _EPOCH_SECONDS) * 1_000_000)
        # Confirmed is what is on the disk here, written may not be behind it.
        written_lsn = max(self._received_lsn, self._confirmed_lsn)
        try:
            self._connection.put_copy_data(
                struct.pack("!cQQQqB", b"r", written_lsn, self._confirmed_lsn, self._confirmed_lsn, clock, ask)
            )
            self._connection.flush()
        except Error as error:
            raise self._failure(error) from None
        self._answered_at = time.monotonic()

    def close(self) -> None:
        """End the connection; the slot is free once the server has noticed."""
        self._selector.close()
        with contextlib.suppress(Exception):
            self._connection.finish()

    def _failure(self, error: Any) -> StoreError:
        text = error.decode("utf-8", "replace") if isinstance(error, bytes) else str(error)
        return StoreError(f"{self._server_name}: {in_one_line(text)}")


def in_one_line(text: str) -> str:
    """A message of libpq or of the server in one line, without passwords."""
    return mask_passwords(" ".join(text.split()))
