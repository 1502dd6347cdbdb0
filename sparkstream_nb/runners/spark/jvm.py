"""Spark's JVM: begun ahead if one is likely to be needed soon, connected to when it is. Loads no Spark before."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SparkUnavailable
from ...journal.private import UMASK
from ...journal.temporary import temporary
from ...system import WINDOWS
from . import classes
from .java import find_java
from .settings import FILES, connect_session, defaults, local_master, of_session, own_spark

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_OPTIONS = "spark.driver.extraJavaOptions"
_OF_OTHERS = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Variables of a process that has a JVM of Spark's, or takes a Connect server's."""
_OPENED = "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED"
"""For `planners.py`; its other packages are open in every JVM of Spark's."""
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
"""Option without the second compiler, which takes more than half of the cost of a short micro-batch; the loops that run
long are not Java's.
"""
_CHOSEN = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables with which a user chooses the options of a JVM."""
_LOG_LINES_SHOWN = 12
_NOT_ON_WINDOWS = (
    "Spark is not run on Windows: deploy with master='inline', or with shared= and the sc:// address of a Spark "
    "elsewhere, or use the Windows Subsystem for Linux"
)
"""Its files are written by Hadoop, which needs programs on Windows that it does not bring along."""
# The Stop button and Ctrl-C are for what Spark does, not for its JVM, which ends with the process that it belongs to.
_DEAF = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]

_lock = threading.Lock()
_early_jvm: Jvm | None = None
_is_settled = False
"""True if it is known on which Spark this process runs."""


class Jvm:
    """A JVM of Spark's that waits for commands. Its output goes to a file."""

    def __init__(self, master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """`settings` and `environment` as in `settings.of_session`. Raises SparkUnavailable if there is no Java, and
        on Windows.
        """
        if WINDOWS:
            raise SparkUnavailable(_NOT_ON_WINDOWS)
        self.master, self.launch_settings = master, _launch_settings(master, settings, environment)
        java = find_java()
        folder = temporary("spark")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        logging = folder / "log4j2.properties"
        logging.write_bytes((FILES / logging.name).read_bytes())
        spark = Path({**os.environ, **environment}.get("SPARK_HOME") or own_spark())
        options = [
            f"-Dlog4j2.configurationFile={logging.as_uri()}",
            f'"-Djava.io.tmpdir={folder}"',  # quoted for Spark
            _OPENED,
            *classes.use(java, spark, settings),
            *compiler_options(master, settings, {**os.environ, **environment}),
            settings.get(_OPTIONS, ""),
        ]
        folder_settings = {"spark.local.dir": str(folder)} if master.startswith("local") else {}
        all_settings = {"spark.master": master, **folder_settings, **settings, _OPTIONS: " ".join(options).strip()}
        self.log, self._connection_file = folder / "log", folder / "connection"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *_DEAF,
                    str(spark / "bin" / "spark-submit"),
                    *(word for name, value in all_settings.items() for word in ("--conf", f"{name}={value}")),
                    *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")),
                ],
                stdin=subprocess.PIPE,  # its end is this process's end
                stdout=log,
                stderr=log,
                umask=UMASK,
                env={
                    **os.environ,
                    **environment,
                    "JAVA_HOME": str(java.home),
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection_file),
                },
            )

    def wait_for_gateway(self) -> JavaGateway:
        """Wait until it answers. Raises SparkUnavailable, with its last lines of output, if it ended instead."""
        from pyspark import java_gateway, serializers

        while not self._connection_file.exists():
            if self.process.poll() is not None:
                why = "".join(f"\n  {line}" for line in self._last_lines())
                raise SparkUnavailable(f"Spark did not start on {self.master}: its Java ended at once.{why}")
            time.sleep(0.02)
        with self._connection_file.open("rb") as file:
            port, secret = serializers.read_int(file), serializers.UTF8Deserializer().loads(file)
        with change_environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
            gateway = java_gateway.launch_gateway()
        gateway.proc = self.process
        return gateway

    def _last_lines(self) -> list[str]:
        """The last lines that it printed, without the frames of stack traces and Java's own remarks."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if not line.startswith(("\tat ", "WARNING: ", "NOTE: "))][-_LOG_LINES_SHOWN:]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def compiler_options(master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Options for how a JVM compiles: with its first compiler alone where it does all the work of a session on this
    machine, and the user chose no options."""
    has_user_options = _OPTIONS in settings or any(environment.get(name) for name in _CHOSEN)
    return [] if has_user_options or not master.startswith("local") else [_FIRST_COMPILER]


def begin() -> None:
    """Begins the JVM of a session on this machine as it is by default, if none runs, and this process has no session of
    Connect. Takes half a second."""
    global _early_jvm
    with _lock, contextlib.suppress(SparkUnavailable, OSError):
        has_spark = any(name in os.environ for name in _OF_OTHERS) or connect_session() is not None
        if _early_jvm is None and not _is_settled and not has_spark:
            master = local_master()
            _early_jvm = Jvm(master, *of_session(master, defaults()))


def take_jvm(master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> Jvm:
    """The JVM that was begun where it was for the same, else a new one. Raises SparkUnavailable as `Jvm` does."""
    early_jvm = _settle()
    if early_jvm is not None:
        if (
            early_jvm.launch_settings == _launch_settings(master, settings, environment)
            and early_jvm.process.poll() is None
        ):
            return early_jvm
        early_jvm.end()
    return Jvm(master, settings, environment)


def drop() -> None:
    """End the JVM that was begun and is not needed."""
    early_jvm = _settle()
    if early_jvm is not None:
        early_jvm.end()


def _settle() -> Jvm | None:
    global _early_jvm, _is_settled
    with _lock:
        early_jvm, _early_jvm, _is_settled = _early_jvm, None, True
    return early_jvm


def _launch_settings(master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> object:
    """All that a JVM starts with, for comparison."""
    return master, dict(settings), {**os.environ, **environment}, Path.cwd()


@contextlib.contextmanager
def change_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Set `environment` in this process, and restore the former values afterwards."""
    former_values = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in former_values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
