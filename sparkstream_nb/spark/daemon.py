"""The process that Spark's Python workers are forked from, with what they need imported once for all of them.

Spark starts one for each kind of worker; those that only plan a query need little.
"""

from __future__ import annotations

import sys

from pyspark.daemon import manager

if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        from . import nodes, stateless  # noqa: F401
    manager()
