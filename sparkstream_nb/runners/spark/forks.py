"""A server from which Spark's Python processes are forked, with their modules imported once for all.

Spark starts a dozen Python processes for a query: daemons for each kind of worker, planners, sources. Each would spend
0.5 to 2.5 s on imports. `start` runs the server and returns a command that Spark takes for the Python interpreter
(`forked.py`): it asks the server for a process. The server ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ...journal.private import UMASK
from ...journal.temporary import temporary
from ...system import CAN_FORK, unix_socket
from . import hosts
from .hosts import END, HOST, SOCKET
from .memory import apply_limit, limit

_PACKAGE = __package__.partition(".")[0]
_IMPORTED = (
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyarrow.pandas_compat",
    f"{_PACKAGE}.runners.node_work",
    f"{_PACKAGE}.runners.stateless",
)
_HOST_MODULE = f"{_PACKAGE}.runners.spark.host"
_REQUEST_SECONDS = 5.0
_lock = threading.Lock()
_running: tuple[subprocess.Popen[bytes], str] | None = None


def start() -> str:
    """The command to run Python by, for Spark on this machine: of the server, which is started where none runs; the
    interpreter itself where there can be none."""
    global _running
    with _lock:
        if _running is None or _running[0].poll() is not None:
            if not CAN_FORK:
                return sys.executable
            try:
                _running = _start()
            except OSError:  # no place for a socket, or none where a command may be run
                return sys.executable
        return _running[1]


def folder() -> Path | None:
    """Folder of the command and of the server's socket; None if there is no server."""
    with _lock:
        return None if _running is None else Path(_running[1]).parent


def _start() -> tuple[subprocess.Popen[bytes], str]:
    limit()  # says it here, where the variable is no size
    folder = temporary("python")
    try:
        address, command = folder / SOCKET, folder / "python"
        words = [sys.executable, "-IS", str(Path(__file__).with_name("forked.py")), str(address)]
        command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        command.chmod(0o700)
        if not os.access(command, os.X_OK):
            raise PermissionError(f"{command} cannot be run")
        with unix_socket() as listener:
            listener.bind(str(address))
            listener.listen(64)
            server = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno()), str(folder)],
                stdin=subprocess.PIPE,  # its end is this process's end
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                # As Spark sets them, for they are read when Python and its libraries start.
                env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"},
                umask=UMASK,
                start_new_session=True,  # the Stop button is not for it
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server, str(command)


@dataclass
class _ForkRequest:
    """Request for a process to run, as `forked.py` sent it, and the files that are its input and outputs."""

    connection: socket.socket
    files: list[int]
    arguments: list[str]
    environment: dict[bytes, bytes]
    folder: str

    @staticmethod
    def of(connection: socket.socket) -> _ForkRequest:
        """Raises OSError or ValueError if it does not come."""
        connection.settimeout(_REQUEST_SECONDS)
        head, files, _, _ = socket.recv_fds(connection, 4, 3)
        try:
            (size,) = struct.unpack("!i", head)
            with connection.makefile("rb") as stream:
                return _ForkRequest(connection, files, *marshal.loads(stream.read(size)))
        except (EOFError, TypeError, struct.error) as error:
            raise ValueError("no request") from error

    def run(self) -> None:
        """Makes this new process the one that was asked for."""
        self.connection.close()
        for place, file in enumerate(self.files):
            os.dup2(file, place)
            os.close(file)
        os.environb.clear()
        os.environb.update(self.environment)
        time.tzset()
        os.chdir(self.folder)
        paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.path[:] = dict.fromkeys([*paths, *sys.path])
        sys.argv[:] = self.arguments
        sys.modules.pop(self.arguments[0], None)  # else runpy warns of it
        runpy.run_module(self.arguments[0], run_name="__main__", alter_sys=True)


class _ForkServer:
    """Forks a process for each request; reports its end, and ends it if the requesting process ends first.

    Engine hosts (`hosts.py`) are forked once by their names. Their connections are lifelines: closed when the server
    ends.
    """

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        self.listener, self.folder = listener, folder
        self.connections: dict[int, socket.socket] = {}
        self.hosts: dict[str, int] = {}
        self.wake_reader, self.waker = socket.socketpair()
        self.wake_reader.setblocking(False)
        self.waker.setblocking(False)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector = selectors.DefaultSelector()
        for file in (sys.stdin, listener, self.wake_reader):
            self.selector.register(file, selectors.EVENT_READ)

    def serve(self) -> _ForkRequest | None:
        """Returns in each new process with its request; in the server with None, when who started it has ended."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is sys.stdin:
                    for process in self.connections:
                        os.kill(process, signal.SIGTERM)
                    return None
                if key.fileobj is self.listener:
                    if (request := self._take()) is not None:
                        return request
                elif key.fileobj is self.wake_reader:
                    self._reap()
                elif key.data in self.connections:
                    os.kill(key.data, signal.SIGTERM)
                    self._forget(key.data)

    def _take(self) -> _ForkRequest | None:
        """Serve a request. Returns it in the new process, if any."""
        connection, _ = self.listener.accept()
        try:
            request = _ForkRequest.of(connection)
            match request.arguments:
                case [word, name] if word == HOST:
                    return self._host(request, name)
                case [word, prefix] if word == END:
                    self._end_hosts(prefix)
                    connection.close()
                    return None
                case _:
                    return self._fork(request, connection)
        except (OSError, ValueError):
            connection.close()  # who asked becomes the interpreter itself, or works without a host
            return None

    def _fork(self, request: _ForkRequest, connection: socket.socket) -> _ForkRequest | None:
        """Forks a process that ends with its `connection`. Returns its request in it."""
        process = os.fork()
        if process == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.selector.close()
            for file in (self.listener, self.wake_reader, self.waker, *self.connections.values()):
                file.close()
            return request
        for descriptor in request.files:
            os.close(descriptor)
        self.connections[process] = connection
        self.selector.register(connection, selectors.EVENT_READ, process)
        with contextlib.suppress(OSError):
            request.connection.sendall(b"f")
        return None

    def _host(self, request: _ForkRequest, name: str) -> _ForkRequest | None:
        """Forks the engine host of a name where it does not run. It listens before the worker is answered."""
        self._reap()
        if name in self.hosts:
            for descriptor in request.files:
                os.close(descriptor)
            request.connection.close()
            return None
        (self.folder / name).unlink(missing_ok=True)
        ours, lifeline = socket.socketpair()
        with unix_socket() as listener, lifeline:
            listener.bind(str(self.folder / name))
            listener.listen(64)
            if self._fork(request, ours) is not None:
                ours.close()
                request.arguments = [_HOST_MODULE, str(listener.detach()), str(lifeline.detach())]
                return request
        self.hosts[name] = next(reversed(self.connections))
        request.connection.close()
        return None

    def _end_hosts(self, prefix: str) -> None:
        """Ends the hosts whose names begin so."""
        self._reap()
        for name in [n for n in self.hosts if n.startswith(prefix)]:
            os.kill(self.hosts[name], signal.SIGTERM)
            self._forget(self.hosts[name])

    def _reap(self) -> None:
        """Report the ends of processes."""
        with contextlib.suppress(BlockingIOError):
            while self.wake_reader.recv(64):
                pass
        with contextlib.suppress(ChildProcessError):
            while (child_exit := os.waitpid(-1, os.WNOHANG))[0]:
                process, status = child_exit
                if process in self.connections:
                    with contextlib.suppress(OSError):
                        self.connections[process].sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
                    self._forget(process)

    def _forget(self, process: int) -> None:
        connection = self.connections.pop(process)
        self.selector.unregister(connection)
        connection.close()
        for name in [n for n, host in self.hosts.items() if host == process]:
            del self.hosts[name]
            (self.folder / name).unlink(missing_ok=True)


def main(file: int, folder: str) -> None:
    """The server, and in the end every process that it forks."""
    with socket.socket(fileno=file) as listener:
        for module in _IMPORTED:
            importlib.import_module(module)
        importlib.import_module(f"{_PACKAGE}.engine.notation.kernels").prepare()
        gc.collect()
        gc.freeze()  # existing objects stay, and their pages are shared
        apply_limit()
        hosts.folder = Path(folder)
        (hosts.folder / hosts.READY).touch()
        request = _ForkServer(listener, hosts.folder).serve()
    if request is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        request.run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
