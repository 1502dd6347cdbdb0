"""Hints in the words of their reader: options for a person at a command line or in a magic, arguments in Python."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

_speaks_of_options: ContextVar[bool] = ContextVar("speaks_of_options", default=False)
_in_a_shell: ContextVar[bool] = ContextVar("in_a_shell", default=False)


@contextlib.contextmanager
def speak_of_options(*, shell: bool = False) -> Iterator[None]:
    """Hints name options inside the block: of magics, or, in a `shell`, of the command line."""
    options, commands = _speaks_of_options.set(True), _in_a_shell.set(shell)
    try:
        yield
    finally:
        _speaks_of_options.reset(options)
        _in_a_shell.reset(commands)


def is_in_shell() -> bool:
    """True for a person at a command line, where there are no magics and a command's process is over after it."""
    return _in_a_shell.get()


def has_magics() -> bool:
    """True in IPython and in notebooks, where a person may write magics; False in plain Python and on the command
    line."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def choose_words(options: str, python: str) -> str:
    """The words of a hint: with `options`, or with arguments in `python`."""
    return options if _speaks_of_options.get() else python
