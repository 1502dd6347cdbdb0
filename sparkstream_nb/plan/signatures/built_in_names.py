"""The names of this package's functions, aggregators, stream functions and windows."""

from __future__ import annotations

from . import aggregators, scalars, streams, windows

BUILT_IN_NAMES = frozenset((*scalars.TABLE, *aggregators.TABLE, *streams.TABLE, *windows.TABLE))
