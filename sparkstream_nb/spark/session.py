"""The Spark session that everything else of this folder runs on: on this machine by default, or on any cluster."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ..errors import SparkUnavailable
from . import forks
from .java import find_java
from .remote import tame

_FILES = resources.files(__package__)
_LOG_LINES_SHOWN = 12
_CONNECT_SECONDS = 10
_lock = threading.RLock()
_log: Path | None = None
_connected: tuple[str, SparkSession] | None = None


def spark_session(master: str | None = None, *, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The running Spark session, or a new one.

    `master` is Spark's own: `local[4]`, `spark://host:7077`, `yarn`, `k8s://…`, or a Connect address `sc://host:15002`.
    Without it a running session is used whatever its master, and a new one runs on all cores of this machine (two
    at least, so that one task never waits for another). `conf` is set over `spark-defaults.conf`.

    On this machine everything listens on 127.0.0.1 only. What the JVM and the Python workers print goes to a file,
    whose last lines an error quotes.

    Raises SparkUnavailable where no Java is found, Spark does not start, or a session runs already on another master.
    """
    with _lock:
        _forget_dead()
        running = _running()
        if running is not None:
            where, session = running
            if master is not None and master != where:
                raise SparkUnavailable(
                    f"Spark runs on {where} in this process already, and {master} was asked for. Stop it first: "
                    "spark_session().stop()"
                )
            _set(session, {**defaults(), **(conf or {})})
            return session
        settings = {**defaults(), **(conf or {})}
        if master is not None and master.startswith("sc://"):
            return _connect(master, settings)
        return _start(master or f"local[{max(2, os.cpu_count() or 2)}]", settings)


def defaults() -> dict[str, str]:
    """The settings of `spark-defaults.conf`, by name."""
    lines = (line.split("#", 1)[0].split(None, 1) for line in _text("spark-defaults.conf").splitlines())
    return {words[0]: words[1].strip() for words in lines if len(words) == 2}


def _text(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def on_this_machine(master: str) -> bool:
    """Whether driver and executors of `master` are all here, so that loopback is all they need."""
    return master.startswith("local") or urlsplit(master).hostname in ("127.0.0.1", "localhost", "::1")


def _running() -> tuple[str, SparkSession] | None:
    """The session of this process, whoever made it and in whatever thread, with its master or Connect address."""
    if _connected is not None and not _connected[1].is_stopped:  # type: ignore[attr-defined]  # Connect's own
        return _connected
    context = SparkContext._active_spark_context
    if context is None:
        return None
    return str(context.master), SparkSession.getActiveSession() or SparkSession(context)


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Sets what can be set on a running session; leaves the rest (memory, interface) as it was started."""
    for name, value in settings.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            session.conf.set(name, value)


def _connect(address: str, settings: Mapping[str, str]) -> SparkSession:
    global _connected
    try:
        _reach(address)
        session = tame(SparkSession.builder.remote(address).create())
        _set(session, settings)
    except ImportError as error:
        raise SparkUnavailable(
            f"{address} needs Spark Connect's client ({error}). Install it: pip install 'sparkstream-nb[connect]'"
        ) from error
    except Exception as error:  # gRPC's errors have no common base with Spark's
        raise SparkUnavailable(f"No Spark Connect server answered at {address}: {_first_line(error)}") from error
    _connected = address, session
    return session


def _reach(address: str) -> None:
    """Raises OSError where nothing listens at a Connect address: its client would go on trying for long."""
    place = urlsplit(address)
    socket.create_connection((place.hostname or "", place.port or 15002), _CONNECT_SECONDS).close()


def _start(master: str, settings: dict[str, str]) -> SparkSession:
    """A new session with a JVM of its own, or in the JVM that an earlier, stopped session left."""
    here = on_this_machine(master)
    environment = {"SPARK_CONNECT_MODE": "0"}
    if here:
        settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **settings}
        # A SPARK_HOME of another version, or the python that comes first on the path, would not fit this package's.
        environment |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "PYSPARK_PYTHON": forks.start() if master.startswith("local") else sys.executable,
        }
    elif "PYSPARK_PYTHON" not in os.environ:
        environment["PYSPARK_PYTHON"] = sys.executable
    settings.setdefault("spark.app.name", "sparkstream")
    settings.setdefault("spark.sql.warehouse.dir", (Path(tempfile.gettempdir()) / "sparkstream-warehouse").as_uri())

    with _environment(environment):
        try:
            if SparkContext._gateway is None:
                SparkContext._gateway = _launch(master, settings)
                SparkContext._jvm = SparkContext._gateway.jvm
            context = SparkContext(conf=_conf(master, settings))
        except (Py4JError, PySparkException, OSError, ValueError) as error:
            raise SparkUnavailable(f"Spark did not start on {master}: {_reason(error)}") from error
    session = SparkSession(context)
    if master.startswith("local"):
        threading.Thread(target=_warm, args=(session,), name="warm-spark", daemon=True).start()
    return session


def _warm(session: SparkSession) -> None:
    """Lets Spark start the process that Python workers are forked from, and load what every job needs, while the first
    query is still planned: a cold start is some 4 s shorter."""
    with contextlib.suppress(Exception):  # nobody waits for it, and the session may be stopped meanwhile
        session.range(1).groupBy("id").applyInPandas(lambda frame: frame, "id long").collect()


def _conf(master: str, settings: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setMaster(master).setAll(list(settings.items()))


def _launch(master: str, settings: Mapping[str, str]) -> JavaGateway:
    """Starts the JVM, with its output in a log file."""
    global _log
    options = settings.get("spark.driver.extraJavaOptions", "")
    with contextlib.ExitStack() as stack:
        configuration = stack.enter_context(resources.as_file(_FILES / "log4j2.properties"))
        # The JVM reads it while it starts, so a file unpacked for the moment lasts long enough.
        conf = _conf(master, settings).set(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={configuration.as_uri()} {options}".strip()
        )
        java = find_java()
        handle, name = tempfile.mkstemp(prefix="sparkstream-spark-", suffix=".log")
        _log = Path(name)
        atexit.register(_log.unlink, missing_ok=True)
        with os.fdopen(handle, "wb") as log, _environment({"JAVA_HOME": str(java.home)}):
            return launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """`values` in the environment, for the JVM to inherit, and the former ones afterwards."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _forget_dead() -> None:
    """Lets go of a session whose JVM or server has ended (killed, out of memory), so that the next starts afresh."""
    global _connected
    if _connected is not None:
        try:
            _reach(_connected[0])
            _connected[1].conf.get("spark.app.name")
        except (PySparkException, OSError):
            _connected[1].stop()  # else Spark's client goes on taking it for the active one
            _connected = None
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.poll() is None:
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _reason(error: BaseException) -> str:
    """Why Spark did not start: the error, or what the JVM printed where it ended before it could be talked to."""
    if SparkContext._gateway is None and _log is not None:
        return "\n".join(["its Java ended at once.", *(f"  {line}" for line in _log_tail(_log))])
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    """What went wrong, without the stack trace that py4j carries in its message."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() or java) if java is not None else str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def _log_tail(log: Path) -> list[str]:
    """The last lines that the JVM printed, without the frames of stack traces and Java's own remarks."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if not line.startswith(("\tat ", "WARNING: "))][-_LOG_LINES_SHOWN:]
