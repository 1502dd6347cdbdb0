"""A Jupyter server of this checkout: JupyterLab at /lab, Notebook 7 at /notebooks."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LABEXTENSION = Path(__file__).parents[2] / "sparkstream_nb" / "lab" / "labextension"


@dataclass(frozen=True)
class Server:
    """A running server on loopback. `folder` is what it serves."""

    address: str
    token: str
    folder: Path

    def lab(self, file: str) -> str:
        """The address of a file in JupyterLab, in a fresh workspace."""
        return f"{self.address}/lab/tree/{file}?token={self.token}&reset"

    def notebook(self, file: str) -> str:
        """The address of a notebook in Notebook 7."""
        return f"{self.address}/notebooks/{file}?token={self.token}"


@contextmanager
def jupyter(tmp: Path) -> Iterator[Server]:
    """A server with settings of its own under `tmp`, and with this checkout's extension of JupyterLab."""
    folder = tmp / "files"
    folder.mkdir()
    extensions = tmp / "_DATA_DIR" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "sparkstream-nb").symlink_to(LABEXTENSION, target_is_directory=True)
    token = secrets.token_hex(16)
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp),
        **{f"JUPYTER{k}": str(tmp / k) for k in ("_CONFIG_DIR", "_DATA_DIR", "_RUNTIME_DIR")},
        **{f"JUPYTERLAB_{k}_DIR": str(tmp / k) for k in ("SETTINGS", "WORKSPACES")},
    }
    port = _free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (tmp / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        while not _answers(f"{address}/api/status?token={token}"):
            assert process.poll() is None, (tmp / "server.log").read_text()[-2000:]
            time.sleep(0.1)
        yield Server(address, token, folder)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:  # it waits for kernels, and they for Spark
            process.kill()
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address)
    except (urllib.error.URLError, ConnectionError):
        return False
    return True
