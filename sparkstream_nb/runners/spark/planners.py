"""Closes selectors in which Spark waits for the Python processes that plan a query's micro-batches, and which it never
closes.

For each such process Spark listens on a socket, and waits in a selector of its own until the process connects. It
closes the socket, but not the selector, which keeps three descriptors: two of its own, and the socket's, as a channel
releases it only when its selector does. Nothing refers to the selector from then on, and no collection of garbage
closes it. The only moment to get hold of it is while Spark's thread waits in it. So such a process, before it begins,
asks here (`forked.py`) to record it; there is no race, as Spark waits for the process.

The selector is reached through fields of Java's own classes. If these change, or are not open to reflection, the only
loss is that the descriptors stay.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ...system import unix_socket
from . import forks
from .forked import NOTE
from .reflection import CHANGED, field_of, value_of

_BLOCKERS = ("blocker", "nioBlocker")
"""The field of a thread that names the selector it waits in, before Java 21 and since."""
_SECONDS = 0.5
"""Longest wait of a process. Spark enters the selector at once, and a process needs longer to ask; a query's
thread is told a moment after the query has begun.
"""
_PAUSE = 0.002

_lock = threading.Lock()
_answering: Planners | None = None


class Planners:
    """Records selectors while Spark's threads wait in them, and closes those that are no longer used."""

    def __init__(self, jvm: Any, folder: Path) -> None:
        """Answers processes that were started by the command in this folder. Raises OSError if it cannot."""
        self.folder = folder
        self._jvm = jvm
        self._lock = threading.Lock()
        self._threads: list[Any] = []
        self._selectors: list[tuple[Any, Any]] = []
        """(the socket that Spark listened on, the selector), both Java's."""
        self._blocker: Any = None
        self._listener = unix_socket()
        try:
            (folder / NOTE).unlink(missing_ok=True)
            self._listener.bind(str(folder / NOTE))
            self._listener.listen(64)
        except OSError:
            self._listener.close()
            raise
        threading.Thread(target=self._answer, name="planners", daemon=True).start()

    def watch(self, thread: Any) -> None:
        """Looks at this thread of Java's, too, until it ends."""
        with self._lock:
            self._threads.append(thread)

    def sweep(self) -> None:
        """Closes the selectors that Spark no longer waits in."""
        with self._lock, contextlib.suppress(*CHANGED):
            self._threads = [thread for thread in self._threads if thread.isAlive()]
            for pair in list(self._selectors):
                channel, selector = pair
                if not channel.isOpen():
                    self._selectors.remove(pair)
                    selector.close()

    def end(self) -> None:
        """Answers no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that is accepting
        self._listener.close()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_SECONDS)
                address = connection.recv(4096).decode(errors="replace")
                with contextlib.suppress(*CHANGED):
                    self._note(address)
                connection.sendall(b"n")

    def _note(self, address: str) -> None:
        """Takes note of the selector in which a thread waits for a connection to this path, or :PORT."""
        self.sweep()
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            for thread in self._list_watched():
                if self._note_of(thread, address):
                    return
            time.sleep(_PAUSE)

    def _list_watched(self) -> list[Any]:
        with self._lock:
            return list(self._threads)

    def _note_of(self, thread: Any, address: str) -> bool:
        waits_in = self._blocker_of(thread)
        if waits_in is None or "AbstractSelector" not in str(waits_in.getClass().getName()):
            return False
        selector = value_of(waits_in, "this$0")
        keys = selector.keys().iterator()
        while keys.hasNext():
            channel = keys.next().channel()
            if str(channel.getLocalAddress().toString()).endswith(address):
                with self._lock:
                    self._selectors.append((channel, selector))
                return True
        return False

    def _blocker_of(self, thread: Any) -> Any:
        if self._blocker is None:
            of_thread = self._jvm.java.lang.Class.forName("java.lang.Thread")
            for name in _BLOCKERS:
                with contextlib.suppress(Py4JError):
                    self._blocker = field_of(of_thread, name)
        return None if self._blocker is None else self._blocker.get(thread)


def listen(session: SparkSession) -> None:
    """Answers planners of queries that begin from now on, on a Spark on this machine."""
    with contextlib.suppress(*CHANGED):
        _planners(session._jvm)


def watch(session: SparkSession, thread: Callable[[], Any]) -> None:
    """Record the selectors that Spark waits in for a query that has just begun and runs on this thread of Java's."""
    with contextlib.suppress(*CHANGED):
        planners = _planners(session._jvm)
        if planners is not None:
            planners.watch(thread())


def sweep() -> None:
    """Close selectors that Spark no longer waits in."""
    if _answering is not None:
        _answering.sweep()


def _planners(jvm: Any) -> Planners | None:
    global _answering
    folder = forks.folder()
    with _lock:
        if _answering is not None and (folder != _answering.folder or jvm is not _answering._jvm):
            _answering.end()
            _answering = None
        if _answering is None and folder is not None:
            _answering = Planners(jvm, folder)
        return _answering
