"""Vectorised evaluation of plan expressions, and all scalar functions."""

from __future__ import annotations

from .env import Context, Env, Evaluator, Script
from .evaluate import compile_condition, compile_expr
from .java_values import Float, Long, RowFailure

__all__ = ["Context", "Env", "Evaluator", "Float", "Long", "RowFailure", "Script", "compile_condition", "compile_expr"]
