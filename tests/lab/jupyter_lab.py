"""A Jupyter server of this checkout: JupyterLab at /lab, Notebook 7 at /notebooks."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import ending_with_this, free_port

LABEXTENSION = Path(__file__).parents[2] / "sparkstream_nb" / "lab" / "labextension"


@dataclass(frozen=True)
class Server:
    """A running server on loopback. `folder` is what it serves."""

    address: str
    token: str
    folder: Path

    @property
    def lab(self) -> str:
        """The address of JupyterLab, in a fresh workspace."""
        return f"{self.address}/lab?token={self.token}&reset"

    def notebook(self, file: str) -> str:
        """The address of a notebook in Notebook 7."""
        return f"{self.address}/notebooks/{file}?token={self.token}"

    def ask(self, path: str, method: str = "GET") -> Any:
        """What the server's interface answers; None for nothing."""
        request = urllib.request.Request(f"{self.address}/api/{path}?token={self.token}", method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def end_kernels(self) -> None:
        """Ends the kernels of all notebooks, except one that is being started anew."""
        for session in self.ask("sessions"):
            with suppress(urllib.error.HTTPError):
                self.ask(f"sessions/{session['id']}", "DELETE")


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
        "JUPYTER_PREFER_ENV_PATH": "no",  # the environment may have another checkout's extension
        **{f"JUPYTER{k}": str(tmp / k) for k in ("_CONFIG_DIR", "_DATA_DIR", "_RUNTIME_DIR")},
        **{f"JUPYTERLAB_{k}_DIR": str(tmp / k) for k in ("SETTINGS", "WORKSPACES")},
    }
    port = free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (tmp / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            preexec_fn=ending_with_this(signal.SIGTERM),
        )  # fmt: skip
    try:
        server = Server(f"http://127.0.0.1:{port}", token, folder)
        while not _answers(server):
            assert process.poll() is None, (tmp / "server.log").read_text()[-2000:]
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:  # it waits for kernels, and they for Spark
            process.kill()
            process.wait(30)


def _answers(server: Server) -> bool:
    try:
        server.ask("status")
    except (urllib.error.URLError, ConnectionError):
        return False
    return True
