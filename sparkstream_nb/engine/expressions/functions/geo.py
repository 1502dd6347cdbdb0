"""`geo:distance` (siddhi-gpl-execution-geo 5.0): the distance between two places on the earth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....plan.nodes import Call
from ....types import Type
from ...columnar.column_data import Column
from ..env import Env
from ..java_arithmetic import either
from ..rowwise import Builder, eager

_RADIUS = 6_371_000
"""Radius of the earth, in m."""


def _distance(columns: list[Column], env: Env, call: Call) -> Column:
    """The great-circle distance in m, by the haversine formula."""
    null = None
    for column in columns:
        null = either(null, column.null)
    if null is not None:
        env.fail(np.broadcast_to(null, env.n), "the latitudes and longitudes of geo:distance() cannot be null")
    latitude, longitude, other_latitude, other_longitude = (c.values * (np.pi / 180) for c in columns)
    chord = (
        np.sin((other_latitude - latitude) / 2) ** 2
        + np.cos(latitude) * np.cos(other_latitude) * np.sin((other_longitude - longitude) / 2) ** 2
    )
    return Column(Type.DOUBLE, _RADIUS * 2 * np.arctan2(np.sqrt(chord), np.sqrt(1 - chord)), null)


TABLE: Mapping[str, Builder] = {"geo:distance": eager(_distance)}
