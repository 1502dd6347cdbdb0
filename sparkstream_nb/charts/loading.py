"""Loads the module that makes figures on first use: Plotly takes its time, and need not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import SparkStreamError


def load_figures() -> Any:
    """The module `figures`. Raises SparkStreamError where Plotly is not installed."""
    try:
        return import_module(".figures", __package__)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        raise SparkStreamError("Figures need Plotly, which is not installed: pip install plotly") from None
