"""The same app on a standalone cluster and over Spark Connect: what comes out is what comes out on this machine."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pandas as pd
import pyspark
import pytest

from sparkstream_nb.spark.java import find_java

from .conftest import Program

SPARK = Path(pyspark.__file__).parent
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@contextmanager
def server(folder: Path, name: str, command: list[str], ready: str, **environment: str) -> Iterator[None]:
    """A server of Spark's on loopback, up when its log says `ready`."""
    env = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **environment,
    }
    path = folder / f"{name}.log"
    with path.open("wb") as log:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 90
        while ready not in path.read_text(errors="replace"):
            up = process.poll() is None and time.monotonic() < end
            assert up, path.read_text(errors="replace")[-3000:]
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


def same(home: Path, theirs: tuple[pd.DataFrame, ...]) -> None:
    for ours, other in zip(pickle.loads((home / "found").read_bytes()), theirs, strict=True):
        pd.testing.assert_frame_equal(ours, other)


def test_a_standalone_cluster(program: Program, undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path) -> None:
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    start = [str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy"]
    master = [start[0], f"{start[1]}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = [
        start[0], f"{start[1]}.worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "2g",
        "--work-dir", str(tmp_path / "work"), "--webui-port", "0", address,
    ]  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(server(tmp_path, "master", master, "New state: ALIVE"))
        stack.enter_context(server(tmp_path, "worker", worker, "Successfully registered with master"))
        done = program(tmp_path / "home", address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "work").glob("app-*")), "no executor of the cluster was asked"
    same(tmp_path / "home", undisturbed)


def test_over_connect_a_batch_counts_once(
    program: Program, undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path
) -> None:
    # The server knows another package of this name, so ours has to be sent to it.
    (tmp_path / "other" / "sparkstream_nb").mkdir(parents=True)
    (tmp_path / "other" / "sparkstream_nb" / "__init__.py").touch()
    port = free_port()
    settings = {
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
    home, address = tmp_path / "home", f"sc://127.0.0.1:{port}"
    with server(tmp_path, "connect", command, "Spark Connect server started", PYTHONPATH=str(tmp_path / "other")):
        # The server's query outlives the client; what it hands over waits for the next one.
        for place, batch in (("before", 1), ("after", 2)):
            done = program(home, address, place, batch)
            assert done.returncode == -9, done.stderr
        done = program(home, address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.splitlines()[-1]) < 2
    same(home, undisturbed)
