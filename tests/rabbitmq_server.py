"""A RabbitMQ broker that a test starts: Debian's `rabbitmq-server`, on loopback, in a folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pika

from tests.found import program, skip_unless
from tests.processes import ending_with_this, free_port

_PATIENCE = 120.0
_ATTEMPTS = 3
"""Starts of a broker: another process may take a port that was free just before."""
T = TypeVar("T")


def _listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    """True once the process listens at a port; False if it ends before."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            if process.poll() is not None:
                return False
            assert time.monotonic() < end, _last_words(log)
            time.sleep(0.1)


def _last_words(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


@dataclass
class RabbitServer:
    """A RabbitMQ broker of this machine, with the user `guest`. `stop` and `start` end it and start it again on its
    port, with its durable queues. `close` ends it with the name server of Erlang's that it needs."""

    folder: Path
    port: int = field(default_factory=free_port)
    name_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    name_server: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"amqp://guest:guest@localhost:{self.port}"

    @property
    def allow(self) -> list[str]:
        return [f"rabbitmq=localhost:{self.port}"]

    def start(self) -> None:
        # Debian's program in /usr/sbin changes the user and the folder.
        script = program("servers", "rabbitmq-server", folders=("/usr/lib/rabbitmq/bin",))
        script = "/usr/lib/rabbitmq/bin/rabbitmq-server" if script == "/usr/sbin/rabbitmq-server" else script
        names = program("servers", "epmd")
        skip_unless(script and names, "servers", "the broker RabbitMQ (Debian: rabbitmq-server)")
        assert script is not None
        assert names is not None
        log = self.folder / "server.log"
        with log.open("ab") as output:
            if self.name_server is None:
                self.name_server = subprocess.Popen(
                    [names, "-address", "127.0.0.1", "-port", str(self.name_port)], stdout=output, stderr=output,
                    preexec_fn=ending_with_this(),
                )  # fmt: skip
                assert _listens(self.name_server, self.name_port, log), _last_words(log)
            settings = {
                "HOME": self.folder,
                "ERL_CRASH_DUMP": self.folder / "erl_crash.dump",
                "ERL_EPMD_PORT": self.name_port,
                "ERL_EPMD_ADDRESS": "127.0.0.1",
                "RABBITMQ_CONF_ENV_FILE": os.devnull,
                "RABBITMQ_CONFIG_FILE": self.folder / "rabbitmq",
                "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
                "RABBITMQ_MNESIA_BASE": self.folder / "mnesia",
                "RABBITMQ_LOG_BASE": self.folder / "log",
                "RABBITMQ_NODENAME": f"test{self.port}@localhost",
                "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
                "RABBITMQ_NODE_PORT": self.port,
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            }
            for _ in range(_ATTEMPTS):
                values = {**settings, "RABBITMQ_DIST_PORT": free_port()}
                self.process = subprocess.Popen(
                    [script], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                    env=os.environ | {name: str(value) for name, value in values.items()},
                    preexec_fn=ending_with_this(signal.SIGTERM),
                )  # fmt: skip
                if _listens(self.process, self.port, log):
                    return
        raise AssertionError(_last_words(log))

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()  # the script ends the broker
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.stop()
        if self.name_server is not None:
            self.name_server.kill()
            self.name_server.wait()

    def use(self, work: Callable[[Any], T]) -> T:
        """The result of what `work` does with a channel."""
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))
        try:
            return work(connection.channel())
        finally:
            connection.close()

    def publish(self, exchange: str, *bodies: bytes, key: str = "") -> None:
        """Publish messages, of which the broker has each when this returns."""

        def publish_all(channel: Any) -> None:
            channel.confirm_delivery()
            for body in bodies:
                channel.basic_publish(exchange, key, body, pika.BasicProperties(delivery_mode=2))

        self.use(publish_all)
