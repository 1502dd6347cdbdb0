"""All signatures: scalar functions, aggregators, windows, stream functions.

The tables are rows of text in `plan/signatures/`, read by `signatures.core`, whose docstring describes the format.
Keys are as in the text, with their namespace: `ifThenElse`, `str:concat`, `timeBatch`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .signatures import aggregators, scalars, streams, windows
from .signatures.signature import Overload, Param, Signature, StreamFunction, resolve, unknown

SCALARS: Mapping[str, Signature] = scalars.TABLE
AGGREGATORS: Mapping[str, Signature] = aggregators.TABLE
INCREMENTAL: Mapping[str, Signature] = aggregators.INCREMENTAL
WINDOWS: Mapping[str, Signature] = windows.TABLE
STREAM_FUNCTIONS: Mapping[str, StreamFunction] = streams.TABLE

__all__ = [
    "AGGREGATORS",
    "INCREMENTAL",
    "SCALARS",
    "STREAM_FUNCTIONS",
    "WINDOWS",
    "Overload",
    "Param",
    "Signature",
    "StreamFunction",
    "resolve",
    "unknown",
]
