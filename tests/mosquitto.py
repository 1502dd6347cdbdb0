"""An MQTT broker that a test starts: the program `mosquitto`, on loopback, in a folder that goes with the test."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paho.mqtt import publish

from tests.found import program, skip_unless
from tests.processes import ending_with_this

_PATIENCE = 30.0


@dataclass
class Mosquitto:
    """An MQTT broker of this machine. `stop` and `start` end it and start it again on its port, with its sessions."""

    folder: Path
    port: int
    passwords: str = ""
    """Lines of its password file; without one, everybody may connect."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"tcp://localhost:{self.port}"

    @property
    def allow(self) -> list[str]:
        return [f"mqtt=localhost:{self.port}"]

    def start(self) -> None:
        path = program("servers", "mosquitto", folders=("/usr/sbin",))
        skip_unless(path, "servers", "the MQTT broker mosquitto (Debian: mosquitto)")
        assert path is not None
        lines = [
            f"listener {self.port} 127.0.0.1", "user root", "persistence true",
            f"persistence_location {self.folder}/", "allow_anonymous " + str(not self.passwords).lower(),
        ]  # fmt: skip
        if self.passwords:
            (self.folder / "passwords").write_text(self.passwords, encoding="utf-8")
            lines.append(f"password_file {self.folder}/passwords")
        config = self.folder / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.process = subprocess.Popen(
            [path, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=ending_with_this(),
        )  # fmt: skip
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self.process.poll() is None, "mosquitto did not start"
                assert time.monotonic() < end, "mosquitto did not start in time"
                time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def publish(self, topic: str, *bodies: bytes, qos: int = 1) -> None:
        """Publish messages, of which the broker has each when this returns."""
        messages: Sequence[tuple[str, bytes, int, bool]] = [(topic, body, qos, False) for body in bodies]
        publish.multiple(messages, hostname="127.0.0.1", port=self.port)
