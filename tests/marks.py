"""Marks of parameters."""

from __future__ import annotations

from typing import Any

import pytest


def thorough(value: Any) -> Any:
    """A further value of a parameter, for `make thorough`: `make test` has another one that shows the same."""
    return pytest.param(value, marks=pytest.mark.thorough)
