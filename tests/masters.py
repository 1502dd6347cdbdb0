"""Where apps of tests run: in this process, or on Sparks of a test's own, on loopback: this machine, a standalone
cluster, or a Spark Connect server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sparkstream_nb.runners.choice import INLINE
from sparkstream_nb.runners.spark.java import find_java
from sparkstream_nb.runners.spark.settings import own_spark
from tests.processes import ending_with_this, free_port

SPARK = own_spark()
EACH_RUNNER = [INLINE, pytest.param("local[2]", marks=[pytest.mark.spark, pytest.mark.thorough])]
"""Masters for a test whose apps run in this process in `make test`, and on Spark too in `make thorough`."""


@dataclass
class Server:
    """A server of Spark's, up when its log says `ready`."""

    folder: Path
    name: str
    command: list[str]
    ready: str
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it is up."""
        env = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            **self.environment,
        }
        path = self.folder / f"{self.name}.log"
        with path.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, env=env, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=ending_with_this(),
            )  # fmt: skip
        end = time.monotonic() + 90
        while self.ready not in path.read_text(errors="replace"):
            up = self.process.poll() is None and time.monotonic() < end
            assert up, path.read_text(errors="replace")[-3000:]
            time.sleep(0.1)

    def blind(self, hidden: Path) -> Server:
        """The same with a mount namespace of its own, in which the folder `hidden` is empty."""
        hide = 'mount -t tmpfs none "$0" && exec "$@"'
        return replace(self, command=["unshare", "-rm", "sh", "-c", hide, str(hidden), *self.command])

    def sees(self, folder: Path) -> list[str]:
        """What it sees in a folder."""
        assert self.process is not None
        return os.listdir(f"/proc/{self.process.pid}/root{folder}")

    def stop(self, *, kill: bool = False) -> None:
        """Ends it."""
        if self.process is not None:
            (self.process.kill if kill else self.process.terminate)()
            self.process.wait(30)
            self.process = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def standalone(folder: Path, port: int = 0, workers: int = 1) -> tuple[str, list[Server]]:
    """The address of a standalone cluster, and its servers in the order of their start. Port 0 is a free one."""
    port = port or free_port()
    address = f"spark://127.0.0.1:{port}"
    spark_class, deploy = str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy"
    master = [spark_class, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = [
        spark_class, f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", str(2 // workers or 1), "--memory",
        "2g", "--work-dir", str(folder / "work"), "--webui-port", "0", address,
    ]  # fmt: skip
    registered = "Successfully registered with master"
    return address, [
        Server(folder, "master", master, "New state: ALIVE"),
        *(Server(folder, f"worker-{i + 1}", worker, registered) for i in range(workers)),
    ]


def connect(
    folder: Path, port: int = 0, conf: Mapping[str, str] | None = None, **environment: str
) -> tuple[str, list[Server]]:
    """The address of a Spark Connect server with settings `conf` besides, and the server. Port 0 is a free one."""
    port = port or free_port()
    settings = {
        **(conf or {}),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [
        str(SPARK / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", *(w for k, v in settings.items() for w in ("--conf", f"{k}={v}")), "spark-internal",
    ]  # fmt: skip
    return f"sc://127.0.0.1:{port}", [Server(folder, "connect", command, "Spark Connect server started", environment)]


@dataclass
class Masters:
    """What runs apps, of a `kind` (inline, local, standalone, connect), which may be killed and started again."""

    kind: str
    where: str
    servers: list[Server]

    def address(self) -> str:
        """What `deploy` takes as master."""
        return self.where

    def processes(self) -> list[int]:
        """The ids of its servers."""
        return [s.process.pid for s in self.servers if s.process is not None]

    def restart(self) -> None:
        """Kills the last of its servers, and starts it again."""
        self.servers[-1].stop(kill=True)
        self.servers[-1].start()


@contextlib.contextmanager
def masters(kind: str, folder: Path) -> Iterator[Masters]:
    """What runs apps of a kind, up inside."""
    none = {INLINE: (INLINE, []), "local": ("local[2]", [])}
    where, servers = none[kind] if kind in none else {"standalone": standalone, "connect": connect}[kind](folder)
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        yield Masters(kind, where, servers)
