"""Messages of files in mode `regex`: texts between matches of regular expressions, by the rules of siddhi-io-file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.expressions.javaregex import match_in_time


@dataclass(frozen=True)
class CutMessages:
    """Messages at the beginning of some bytes, which end at byte `end`. `pending_bytes`: bytes behind it, from the
    beginning of a message whose end is not there yet."""

    messages: Sequence[bytes]
    end: int
    pending_bytes: int


@dataclass(frozen=True)
class MessageCutter:
    """A message is the text from a match of `begin` to the end of the next match of `end`. Without `end`, it ends
    before the next match of `begin`; without `begin`, it begins where the last one ended. Both are compiled patterns
    of the package `regex`; one of them is given."""

    begin: Any
    end: Any

    def cut(self, data: bytes, *, is_complete: bool) -> CutMessages:
        """The messages of `data`. `is_complete`: nothing comes after it, so that the last message without an `end` is
        whole. Raises RowFailure for a pattern that takes too long."""
        text = data.decode(errors="surrogateescape")
        messages: list[bytes] = []
        at = 0
        while at < len(text):
            start, stop = self._next(text, at, is_complete)
            if stop is None:
                break
            messages.append(text[start:stop].encode(errors="surrogateescape"))
            at = stop
        else:
            start = len(text)
        end = len(text[:at].encode(errors="surrogateescape"))
        return CutMessages(messages, end, len(text[start:].encode(errors="surrogateescape")))

    def _next(self, text: str, at: int, is_complete: bool) -> tuple[int, int | None]:
        """Beginning of the next message from `at` on, and its end (None: not there yet)."""
        start = begin_end = at
        if self.begin is not None:
            match = match_in_time(self.begin.search, text, at)
            if match is None:
                return len(text), None
            start, begin_end = match.span()
        after = max(begin_end, start + 1)  # a message is not empty
        match = match_in_time((self.end or self.begin).search, text, after)
        if match is not None:
            return start, match.start() if self.end is None else max(match.end(), after)
        return start, len(text) if is_complete and self.end is None else None
