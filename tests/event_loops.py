"""Coroutines in tests that are no coroutines themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, from a loop in a thread of its own: Playwright keeps one running in the thread of the
    tests once a test of the same process opened a browser, and `asyncio.run` refuses a second."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()
