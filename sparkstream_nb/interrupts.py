"""Ctrl-C and a notebook's Stop button: parts of a call that they interrupt, and parts that they do not.

Python raises KeyboardInterrupt between any two instructions of the main thread. A part that has to be carried out
whole, such as one app taking the place of another, is `deferred`: an interrupt inside is raised at its end. Waits
inside, for Spark or for a commit, are `interruptible`.

These are classes: a generator that is left in the middle of its beginning would run its end whenever it is collected.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import FrameType
from typing import Any, Self


class _Deferral:
    """Notes the interrupts of a part that is carried out whole, for the `handler` that was there before."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.has_come = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True

    def raise_what_came(self) -> None:
        """Hands on an interrupt that came."""
        if self.has_come:
            self.has_come = False
            self.handler(signal.SIGINT, None)


class deferred(ContextDecorator):
    """Runs its body without interruption: an interrupt is raised at the end, in nested bodies at the end of the
    outermost. Also a decorator. Does nothing in other threads, which get no interrupts.
    """

    def __init__(self) -> None:
        self._deferrals: list[_Deferral | None] = []

    def __enter__(self) -> Self:
        if _in_main_thread():
            previous_handler = signal.getsignal(signal.SIGINT)
            deferral = (
                _Deferral(previous_handler)
                if callable(previous_handler) and not isinstance(previous_handler, _Deferral)
                else None
            )
            self._deferrals.append(deferral)
            if deferral is not None:
                signal.signal(signal.SIGINT, deferral)
        return self

    def __exit__(self, *_: object) -> None:
        if _in_main_thread():
            deferral = self._deferrals.pop()
            if deferral is not None:
                signal.signal(signal.SIGINT, deferral.handler)
                deferral.raise_what_came()


class interruptible:
    """Lets interrupts break its body, within a `deferred` body that repairs the effects."""

    def __enter__(self) -> None:
        handler = signal.getsignal(signal.SIGINT) if _in_main_thread() else None
        self._deferral = handler if isinstance(handler, _Deferral) else None
        if self._deferral is not None:
            try:
                signal.signal(signal.SIGINT, self._deferral.handler)
                self._deferral.raise_what_came()
            except BaseException:
                signal.signal(signal.SIGINT, self._deferral)
                raise

    def __exit__(self, *_: object) -> None:
        if self._deferral is not None:
            signal.signal(signal.SIGINT, self._deferral)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
