"""Engine hosts, as Spark's workers and the app's process use them: a process for each Spark partition of an app's run,
which keeps the engines of the partition's nodes (`host.py`).

Spark gives a partition to any idle worker, and ends workers that are idle for a minute. An engine in a worker would be
made again from its state in most micro-batches; in a host it stays. The fork server (`forks.py`) forks the hosts. A
worker sends the host of its partition the work, and answers its requests for the node's state, which Spark lets only
the worker read and write. Without a fork server, the worker does the work itself.

To Spark a host is part of the worker: a worker whose host dies in the middle ends as well, and so does a host whose
worker dies. An engine is used again only if its version is the one in the state (`node_host.py`), so that a host may
end at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, Self, TypeVar

from ...system import unix_socket
from ..node_spec import NodeState
from . import forked

SOCKET = "socket"
"""The fork server's socket in its folder, beside its hosts' sockets."""
READY = "ready"
"""The file that a fork server writes into its folder when it can fork."""
HOST, END = "host", "end"
"""The first words of requests to the fork server: for a host by its name, and to end the hosts of a run."""
BEGUN, STATE, DONE, RAISED, ENDED = "begun", "state", "done", "raised", "ended"
"""The kinds of messages that a host sends."""
GONE = (EOFError, OSError, pickle.UnpicklingError)
"""The errors of a line whose other end is gone."""
SMALL_STATE = 1 << 20
"""Bytes of state that are restored in some 20 ms."""
_TRIES = 5
_PAUSE = 0.02
_SECONDS = 5.0

Columns = Mapping[str, list[Any]]
"""Rows by the columns of `journal.COLUMNS`."""

folder: Path | None = None
"""The folder of the fork server that this process was forked from; None if it was not."""

Work = TypeVar("Work")


@dataclass(frozen=True)
class PackedWork(Generic[Work]):
    """The pickled work of nodes: a `NodeWork`, or an `OperatorSpec`. `run` distinguishes the hosts of apps and
    operators."""

    run: str
    data: bytes
    digest: bytes

    @staticmethod
    def of(run: str, work: Work) -> PackedWork[Work]:
        data = pickle.dumps(work)
        return PackedWork(run, data, hashlib.blake2b(data, digest_size=16).digest())

    def unpack(self) -> Work:
        """The inverse of `of`."""
        work: Work = pickle.loads(self.data)
        return work


@dataclass(frozen=True)
class HostPlace:
    """A host's place: the `folder` of its fork server, and the Spark partition that it works for."""

    folder: Path
    partition: int


class Line:
    """A connection of a worker to a host, which send each other pickled objects over it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._stream = connection, connection.makefile("rwb")

    def send(self, message: object) -> None:
        """Sends an object. Raises one of `GONE`."""
        pickle.dump(message, self._stream, pickle.HIGHEST_PROTOCOL)
        self._stream.flush()

    def receive(self) -> Any:
        """The next object. Raises one of `GONE`."""
        return pickle.load(self._stream)

    def close(self) -> None:
        """Closes this end."""
        with contextlib.suppress(OSError):
            self._stream.close()
        self._connection.close()


def pack_error(error: BaseException, other: type[Exception] = RuntimeError) -> bytes:
    """An error, pickled; where that does not preserve it, one of class `other` with its text."""
    with contextlib.suppress(Exception):
        data = pickle.dumps(error)
        restored_error = pickle.loads(data)
        if type(restored_error) is type(error) and str(restored_error) == str(error):
            return data
    return pickle.dumps(other(f"{type(error).__name__}: {error}"))


def prefix(run: str) -> str:
    """The first part of the names of a run's hosts. They are short, as paths of sockets have to be."""
    return f"h{hashlib.blake2b(run.encode(), digest_size=6).hexdigest()}-"


class ConnectedHost:
    """A host that works for this worker until it is left as a context. From its beginning on both end together: where
    one dies, the other ends as well."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            with _together():
                self._line.send(None)
                self._line.receive()
        self._line.close()

    def work(self, state: NodeState, key: int, message: Any) -> Any:
        """The result of a node's work on a message. Raises the errors that are raised in the host."""
        with _together():
            self._line.send((key, message))
            while True:
                kind, *what = self._line.receive()
                if kind != STATE:
                    break
                self._line.send(_answer(state, *what))
        if kind == RAISED:
            raise pickle.loads(what[0])
        return what[0]


def connect_host(place: HostPlace, work: PackedWork[Any]) -> ConnectedHost | None:
    """The host at a place, with the work at hand; None if no host can be had."""
    name = f"{prefix(work.run)}{place.partition}"
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        try:
            connection = _connect_to_host(place.folder, name)
        except OSError:
            continue
        line = Line(connection)
        try:
            line.send(work.digest)
            kind, wants = line.receive()
        except GONE:  # it was about to end, and has done nothing
            line.close()
            continue
        assert kind == BEGUN
        if wants:
            with _together():
                line.send(work.data)
        return ConnectedHost(line)
    return None


def work_in_host(place: HostPlace, work: PackedWork[Any], state: NodeState, key: int, message: Any) -> Any:
    """The result of one node's work on a message, which the host at a place does; None if no host can be had, and
    nothing was done. Raises the errors that are raised in the host."""
    host = connect_host(place, work)
    if host is None:
        return None
    with host:
        return host.work(state, key, message)


def _connect_to_host(folder: Path, name: str) -> socket.socket:
    """A connection to a host, for which the fork server is asked where it does not answer. Raises OSError if there
    is none."""
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        return _connection(folder / name)
    with _connection(folder / SOCKET) as server:
        server.settimeout(_SECONDS)
        # Spark may have added folders of modules.
        environment = {**os.environb, b"PYTHONPATH": os.fsencode(os.pathsep.join(filter(None, sys.path)))}
        forked.request(server, [HOST, name], environment)
        server.recv(1)
    return _connection(folder / name)


def _connection(path: Path) -> socket.socket:
    connection = unix_socket()
    try:
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _answer(state: NodeState, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    """Call a method of the state; returns (whether it succeeded, its result or error). Spark's errors say nothing about
    the events (`recovery.batch_care`), nor does an OSError.
    """
    try:
        return True, getattr(state, method)(*arguments)
    except Exception as error:
        return False, pack_error(error, OSError)


def _die() -> NoReturn:
    os._exit(1)


@contextlib.contextmanager
def _together() -> Iterator[None]:
    """Ends this worker where its host dies, as if the engine, which ended the host, had run in it."""
    try:
        yield
    except GONE:
        _die()


def end(folder: Path | None, run: str) -> None:
    """End the hosts of an app's run, in the app's process. `folder`: the fork server's, if there is one."""
    if folder is None:
        return
    with contextlib.suppress(OSError), _connection(folder / SOCKET) as server:
        server.settimeout(_SECONDS)
        forked.request(server, [END, prefix(run)], {}, files=())
        server.recv(1)
