"""An S3 server of a test's own, on loopback, and what Spark needs to use it."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .jars import fetch, home_of
from .processes import ending_with_this, free_port

HERE = Path(__file__).parent
S3A_HOME = home_of("s3a")
BUCKET = "apps"
_PATIENCE = 60.0


@dataclass
class Objects:
    """A running S3 server with an empty bucket; its objects are in memory."""

    port: int
    process: subprocess.Popen[bytes]

    def folder(self, name: str) -> str:
        """The address of a folder in the bucket, for `deploy(shared=...)`."""
        return f"s3://{BUCKET}/{name}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{self.port}"


ENVIRONMENT = {"AWS_ACCESS_KEY_ID": secrets.token_hex(8), "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16)}
"""Credentials, for all processes that use the server."""


@contextlib.contextmanager
def objects() -> Iterator[Objects]:
    """An S3 server with an empty bucket."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="sparkstream-s3-") as folder:
        path = Path(folder) / "log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "objects_server.py"), str(port), BUCKET],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=ending_with_this(),
            )  # fmt: skip
        try:
            end = time.monotonic() + _PATIENCE
            while "ready" not in (said := path.read_text(errors="replace")):
                assert process.poll() is None and time.monotonic() < end, said[-2000:]  # noqa: PT018
                time.sleep(0.05)
            yield Objects(port, process)
        finally:
            process.kill()
            process.wait(30)


def settings() -> dict[str, str]:
    """Spark's settings with the classes for s3a://."""
    jars = f"{fetch(HERE / 's3a.pom.xml', S3A_HOME)}/*"
    return {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        # Amazon's own way to copy a file does not work with the netty that Spark has.
        "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
    }
