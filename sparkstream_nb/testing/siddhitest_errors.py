"""Errors in test files."""

from __future__ import annotations

from ..errors import SiddhiError


class AppTestError(SiddhiError):
    """A test file is wrong at a place: `str()` begins with FILE:LINE:COLUMN."""
