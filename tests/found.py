"""Programs of this machine that tests use, and what a test says where one is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import pytest

HIDE = "SPARKSTREAM_TEST_HIDE"
"""A variable with kinds of programs (java, maven, browser, servers), with commas: the tests do as if this machine had
none of them. `tests/bare.sh` sets it."""


def hidden(kind: str) -> bool:
    """Whether programs of a kind are hidden."""
    return kind in os.environ.get(HIDE, "").split(",")


def program(kind: str, *names: str, folders: Sequence[str] = ()) -> str | None:
    """The path of the first of these programs that is on the PATH, or in one of the folders. None where there is none,
    or where its kind is hidden."""
    if hidden(kind):
        return None
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def skip_unless(found: object, kind: str, needed: str) -> None:
    """Skips the test, and names what it needs, unless that was found. In continuous integration, which installs it, the
    test fails, except where the kind is hidden."""
    if not found:
        if "CI" in os.environ and not hidden(kind):
            pytest.fail(f"needs {needed}")
        pytest.skip(f"needs {needed}")
