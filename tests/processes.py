"""Processes that tests start: they end with the one that started them, whatever ends that; and a port for them."""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def ending_with_this(number: int = signal.SIGKILL) -> Callable[[], None] | None:
    """For `preexec_fn` of `Popen`: Linux sends the signal to the new process when this one ends. None on another
    system; and in a thread, as Linux sends it when the thread ends that started the process."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port
