"""`sparkstream manager`: a manager as a process, until it is ended."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Misuse
from ...masking import mask_passwords
from ..config.conf import DISTRIBUTED
from ..config.manager_conf import ManagerFile, deployment_files, read_manager
from ..config.secrets import References
from ..deploying import deploy
from .manager import ClusterDeployer, Deployer, Manager
from .manager_http import Address, Credentials, ListeningPlace, Log, ManagerServer, address_of, tls_context
from .manager_watch import WatchedDirectory

LOOPBACK = "127.0.0.1"
_KNOWN_PASSWORDS = ("", "admin")
"""Passwords that everybody knows: the default of WSO2's servers, and none."""


@dataclass(frozen=True)
class ManagerOptions:
    """The parameters of a manager. `conf`: its own deployment file, then the other files of its deployment.

    `host`, `port`: where it listens, by default on this machine alone, and the port of the file; 0 is a free one.
    `tls_cert`, `tls_key`: PEM files; both or none. `watch`: a directory of apps. `allow_env`: the environment variables
    that the password of the file may be in; apps read none.
    """

    conf: Sequence[str]
    host: str | None = None
    port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    watch: str | None = None
    allow_env: Sequence[str] = ()


def make_deployer(files: Sequence[Path]) -> ClusterDeployer:
    """The arguments with which the command deploys apps. They get no permissions: no scripts, no environment."""
    return ClusterDeployer(lambda text, name: deploy(text, name=name, mode=DISTRIBUTED, conf=list(files)))


def run_manager(options: ManagerOptions) -> int:
    """Listens, and watches the directory, until Ctrl-C or SIGTERM; then stops all apps, and returns 0.

    The address is printed; events are logged to standard error. Raises `Misuse` before it listens.
    """
    deployer = make_deployer(deployment_files(options.conf))
    with ended_by_signals() as end_event, open_manager(options, deployer, _log) as server:
        print(f"listening on {server.url}", flush=True)
        end_event.wait()
        _log("ending: apps are being stopped")
    return 0


@contextlib.contextmanager
def open_manager(options: ManagerOptions, deployer: Deployer, log: Log) -> Iterator[ManagerServer]:
    """A manager that takes apps; they are stopped in the end. Raises `Misuse` for options that do not fit together."""
    file = read_manager(deployment_files(options.conf), References({}, tuple(options.allow_env)))
    address = address_of(LOOPBACK if options.host is None else options.host)
    if (options.tls_cert is None) != (options.tls_key is None):
        raise Misuse("TLS needs both --tls-cert and --tls-key")
    tls = None
    if options.tls_cert is not None and options.tls_key is not None:
        tls = tls_context(Path(options.tls_cert), Path(options.tls_key))
    _check_exposure(file, address, is_encrypted=tls is not None)
    manager = Manager(deployer, file.properties, file.messaging)
    directory = None if options.watch is None else WatchedDirectory(Path(options.watch), manager, log)
    port = file.port if options.port is None else options.port
    place = ListeningPlace(address, port, tls)
    server = ManagerServer(manager, Credentials(file.user, file.password), place, log)
    if options.host is None and file.host not in (None, "localhost", LOOPBACK, "::1"):
        log(f"{file.path}: host is {file.host}, and this listens on {LOOPBACK} alone: --host {file.host} listens there")
    try:
        server.start()
        if directory is not None:
            directory.start()
        yield server
    finally:
        server.close()
        if directory is not None:
            directory.close()
        manager.close()


def _check_exposure(file: ManagerFile, address: Address, *, is_encrypted: bool) -> None:
    """Raises `Misuse` if other machines would reach a manager without TLS, or with a password that all know."""
    if address.loopback:
        return
    if not is_encrypted:
        raise Misuse(
            f"{address.ip} is reached from other machines, and passwords would go there in the clear: give --tls-cert "
            f"and --tls-key, or listen on {LOOPBACK}"
        )
    if file.password in _KNOWN_PASSWORDS:
        raise Misuse(
            f"{address.ip} is reached from other machines, and the password in {file.path} is empty or the well-known "
            "one: set another"
        )


@contextlib.contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. A second signal has its former effect: it ends the process at once."""
    end_event = threading.Event()
    previous_handlers: dict[int, object] = {}

    def end(number: int, frame: object) -> None:
        _restore(previous_handlers)
        end_event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        previous_handlers[number] = signal.signal(number, end)
    try:
        yield end_event
    finally:
        _restore(previous_handlers)


def _restore(previous_handlers: dict[int, object]) -> None:
    for number, handler in previous_handlers.items():
        signal.signal(number, handler)  # type: ignore[arg-type]


_printing = threading.Lock()


def _log(line: str) -> None:
    with _printing:
        print(mask_passwords(line), file=sys.stderr, flush=True)
