"""This package in Spark's Python workers: of clusters, of Spark Connect, of another Python on this machine."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark import __version__
from pyspark.sql import SparkSession

from ..._version import __version__ as VERSION
from ...errors import SparkUnavailable
from ...journal.temporary import temporary
from .versions import NEW_SESSION_OVER_CONNECT

if TYPE_CHECKING:
    from pyspark import SparkContext

_PACKAGE = Path(__file__).parents[2]
_RETRIES = 4
"""Number of retries of a Connect client if the server is silent: 4 s in all; the default takes ten minutes."""

_SENT = "_sparkstream_sent"
"""The attribute of a session, or a context, whose workers have this package."""


def is_remote(session: SparkSession) -> bool:
    """True if the session is one of Spark Connect."""
    return not hasattr(session, "_jsparkSession")


def tame(session: SparkSession) -> SparkSession:
    """Makes a Connect session give up on a silent server in time, and end when this process does.

    Without the latter its client waits for threads that the interpreter has stopped already. So each client is
    closed before it makes its own last call, for which Python 3.12 starts no thread: it would never end.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy  # needs grpc, which only Connect does

    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    atexit.register(_close, session.client)  # the last one that was registered is called first
    return session


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):  # closed already, or the server is gone
        client.release_session()
        client.close()


def ship(session: SparkSession) -> None:
    """Sends this package to a cluster's Python workers, unless they have it, once per session.

    They need Python, pyspark and the package's other requirements themselves, and must reach the apps' folders. A
    package that was sent compiles its loops again for every session; one that is installed there keeps them.

    Raises SparkUnavailable if the workers of a Connect server lack it: files sent there reach batch jobs, but neither
    the tasks of streaming queries nor the processes that plan them (seen with Spark 4.1.1 and 4.3.0); and if workers on
    this machine run a Python that lacks it.
    """
    holder: Any = session if is_remote(session) else session.sparkContext
    if hasattr(holder, _SENT):
        return
    local = not is_remote(session) and str(holder.master).startswith("local")
    if local:
        _check_python(holder)
    elif (worker_fingerprint := _seen_by_a_worker(session)) != fingerprint():
        if is_remote(session):
            raise SparkUnavailable(
                f"The Python of the Spark Connect server {'has another' if worker_fingerprint else 'lacks this'} "
                f"version of sparkstream-nb. Install it there: pip install sparkstream-nb=={VERSION}, as it is here "
                "(on Databricks: %pip install in the notebook, or in the environment of its compute)"
            )
        folder = temporary("ship")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        holder.addPyFile(shutil.make_archive(str(folder / _PACKAGE.name), "zip", _PACKAGE.parent, _PACKAGE.name))
    setattr(holder, _SENT, True)


def _check_python(context: SparkContext) -> None:
    """Lets the workers of this machine run this process's Python if theirs lacks this package. Raises SparkUnavailable
    if the user has chosen theirs.

    Spark takes `python3` of the path unless it is told which, and that is another one than a notebook's where its
    environment is not activated. Functions that were made before keep theirs.
    """
    python = shutil.which(context.pythonExec)
    if python is None or Path(python).parent == Path(sys.executable).parent:  # links of environments lead to one file
        return
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('sparkstream_nb') is None and 3)"
    path = os.pathsep.join(filter(None, [*_sent_files(context), os.environ.get("PYTHONPATH")]))
    process = subprocess.run([python, "-c", look], env={**os.environ, "PYTHONPATH": path}, check=False)
    if process.returncode == 3 and not _is_chosen(context):
        context.pythonExec = sys.executable
    elif process.returncode == 3:
        raise SparkUnavailable(
            f"Spark's workers run {python}, which has no sparkstream_nb. "
            f"Before Spark starts: os.environ['PYSPARK_PYTHON'] = {sys.executable!r}"
        )


def _is_chosen(context: SparkContext) -> bool:
    """True if the user has said which Python the workers run."""
    settings = ("spark.pyspark.python", "spark.pyspark.driver.python")
    return "PYSPARK_PYTHON" in os.environ or any(context.getConf().get(name) for name in settings)


def _sent_files(context: SparkContext) -> Iterator[str]:
    """The files that `addPyFile` sent to the workers."""
    for name in context._python_includes or ():
        yield str(Path(pyspark.SparkFiles.getRootDirectory()) / name)


def open_sibling(session: SparkSession) -> SparkSession:
    """A session of its own on the same Spark, whose workers have this package."""
    ship(session)
    remote = is_remote(session)
    sibling = session.newSession() if not remote or NEW_SESSION_OVER_CONNECT.in_(__version__) else _further(session)
    if remote:
        tame(sibling)
    return sibling


def _further(session: Any) -> SparkSession:
    """A further session of Connect, as `newSession` makes it."""
    new_session: Any = type(session).builder.channelBuilder(session.client._builder).create()
    return new_session


def fingerprint() -> str:
    """A hash of the source of the package that is imported here."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(str(file.relative_to(_PACKAGE)).encode() + file.read_bytes())
    return digest.hexdigest()


def _seen_by_a_worker(session: SparkSession) -> str:
    """The fingerprint of the package that a Python worker has; empty if it has none."""

    def look(batches: Iterable[Any]) -> Iterator[Any]:  # sent by value: the worker may lack this module
        import pyarrow

        for _ in batches:
            try:
                from sparkstream_nb.runners.spark.remote import fingerprint

                worker_fingerprint = fingerprint()
            except ImportError:
                worker_fingerprint = ""
            yield pyarrow.RecordBatch.from_pydict({"found": [worker_fingerprint]})

    return str(session.range(0, 1, 1, 1).mapInArrow(look, "found string").toArrow()["found"][0])
