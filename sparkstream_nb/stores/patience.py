"""Waiting of a store for a database that is busy or cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Patience:
    """Limit and means of a store's waiting for its database.

    `seconds`: in all, before a transaction fails. `wait(seconds)` waits, `tell(sentence)` reports the reason.
    """

    seconds: float = 300.0
    wait: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = field(default=lambda _: None)
