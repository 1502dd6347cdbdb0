"""Ctrl-C and a notebook's Stop button: the parts of a call that they do not break in the middle, and those they do.

Python raises KeyboardInterrupt between any two instructions of the main thread. A part that has to be carried out
whole, such as one app taking the place of another, runs `deferred`: an interrupt inside is raised at its end. What
waits, for Spark or for a commit, is `interruptible` inside.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Deferral:
    """Takes the interrupts of a part that is carried out whole."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True

    def raise_what_came(self) -> None:
        """Hands an interrupt that came to the handler that was there before."""
        if self.came:
            self.came = False
            self.handler(signal.SIGINT, None)


def _handler() -> Any:
    """The main thread's handler of interrupts; None in other threads, which get none."""
    return signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None


@contextmanager
def deferred() -> Iterator[None]:
    """Carries out what is inside whole: an interrupt is raised at the end. Inside another such part it is raised at
    the end of that."""
    former = _handler()
    if not callable(former) or isinstance(former, _Deferral):
        yield
        return
    deferral = _Deferral(former)
    signal.signal(signal.SIGINT, deferral)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        deferral.raise_what_came()


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets interrupts break what is inside, which stands in a `deferred` part and puts right what they leave."""
    deferral = _handler()
    if not isinstance(deferral, _Deferral):
        yield
        return
    try:
        signal.signal(signal.SIGINT, deferral.handler)
        deferral.raise_what_came()
        yield
    finally:
        signal.signal(signal.SIGINT, deferral)
