"""Cause of an error of Spark's, in one line."""

from __future__ import annotations

import re

from ..errors import SparkStreamError

SERVER_GONE = "its Spark Connect server does not answer. Start that, and deploy the app again"
_OWN = re.compile(rf"{re.escape(SparkStreamError.__module__)}\.\w+: ")
"""Prefix of the text of an error of this package in a traceback."""


def is_own(text: str) -> bool:
    """True if the trace of an error of Spark's has an error of this package."""
    return _OWN.search(text) is not None


def cause_of(text: str) -> str:
    """The line with the cause: the last Python exception, else Java's innermost, else the first."""
    if "StatusCode.UNAVAILABLE" in text:
        return SERVER_GONE
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [i for i, line in enumerate(lines) if line.startswith("Traceback")]
    if python:
        for line in lines[python[-1] + 1 :]:
            if not line.startswith(("File ", "^", "~")) and ": " in line and " " not in line.split(":", 1)[0]:
                return _OWN.sub("", line, count=1)
    java = [line for line in lines if line.startswith("Caused by: ")]
    if java:
        return java[-1].removeprefix("Caused by: ").split(": ", 1)[-1]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):  # Py4J's, of a call of Java
        return lines[1].removeprefix(": ").split(": ", 1)[-1]
    return lines[0] if lines else "no reason given"
