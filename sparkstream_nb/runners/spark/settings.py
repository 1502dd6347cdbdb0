"""Start-up parameters of a Spark session: settings, and the environment of its JVM. Loads no Spark."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from ...errors import Misuse, SparkUnavailable
from . import forks

FILES = resources.files(__package__)
NO_SPARK = (
    "pyspark is not installed: pip install 'sparkstream-nb[spark]', or deploy with master='inline' (--master inline), "
    "which needs none"
)


def defaults() -> dict[str, str]:
    """The settings of `spark-defaults.conf`, by name."""
    text = (FILES / "spark-defaults.conf").read_text(encoding="utf-8")
    lines = (line.split("#", 1)[0].split(None, 1) for line in text.splitlines())
    return {words[0]: words[1].strip() for words in lines if len(words) == 2}


def local_master() -> str:
    """This machine with all its cores; two at least, so that one task never waits for another."""
    return f"local[{max(2, os.cpu_count() or 2)}]"


def connect_session() -> Any:
    """The session of Spark Connect that code of this process has made, as `spark` in a notebook of Databricks; None if
    there is none. Loads nothing."""
    module = sys.modules.get("pyspark.sql.connect.session")
    if module is not None:
        with contextlib.suppress(Exception):  # Spark's, where none is active
            return module.SparkSession.active()
    return None


_LOCAL = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\])?")
_MASTER = re.compile(
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[[\d\s,]+\]|yarn|k8s://\S+|spark://[^\s/]+:\d+(,[^\s/]+:\d+)*|sc://[^\s/:]+(:\d+)?(/\S*)?"
)


def check_master(master: str | None) -> None:
    """Raises `Misuse` for a text that cannot be the address of a Spark. Does not start or ask it."""
    if master is not None and not _MASTER.fullmatch(master):
        raise Misuse(
            f"'{master}' is not the address of a Spark. Write local[4], spark://host:7077, k8s://https://host:443, "
            "yarn, or sc://host:15002 for Spark Connect"
        )


def masters_of(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of a cluster's master, or of several of which one has to answer; none if they are not known.
    Raises OSError if YARN's configuration is not there or cannot be read."""
    if master.startswith("spark://"):
        return [(place.hostname or "", place.port or 7077) for place in map(urlsplit, _each(master))]
    if master.startswith("k8s://"):
        address = master.removeprefix("k8s://")
        place = urlsplit(address if "://" in address else f"https://{address}")
        return [(place.hostname or "", place.port or (80 if place.scheme == "http" else 443))]
    return _resource_managers() if master == "yarn" else []


def _each(master: str) -> list[str]:
    return [f"spark://{place}" for place in master.removeprefix("spark://").split(",")]


def _resource_managers() -> list[tuple[str, int]]:
    """Addresses of YARN's resource managers, from its configuration (`yarn-default.xml` of Hadoop)."""
    folder = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
    if not folder:
        raise OSError("HADOOP_CONF_DIR is not set, the folder with yarn-site.xml")
    file = Path(folder) / "yarn-site.xml"
    try:
        root = ElementTree.parse(file).getroot()
    except ElementTree.ParseError as error:
        raise OSError(f"{file} is not XML: {error}") from None
    properties = {p.findtext("name", "").strip(): p.findtext("value", "").strip() for p in root.iter("property")}
    ids = properties.get("yarn.resourcemanager.ha.rm-ids", "")
    names = [f".{name.strip()}" for name in ids.split(",") if name.strip()]
    out = []
    for name in names or [""]:
        host = properties.get(f"yarn.resourcemanager.hostname{name}", "")
        place = urlsplit(f"//{properties.get(f'yarn.resourcemanager.address{name}') or host}")
        if place.hostname and "$" not in place.netloc:
            out.append((place.hostname, place.port or 8032))
    return out


def on_this_machine(master: str) -> bool:
    """True if driver and executors of `master` are all here, so that loopback is all they need."""
    return master.startswith("local") or urlsplit(master).hostname in ("127.0.0.1", "localhost", "::1")


def of_session(master: str, settings: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """(settings of a session on `master` with `settings`, variables of its JVM's environment besides this process's).
    """
    # A file beside the notebook, such as a secrets.py, must not take the place of a module that workers import.
    environment = {"SPARK_CONNECT_MODE": "0", "PYTHONSAFEPATH": "1"}
    settings = {"spark.executorEnv.PYTHONSAFEPATH": "1", **settings}
    python = forks.start() if master.startswith("local") else sys.executable
    if on_this_machine(master):
        settings = {**private_settings(master, Path(python).parent), **settings}
        settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **settings}
        # A SPARK_HOME of another version, or the python that comes first on the path, would not fit this package's.
        environment |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(own_spark()),
            "PYSPARK_PYTHON": python,
        }
    elif "PYSPARK_PYTHON" not in os.environ:
        environment["PYSPARK_PYTHON"] = sys.executable
    warehouse = (Path(tempfile.gettempdir()) / "sparkstream-warehouse").as_uri()
    return {"spark.app.name": "sparkstream", "spark.sql.warehouse.dir": warehouse, **settings}, environment


_LONGEST_FOLDER = 50
"""Maximum bytes of a folder's path, so that paths of sockets in it have fewer than 104, the least that systems allow.
"""


def private_settings(master: str, folder: Path) -> dict[str, str]:
    """The settings that keep others on this machine out: a secret, which Spark makes for each session, and sockets
    between Java and Python in `folder`, if that belongs to this user alone, in place of ports.
    """
    if not _LOCAL.fullmatch(master):
        return {}  # a cluster has its own
    is_private = folder.stat().st_mode & 0o077 == 0 and len(os.fsencode(folder)) <= _LONGEST_FOLDER
    sockets = {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}
    return {"spark.authenticate": "true", **(sockets if is_private else {})}


def own_spark() -> Path:
    """Home of the Spark that is installed with this package. Raises SparkUnavailable if there is none."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkUnavailable(NO_SPARK)
    return Path(spec.origin).parent
