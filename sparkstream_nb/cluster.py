"""The former name of `sparkstream_nb.app`, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

from . import app


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # asked by the import system
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(app, name)
    warnings.warn(
        f"sparkstream_nb.cluster is now sparkstream_nb.app: from sparkstream_nb.app import {name}",
        DeprecationWarning, stacklevel=2,
    )  # fmt: skip
    return value
