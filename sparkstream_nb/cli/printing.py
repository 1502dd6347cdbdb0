"""Standard output and errors without the control characters of events: nothing that an event has changes a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from ..errors import escape_controls


class PrintableStream:
    """A stream that spells control characters out, less those with which this package draws progress."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_over = False
        """Set when the command has printed all. A library that resets the terminal's colours at the exit of Python
        writes to the stream that it met."""

    def write(self, text: str) -> int:
        """Write `text`; returns the number of its characters."""
        if self.is_over:
            self.stream.write(text)
        elif text.startswith("\r"):  # a line of progress that is drawn again
            self.stream.write("\r".join(map(escape_controls, text.split("\r"))))
        else:
            self.stream.write(escape_controls(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Spell out control characters of all texts that are printed in the block."""
    streams = [PrintableStream(s) for s in (sys.stdout, sys.stderr)]
    out, err = (cast(TextIO, s) for s in streams)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    finally:
        for stream in streams:
            stream.is_over = True


def print_exactly(text: str) -> None:
    """Print a text that is input of other programs, such as a formatted app, as it is."""
    stream = sys.stdout
    (stream.stream if isinstance(stream, PrintableStream) else stream).write(text)
