"""The Spark session that everything else of this folder runs on: on this machine by default, or on any cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import threading
from collections.abc import Mapping
from importlib import import_module
from urllib.parse import urlsplit

import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, __version__
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ...errors import SparkUnavailable
from . import jvm
from .remote import tame
from .settings import connect_session, defaults, local_master, masters_of, of_session
from .versions import check_connect

_CONNECT_SECONDS = 10
_WAYS_OUT = "Start the cluster, or correct the address; without a master the app runs on this machine"
_STATE_MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"
_lock = threading.RLock()
_remote_session: tuple[str, SparkSession] | None = None


def spark_session(master: str | None = None, *, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The running Spark session, or a new one.

    `master` is Spark's own: `local[4]`, `spark://host:7077`, `yarn`, `k8s://…`, or a Connect address `sc://host:15002`.
    Without it a running session is used with any master, also one of Connect that other code has made, and a new one
    runs on all cores of this machine (two at least, so that one task never waits for another). `conf` is set over
    `spark-defaults.conf`.

    On this machine everything listens on 127.0.0.1 only. The output of the JVM and the Python workers goes to a file,
    whose last lines an error quotes.

    Raises SparkUnavailable if no Java is found, protobuf is older than pyspark needs, Spark does not start, no
    cluster answers within seconds, or a session runs already on another master.
    """
    with _lock:
        _forget_dead()
        running = _find_running()
        if running is not None or (master or "").startswith("sc://"):
            jvm.drop()
        if running is not None:
            where, session = running
            if master is not None and master != where:
                raise SparkUnavailable(
                    f"Spark runs on {where} in this process already, and {master} was asked for. Stop it first: "
                    "spark_session().stop()"
                )
            _set(session, conf or {})
            return session
        user_session: SparkSession | None = None if master else connect_session()
        if user_session is not None:  # its settings are left alone: apps have sessions of their own
            try:
                check_connect(user_session.version, "the server of this process's session")
            except PySparkException as error:
                raise SparkUnavailable(
                    f"The Spark Connect server of this process's session does not answer: {_first_line(error)}"
                ) from error
            return user_session
        if master is not None and master.startswith("sc://"):
            return _connect(master, conf or {})
        return _start(master or local_master(), {**defaults(), **(conf or {})})


def _find_running() -> tuple[str, SparkSession] | None:
    """The session of this process, made by any code in any thread, with its master or Connect address."""
    if _remote_session is not None and not _remote_session[1].is_stopped:  # type: ignore[attr-defined]  # Connect's own
        return _remote_session
    context = SparkContext._active_spark_context
    if context is None or _has_stopped(context):
        return None
    return str(context.master), SparkSession.getActiveSession() or SparkSession(context)


def _has_stopped(context: SparkContext) -> bool:
    """True if a context has stopped on its own, for example because its master went away."""
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Py4JError:
        return True


def _set(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Set our settings, and `conf` over them, as far as they can change on a running session; the rest (memory,
    interface) stays, and so does ours that a Connect server refuses."""
    for name, value in {**defaults(), **conf}.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            try:
                session.conf.set(name, value)
            except PySparkException:
                if name in conf:
                    raise


def _connect(address: str, conf: Mapping[str, str]) -> SparkSession:
    global _remote_session
    check_connect(__version__, "this pyspark")
    try:
        _reach(address)
        session = tame(SparkSession.builder.remote(address).create())
        _set(session, conf)
        version = session.version
    except ImportError as error:
        raise SparkUnavailable(
            f"{address} needs Spark Connect's client ({error}). Install it: pip install 'sparkstream-nb[connect]'"
        ) from error
    except Exception as error:  # gRPC's errors have no common base with Spark's
        raise SparkUnavailable(f"No Spark Connect server answered at {address}: {_first_line(error)}") from error
    check_connect(version, f"the server at {address}")
    _remote_session = address, session
    return session


def _reach(address: str) -> None:
    """Raises OSError if nothing listens at a Connect address: its client would keep trying for long."""
    place = urlsplit(address)
    socket.create_connection((place.hostname or "", place.port or 15002), _CONNECT_SECONDS).close()


def _reach_master(master: str) -> None:
    """Raises SparkUnavailable if nothing listens at a master of a cluster: Spark would keep trying for minutes, and
    then stop everything of its own in this process.
    """
    try:
        places = masters_of(master)
    except OSError as error:
        raise SparkUnavailable(f"Spark cannot start on {master}: {error}. {_WAYS_OUT}") from None
    errors = []
    for host, port in places:
        try:
            socket.create_connection((host, port), _CONNECT_SECONDS / len(places)).close()
            return
        except OSError as error:
            errors.append(f"{host}:{port}: {error.strerror or error}")
    if errors:
        raise SparkUnavailable(f"No Spark master answers at {master} ({'; '.join(errors)}). {_WAYS_OUT}")


def _start(master: str, settings: dict[str, str]) -> SparkSession:
    """A new session with a JVM of its own, or in the JVM that an earlier, stopped session left."""
    check_protobuf()
    _reach_master(master)
    settings, environment = of_session(master, settings)
    with jvm.change_environment(environment):
        try:
            _forget_stopped()
            if SparkContext._gateway is None:
                SparkContext._gateway = _gateway(master, settings, environment)
                SparkContext._jvm = SparkContext._gateway.jvm
            conf = SparkConf(loadDefaults=False).setMaster(master).setAll(list(settings.items()))
            context = SparkContext(conf=conf)
            session = SparkSession(context)
        except (Py4JError, PySparkException, OSError, ValueError) as error:
            _forget_stopped()
            raise SparkUnavailable(f"Spark did not start on {master}: {_first_line(error)}") from error
    # Its server of sums prints a traceback when the JVM is gone, which the next call tells anyway.
    setattr(context._accumulatorServer, "handle_error", lambda *_: None)  # noqa: B010
    logging.getLogger().addFilter(_not_of_py4j)  # as does Py4J, of that and of Ctrl-C, by the root logger
    if master.startswith("local"):
        threading.Thread(target=_warm, args=(session,), name="warm-spark", daemon=True).start()
    return session


def check_protobuf() -> None:
    """Raises SparkUnavailable if protobuf is older than the one that made the code of pyspark's stateful processors:
    their processes would end with a traceback each."""
    try:
        import_module(_STATE_MESSAGES)
    except Exception as error:  # of protobuf's own, which is in no place that all its versions have
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("pyspark"):
            return  # a pyspark that has it elsewhere
        match = re.search(r"gencode (\d[\w.]*) runtime (\d[\w.]*\w)", str(error))
        needs = f" {match[1]} or newer, and {match[2]} is installed" if match else f", and cannot load it ({error})"
        what = f"pyspark {pyspark.__version__} needs protobuf{needs}"
        raise SparkUnavailable(f"{what}: pip install -U protobuf") from error


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.endswith("py4j/java_gateway.py")


def _warm(session: SparkSession) -> None:
    """Let Spark load everything that a job with Python in it needs, while the first query is still planned."""
    with contextlib.suppress(Exception):  # the result is not waited for, and the session may be stopped meanwhile
        session.range(1).groupBy("id").applyInPandas(lambda frame: frame, "id long").collect()


def _gateway(master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> JavaGateway:
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # this process was started by Spark, in a JVM that is there
        return launch_gateway()
    return jvm.take_jvm(master, settings, environment).wait_for_gateway()


def _forget_dead() -> None:
    """Forget a session whose JVM or server has ended (killed, out of memory), so that the next starts afresh."""
    global _remote_session
    if _remote_session is not None:
        try:
            _reach(_remote_session[0])
            _ = _remote_session[1].version
        except (PySparkException, OSError):
            _remote_session[1].stop()  # else Spark's client goes on taking it for the active one
            _remote_session = None
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.poll() is None:
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _forget_stopped() -> None:
    """Forget a context that has stopped on its own, which Spark's Python would treat as the running one."""
    context = SparkContext._active_spark_context
    if context is not None and _has_stopped(context):
        with contextlib.suppress(Exception):
            context.stop()
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def _first_line(error: BaseException) -> str:
    """Cause of an error, without the stack trace that py4j carries in its message."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() or java) if java is not None else str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
