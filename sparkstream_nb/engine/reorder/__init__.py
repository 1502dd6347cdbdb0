"""`reorder:kslack` and `reorder:akslack`: hold events back and emit them in the order of their times.

`step` is the operator, `reorder_loop` its compiled loop, `reorder_buffer` stores the waiting events, `adapting` is the
adaptation of `akslack`.
"""

from __future__ import annotations

from .step import ReorderStep

__all__ = ["ReorderStep"]
