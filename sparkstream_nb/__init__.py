"""SparkStream Notebook: SiddhiQL apps in a notebook, on simulated nodes, run by Spark.

In a notebook, `%load_ext sparkstream_nb` gives the magics `%siddhi` and `%%siddhi`. The same in Python:

    app = sparkstream_nb.deploy(text, nodes=3, mode="active-active")
    app.feed("Trades", frame, time="timestamp")
    app.query("from TradeAggregation within '2013-**-** **:**:**' per 'hours' select *")

`deploy`, `get`, `apps`, `check` and `explain` come from `sparkstream_nb.lab`, which is loaded on their first use, so
importing a lower layer, such as `sparkstream_nb.plan`, loads neither Spark nor IPython.
"""

from __future__ import annotations

import threading
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "apps", "check", "deploy", "explain", "get"]


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext sparkstream_nb` runs. Spark's JVM begins meanwhile, as a cell will need it soon."""
    from .lab import load_ipython_extension as load
    from .spark import jvm

    threading.Thread(target=jvm.begin, name="begin-spark", daemon=True).start()

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext sparkstream_nb` runs: stops the apps that are still running."""
    from .lab import unload_ipython_extension as unload
    from .spark import jvm

    unload(shell)
    jvm.drop()


def __getattr__(name: str) -> Any:
    if name in __all__:
        from .lab import app

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
