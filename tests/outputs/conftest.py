"""Temporary folders with odd names."""

from __future__ import annotations

from tests.apps.odd_folders import tmp_path

__all__ = ["tmp_path"]
