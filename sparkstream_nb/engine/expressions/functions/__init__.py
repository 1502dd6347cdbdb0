"""Scalar functions, one file per namespace. A function is one row of a table: key → builder (`..rowwise`)."""

from __future__ import annotations

from collections.abc import Mapping

from ....plan.plugins import WithExtensions
from ..rowwise import Builder
from . import core, geo, jsons, lists, maps, maths, regexes, strings, times, units

_BUILT_IN: Mapping[str, Builder] = {
    key: builder
    for table in (core, strings, maths, times, regexes, maps, lists, jsons, units, geo)
    for key, builder in table.TABLE.items()
}

FUNCTIONS: WithExtensions[Builder] = WithExtensions(_BUILT_IN, "function", "implementation")
