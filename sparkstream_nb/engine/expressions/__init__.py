"""Vectorised evaluation of plan expressions, and all scalar functions."""

from __future__ import annotations

from .env import Context, Env, Evaluator, Script
from .evaluate import compile_condition, compile_expr
from .values import Failure, Float, Long

__all__ = ["Context", "Env", "Evaluator", "Failure", "Float", "Long", "Script", "compile_condition", "compile_expr"]
