"""The runner of a master: its session, and the checkpoint of an app's life.

Spark's modules are loaded when an app runs there, so that all else works where pyspark is not installed.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ..engine import warm
from ..errors import Misuse, SparkUnavailable
from ..journal.checkpoints import SparkCheckpoint as SparkCheckpoint
from ..journal.shared import Shared
from .inline import InlineSession
from .inline_checkpoint import InlineCheckpoint, copy_checkpoint
from .runner_protocol import Checkpoint, Session
from .spark import java, settings
from .spark.versions import check_installed

INLINE = "inline"
"""The master of apps that run in this process."""
Kind = Literal["spark", "inline"]
_ENGINE, _SPARK = "engine.warm", "app.warm_spark"


def kind_of(master: str | None) -> Kind:
    """Kind of the runner for a master. The form of the nodes' state differs by kind."""
    return "inline" if master == INLINE else "spark"


def check_master(master: str | None, shared: str | None = None) -> None:
    """Raises `Misuse` for a text that is no master, and where `shared` does not fit it. Starts and asks nothing."""
    if master != INLINE:
        settings.check_master(master)
    elif shared is not None:
        raise Misuse("shared=... is where Spark's machines meet: master='inline' runs in this process, leave one out")


def ahead_of(master: str | None) -> tuple[str, ...]:
    """The modules to be run once on a machine before the first app on a master: they save time later."""
    if master == INLINE:
        return (_ENGINE,)
    return (_ENGINE, _SPARK) if _starts_here(master) else ()


def _starts_here(master: str | None) -> bool:
    """True if Spark works on this machine, for this process."""
    if master is None and settings.connect_session() is not None:
        return False
    return settings.on_this_machine(master or settings.local_master())


def check_spark(master: str | None) -> None:
    """Raises SparkUnavailable if a master needs a pyspark that is not installed, or a newer one; on a machine that has
    compiled nothing yet also if there is no Java for it: the first deployment would say so after minutes.
    """
    if master == INLINE:
        return
    try:
        check_installed()
        if find_spec("py4j") is None:  # there is Connect's client alone
            raise SparkUnavailable(settings.NO_SPARK)
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        raise SparkUnavailable(settings.NO_SPARK) from error
    if _starts_here(master) and not warm.is_compiled():
        java.find_java()


def session(master: str | None) -> Session:
    """The session for apps on a master. Raises SparkUnavailable as `spark.shared_session.spark_session` does, and if
    pyspark is not installed, or it or the Spark at the master is too old.
    """
    if master == INLINE:
        jvm_module = sys.modules.get(f"{settings.__package__}.jvm")
        if jvm_module is not None:
            jvm_module.drop()
        return InlineSession()
    check_spark(master)
    from .spark import runner, shared_session

    return runner.SparkSessionOfApps(shared_session.spark_session(master))


def checkpoint_of(kind: Kind, home: Path, shared: Shared | None) -> Checkpoint:
    """The checkpoint of the run with the folder `home`, and its folder at a shared address, if any. Raises
    SparkStreamError if it cannot be read.
    """
    return InlineCheckpoint(home / "checkpoint") if kind == "inline" else SparkCheckpoint.of(home, shared)


def keep_checkpoint(kind: Kind, home: Path, to: Path) -> None:
    """Copies the checkpoint of a life that does not run, in its folder `home`, to `to`."""
    checkpoint = home / "checkpoint"
    if kind == "inline":
        copy_checkpoint(checkpoint, to)
    elif checkpoint.is_dir():
        shutil.copytree(checkpoint, to, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    """Spark writes the files of a checkpoint once: another name for them is a copy. It may remove one of old state
    meanwhile."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        pass
    except OSError:
        shutil.copy2(source, target)
