"""`reorder:kslack` and `reorder:akslack`: events held back until their time is due, so that late ones find their place.

`step` is the operator, `loop` its compiled loop, `held` keeps the events that wait, `adapting` is what `akslack` adds.
"""

from __future__ import annotations

from .step import Reorder

__all__ = ["Reorder"]
