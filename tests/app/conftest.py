"""Fixtures of apps."""

from __future__ import annotations

from tests.apps.fixtures import *  # noqa: F403
