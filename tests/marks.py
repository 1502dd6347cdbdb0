"""Marks of parameters."""

from __future__ import annotations

from typing import Any

import pytest


def thorough(*values: Any) -> Any:
    """Further values of parameters, for `make thorough`: `make test` has others that show the same."""
    return pytest.param(*values, marks=pytest.mark.thorough)
