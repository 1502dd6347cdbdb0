"""Scalar functions by key, a file a namespace. A function is one row of a table: key → builder (`..rowwise`)."""

from __future__ import annotations

from collections.abc import Mapping

from ..rowwise import Builder
from . import core, maths, regexes, strings, times

FUNCTIONS: Mapping[str, Builder] = {**core.TABLE, **strings.TABLE, **maths.TABLE, **regexes.TABLE, **times.TABLE}
