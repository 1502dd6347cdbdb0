"""Errors of an app that would run without its sources, sinks and databases say so."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Misuse, SiddhiError, SparkStreamError

WAY_OUT = (
    "To run the app as it is on your own feeds, without its sources, sinks and databases: --offline, or offline=True."
)


def point_offline(error: SparkStreamError, runs_offline: Callable[[], bool]) -> SparkStreamError:
    """The error, which names the way out if the app runs without its connections."""
    try:
        if not runs_offline():
            return error
    except SparkStreamError:
        return error
    if isinstance(error, SiddhiError):
        error.hint = f"{error.hint} {WAY_OUT}" if error.hint else WAY_OUT
    elif isinstance(error, Misuse):
        error.args = (f"{str(error).rstrip('.')}. {WAY_OUT}",)
    return error
