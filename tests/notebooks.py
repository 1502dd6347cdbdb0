"""A plugin of pytest's for notebooks, `-p tests.notebooks`: each process of a run has a folder of its own for apps.

Two notebooks may give an app the same name. With `--sixth` a run has the sixth of the notebooks that the commit draws.
"""

from __future__ import annotations

import os
import tempfile

import pytest

pytest_plugins = ["tests.profiles"]
HOME = "SPARKSTREAM_HOME"


def pytest_configure(config: pytest.Config) -> None:
    """Sets `$SPARKSTREAM_HOME` for the kernels of this process; where there is one, to a folder in that."""
    if not hasattr(config, "workerinput") and (config.getoption("numprocesses", None) or HOME in os.environ):
        return  # its workers have kernels, or it has the folder to itself
    folder = tempfile.TemporaryDirectory(
        prefix="sparkstream-apps-", dir=os.environ.get(HOME), ignore_cleanup_errors=True
    )
    os.environ[HOME] = folder.name
    config.add_cleanup(folder.cleanup)
