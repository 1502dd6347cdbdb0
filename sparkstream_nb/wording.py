"""Hints in the words of their reader: options for a person at a command line or in a magic, arguments in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_speaks_of_options: ContextVar[bool] = ContextVar("speaks_of_options", default=False)


@contextlib.contextmanager
def speak_of_options() -> Iterator[None]:
    """Hints name options inside the block."""
    token = _speaks_of_options.set(True)
    try:
        yield
    finally:
        _speaks_of_options.reset(token)


def choose_words(options: str, python: str) -> str:
    """The words of a hint: with `options`, or with arguments in `python`."""
    return options if _speaks_of_options.get() else python
