"""The expression inside an `expression` or `expressionBatch` window, which is a text of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ..nodes import Expr
from .scope import Scope


def bind_window_expression(key: str, args: Sequence[Expr], scope: Scope) -> None:
    """Checks the constant text of the window."""
