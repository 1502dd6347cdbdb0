"""SparkStream Notebook: SiddhiQL apps in a notebook, on simulated nodes, run by Spark.

In a notebook, `%load_ext sparkstream_nb` gives the magics `%siddhi` and `%%siddhi`. The same in Python:

    app = sparkstream_nb.deploy(text, nodes=3, mode="active-active")
    app.feed("Trades", frame, time="timestamp")
    app.query("from TradeAggregation within '2013-**-** **:**:**' per 'hours' select *")

`sparkstream_nb.columns` has generators of columns for `sparkstream_nb.generate`, a module that is loaded likewise. The
functions come from `sparkstream_nb.app`, which is loaded on their first use, so importing a lower layer, such
as `sparkstream_nb.plan`, loads neither Spark nor IPython. `sparkstream_nb.lab` is then the front end: it displays apps
and their results.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 (pip refuses it; a checkout on the path of another Python does not)
    raise ImportError(f"sparkstream_nb needs Python 3.11 or newer. Run it by one: {sys.executable} is {sys.version}")

from ._version import __version__

if TYPE_CHECKING:
    from .app import (
        App,
        Coordination,
        Cut,
        Disorder,
        Kill,
        Limits,
        Pair,
        Pause,
        Reading,
        Restart,
        Retention,
        SiddhiFrames,
        Slow,
        apps,
        attach,
        attachable,
        changes,
        check,
        deploy,
        explain,
        generate,
        get,
        overview,
        plot,
        siddhi,
        split,
        sql,
        sql_relations,
        trace,
    )  # fmt: skip

__all__ = [
    "App", "Coordination", "Cut", "Disorder", "Kill", "Limits", "Pair", "Pause", "Reading", "Restart", "Retention",
    "SiddhiFrames", "Slow", "__version__", "apps", "attach", "attachable", "changes", "check", "deploy", "explain",
    "generate", "get", "overview", "plot", "siddhi", "split", "sql", "sql_relations",
    "trace",
]  # fmt: skip


def load_ipython_extension(shell: Any) -> None:
    """Runs at `%load_ext sparkstream_nb`. Starts Spark's JVM in the background, as a cell will need it soon."""
    from .lab import load_ipython_extension as load
    from .runners.spark import jvm

    threading.Thread(target=jvm.begin, name="begin-spark", daemon=True).start()

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Runs at `%unload_ext sparkstream_nb`: stops the apps that are still running."""
    from .lab import unload_ipython_extension as unload
    from .runners.spark import jvm

    unload(shell)
    jvm.drop()


if not TYPE_CHECKING:  # type checkers see only the imports above

    def __getattr__(name):
        if name == "columns":
            return import_module(".columns", __name__)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import app as api
        from .lab import connect

        connect()
        return getattr(api, name)

    def __dir__():
        return sorted({*globals(), *__all__, "columns"})
